// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "protocol/byte_io.h"
#include "protocol/ethernet.h"

namespace rnic::protocol {

/// Priority-based flow control frame (IEEE 802.1Qbb), padded to the minimum frame, without FCS.
struct PfcFrame {
  static constexpr std::uint32_t kBytes = 60;
  static constexpr MacAddress kDestination{0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};
  static constexpr std::uint16_t kOpcode = 0x0101;
  MacAddress destination = kDestination;
  MacAddress source{};
  std::uint16_t ether_type = kEtherTypeMacControl;
  std::uint16_t opcode = kOpcode;
  std::uint8_t enable = 0;              ///< bit i: time[i] is valid
  std::array<std::uint16_t, 8> time{};  ///< quanta of 512 bit times; 0 resumes

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bytes(0, h.destination);
    io.bytes(6, h.source);
    io.u16(12, h.ether_type);
    io.u16(14, h.opcode);
    io.bits16(16, Fixed<8>{}, bits<8>(h.enable));
    for (std::size_t i = 0; i < 8; ++i) io.u16(18 + 2 * i, h.time[i]);
    io.template zeros<26>(34);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static PfcFrame decode(const std::uint8_t* in) { return decode_header<PfcFrame>(in); }

  bool is_pfc() const { return ether_type == kEtherTypeMacControl && opcode == kOpcode; }
};

/// PAUSE of the whole link (IEEE 802.3 annex 31B), padded to the minimum frame, without FCS.
struct PauseFrame {
  static constexpr std::uint32_t kBytes = PfcFrame::kBytes;
  static constexpr std::uint16_t kOpcode = 0x0001;
  MacAddress destination = PfcFrame::kDestination;
  MacAddress source{};
  std::uint16_t ether_type = kEtherTypeMacControl;
  std::uint16_t opcode = kOpcode;
  std::uint16_t time = 0;  ///< quanta of 512 bit times; 0 resumes

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bytes(0, h.destination);
    io.bytes(6, h.source);
    io.u16(12, h.ether_type);
    io.u16(14, h.opcode);
    io.u16(16, h.time);
    io.template zeros<42>(18);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static PauseFrame decode(const std::uint8_t* in) { return decode_header<PauseFrame>(in); }

  bool is_pause() const { return ether_type == kEtherTypeMacControl && opcode == kOpcode; }
};

}  // namespace rnic::protocol
