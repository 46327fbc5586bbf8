// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "protocol/byte_io.h"

namespace rnic::protocol {

using MacAddress = std::array<std::uint8_t, 6>;

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
inline constexpr std::uint16_t kEtherTypeMacControl = 0x8808;
inline constexpr std::uint16_t kEtherTypeRoceV1 = 0x8915;

/// Line costs outside the frame (IEEE 802.3): preamble with start delimiter, and inter-packet gap.
inline constexpr std::uint32_t kEthernetPreambleBytes = 8;
inline constexpr std::uint32_t kEthernetGapBytes = 12;
/// Smallest frame, FCS included.
inline constexpr std::uint32_t kEthernetMinFrameBytes = 64;
inline constexpr std::uint32_t kFcsBytes = 4;

/// IEEE 802.3 MAC header.
struct EthernetHeader {
  static constexpr std::uint32_t kBytes = 14;
  MacAddress destination{};
  MacAddress source{};
  std::uint16_t ether_type = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bytes(0, h.destination);
    io.bytes(6, h.source);
    io.u16(12, h.ether_type);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static EthernetHeader decode(const std::uint8_t* in) { return decode_header<EthernetHeader>(in); }
};

/// What follows an 802.1Q tag type: control information and the real EtherType.
struct VlanTag {
  static constexpr std::uint32_t kBytes = 4;
  std::uint8_t priority = 0;  ///< PCP, 0-7
  bool drop_eligible = false;
  std::uint16_t vlan_id = 0;  ///< 12 bits
  std::uint16_t ether_type = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits16(0, bits<3>(h.priority), bits<1>(h.drop_eligible), bits<12>(h.vlan_id));
    io.u16(2, h.ether_type);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static VlanTag decode(const std::uint8_t* in) { return decode_header<VlanTag>(in); }
};

}  // namespace rnic::protocol
