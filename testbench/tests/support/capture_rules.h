// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/hex.h"
#include "support/tshark.h"

/// Checksums of captured packets that tshark does not check, by the rules alone.
namespace rnic::testbench {

/// ICRC of a captured packet by the rules alone: `start` is where the LRH (IB), GRH or IP header
/// is. Bit by bit, and with the masks of each format spelt out.
inline std::uint32_t icrc_by_rules(const std::vector<std::uint8_t>& packet, std::size_t start,
                                   std::size_t end, const std::string& protocol) {
  std::vector<std::uint8_t> in(packet.begin() + static_cast<std::ptrdiff_t>(start),
                               packet.begin() + static_cast<std::ptrdiff_t>(end));
  std::size_t bth = 0;
  const auto ones = [&in](std::size_t at, std::size_t n) {
    std::fill_n(in.begin() + static_cast<std::ptrdiff_t>(at), n, std::uint8_t{0xFF});
  };
  const bool ipv6 = protocol != "ib" && (in[0] >> 4) == 6;
  if (protocol == "ib" && (in[1] & 3) == 3) {  // with GRH: all of the LRH, and as RoCEv1
    ones(0, 8);
    in[8] |= 0x0F;
    ones(9, 3);
    ones(15, 1);
    bth = 48;
  } else if (protocol == "ib") {
    in[0] |= 0xF0;  // VL
    bth = 8;
  } else if (ipv6) {
    in[0] |= 0x0F;  // traffic class, flow label, hop limit
    ones(1, 3);
    ones(7, 1);
    bth = protocol == "rocev1" ? 40 : 48;
    if (protocol == "rocev2") ones(46, 2);  // UDP checksum
  } else {
    ones(1, 1);   // ToS
    ones(8, 1);   // TTL
    ones(10, 2);  // header checksum
    ones(26, 2);  // UDP checksum
    bth = 28;
  }
  ones(bth + 4, 1);                                      // FECN, BECN
  if (protocol != "ib") in.insert(in.begin(), 8, 0xFF);  // in the place of the LRH
  return bitwise_crc(in, 0xEDB8'8320U, 0xFFFF'FFFFU);
}

inline std::uint32_t little_endian_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | bytes[at + i];
  return value;
}

/// ICRC (not of iWARP) and link CRC of every packet; how many were not of flow control.
inline int expect_crcs(const std::string& capture, const std::string& protocol) {
  int checked = 0;
  for (const CapturedPacket& packet : read_pcapng(capture)) {
    const std::vector<std::uint8_t>& b = packet.bytes;
    std::size_t start = 0;
    std::size_t icrc_at = 0;
    if (protocol == "ib") {
      constexpr std::size_t kErf = 16;
      if (b[8] != 21) continue;  // a link packet
      ++checked;
      start = kErf;
      icrc_at = b.size() - 6;
      const std::vector<std::uint8_t> covered(b.begin() + kErf, b.end() - 2);
      EXPECT_EQ(bitwise_crc(covered, 0xD008U, 0xFFFFU),
                static_cast<std::uint32_t>(b[b.size() - 2] | b[b.size() - 1] << 8))
          << "VCRC";
    } else {
      const std::vector<std::uint8_t> covered(b.begin(), b.end() - 4);
      EXPECT_EQ(bitwise_crc(covered, 0xEDB8'8320U, 0xFFFF'FFFFU), little_endian_at(b, b.size() - 4))
          << "FCS";
      if (b[12] == 0x88 && b[13] == 0x08) continue;  // MAC control
      ++checked;
      if (protocol == "iwarp") continue;
      start = b[12] == 0x81 ? 18 : 14;
      // By the length fields: short frames have padding behind the ICRC.
      const std::size_t at = start + (b[start] >> 4 == 6 ? 4U : 2U);
      const std::size_t length = static_cast<std::size_t>(b[at] << 8 | b[at + 1]);
      icrc_at = start + length + (b[start] >> 4 == 6 ? 40U : 0U) - 4;
    }
    EXPECT_EQ(icrc_by_rules(b, start, icrc_at, protocol), little_endian_at(b, icrc_at)) << "ICRC";
  }
  return checked;
}

}  // namespace rnic::testbench
