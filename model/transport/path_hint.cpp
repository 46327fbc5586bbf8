// SPDX-License-Identifier: Apache-2.0
#include "transport/path_hint.h"

#include "protocol/byte_order.h"
#include "protocol/ib_headers.h"

namespace rnic::transport {

std::uint32_t flow_of(config::Protocol protocol, const Encapsulation& encapsulation,
                      const protocol::Frame& frame) {
  const std::uint8_t* inner = frame.header + encapsulation.outer_bytes(frame);
  if (protocol == config::Protocol::kIwarp) {
    return static_cast<std::uint32_t>(protocol::load_be16(inner)) + protocol::load_be16(inner + 2);
  }
  return protocol::Bth::decode(inner).dest_qpn;
}

bool takes_any_path(config::Protocol protocol, const Encapsulation& encapsulation,
                    const protocol::Frame& frame) {
  if (protocol == config::Protocol::kIwarp) return false;
  return (frame.header[encapsulation.outer_bytes(frame) + kAnyPathOffset] & kAnyPathBit) != 0;
}

}  // namespace rnic::transport
