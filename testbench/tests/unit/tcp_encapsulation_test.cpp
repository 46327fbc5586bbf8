// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "protocol/crc.h"
#include "protocol/iwarp_headers.h"
#include "protocol/mpa.h"
#include "protocol/tcp_header.h"
#include "support/hex.h"
#include "transport/encapsulation.h"

namespace rnic::transport {
namespace {

using config::Protocol;
using protocol::Frame;
using protocol::TcpHeader;
using testbench::bitwise_crc;
using testbench::to_hex;

AddressVector sample_av() {
  AddressVector av;
  av.source_mac = {0x02, 0, 0, 0, 0, 0xA1};
  av.destination_mac = {0x02, 0, 0, 0, 0, 0xB2};
  av.source_ipv4 = 0x0A000001;
  av.destination_ipv4 = 0x0A000002;
  av.source_gid[15] = 1;
  av.destination_gid[15] = 2;
  return av;
}

std::uint8_t* start_segment(Frame& frame, const Encapsulation& e, std::uint32_t tcp_payload) {
  e.write_outer(sample_av(), TcpHeader::kBytes + tcp_payload, frame.header);
  TcpHeader tcp;
  tcp.source_port = 40000;
  tcp.destination_port = 9999;
  tcp.sequence = 0x11223344;
  tcp.acknowledgement = 0x55667788;
  tcp.ack = true;
  tcp.window = 0xFFFF;
  tcp.encode(frame.header + e.outer_bytes());
  frame.header_bytes = static_cast<std::uint16_t>(e.outer_bytes() + TcpHeader::kBytes);
  frame.checksums_deferred = true;
  return frame.header + frame.header_bytes;
}

/// A segment with one RDMA WRITE FPDU of `bytes` payload bytes.
void write_segment(Frame& frame, const Encapsulation& e, std::uint32_t bytes) {
  const std::uint32_t ulpdu = protocol::DdpTagged::kBytes + bytes;
  std::uint8_t* at = start_segment(frame, e, protocol::fpdu_bytes(ulpdu));
  protocol::store_be16(at, static_cast<std::uint16_t>(ulpdu));
  protocol::DdpTagged ddp;
  ddp.control.tagged = ddp.control.last = true;
  ddp.control.opcode = protocol::RdmapOpcode::kWrite;
  ddp.stag = 0xAABBCC01;
  ddp.offset = 0x1000;
  ddp.encode(at + 2);
  frame.header_bytes = static_cast<std::uint16_t>(frame.header_bytes + 16);
  frame.payload.reserve(bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) {
    frame.payload.writable()[i] = static_cast<std::uint8_t>(3 * i + 1);
  }
  frame.payload_bytes = bytes;
  frame.pad_bytes = static_cast<std::uint8_t>(protocol::mpa_pad(ulpdu));
  frame.trailer_bytes = static_cast<std::uint8_t>(e.trailer_bytes());
  frame.has_payload_data = true;
}

/// RFC 793 checksum of the TCP segment in an IPv4 frame, word by word; 0xFFFF when it is right.
std::uint32_t plain_tcp_sum(const std::vector<std::uint8_t>& wire, std::size_t segment_end) {
  std::vector<std::uint8_t> words(wire.begin() + 26, wire.begin() + 34);  // both addresses
  const auto length = static_cast<std::uint32_t>(segment_end - 34);
  words.insert(words.end(),
               {0, 6, static_cast<std::uint8_t>(length >> 8), static_cast<std::uint8_t>(length)});
  words.insert(words.end(), wire.begin() + 34,
               wire.begin() + static_cast<std::ptrdiff_t>(segment_end));
  if (words.size() % 2 != 0) words.push_back(0);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    sum += static_cast<std::uint32_t>(words[i] << 8 | words[i + 1]);
  }
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

TEST(TcpEncapsulation, ChecksumsOfASegment) {
  const auto e = make_encapsulation(Protocol::kIwarp);
  for (const std::uint32_t bytes : {0U, 1U, 2U, 3U, 30U, 1437U, 1440U}) {
    SCOPED_TRACE(bytes);
    Frame frame{};
    write_segment(frame, *e, bytes);
    std::vector<std::uint8_t> wire;
    e->linearize(frame, wire);
    const std::size_t fpdu = protocol::fpdu_bytes(14 + bytes);
    const std::size_t end = 34 + 20 + fpdu;
    ASSERT_EQ(wire.size(), end + 4);
    EXPECT_EQ(plain_tcp_sum(wire, end), 0xFFFFU);
    // The FPDU is what MPA's own framing makes of the same ULPDU.
    std::vector<std::uint8_t> expected;
    protocol::append_fpdu(expected, wire.data() + 56, static_cast<std::uint16_t>(14 + bytes), true,
                          false, 0);
    EXPECT_EQ(to_hex(wire.data() + 54, fpdu), to_hex(expected));
    const std::vector<std::uint8_t> covered(wire.begin(), wire.end() - 4);
    EXPECT_EQ(protocol::load_le32(&wire[end]), bitwise_crc(covered, 0xEDB88320U, 0xFFFFFFFFU));
    // Linearizing a deferred frame and one with real checksums gives the same bytes.
    e->materialize(frame);
    std::vector<std::uint8_t> again;
    e->linearize(frame, again);
    EXPECT_EQ(to_hex(again), to_hex(wire));
    EXPECT_EQ(e->check_trailer(frame), TrailerStatus::kOk);
  }
}

TEST(TcpEncapsulation, PayloadLeftOutCountsAsZeros) {
  const auto e = make_encapsulation(Protocol::kIwarp);
  Frame frame{};
  write_segment(frame, *e, 101);
  std::memset(frame.payload.writable(), 0, 101);
  std::vector<std::uint8_t> with;
  e->linearize(frame, with);
  frame.has_payload_data = false;
  std::vector<std::uint8_t> without;
  e->linearize(frame, without);
  EXPECT_EQ(to_hex(with), to_hex(without));
}

TEST(TcpEncapsulation, EachLayerFindsItsOwnDamage) {
  const auto e = make_encapsulation(Protocol::kIwarp);
  Frame frame{};
  write_segment(frame, *e, 100);
  e->materialize(frame);
  frame.payload.writable()[9] ^= 1;
  EXPECT_EQ(e->check_trailer(frame), TrailerStatus::kLinkCrc);
  e->refresh_link_crc(frame);
  EXPECT_EQ(e->check_trailer(frame), TrailerStatus::kTcpChecksum);
  // What a sum of 16-bit words does not see: two of their bytes change places.
  frame.payload.writable()[9] ^= 1;
  std::swap(frame.payload.writable()[8], frame.payload.writable()[10]);
  e->refresh_link_crc(frame);
  EXPECT_EQ(e->check_trailer(frame), TrailerStatus::kInnerCrc);
  std::swap(frame.payload.writable()[8], frame.payload.writable()[10]);
  frame.header[14 + 8] ^= 1;  // TTL
  e->refresh_link_crc(frame);
  EXPECT_EQ(e->check_trailer(frame), TrailerStatus::kIpChecksum);
}

TEST(TcpEncapsulation, MpaCrcCanBeOff) {
  EncapsulationOptions options;
  options.mpa_crc = false;
  const auto e = make_encapsulation(Protocol::kIwarp, options);
  Frame frame{};
  write_segment(frame, *e, 64);
  e->materialize(frame);
  EXPECT_EQ(protocol::load_le32(frame.trailer), 0U);
  EXPECT_TRUE(e->trailer_ok(frame));
}

TEST(TcpEncapsulation, PureAcknowledgementIsPaddedToTheMinimumFrame) {
  const auto e = make_encapsulation(Protocol::kIwarp);
  Frame frame{};
  start_segment(frame, *e, 0);
  frame.trailer_bytes = static_cast<std::uint8_t>(e->link_crc_bytes());
  frame.has_payload_data = true;
  std::vector<std::uint8_t> wire;
  e->linearize(frame, wire);
  ASSERT_EQ(wire.size(), 64U);  // 14 + 20 + 20, 6 zeros, FCS
  EXPECT_EQ(plain_tcp_sum(wire, 54), 0xFFFFU);
  EXPECT_EQ(protocol::load_le32(&wire[60]),
            bitwise_crc({wire.begin(), wire.begin() + 60}, 0xEDB88320U, 0xFFFFFFFFU));
  const ParsedOuter outer = e->parse(frame);
  ASSERT_TRUE(outer.ok());
  EXPECT_EQ(outer.inner_bytes, 20U);
  EXPECT_EQ(outer.inner_offset, 34U);
}

TEST(TcpEncapsulation, SegmentsAreParsed) {
  for (const bool ipv6 : {false, true}) {
    EncapsulationOptions options;
    options.ipv6 = ipv6;
    const auto e = make_encapsulation(Protocol::kIwarp, options);
    Frame frame{};
    write_segment(frame, *e, 77);
    const ParsedOuter outer = e->parse(frame);
    ASSERT_TRUE(outer.ok());
    EXPECT_EQ(outer.inner_offset, e->outer_bytes());
    EXPECT_EQ(outer.inner_bytes, 20 + protocol::fpdu_bytes(14 + 77));
    const AddressVector av = sample_av();
    EXPECT_TRUE(
        e->addressed_to(outer, {av.destination_mac, av.destination_ipv4, av.destination_gid, 0}));
    EXPECT_FALSE(e->addressed_to(outer, {av.source_mac, av.source_ipv4, av.source_gid, 0}));
    e->materialize(frame);
    EXPECT_TRUE(e->trailer_ok(frame));
    frame.header[e->outer_bytes() + 12] = 0x40;  // a TCP header shorter than itself
    EXPECT_EQ(e->parse(frame).status, ParseStatus::kMalformed);
  }
  // RoCE traffic is another protocol to it.
  const auto roce = make_encapsulation(Protocol::kRoceV2);
  std::uint8_t header[64] = {};
  roce->write_outer(sample_av(), 32, header);
  EXPECT_EQ(make_encapsulation(Protocol::kIwarp)->parse_outer(header, 64).status,
            ParseStatus::kOtherProtocol);
}

}  // namespace
}  // namespace rnic::transport
