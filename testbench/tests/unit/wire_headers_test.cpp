// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "protocol/address_vector.h"
#include "protocol/ethernet.h"
#include "protocol/ib_headers.h"
#include "protocol/ip.h"
#include "protocol/iwarp_headers.h"
#include "protocol/link_packet.h"
#include "protocol/mpa.h"
#include "protocol/pfc_frame.h"
#include "protocol/tcp_header.h"
#include "protocol/udp.h"
#include "support/hex.h"

namespace rnic::protocol {
namespace {

using testbench::from_hex;
using testbench::to_hex;

template <class Header>
std::string hex_of(const Header& header) {
  std::vector<std::uint8_t> bytes(Header::kBytes, 0xEE);
  header.encode(bytes.data());
  return to_hex(bytes);
}

/// `bits` has a one for every bit that belongs to a field. Random bytes must come back in those
/// bits, whatever the fields are: decode loses nothing, encode invents nothing.
template <class Header>
class WireHeader : public ::testing::Test {};

template <class Header>
struct MeaningfulBits;
#define RNIC_MEANINGFUL(TYPE, HEX)                                    \
  template <>                                                         \
  struct MeaningfulBits<TYPE> {                                       \
    static std::vector<std::uint8_t> mask() { return from_hex(HEX); } \
  }

std::string ones(std::size_t bytes) { return std::string(2 * bytes, 'f'); }

RNIC_MEANINGFUL(EthernetHeader, ones(14));
RNIC_MEANINGFUL(VlanTag, ones(4));
RNIC_MEANINGFUL(Ipv4Header, ones(6) + "7fff" + ones(12));  // the reserved fragment bit
RNIC_MEANINGFUL(Ipv6Header, ones(40));
RNIC_MEANINGFUL(UdpHeader, ones(8));
RNIC_MEANINGFUL(TcpHeader, ones(12) + "f0ff" + ones(6));
RNIC_MEANINGFUL(Lrh, "fff3ffff07ffffff");
RNIC_MEANINGFUL(Bth, "ffffffffc0ffffff80ffffff");
RNIC_MEANINGFUL(Reth, ones(16));
RNIC_MEANINGFUL(Aeth, ones(4));
RNIC_MEANINGFUL(AtomicEth, ones(28));
RNIC_MEANINGFUL(AtomicAckEth, ones(8));
RNIC_MEANINGFUL(Deth, "ffffffff00ffffff");
RNIC_MEANINGFUL(ImmDt, ones(4));
RNIC_MEANINGFUL(Ieth, ones(4));
RNIC_MEANINGFUL(XrcEth, "00ffffff");
RNIC_MEANINGFUL(LinkPacket, ones(4));
RNIC_MEANINGFUL(PfcFrame, ones(16) + "00ff" + ones(16) + std::string(52, '0'));
RNIC_MEANINGFUL(DdpControl, "c3cf");
RNIC_MEANINGFUL(DdpTagged, "c3cf" + ones(12));
RNIC_MEANINGFUL(DdpUntagged, "c3cf" + ones(16));
RNIC_MEANINGFUL(RdmapReadRequest, ones(28));
RNIC_MEANINGFUL(RdmapAtomicRequest, "0000000f" + ones(48));
RNIC_MEANINGFUL(RdmapAtomicResponse, ones(12));
RNIC_MEANINGFUL(RdmapImmediate, ones(4) + "00000000");
RNIC_MEANINGFUL(RdmapTerminate, "ffffe000");
RNIC_MEANINGFUL(MpaConnect, ones(16) + "f0ff" + ones(2));
RNIC_MEANINGFUL(MpaEnhanced, ones(4));

using AllHeaders =
    ::testing::Types<EthernetHeader, VlanTag, Ipv4Header, Ipv6Header, UdpHeader, TcpHeader, Lrh,
                     Bth, Reth, Aeth, AtomicEth, AtomicAckEth, Deth, ImmDt, Ieth, XrcEth,
                     LinkPacket, PfcFrame, DdpControl, DdpTagged, DdpUntagged, RdmapReadRequest,
                     RdmapAtomicRequest, RdmapAtomicResponse, RdmapImmediate, RdmapTerminate,
                     MpaConnect, MpaEnhanced>;
TYPED_TEST_SUITE(WireHeader, AllHeaders, );

TYPED_TEST(WireHeader, RandomBytesComeBackInAllFields) {
  const auto mask = MeaningfulBits<TypeParam>::mask();
  ASSERT_EQ(mask.size(), TypeParam::kBytes);
  Rng rng(1, "wire headers");
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint8_t> in(mask.size());
    std::vector<std::uint8_t> expected(mask.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<std::uint8_t>(rng.next());
      expected[i] = in[i] & mask[i];
    }
    const TypeParam header = TypeParam::decode(in.data());
    ASSERT_EQ(hex_of(header), to_hex(expected));
    // And once more from the fields: encode and decode are inverse.
    std::vector<std::uint8_t> bytes(mask.size());
    header.encode(bytes.data());
    ASSERT_EQ(hex_of(TypeParam::decode(bytes.data())), to_hex(expected));
  }
}

// Each field at its place: values chosen so that a swap or shift shows.

TEST(IbHeaders, LrhFields) {
  Lrh lrh;
  lrh.vl = 3;
  lrh.service_level = 5;
  lrh.next_header = LinkNextHeader::kGrh;
  lrh.destination_lid = 0x1234;
  lrh.packet_words = 0x456;
  lrh.source_lid = 0x789A;
  EXPECT_EQ(hex_of(lrh), "305312340456789a");
}

TEST(IbHeaders, BthFields) {
  Bth bth;
  bth.opcode = BthOpcode::kWriteOnlyImm;
  bth.solicited = true;
  bth.migration = true;
  bth.pad_count = 3;
  bth.pkey = 0x8001;
  bth.fecn = true;
  bth.dest_qpn = 0xABCDEF;
  bth.ack_request = true;
  bth.psn = 0x123456;
  EXPECT_EQ(hex_of(bth), "0bf0800180abcdef80123456");
  bth.fecn = false;
  bth.becn = true;
  EXPECT_EQ(hex_of(bth), "0bf0800140abcdef80123456");
}

TEST(IbHeaders, FieldsWiderThanTheirBitsAreCut) {
  Bth bth;
  bth.opcode = BthOpcode::kSendOnly;
  bth.psn = 0xFF123456;
  bth.dest_qpn = 0x01000002;
  EXPECT_EQ(hex_of(bth), "0400ffff0000000200123456");
}

TEST(IbHeaders, ExtendedHeaders) {
  EXPECT_EQ(hex_of(Reth{0x0102030405060708, 0x0A0B0C0D, 0x1000}),
            "01020304050607080a0b0c0d00001000");
  EXPECT_EQ(hex_of(Aeth{0x62, 0x010203}), "62010203");
  EXPECT_EQ(hex_of(AtomicEth{0x4000, 0xAABBCC01, 7, 3}),
            "0000000000004000aabbcc0100000000000000070000000000000003");
  EXPECT_EQ(hex_of(AtomicAckEth{0x1122334455667788}), "1122334455667788");
  EXPECT_EQ(hex_of(Deth{0x80010000, 0x000001}), "8001000000000001");
  EXPECT_EQ(hex_of(ImmDt{0xDEADBEEF}), "deadbeef");
  EXPECT_EQ(hex_of(Ieth{0xAABBCC01}), "aabbcc01");
}

TEST(IbHeaders, PadBringsPayloadsToWords) {
  EXPECT_EQ(pad_to_word(0), 0);
  EXPECT_EQ(pad_to_word(1), 3);
  EXPECT_EQ(pad_to_word(14), 2);
  EXPECT_EQ(pad_to_word(4095), 1);
  EXPECT_EQ(pad_to_word(4096), 0);
}

TEST(IbHeaders, PathMtuFromEthernetMtu) {
  // Largest MTU with 96 bytes to spare.
  EXPECT_EQ(roce_path_mtu(1500), 1024U);
  EXPECT_EQ(roce_path_mtu(4200), 4096U);
  EXPECT_EQ(roce_path_mtu(4192), 4096U);
  EXPECT_EQ(roce_path_mtu(4191), 2048U);
  EXPECT_EQ(roce_path_mtu(9000), 4096U);
  EXPECT_EQ(roce_path_mtu(351), 0U);
}

TEST(UdpFormat, SourcePortKeepsAQueuePairOnOnePath) {
  // By hand for (0x12, 0x13): product 0x156, nothing to fold; the other two fold by 20 and 40 bits.
  EXPECT_EQ(roce_flow_label(0x12, 0x13), 0x00156U);
  EXPECT_EQ(roce_source_port(0, 0x12, 0x13), 0xC156);
  EXPECT_EQ(roce_flow_label(0x100, 0x101), 0x10100U);
  EXPECT_EQ(roce_source_port(0, 0x100, 0x101), 0xC104);
  EXPECT_EQ(roce_flow_label(0xABCDEF, 0x123456), 0xAC3E3U);
  EXPECT_EQ(roce_source_port(0, 0xABCDEF, 0x123456), 0xC3C8);
  EXPECT_EQ(roce_source_port(0, 0x123456, 0xABCDEF), 0xC3C8);
  // A flow label of the address vector wins: low 14 bits 0x0001, high 6 bits 0x3F.
  EXPECT_EQ(roce_source_port(0xFC001, 1, 2), 0xC03E);
}

TEST(IpFormat, ChecksumOfTheTextbookHeader) {
  // The example of many textbooks: 172.16.10.99 -> 172.16.10.12, checksum 0xB1E6.
  const auto header = from_hex("4500003c1c4640004006b1e6ac100a63ac100a0c");
  EXPECT_EQ(Ipv4Header::sum(header.data()), 0);
  Ipv4Header ip = Ipv4Header::decode(header.data());
  EXPECT_EQ(ip.total_bytes, 60);
  EXPECT_EQ(ip.identification, 0x1C46);
  EXPECT_TRUE(ip.dont_fragment);
  EXPECT_EQ(ip.protocol, kIpProtocolTcp);
  ip.checksum = 0;
  std::vector<std::uint8_t> out(20);
  ip.encode_summed(out.data());
  EXPECT_EQ(to_hex(out), to_hex(header));
}

TEST(IpFormat, ChecksumOverPiecesOfAnyLength) {
  Rng rng(3, "internet checksum");
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint8_t> bytes(200);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next());
    std::uint32_t plain = 0;  // RFC 1071 word by word
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      plain += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
    }
    while (plain > 0xFFFF) plain = (plain & 0xFFFF) + (plain >> 16);
    InternetChecksum sum;
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::size_t n = std::min<std::size_t>(rng.below(9), bytes.size() - at);
      sum.add(bytes.data() + at, n);
      at += n;
    }
    EXPECT_EQ(sum.value(), 0xFFFF - plain);
  }
}

TEST(TcpFormat, HeaderFields) {
  TcpHeader tcp;
  tcp.source_port = 0x1234;
  tcp.destination_port = 9999;
  tcp.sequence = 0x01020304;
  tcp.acknowledgement = 0x05060708;
  tcp.header_words = 8;
  tcp.syn = true;
  tcp.ack = true;
  tcp.window = 0xABCD;
  EXPECT_EQ(hex_of(tcp), "1234270f01020304050607088012abcd00000000");
  EXPECT_EQ(tcp.header_bytes(), 32U);
}

TEST(TcpFormat, SynOptionsOfACommonStack) {
  TcpOptions options;
  options.has_mss = options.has_timestamps = options.sack_permitted = options.has_window_scale =
      true;
  options.mss = 1460;
  options.timestamp = 0x11223344;
  options.window_scale = 7;
  std::uint8_t out[TcpOptions::kMaxBytes];
  ASSERT_EQ(options.encode(out), 20U);
  EXPECT_EQ(options.bytes(), 20U);
  // MSS 1460; SACK permitted; timestamps; NOP, window scale 7.
  EXPECT_EQ(to_hex(out, 20), "020405b40402080a112233440000000001030307");
}

TEST(TcpFormat, DataOptions) {
  TcpOptions options;
  options.has_timestamps = true;
  options.timestamp = 1;
  options.timestamp_echo = 2;
  std::uint8_t out[TcpOptions::kMaxBytes];
  ASSERT_EQ(options.encode(out), TcpOptions::kTimestampBytes);
  EXPECT_EQ(to_hex(out, 12), "0101080a0000000100000002");
  options.sack_count = 1;
  options.sack[0] = {0x100, 0x200};
  ASSERT_EQ(options.encode(out), 24U);
  EXPECT_EQ(to_hex(out + 12, 12), "0101050a0000010000000200");
}

TEST(TcpFormat, OptionsComeBack) {
  Rng rng(5, "tcp options");
  for (int round = 0; round < 500; ++round) {
    TcpOptions in;
    in.has_mss = rng.below(2) != 0;
    in.has_window_scale = rng.below(2) != 0;
    in.sack_permitted = rng.below(2) != 0;
    in.has_timestamps = rng.below(2) != 0;
    if (in.has_mss) in.mss = static_cast<std::uint16_t>(rng.next());
    if (in.has_window_scale) in.window_scale = static_cast<std::uint8_t>(rng.below(15));
    if (in.has_timestamps) in.timestamp = static_cast<std::uint32_t>(rng.next());
    if (in.has_timestamps) in.timestamp_echo = static_cast<std::uint32_t>(rng.next());
    in.sack_count = static_cast<std::uint8_t>(rng.below(3));
    for (std::size_t i = 0; i < in.sack_count; ++i) {
      in.sack[i] = {static_cast<std::uint32_t>(rng.next()), static_cast<std::uint32_t>(rng.next())};
    }
    std::uint8_t bytes[TcpOptions::kMaxBytes];
    const std::uint32_t n = in.encode(bytes);
    ASSERT_LE(n, TcpOptions::kMaxBytes);
    ASSERT_EQ(n % 4, 0U);
    ASSERT_EQ(n, in.bytes());
    TcpOptions out;
    ASSERT_TRUE(TcpOptions::decode(bytes, n, out));
    EXPECT_EQ(out.has_mss, in.has_mss);
    EXPECT_EQ(out.mss, in.mss);
    EXPECT_EQ(out.has_window_scale, in.has_window_scale);
    EXPECT_EQ(out.window_scale, in.window_scale);
    EXPECT_EQ(out.sack_permitted, in.sack_permitted);
    EXPECT_EQ(out.timestamp, in.timestamp);
    EXPECT_EQ(out.timestamp_echo, in.timestamp_echo);
    ASSERT_EQ(out.sack_count, in.sack_count);
    for (std::size_t i = 0; i < in.sack_count; ++i) {
      EXPECT_EQ(out.sack[i].left, in.sack[i].left);
      EXPECT_EQ(out.sack[i].right, in.sack[i].right);
    }
  }
}

TEST(TcpFormat, MalformedOptionsAreRefused) {
  TcpOptions options;
  for (const char* bad : {"0204", "020305b4", "0800", "030407ff", "050301ff", "02"}) {
    const auto bytes = from_hex(bad);
    EXPECT_FALSE(TcpOptions::decode(bytes.data(), bytes.size(), options)) << bad;
  }
  const auto unknown = from_hex("1e04aabb01010000");  // MPTCP is skipped, then NOPs and the end
  EXPECT_TRUE(TcpOptions::decode(unknown.data(), unknown.size(), options));
}

TEST(TcpFormat, SequenceDistanceWraps) {
  EXPECT_EQ(tcp_distance(5, 3), 2);
  EXPECT_EQ(tcp_distance(3, 5), -2);
  EXPECT_EQ(tcp_distance(1, 0xFFFF'FFFF), 2);
  EXPECT_EQ(tcp_distance(0xFFFF'FFFF, 1), -2);
}

TEST(LinkControl, PfcFrameThatStopsPriority3) {
  PfcFrame pfc;
  pfc.source = {0x02, 0, 0, 0, 0, 0xA1};
  pfc.enable = 1U << 3;
  pfc.time[3] = 0xFFFF;
  EXPECT_EQ(hex_of(pfc), "0180c20000010200000000a1880801010008000000000000ffff0000000000000000" +
                             std::string(52, '0'));
  EXPECT_TRUE(pfc.is_pfc());
}

TEST(LinkControl, PauseFrameOfTheWholeLink) {
  PauseFrame pause;
  pause.source = {0x02, 0, 0, 0, 0, 0xA1};
  pause.time = 0xFFFF;
  // IEEE 802.3 annex 31B: destination, source, 8808, opcode 1, time, zeros up to 60 bytes.
  EXPECT_EQ(hex_of(pause), "0180c20000010200000000a188080001ffff" + std::string(84, '0'));
  EXPECT_TRUE(pause.is_pause());
  PfcFrame pfc;
  std::uint8_t bytes[PfcFrame::kBytes];
  pfc.encode(bytes);
  EXPECT_FALSE(PauseFrame::decode(bytes).is_pause());
}

TEST(LinkControl, CreditPacket) {
  EXPECT_EQ(hex_of(LinkPacket{LinkPacket::kOpInit, 0, 0, 0x040}), "10000040");
  EXPECT_EQ(hex_of(LinkPacket{LinkPacket::kOpNormal, 0x123, 2, 0x456}), "01232456");
}

TEST(IwarpFormat, SegmentHeaders) {
  DdpTagged write;
  write.control.tagged = true;
  write.control.last = true;
  write.control.opcode = RdmapOpcode::kWrite;
  write.stag = 0xAABBCC01;
  write.offset = 0x1000;
  EXPECT_EQ(hex_of(write), "c140aabbcc010000000000001000");
  DdpUntagged send;
  send.control.last = true;
  send.control.opcode = RdmapOpcode::kSendSolicitedInvalidate;
  send.invalidate_stag = 0x11223344;
  send.queue = kDdpQueueSend;
  send.msn = 5;
  send.offset = 0x600;
  EXPECT_EQ(hex_of(send),
            "4146112233440000000000000005"
            "00000600");
}

TEST(IwarpFormat, Messages) {
  EXPECT_EQ(hex_of(RdmapReadRequest{1, 0x2000, 0x100, 3, 0x4000}),
            "00000001"
            "0000000000002000"
            "00000100"
            "00000003"
            "0000000000004000");
  RdmapTerminate terminate;
  terminate.layer = TerminateLayer::kDdp;
  terminate.error_type = 2;
  terminate.error_code = 5;
  terminate.has_length = terminate.has_ddp_header = true;
  EXPECT_EQ(hex_of(terminate), "1205c000");
}

TEST(AddressVectorDefaults, AreUsable) {
  const AddressVector av;
  EXPECT_EQ(av.hop_limit, 64);
  EXPECT_EQ(av.pkey, 0xFFFF);
}

}  // namespace
}  // namespace rnic::protocol
