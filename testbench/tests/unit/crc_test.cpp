// SPDX-License-Identifier: Apache-2.0
#include "protocol/crc.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "support/hex.h"

namespace rnic::protocol {
namespace {

using testbench::bitwise_crc;
using testbench::from_hex;
using testbench::to_hex;

std::string le32_hex(std::uint32_t crc) {
  std::uint8_t bytes[4];
  store_le32(bytes, crc);
  return to_hex(bytes, 4);
}

std::string le16_hex(std::uint16_t crc) {
  std::uint8_t bytes[2];
  store_le16(bytes, crc);
  return to_hex(bytes, 2);
}

/// `payload` ends with its `pad` zero bytes.
std::uint32_t icrc_of(IcrcLayout layout, const std::vector<std::uint8_t>& header,
                      const std::vector<std::uint8_t>& payload, std::size_t pad) {
  return icrc(layout, header.data(), header.size(), payload.data(), payload.size() - pad, pad);
}

TEST(Crc, CheckValues) {
  // The published check values of CRC-32/ISO-HDLC and CRC-32/ISCSI over "123456789".
  const std::string digits = "123456789";
  const auto* data = reinterpret_cast<const std::uint8_t*>(digits.data());
  EXPECT_EQ(crc32(data, 9), 0xCBF43926U);
  EXPECT_EQ(crc32c(data, 9), 0xE3069283U);
}

TEST(Crc, TablesAgreeWithBitByBit) {
  Rng rng(7, "crc");
  for (std::size_t length = 0; length < 300; ++length) {
    std::vector<std::uint8_t> bytes(length);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next());
    EXPECT_EQ(crc32(bytes.data(), length), bitwise_crc(bytes, 0xEDB88320U, 0xFFFFFFFFU));
    EXPECT_EQ(crc32c(bytes.data(), length), bitwise_crc(bytes, 0x82F63B78U, 0xFFFFFFFFU));
    EXPECT_EQ(vcrc(bytes.data(), length), bitwise_crc(bytes, 0xD008U, 0xFFFFU));
    const std::size_t cut = length / 3;
    EXPECT_EQ(vcrc(bytes.data() + cut, length - cut, vcrc(bytes.data(), cut)),
              vcrc(bytes.data(), length));
    EXPECT_EQ(crc32c(bytes.data() + cut, length - cut, crc32c(bytes.data(), cut)),
              crc32c(bytes.data(), length));
  }
}

TEST(Crc, NullStandsForZeros) {
  const std::vector<std::uint8_t> zeros(1000);
  EXPECT_EQ(crc32(nullptr, 1000, 5), crc32(zeros.data(), 1000, 5));
  EXPECT_EQ(crc32c(nullptr, 1000, 5), crc32c(zeros.data(), 1000, 5));
  EXPECT_EQ(vcrc(nullptr, 1000, 5), vcrc(zeros.data(), 1000, 5));
}

TEST(Crc, LinkPacket) {
  // Op 0, FCTBS 0x123, VL 2, FCCL 0x456, and the initial packet with FCCL 0x040; the CRCs come
  // from a separate bit-serial program of the polynomial x^16 + x^12 + x^3 + x + 1.
  EXPECT_EQ(le16_hex(lpcrc(from_hex("01232456").data())), "6a84");
  EXPECT_EQ(le16_hex(lpcrc(from_hex("10000040").data())), "5c6d");
}

TEST(Crc, IcrcOfTheStandardsSamplePacket) {
  // IBTA's local sample packet (RC WRITE_ONLY, 14 bytes, pad 2), printed with its masked fields
  // already ones: masking again must change nothing.
  const auto masked = from_hex(
      "f012375c000e17d20a202487ff87b1b3000dec2a01710a1c015d400238f27a05"
      "0000000ebb884d85fd5cfba4728bc0690ed40000");
  EXPECT_EQ(le32_hex(crc32(masked.data(), masked.size())), "9625b75a");
  // LRH 8, BTH 12, RETH 16; then the payload. VL 7 and no congestion bits as it was on the wire.
  std::vector<std::uint8_t> header(masked.begin(), masked.begin() + 36);
  const std::vector<std::uint8_t> payload(masked.begin() + 36, masked.end());
  EXPECT_EQ(le32_hex(icrc_of(IcrcLayout::kIbLocal, header, payload, 2)), "9625b75a");
  header[0] = 0x70;
  header[12] = 0x00;
  EXPECT_EQ(le32_hex(icrc_of(IcrcLayout::kIbLocal, header, payload, 2)), "9625b75a");
}

TEST(Crc, IcrcOfACapturedRoceV2Send) {
  // UC SEND_ONLY from the scapy test suite: 192.168.0.7 to itself, ToS 1, ID 1144, DF, TTL 64, UDP
  // checksum in use, MigReq set, pad 2.
  // BTH: opcode 0x24, M, pad 2, P_Key 0xFFFF, QP 211, PSN 13571856 = 0xCF1710.
  const auto header = from_hex(
      "45010040047840004011b4d5c0a80007c0a80007"
      "c00012b7002caca2"
      "2460ffff000000d300cf1710");
  const auto payload = from_hex("4630818be28935d90e9a95505401be885e500000");
  EXPECT_EQ(le32_hex(icrc_of(IcrcLayout::kRoceV2Ipv4, header, payload, 2)), "78f353f3");
}

TEST(Crc, IcrcOfACapturedCnp) {
  // Congestion notification captured from a ConnectX-4 Lx (scapy test suite), Ethernet removed.
  const auto header = from_hex(
      "45c2003c718c4000401191610a0011010a001201"
      "000012b700280000"
      "8100ffff4000011800000000");
  const std::vector<std::uint8_t> payload(16);
  EXPECT_EQ(le32_hex(icrc_of(IcrcLayout::kRoceV2Ipv4, header, payload, 0)), "82fd002a");
}

TEST(Crc, IcrcIgnoresWhatMayChangeOnTheWay) {
  const auto packet =
      from_hex("4500003c00004000401126af0a0000010a000002c00012b7002800000400ffff0000001280000010");
  const std::vector<std::uint8_t> payload(16, 0x5A);
  const std::uint32_t expected = icrc_of(IcrcLayout::kRoceV2Ipv4, packet, payload, 0);
  const auto changed = [&](std::size_t at, std::uint8_t flip) {
    auto p = packet;
    p[at] = static_cast<std::uint8_t>(p[at] ^ flip);
    return icrc_of(IcrcLayout::kRoceV2Ipv4, p, payload, 0) != expected;
  };
  EXPECT_FALSE(changed(1, 0x03));   // ECN
  EXPECT_FALSE(changed(1, 0xB8));   // DSCP
  EXPECT_FALSE(changed(8, 0x7F));   // TTL
  EXPECT_FALSE(changed(10, 0x11));  // IPv4 checksum
  EXPECT_FALSE(changed(26, 0x11));  // UDP checksum
  EXPECT_FALSE(changed(32, 0xC0));  // FECN, BECN
  EXPECT_TRUE(changed(4, 0x01));    // IPv4 identification
  EXPECT_TRUE(changed(20, 0x01));   // UDP source port
  EXPECT_TRUE(changed(30, 0x01));   // P_Key
  EXPECT_TRUE(changed(39, 0x01));   // PSN
}

TEST(Crc, IcrcOfGlobalInfinibandEqualsRoceV1) {
  const auto grh =
      from_hex("6ab0000000201b40fe800000000000000000000000000001fe800000000000000000000000000002");
  const auto bth = from_hex("0400ffff0000001280000010");
  auto roce = grh;
  roce.insert(roce.end(), bth.begin(), bth.end());
  auto global = from_hex("1013000200140001");
  global.insert(global.end(), roce.begin(), roce.end());
  const std::vector<std::uint8_t> payload(16, 0x33);
  EXPECT_EQ(icrc_of(IcrcLayout::kIbGlobal, global, payload, 0),
            icrc_of(IcrcLayout::kRoceV1, roce, payload, 0));
}

}  // namespace
}  // namespace rnic::protocol
