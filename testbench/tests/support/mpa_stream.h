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

/// A captured iWARP stream, taken apart by RFC 5044 alone. tshark 4.0 loses its place where an FPDU
/// ends at a marker's position: it expects that marker to belong to the FPDU, while it belongs to
/// the next one (4.3), and finds the next CRC wrong.
namespace rnic::testbench {

/// What one end sent behind its MPA frame: the first byte is that of the first FPDU.
inline std::vector<std::uint8_t> mpa_stream(const std::string& capture, bool sent) {
  std::vector<std::uint8_t> stream;
  std::uint32_t first = 0;
  bool full_operation = false;
  for (const CapturedPacket& packet : read_pcapng(capture)) {
    if (packet.sent != sent) continue;
    const std::vector<std::uint8_t>& b = packet.bytes;
    const auto be16 = [&b](std::size_t at) {
      return static_cast<std::size_t>(b[at] << 8 | b[at + 1]);
    };
    const std::size_t ip = be16(12) == 0x8100 ? 18 : 14;
    const bool ipv6 = b[ip] >> 4 == 6;
    const std::size_t tcp = ip + (ipv6 ? 40U : 20U);
    const std::size_t end = ipv6 ? tcp + be16(ip + 4) : ip + be16(ip + 2);
    const std::size_t from = tcp + (b[tcp + 12] >> 4) * 4U;
    if (from >= end) continue;
    const auto sequence = static_cast<std::uint32_t>(be16(tcp + 4) << 16 | be16(tcp + 6));
    if (!full_operation) {  // the MPA request or reply
      full_operation = true;
      first = sequence + static_cast<std::uint32_t>(end - from);
      continue;
    }
    const std::size_t at = sequence - first;
    if (stream.size() < at + (end - from)) stream.resize(at + (end - from));
    std::copy(b.begin() + static_cast<std::ptrdiff_t>(from),
              b.begin() + static_cast<std::ptrdiff_t>(end),
              stream.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return stream;
}

/// What a walk over a stream with markers found.
struct MarkedStream {
  int fpdus = 0;
  int markers = 0;
  int at_ends = 0;  ///< FPDUs that end where a marker stands
};

/// Walks over all FPDUs of a stream with a marker every `interval` bytes: every marker where it
/// must be, pointing at its FPDU, and every CRC32c over length, ULPDU, pad and the markers among
/// and in front of them. 0: no markers.
inline MarkedStream walk_stream(const std::vector<std::uint8_t>& stream, std::size_t interval) {
  constexpr std::uint32_t kCastagnoli = 0x82F6'3B78U;
  MarkedStream found;
  std::size_t at = 0;
  std::size_t length_at = 0;
  std::vector<std::uint8_t> covered;
  const auto take = [&](std::size_t bytes) {
    for (std::size_t i = 0; i < bytes && at < stream.size(); ++i) covered.push_back(stream[at++]);
  };
  const auto take_marker = [&](bool leads) {
    if (interval == 0 || at % interval != 0 || at + 4 > stream.size()) return;
    ++found.markers;
    EXPECT_EQ(stream[at] << 8 | stream[at + 1], 0) << "reserved bits at " << at;
    const std::size_t distance = leads ? 0 : at - length_at;
    EXPECT_EQ(static_cast<std::size_t>(stream[at + 2] << 8 | stream[at + 3]), distance) << at;
    take(4);
  };
  while (at + 2 <= stream.size()) {
    covered.clear();
    take_marker(true);
    length_at = at;
    const auto ulpdu = static_cast<std::size_t>(stream[at] << 8 | stream[at + 1]);
    const std::size_t content = (2 + ulpdu + 3) / 4 * 4;
    for (std::size_t done = 0; done < content && at < stream.size(); ++done) {
      if (done > 0) take_marker(false);
      take(1);
    }
    take_marker(false);
    if (at + 4 > stream.size()) {
      ADD_FAILURE() << "the stream ends inside an FPDU";
      return found;
    }
    std::uint32_t crc = 0;
    for (std::size_t i = 4; i-- > 0;) crc = crc << 8 | stream[at + i];
    EXPECT_EQ(bitwise_crc(covered, kCastagnoli, 0xFFFF'FFFFU), crc) << "FPDU at " << length_at;
    at += 4;
    ++found.fpdus;
    if (interval != 0 && at % interval == 0) ++found.at_ends;
    if (::testing::Test::HasFailure()) return found;
  }
  return found;
}

inline MarkedStream walk_marked_stream(const std::vector<std::uint8_t>& stream) {
  return walk_stream(stream, 512);
}

}  // namespace rnic::testbench
