// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/ib_headers.h"
#include "protocol/opcode.h"
#include "transport/rc_transport.h"

namespace rnic::transport {

/// A frame's transport headers, decoded once for both halves.
struct RcTransport::Incoming {
  protocol::Bth bth{};
  protocol::OpcodeInfo info{};
  protocol::Reth reth{};
  protocol::Aeth aeth{};
  protocol::AtomicEth atomic{};
  protocol::AtomicAckEth atomic_ack{};
  protocol::Deth deth{};
  std::uint32_t imm = 0;
  std::uint32_t sack_psn = 0;  ///< selective repeat: of a sequence NAK
  std::uint32_t payload_bytes = 0;
  std::uint8_t pad_bytes = 0;
};

/// Same partition, and at least one side a full member (bit 15).
constexpr bool pkeys_match(std::uint16_t a, std::uint16_t b) {
  return ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000) != 0;
}

}  // namespace rnic::transport
