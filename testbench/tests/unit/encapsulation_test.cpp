// SPDX-License-Identifier: Apache-2.0
#include "transport/encapsulation.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "protocol/aeth.h"
#include "protocol/crc.h"
#include "protocol/iwarp_headers.h"
#include "protocol/link_packet.h"
#include "protocol/mpa.h"
#include "protocol/pfc_frame.h"
#include "protocol/tcp_header.h"
#include "support/hex.h"

namespace rnic::transport {
namespace {

using config::Protocol;
using protocol::Bth;
using protocol::BthOpcode;
using protocol::Frame;
using testbench::bitwise_crc;
using testbench::from_hex;
using testbench::to_hex;

/// Addresses of all vectors below: MACs 02::a1 -> 02::b2, 10.0.0.1 -> 10.0.0.2, fe80::1 -> fe80::2,
/// LID 1 -> 2.
AddressVector sample_av() {
  AddressVector av;
  av.source_mac = {0x02, 0, 0, 0, 0, 0xA1};
  av.destination_mac = {0x02, 0, 0, 0, 0, 0xB2};
  av.source_ipv4 = 0x0A000001;
  av.destination_ipv4 = 0x0A000002;
  av.source_gid[0] = av.destination_gid[0] = 0xFE;
  av.source_gid[1] = av.destination_gid[1] = 0x80;
  av.source_gid[15] = 1;
  av.destination_gid[15] = 2;
  av.source_lid = 1;
  av.destination_lid = 2;
  return av;
}

PortIdentity identity_of_destination(const AddressVector& av) {
  return {av.destination_mac, av.destination_ipv4, av.destination_gid, av.destination_lid};
}

/// Transport headers and payload of a packet, still without its outside.
struct Packet {
  Bth bth;
  std::vector<std::uint8_t> extension;
  std::vector<std::uint8_t> payload;
};

template <class Header>
std::vector<std::uint8_t> bytes_of(const Header& header) {
  std::vector<std::uint8_t> bytes(Header::kBytes);
  header.encode(bytes.data());
  return bytes;
}

Packet send_16() {
  Packet p;
  p.bth.opcode = BthOpcode::kSendOnly;
  p.bth.dest_qpn = 0x12;
  p.bth.psn = 0x10;
  p.bth.ack_request = true;
  for (std::uint8_t i = 0; i < 16; ++i) p.payload.push_back(i);
  return p;
}

Packet send_1() {
  Packet p;
  p.bth.opcode = BthOpcode::kSendOnly;
  p.bth.dest_qpn = 0x12;
  p.bth.psn = 0x20;
  p.bth.ack_request = true;
  p.payload = {0x55};
  return p;
}

Packet read_request() {
  Packet p;
  p.bth.opcode = BthOpcode::kReadRequest;
  p.bth.dest_qpn = 0x12;
  p.bth.psn = 0x15;
  p.bth.ack_request = true;
  p.extension = bytes_of(protocol::Reth{0x3000, 0xAABBCC01, 16});
  return p;
}

Packet compare_swap() {
  Packet p;
  p.bth.opcode = BthOpcode::kCompareSwap;
  p.bth.dest_qpn = 0x12;
  p.bth.psn = 0x16;
  p.bth.ack_request = true;
  p.extension = bytes_of(protocol::AtomicEth{0x4000, 0xAABBCC01, 7, 3});
  return p;
}

Packet ack() {
  Packet p;
  p.bth.opcode = BthOpcode::kAcknowledge;
  p.bth.dest_qpn = 0x13;
  p.bth.psn = 0x14;
  p.extension = bytes_of(protocol::Aeth{protocol::ack_syndrome(0x0A), 4});
  return p;
}

/// The transmit side, as a NIC does it.
void fill(Frame& frame, const Encapsulation& encapsulation, const AddressVector& av, Packet p) {
  const auto payload = static_cast<std::uint32_t>(p.payload.size());
  const std::uint8_t pad = protocol::pad_to_word(payload);
  const std::uint32_t headers = Bth::kBytes + static_cast<std::uint32_t>(p.extension.size());
  p.bth.pad_count = pad;
  frame.frame_class = protocol::FrameClass::kData;
  encapsulation.write_outer(av, headers + payload + pad + protocol::kIcrcBytes, frame.header);
  std::uint8_t* at = frame.header + encapsulation.outer_bytes();
  p.bth.encode(at);
  if (!p.extension.empty()) std::memcpy(at + Bth::kBytes, p.extension.data(), p.extension.size());
  frame.header_bytes = static_cast<std::uint16_t>(encapsulation.outer_bytes() + headers);
  frame.payload.reserve(payload);
  if (payload > 0) std::memcpy(frame.payload.writable(), p.payload.data(), payload);
  frame.payload_bytes = payload;
  frame.pad_bytes = pad;
  frame.trailer_bytes = static_cast<std::uint8_t>(encapsulation.trailer_bytes());
  frame.has_payload_data = true;
  frame.checksums_deferred = true;
}

struct Vector {
  const char* name;
  Packet (*packet)();
  Protocol protocol;
  EncapsulationOptions options;
  const char* bytes;  ///< Ethernet: without FCS
};

EncapsulationOptions ipv6() {
  EncapsulationOptions options;
  options.ipv6 = true;
  return options;
}

// Whole frames whose CRCs were computed by a separate program from the standards' rules, and which
// tshark dissects without complaint.
const Vector sample_vectors[] = {
    {"send16 v2",
     send_16,
     Protocol::kRoceV2,
     {},
     "0200000000b20200000000a108004500003c00004000401126af0a0000010a000002c00012b7002800000400ffff"
     "0000001280000010000102030405060708090a0b0c0d0e0f1f9890de"},
    {"send16 v1",
     send_16,
     Protocol::kRoceV1,
     {},
     "0200000000b20200000000a189156000000000201b40fe800000000000000000000000000001fe80000000000000"
     "00000000000000020400ffff0000001280000010000102030405060708090a0b0c0d0e0f0c121ab7"},
    {"send16 ib",
     send_16,
     Protocol::kIb,
     {},
     "00020002000a00010400ffff0000001280000010000102030405060708090a0b0c0d0e0ff7768b3ab38f"},
    {"send16 v2/6", send_16, Protocol::kRoceV2, ipv6(),
     "0200000000b20200000000a186dd6000000000281140fe800000000000000000000000000001fe80000000000000"
     "0000000000000002c00012b7002800000400ffff0000001280000010000102030405060708090a0b0c0d0e0fb069"
     "ba82"},
    {"send1 v2",
     send_1,
     Protocol::kRoceV2,
     {},
     "0200000000b20200000000a108004500003000004000401126bb0a0000010a000002c00012b7001c00000430ffff"
     "0000001280000020550000001a505e48"},
    {"send1 ib",
     send_1,
     Protocol::kIb,
     {},
     "00020002000700010430ffff0000001280000020550000005911254da181"},
    {"read v2",
     read_request,
     Protocol::kRoceV2,
     {},
     "0200000000b20200000000a108004500003c00004000401126af0a0000010a000002c00012b7002800000c00ffff"
     "00000012800000150000000000003000aabbcc01000000109bb01532"},
    {"cas v2",
     compare_swap,
     Protocol::kRoceV2,
     {},
     "0200000000b20200000000a108004500004800004000401126a30a0000010a000002c00012b7003400001300ffff"
     "00000012800000160000000000004000aabbcc01000000000000000700000000000000038913132c"},
    {"ack v2",
     ack,
     Protocol::kRoceV2,
     {},
     "0200000000b20200000000a108004500003000004000401126bb0a0000010a000002c00012b7001c00001100ffff"
     "00000013000000140a0000047146659c"},
    {"ack ib",
     ack,
     Protocol::kIb,
     {},
     "00020002000700011100ffff00000013000000140a00000432071e99bac5"},
};

TEST(Encapsulation, FramesAreTheVectorsByteByByte) {
  for (const Vector& v : sample_vectors) {
    SCOPED_TRACE(v.name);
    const auto encapsulation = make_encapsulation(v.protocol, v.options);
    Frame frame{};
    fill(frame, *encapsulation, sample_av(), v.packet());
    std::vector<std::uint8_t> wire;
    encapsulation->linearize(frame, wire);
    EXPECT_TRUE(frame.checksums_deferred);
    auto expected = from_hex(v.bytes);
    if (v.protocol != Protocol::kIb) {
      const std::uint32_t fcs = bitwise_crc(expected, 0xEDB88320U, 0xFFFFFFFFU);
      for (int i = 0; i < 4; ++i) expected.push_back(static_cast<std::uint8_t>(fcs >> (8 * i)));
    }
    EXPECT_EQ(to_hex(wire), to_hex(expected));
    EXPECT_EQ(wire.size(), frame.frame_bytes());
  }
}

TEST(Encapsulation, VectorsAreReadBack) {
  for (const Vector& v : sample_vectors) {
    SCOPED_TRACE(v.name);
    const auto encapsulation = make_encapsulation(v.protocol, v.options);
    const auto bytes = from_hex(v.bytes);
    const Packet packet = v.packet();
    const ParsedOuter outer = encapsulation->parse_outer(bytes.data(), bytes.size());
    ASSERT_TRUE(outer.ok());
    EXPECT_EQ(outer.inner_offset, encapsulation->outer_bytes());
    const std::size_t behind_icrc = v.protocol == Protocol::kIb ? bytes.size() - 2 : bytes.size();
    EXPECT_EQ(outer.inner_bytes, behind_icrc - outer.inner_offset);
    const Bth bth = Bth::decode(bytes.data() + outer.inner_offset);
    EXPECT_EQ(bth.opcode, packet.bth.opcode);
    EXPECT_EQ(bth.psn, packet.bth.psn);
    EXPECT_EQ(bth.dest_qpn, packet.bth.dest_qpn);
    EXPECT_EQ(bth.ack_request, packet.bth.ack_request);
    const AddressVector av = sample_av();
    if (v.protocol == Protocol::kIb) {
      EXPECT_EQ(outer.source.lid, 1);
      EXPECT_EQ(outer.destination.lid, 2);
    } else {
      EXPECT_EQ(outer.source.mac, av.source_mac);
      EXPECT_EQ(outer.destination.mac, av.destination_mac);
    }
    PortIdentity me = identity_of_destination(av);
    EXPECT_TRUE(encapsulation->addressed_to(outer, me));
    me = PortIdentity{av.source_mac, av.source_ipv4, av.source_gid, av.source_lid};
    EXPECT_FALSE(encapsulation->addressed_to(outer, me));
  }
}

TEST(Encapsulation, IcrcsOverTheOtherWires) {
  struct Case {
    Packet (*packet)();
    Protocol protocol;
    const char* icrc;
  };
  const Case cases[] = {{read_request, Protocol::kRoceV1, "883a9f5b"},
                        {compare_swap, Protocol::kRoceV1, "ea8c3fac"},
                        {read_request, Protocol::kIb, "735e0ed6"},
                        {compare_swap, Protocol::kIb, "3fd6ff06"}};
  for (const Case& c : cases) {
    const auto encapsulation = make_encapsulation(c.protocol);
    Frame frame{};
    fill(frame, *encapsulation, sample_av(), c.packet());
    std::uint8_t trailer[Frame::kMaxTrailerBytes];
    encapsulation->compute_trailer(frame, trailer);
    EXPECT_EQ(to_hex(trailer, 4), c.icrc);
  }
}

TEST(Encapsulation, CongestionNotificationAsCaptured) {
  // ConnectX-4 Lx (scapy test suite): the device leaves IP identification and DF to its firmware,
  // so those come from the capture; everything behind them is ours.
  const auto captured = from_hex(
      "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff"
      "40000118000000000000000000000000000000000000000082fd002a");
  const auto encapsulation = make_encapsulation(Protocol::kRoceV2);
  const ParsedOuter outer = encapsulation->parse_outer(captured.data(), captured.size());
  ASSERT_TRUE(outer.ok());
  EXPECT_EQ(outer.ecn, 2);   // ToS 0xC2: DSCP 48, ECT(0)
  EXPECT_EQ(outer.lane, 6);  // DSCP 48 / 8
  EXPECT_EQ(outer.source.ipv4, 0x0A001101U);
  const Bth bth = Bth::decode(captured.data() + outer.inner_offset);
  EXPECT_EQ(bth.opcode, BthOpcode::kCnp);
  EXPECT_TRUE(bth.becn);
  EXPECT_EQ(bth.dest_qpn, 0x118U);

  Frame frame{};
  AddressVector av;
  av.source_mac = outer.source.mac;
  av.destination_mac = outer.destination.mac;
  av.source_ipv4 = outer.source.ipv4;
  av.destination_ipv4 = outer.destination.ipv4;
  av.traffic_class = 0xC2;
  av.udp_source_port = 0;
  fill(frame, *encapsulation, av, Packet{bth, {}, std::vector<std::uint8_t>(16)});
  protocol::store_be16(frame.header + 14 + 4, 0x718C);
  protocol::store_be16(frame.header + 14 + 10, 0x9161);
  std::vector<std::uint8_t> wire;
  encapsulation->linearize(frame, wire);
  wire.resize(wire.size() - 4);
  EXPECT_EQ(to_hex(wire), to_hex(captured));
}

TEST(Encapsulation, VlanTag) {
  EncapsulationOptions options;
  options.vlan = true;
  for (const Protocol protocol : {Protocol::kRoceV1, Protocol::kRoceV2}) {
    const auto encapsulation = make_encapsulation(protocol, options);
    const auto plain = make_encapsulation(protocol);
    EXPECT_EQ(encapsulation->outer_bytes(), plain->outer_bytes() + 4);
    AddressVector av = sample_av();
    av.vlan_id = 0x123;
    av.lane = 5;
    Frame frame{};
    fill(frame, *encapsulation, av, send_16());
    EXPECT_EQ(to_hex(frame.header + 12, 4), "8100a123");  // PCP 5, VID 0x123
    const ParsedOuter outer = encapsulation->parse(frame);
    ASSERT_TRUE(outer.ok());
    EXPECT_EQ(outer.lane, 5);
    EXPECT_EQ(encapsulation->lane_of(av), 5);
    // The tag is outside of the ICRC.
    Frame untagged{};
    fill(untagged, *plain, av, send_16());
    encapsulation->materialize(frame);
    plain->materialize(untagged);
    EXPECT_EQ(to_hex(frame.trailer, 4), to_hex(untagged.trailer, 4));
    EXPECT_NE(to_hex(frame.trailer + 4, 4), to_hex(untagged.trailer + 4, 4));
    EXPECT_TRUE(encapsulation->trailer_ok(frame));
  }
}

TEST(Encapsulation, UntaggedIpLaneIsTheClassSelector) {
  const auto encapsulation = make_encapsulation(Protocol::kRoceV2);
  AddressVector av = sample_av();
  av.traffic_class = 26 << 2 | 2;  // DSCP 26 (AF31), ECT(0): priority 26 / 8 = 3
  Frame frame{};
  fill(frame, *encapsulation, av, send_16());
  EXPECT_EQ(encapsulation->lane_of(av), 3);
  const ParsedOuter outer = encapsulation->parse(frame);
  EXPECT_EQ(outer.lane, 3);
  EXPECT_EQ(outer.ecn, 2);
}

TEST(Encapsulation, GlobalInfiniband) {
  EncapsulationOptions options;
  options.grh = true;
  const auto encapsulation = make_encapsulation(Protocol::kIb, options);
  EXPECT_EQ(encapsulation->outer_bytes(), 48U);
  AddressVector av = sample_av();
  av.lane = 2;
  av.service_level = 6;
  Frame frame{};
  fill(frame, *encapsulation, av, send_16());
  // PktLen: 8 + 40 + 12 + 16 + 4 = 80 bytes = 20 words; LNH 3.
  EXPECT_EQ(to_hex(frame.header, 8), "2063000200140001");
  EXPECT_EQ(to_hex(frame.header + 8, 8), "6000000000201b40");
  const ParsedOuter outer = encapsulation->parse(frame);
  ASSERT_TRUE(outer.ok());
  EXPECT_EQ(outer.inner_offset, 48U);
  EXPECT_EQ(outer.lane, 2);
  PortIdentity me = identity_of_destination(av);
  EXPECT_TRUE(encapsulation->addressed_to(outer, me));
  me.gid[15] = 9;
  EXPECT_FALSE(encapsulation->addressed_to(outer, me));
  // A receiver needs no option to understand it, and its ICRC is RoCEv1's.
  EXPECT_TRUE(make_encapsulation(Protocol::kIb)->parse(frame).ok());
  encapsulation->materialize(frame);
  EXPECT_EQ(to_hex(frame.trailer, 4), "0c121ab7");
}

TEST(Encapsulation, OuterSizes) {
  EXPECT_EQ(make_encapsulation(Protocol::kIb)->outer_bytes(), 8U);
  EXPECT_EQ(make_encapsulation(Protocol::kRoceV1)->outer_bytes(), 54U);
  EXPECT_EQ(make_encapsulation(Protocol::kRoceV2)->outer_bytes(), 42U);
  EXPECT_EQ(make_encapsulation(Protocol::kRoceV2, ipv6())->outer_bytes(), 62U);
  EXPECT_EQ(make_encapsulation(Protocol::kIwarp)->outer_bytes(), 34U);
  EXPECT_EQ(make_encapsulation(Protocol::kIwarp, ipv6())->outer_bytes(), 54U);
  EXPECT_EQ(make_encapsulation(Protocol::kIb)->trailer_bytes(), 6U);
  EXPECT_EQ(make_encapsulation(Protocol::kRoceV1)->trailer_bytes(), 8U);
  EXPECT_EQ(make_encapsulation(Protocol::kIwarp)->trailer_bytes(), 8U);
}

TEST(Encapsulation, BytesBesidesPayloadOnTheLine) {
  struct Case {
    Protocol protocol;
    bool vlan, ipv6, grh;
    std::uint32_t overhead;
  };
  // BTH 12 and ICRC 4 everywhere. IB: LRH 8, VCRC 2, GRH 40, two symbols. Ethernet: 38 with
  // preamble, gap and FCS; GRH 40, or IP 20 / 40 and UDP 8; VLAN tag 4.
  const Case cases[] = {
      {Protocol::kIb, false, false, false, 26 + 2}, {Protocol::kIb, false, false, true, 66 + 2},
      {Protocol::kRoceV1, false, false, false, 94}, {Protocol::kRoceV1, true, false, false, 98},
      {Protocol::kRoceV2, false, false, false, 82}, {Protocol::kRoceV2, true, false, false, 86},
      {Protocol::kRoceV2, false, true, false, 102},
  };
  for (const Case& c : cases) {
    EncapsulationOptions options;
    options.vlan = c.vlan;
    options.ipv6 = c.ipv6;
    options.grh = c.grh;
    const auto e = make_encapsulation(c.protocol, options);
    for (const std::uint32_t payload : {256U, 1024U, 4096U}) {
      const std::uint32_t frame_bytes =
          e->outer_bytes() + Bth::kBytes + payload + e->trailer_bytes();
      EXPECT_EQ(e->wire_bytes(frame_bytes), payload + c.overhead);
    }
  }
}

TEST(Encapsulation, IwarpBytesBesidesPayloadOnTheLine) {
  const auto e = make_encapsulation(Protocol::kIwarp);
  // IP MTU 1500, no options, no markers: 1440 payload bytes in a frame of 1500 + 38 byte times:
  // 93.63 %. The FPDU is 2 + 14 + 1440 + 4 = 1460.
  const std::uint32_t header = e->outer_bytes() + protocol::TcpHeader::kBytes + 2 + 14;
  EXPECT_EQ(e->wire_bytes(header + 1440 + e->trailer_bytes()), 1538U);
  EXPECT_NEAR(1440.0 / 1538.0, 0.9363, 5e-5);
}

TEST(Encapsulation, MinimumFrameIsPaddedBehindTheIcrc) {
  const auto encapsulation = make_encapsulation(Protocol::kRoceV2);
  Packet p = send_16();
  p.payload.clear();
  Frame frame{};
  fill(frame, *encapsulation, sample_av(), p);
  EXPECT_EQ(frame.frame_bytes(), 62U);  // 58 and FCS
  EXPECT_EQ(encapsulation->wire_bytes(62), 64U + 8 + 12);
  std::vector<std::uint8_t> wire;
  encapsulation->linearize(frame, wire);
  ASSERT_EQ(wire.size(), 64U);
  EXPECT_EQ(wire[58], 0);
  EXPECT_EQ(wire[59], 0);
  const std::vector<std::uint8_t> covered(wire.begin(), wire.begin() + 60);
  EXPECT_EQ(protocol::load_le32(wire.data() + 60), bitwise_crc(covered, 0xEDB88320U, 0xFFFFFFFFU));
  // IP length 20 + 8 + 12 + 4; the padding is not in it.
  EXPECT_EQ(protocol::load_be16(wire.data() + 16), 44);
  encapsulation->materialize(frame);
  EXPECT_TRUE(encapsulation->trailer_ok(frame));
  EXPECT_TRUE(encapsulation->parse(frame).ok());
}

TEST(Encapsulation, EveryFlippedBitIsFoundByTheLinkCrc) {
  for (const Protocol protocol : {Protocol::kIb, Protocol::kRoceV1, Protocol::kRoceV2}) {
    const auto encapsulation = make_encapsulation(protocol);
    Frame frame{};
    fill(frame, *encapsulation, sample_av(), send_16());
    encapsulation->materialize(frame);
    ASSERT_EQ(encapsulation->check_trailer(frame), TrailerStatus::kOk);
    const auto flip_all = [&](std::uint8_t* bytes, std::size_t count) {
      for (std::size_t bit = 0; bit < 8 * count; ++bit) {
        bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << (bit % 8)));
        EXPECT_EQ(encapsulation->check_trailer(frame), TrailerStatus::kLinkCrc);
        bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << (bit % 8)));
      }
    };
    flip_all(frame.header, frame.header_bytes);
    flip_all(frame.payload.writable(), frame.payload_bytes);
    flip_all(frame.trailer, frame.trailer_bytes);
    EXPECT_TRUE(encapsulation->trailer_ok(frame));
  }
}

TEST(Encapsulation, DamageInsideASwitchIsFoundByTheIcrc) {
  // A switch that corrupts a payload bit and then computes a fresh link CRC over it.
  for (const Protocol protocol : {Protocol::kIb, Protocol::kRoceV1, Protocol::kRoceV2}) {
    const auto encapsulation = make_encapsulation(protocol);
    Frame frame{};
    fill(frame, *encapsulation, sample_av(), send_16());
    encapsulation->materialize(frame);
    frame.payload.writable()[7] ^= 0x20;
    encapsulation->refresh_link_crc(frame);
    EXPECT_EQ(encapsulation->check_trailer(frame), TrailerStatus::kInnerCrc);
  }
}

TEST(Encapsulation, WhatAHopMayChangeKeepsTheIcrc) {
  const auto ib = make_encapsulation(Protocol::kIb);
  Frame frame{};
  fill(frame, *ib, sample_av(), send_16());
  ib->materialize(frame);
  frame.header[0] = 0x30;  // the VL of the next hop
  EXPECT_EQ(ib->check_trailer(frame), TrailerStatus::kLinkCrc);
  ib->refresh_link_crc(frame);
  EXPECT_EQ(ib->check_trailer(frame), TrailerStatus::kOk);
}

TEST(Encapsulation, MalformedHeadersAreRefused) {
  const auto encapsulation = make_encapsulation(Protocol::kRoceV2);
  Frame frame{};
  fill(frame, *encapsulation, sample_av(), send_16());
  const auto status_with = [&](std::size_t at, std::uint8_t value) {
    const std::uint8_t before = frame.header[at];
    frame.header[at] = value;
    const ParseStatus status = encapsulation->parse(frame).status;
    frame.header[at] = before;
    return status;
  };
  EXPECT_EQ(status_with(14, 0x46), ParseStatus::kMalformed);      // IPv4 options
  EXPECT_EQ(status_with(22, 0x3F), ParseStatus::kMalformed);      // TTL without new checksum
  EXPECT_EQ(status_with(39, 0x24), ParseStatus::kMalformed);      // UDP length
  EXPECT_EQ(status_with(37, 0xB8), ParseStatus::kOtherProtocol);  // UDP port
  EXPECT_EQ(status_with(13, 0x06), ParseStatus::kOtherProtocol);  // ARP
  for (std::size_t n = 0; n < encapsulation->outer_bytes(); ++n) {
    EXPECT_FALSE(encapsulation->parse_outer(frame.header, n).ok());
  }
  frame.payload_bytes += 4;  // the frame is longer than its length fields say
  EXPECT_EQ(encapsulation->parse(frame).status, ParseStatus::kMalformed);

  const auto ib = make_encapsulation(Protocol::kIb);
  Frame local{};
  fill(local, *ib, sample_av(), send_16());
  local.header[5] ^= 1;  // PktLen
  EXPECT_EQ(ib->parse(local).status, ParseStatus::kMalformed);
  local.header[5] ^= 1;
  local.header[1] = 0x00;  // raw packet
  EXPECT_EQ(ib->parse(local).status, ParseStatus::kOtherProtocol);
}

TEST(Encapsulation, LinkControlFramesHaveALinkCrcOnly) {
  const auto ib = make_encapsulation(Protocol::kIb);
  Frame credit{};
  credit.frame_class = protocol::FrameClass::kLinkControl;
  protocol::LinkPacket{protocol::LinkPacket::kOpInit, 0, 0, 0x040}.encode(credit.header);
  credit.header_bytes = 4;
  credit.trailer_bytes = 2;
  credit.checksums_deferred = true;
  std::vector<std::uint8_t> wire;
  ib->linearize(credit, wire);
  EXPECT_EQ(to_hex(wire), "100000405c6d");
  EXPECT_EQ(ib->wire_bytes(credit.frame_bytes()), 8U);

  const auto ethernet = make_encapsulation(Protocol::kRoceV2);
  Frame pause{};
  pause.frame_class = protocol::FrameClass::kLinkControl;
  protocol::PfcFrame pfc;
  pfc.enable = 8;
  pfc.time[3] = 0xFFFF;
  pfc.encode(pause.header);
  pause.header_bytes = protocol::PfcFrame::kBytes;
  pause.trailer_bytes = 4;
  pause.checksums_deferred = true;
  wire.clear();
  ethernet->linearize(pause, wire);
  ASSERT_EQ(wire.size(), 64U);
  EXPECT_EQ(protocol::load_le32(wire.data() + 60),
            bitwise_crc({wire.begin(), wire.begin() + 60}, 0xEDB88320U, 0xFFFFFFFFU));
  EXPECT_EQ(ethernet->wire_bytes(pause.frame_bytes()), 84U);
  ethernet->materialize(pause);
  EXPECT_TRUE(ethernet->trailer_ok(pause));
  EXPECT_EQ(ethernet->parse(pause).status, ParseStatus::kOtherProtocol);
}

TEST(Encapsulation, PayloadLeftOutCountsAsZeros) {
  for (const Protocol protocol : {Protocol::kIb, Protocol::kRoceV2}) {
    const auto encapsulation = make_encapsulation(protocol);
    Packet p = send_16();
    p.payload.assign(1021, 0);
    Frame frame{};
    fill(frame, *encapsulation, sample_av(), p);
    std::vector<std::uint8_t> with;
    encapsulation->linearize(frame, with);
    frame.has_payload_data = false;
    std::vector<std::uint8_t> without;
    encapsulation->linearize(frame, without);
    EXPECT_EQ(to_hex(with), to_hex(without));
  }
}

}  // namespace
}  // namespace rnic::transport
