// SPDX-License-Identifier: Apache-2.0
#include "protocol/mpa.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "protocol/iwarp_headers.h"
#include "support/hex.h"

namespace rnic::protocol {
namespace {

using testbench::from_hex;
using testbench::to_hex;

std::string zeros(std::size_t bytes) { return std::string(2 * bytes, '0'); }

TEST(Mpa, FpduSizes) {
  // Length 2 + ULPDU + pad + CRC 4. READ request: DDP 18 + 28; atomic request 18 + 52; atomic
  // response 18 + 12; zero-length SEND 18.
  EXPECT_EQ(fpdu_bytes(46), 52U);
  EXPECT_EQ(fpdu_bytes(70), 76U);
  EXPECT_EQ(fpdu_bytes(30), 36U);
  EXPECT_EQ(fpdu_bytes(18), 24U);
  EXPECT_EQ(fpdu_bytes(44), 52U);  // 2 + 44 + pad 2 + 4
  EXPECT_EQ(mpa_pad(45), 1U);
}

TEST(Mpa, LargestUlpdu) {
  // RFC 5044, 5.2.1. 1460: 1460 - 6; with markers 3 more words. 8948: 18 markers, 8948 mod 4 = 0.
  EXPECT_EQ(mulpdu(1460, false), 1454U);
  EXPECT_EQ(mulpdu(1460, true), 1442U);
  EXPECT_EQ(mulpdu(1448, false), 1442U);
  EXPECT_EQ(mulpdu(1448, true), 1430U);
  EXPECT_EQ(mulpdu(8960, false), 8954U);
  EXPECT_EQ(mulpdu(8960, true), 8882U);
  EXPECT_EQ(mulpdu(8948, false), 8942U);
  EXPECT_EQ(mulpdu(8948, true), 8870U);
  EXPECT_EQ(mulpdu(1463, false), 1454U);  // EMSS mod 4 is wasted
  EXPECT_EQ(mulpdu(100, false), 128U);
}

TEST(Mpa, AnFpduOfTheLargestUlpduFitsTheSegmentWhereverMarkersFall) {
  for (const std::uint32_t emss : {536U, 1448U, 1460U, 8948U, 8960U}) {
    for (std::uint64_t offset = 0; offset < 512; offset += 4) {
      EXPECT_LE(fpdu_stream_bytes(offset, fpdu_bytes(mulpdu(emss, true)), true), emss);
    }
  }
}

/// RFC 5044, figures 5 and 6: an untagged SEND of 24 zero bytes, last segment.
std::vector<std::uint8_t> rfc_ulpdu(std::uint32_t msn) {
  DdpUntagged ddp;
  ddp.control.last = true;
  ddp.control.opcode = RdmapOpcode::kSend;
  ddp.msn = msn;
  std::vector<std::uint8_t> ulpdu(42);
  ddp.encode(ulpdu.data());
  return ulpdu;
}

TEST(Mpa, FpduBehindALeadingMarker) {
  const auto ulpdu = rfc_ulpdu(1);
  std::vector<std::uint8_t> out;
  append_fpdu(out, ulpdu.data(), 42, true, true, 0);
  EXPECT_EQ(to_hex(out),
            "00000000"
            "002a4143"
            "00000000"
            "00000000"
            "00000001"
            "00000000" +
                zeros(24) + "52239983");
  EXPECT_EQ(out.size(), fpdu_stream_bytes(0, fpdu_bytes(42), true));
}

TEST(Mpa, FpduAroundAnInnerMarker) {
  // The marker stands 0x14 bytes behind the length field: the FPDU starts at 512 - 20 = 492.
  const auto ulpdu = rfc_ulpdu(2);
  std::vector<std::uint8_t> out;
  append_fpdu(out, ulpdu.data(), 42, true, true, 492);
  EXPECT_EQ(to_hex(out),
            "002a4143"
            "00000000"
            "00000000"
            "00000002"
            "00000000"
            "00000014" +
                zeros(24) + "84925898");
}

TEST(Mpa, RdmaWriteWithPad) {
  DdpTagged ddp;
  ddp.control.tagged = ddp.control.last = true;
  ddp.control.opcode = RdmapOpcode::kWrite;
  ddp.stag = 0xAABBCC01;
  ddp.offset = 0x1000;
  std::vector<std::uint8_t> ulpdu(44);
  ddp.encode(ulpdu.data());
  std::vector<std::uint8_t> out;
  append_fpdu(out, ulpdu.data(), 44, true, false, 0);
  EXPECT_EQ(to_hex(out), "002cc140aabbcc010000000000001000" + zeros(30) +
                             "0000"
                             "9588b1cd");
}

TEST(Mpa, MarkerBetweenPadAndCrcIsCovered) {
  // 2 + 46 = 48 bytes without pad before the CRC; starting 48 bytes before a marker position.
  std::vector<std::uint8_t> ulpdu(46, 0x77);
  std::vector<std::uint8_t> out;
  append_fpdu(out, ulpdu.data(), 46, true, true, 1024 - 48);
  ASSERT_EQ(out.size(), 56U);
  EXPECT_EQ(to_hex(out.data() + 48, 4), "00000030");
  const std::vector<std::uint8_t> covered(out.begin(), out.begin() + 52);
  const std::uint32_t crc = testbench::bitwise_crc(covered, 0x82F63B78U, 0xFFFFFFFFU);
  EXPECT_EQ(to_hex(out.data() + 52, 4),
            to_hex(std::vector<std::uint8_t>{
                static_cast<std::uint8_t>(crc), static_cast<std::uint8_t>(crc >> 8),
                static_cast<std::uint8_t>(crc >> 16), static_cast<std::uint8_t>(crc >> 24)}));
}

TEST(Mpa, StreamsComeBack) {
  Rng rng(11, "mpa");
  for (const bool markers : {false, true}) {
    std::vector<std::uint8_t> stream;
    std::vector<std::vector<std::uint8_t>> sent;
    for (int i = 0; i < 300; ++i) {
      std::vector<std::uint8_t> ulpdu(14 + rng.below(1500));
      for (auto& b : ulpdu) b = static_cast<std::uint8_t>(rng.next());
      append_fpdu(stream, ulpdu.data(), static_cast<std::uint16_t>(ulpdu.size()), true, markers,
                  stream.size());
      sent.push_back(ulpdu);
    }
    if (markers) {
      for (std::size_t at = 0; at + 4 <= stream.size(); at += 512) {
        EXPECT_EQ(stream[at], 0) << "no marker at " << at;  // its 16 reserved bits
        EXPECT_EQ(stream[at + 1], 0);
        EXPECT_EQ(stream[at + 3] & 3, 0);
      }
    }
    std::size_t at = 0;
    std::vector<std::uint8_t> ulpdu;
    for (const auto& expected : sent) {
      std::size_t consumed = 0;
      ASSERT_EQ(
          parse_fpdu(stream.data() + at, stream.size() - at, true, markers, at, ulpdu, consumed),
          FpduStatus::kOk);
      ASSERT_EQ(ulpdu, expected);
      at += consumed;
    }
    EXPECT_EQ(at, stream.size());
  }
}

TEST(Mpa, DamageIsFound) {
  const auto ulpdu = rfc_ulpdu(2);
  std::vector<std::uint8_t> out;
  append_fpdu(out, ulpdu.data(), 42, true, true, 492);
  std::vector<std::uint8_t> got;
  std::size_t consumed = 0;
  EXPECT_EQ(parse_fpdu(out.data(), out.size() - 1, true, true, 492, got, consumed),
            FpduStatus::kIncomplete);
  EXPECT_EQ(parse_fpdu(out.data(), 1, true, true, 492, got, consumed), FpduStatus::kIncomplete);
  out[30] ^= 0x10;
  EXPECT_EQ(parse_fpdu(out.data(), out.size(), true, true, 492, got, consumed),
            FpduStatus::kBadCrc);
  out[30] ^= 0x10;
  out[23] ^= 0x04;  // the marker
  EXPECT_EQ(parse_fpdu(out.data(), out.size(), false, true, 492, got, consumed),
            FpduStatus::kBadMarker);
}

TEST(Mpa, ConnectionFrames) {
  MpaConnect request;
  request.crc = true;
  std::uint8_t out[MpaConnect::kBytes];
  request.encode(out);
  EXPECT_EQ(to_hex(out, 20), "4d504120494420526571204672616d6540010000");
  EXPECT_TRUE(MpaConnect::decode(out).is_request());
  MpaConnect reply;
  reply.key = MpaConnect::kReplyKey;
  reply.markers = reply.reject = reply.enhanced = true;
  reply.revision = 2;
  reply.private_bytes = 4;
  reply.encode(out);
  EXPECT_EQ(to_hex(out, 20),
            "4d504120494420526570204672616d65"
            "b0020004");
  EXPECT_TRUE(MpaConnect::decode(out).is_reply());
  MpaEnhanced enhanced;
  enhanced.peer_to_peer = enhanced.rtr_read = true;
  enhanced.ird = 16;
  enhanced.ord = MpaEnhanced::kNoNegotiation;
  enhanced.encode(out);
  EXPECT_EQ(to_hex(out, 4), "80107fff");  // C clear, D set, ORD all ones
}

}  // namespace
}  // namespace rnic::protocol
