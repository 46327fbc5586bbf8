// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_io.h"

namespace rnic::protocol {

inline constexpr std::uint16_t kRoceV2Port = 4791;

/// UDP header (RFC 768).
struct UdpHeader {
  static constexpr std::uint32_t kBytes = 8;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t bytes = 0;     ///< header and payload
  std::uint16_t checksum = 0;  ///< 0: not used, as RoCEv2 sends it

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u16(0, h.source_port);
    io.u16(2, h.destination_port);
    io.u16(4, h.bytes);
    io.u16(6, h.checksum);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static UdpHeader decode(const std::uint8_t* in) { return decode_header<UdpHeader>(in); }
};

/// Flow label derived from the two queue pair numbers, the same in both directions (Linux
/// include/rdma/ib_verbs.h).
constexpr std::uint32_t roce_flow_label(std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  std::uint64_t v = std::uint64_t{local_qpn} * remote_qpn;
  v ^= v >> 20;
  v ^= v >> 40;
  return static_cast<std::uint32_t>(v & 0xF'FFFF);
}

/// RoCEv2 UDP source port, 0xC000-0xFFFF, one per queue pair so that ECMP keeps its path.
/// `flow_label` 0 means "derive it from the queue pair numbers".
constexpr std::uint16_t roce_source_port(std::uint32_t flow_label, std::uint32_t local_qpn,
                                         std::uint32_t remote_qpn) {
  const std::uint32_t label = flow_label != 0 ? flow_label : roce_flow_label(local_qpn, remote_qpn);
  return static_cast<std::uint16_t>(0xC000U | ((label & 0x3FFFU) ^ ((label & 0xF'C000U) >> 14)));
}

}  // namespace rnic::protocol
