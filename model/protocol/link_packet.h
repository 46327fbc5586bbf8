// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_io.h"

namespace rnic::protocol {

/// InfiniBand flow-control packet without its LPCRC (IBTA vol 1, 7.9.4). On the wire the 4 bytes
/// are followed by `lpcrc()` of them (crc.h), stored little-endian.
struct LinkPacket {
  static constexpr std::uint32_t kBytes = 4;
  static constexpr std::uint32_t kCrcBytes = 2;
  static constexpr std::uint8_t kOpNormal = 0;
  static constexpr std::uint8_t kOpInit = 1;
  std::uint8_t op = kOpNormal;
  std::uint16_t fctbs = 0;  ///< blocks sent, modulo 4096
  std::uint8_t vl = 0;
  std::uint16_t fccl = 0;  ///< credit limit, modulo 4096

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<4>(h.op), bits<12>(h.fctbs), bits<4>(h.vl), bits<12>(h.fccl));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static LinkPacket decode(const std::uint8_t* in) { return decode_header<LinkPacket>(in); }
};

}  // namespace rnic::protocol
