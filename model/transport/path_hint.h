// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "config/transport_config.h"
#include "protocol/frame.h"
#include "transport/encapsulation.h"

namespace rnic::transport {

/// A bit of the BTH's seven reserved ones (IBTA vol 1, 9.2) by which a sender says that a packet
/// may overtake others and be overtaken. How devices say so is their vendors' own.
inline constexpr std::uint32_t kAnyPathOffset = 8;  ///< of its byte in the BTH
inline constexpr std::uint8_t kAnyPathBit = 0x40;

/// The connection that `frame` belongs to, as a number: the queue pair that it is for, or TCP's
/// ports.
std::uint32_t flow_of(config::Protocol protocol, const Encapsulation& encapsulation,
                      const protocol::Frame& frame);
/// Whether its sender lets it take any path.
bool takes_any_path(config::Protocol protocol, const Encapsulation& encapsulation,
                    const protocol::Frame& frame);

}  // namespace rnic::transport
