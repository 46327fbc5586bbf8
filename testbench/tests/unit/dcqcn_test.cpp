// SPDX-License-Identifier: Apache-2.0
// DCQCN's reaction point by hand, marks of a switch, and CNPs between two queue pairs.
#include "transport/dcqcn.h"

#include <gtest/gtest.h>

#include "protocol/ecn.h"
#include "support/hex.h"
#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using transport::DcqcnParameters;
using transport::DcqcnReactionPoint;

DcqcnParameters parameters() {
  DcqcnParameters p;  // of the paper
  p.notifies = p.reacts = true;
  p.cnp_interval = microseconds(50);
  p.line_gbps = 100;
  p.overhead_bytes = 82;
  return p;
}

constexpr Time kPeriod = microseconds(55);

TEST(Dcqcn, WithoutCnpsNothingIsLimited) {
  DcqcnReactionPoint point(parameters());
  EXPECT_FALSE(point.limited());
  EXPECT_EQ(point.send(4096, kTimeZero), kTimeZero);
}

// Alpha is 1 at first: the rate halves. 4,096 + 82 B at 50 Gb/s take 668.48 ns.
TEST(Dcqcn, ACnpReducesTheRateByHalfOfAlpha) {
  DcqcnReactionPoint point(parameters());
  point.on_cnp(kTimeZero);
  EXPECT_TRUE(point.limited());
  EXPECT_DOUBLE_EQ(point.rate(), 50);
  EXPECT_DOUBLE_EQ(point.target(), 100);
  EXPECT_DOUBLE_EQ(point.alpha(), 1);
  EXPECT_EQ(point.send(4096, kTimeZero), picoseconds(668'480));
  point.on_cnp(microseconds(50));  // before a timer ran out
  EXPECT_DOUBLE_EQ(point.rate(), 25);
  EXPECT_DOUBLE_EQ(point.target(), 50);
}

// Half-way back each 55 us, five times in all, the fifth by additive increase: 75, 87.5, 93.75,
// 96.875, 98.4375. Alpha falls by 1/256 a period.
TEST(Dcqcn, FastRecoveryGoesHalfWayBack) {
  DcqcnReactionPoint point(parameters());
  point.on_cnp(kTimeZero);
  double rate = 50;
  for (int stage = 1; stage <= 5; ++stage) {
    point.send(0, stage * kPeriod);
    rate = (rate + 100) / 2;
    EXPECT_DOUBLE_EQ(point.rate(), rate) << stage;
  }
  EXPECT_DOUBLE_EQ(point.rate(), 98.4375);
  EXPECT_NEAR(point.alpha(), std::pow(255.0 / 256, 5), 1e-12);
  point.send(0, microseconds(5000));
  EXPECT_FALSE(point.limited());
}

// After two CNPs: rate 25, target 50. Fast recovery to 49.2 in four stages; then 40 Mb/s a stage.
TEST(Dcqcn, AdditiveIncrease) {
  DcqcnReactionPoint point(parameters());
  point.on_cnp(kTimeZero);
  point.on_cnp(microseconds(1));
  for (int stage = 1; stage <= 4; ++stage) point.send(0, microseconds(1) + stage * kPeriod);
  EXPECT_DOUBLE_EQ(point.rate(), 50 - 25.0 / 16);
  EXPECT_DOUBLE_EQ(point.target(), 50);
  for (int stage = 5; stage <= 24; ++stage) point.send(0, microseconds(1) + stage * kPeriod);
  EXPECT_NEAR(point.target(), 50 + 20 * 0.04, 1e-9);
}

// Timer and bytes both beyond fast recovery: i times 400 Mb/s in the i-th stage. 50 MB are five
// stages of the byte counter.
TEST(Dcqcn, HyperIncreaseNeedsTimeAndBytes) {
  DcqcnReactionPoint point(parameters());
  point.on_cnp(kTimeZero);
  point.on_cnp(microseconds(1));
  for (int stage = 1; stage <= 6; ++stage) point.send(0, microseconds(1) + stage * kPeriod);
  EXPECT_NEAR(point.target(), 50 + 2 * 0.04, 1e-9);
  const Time now = microseconds(1) + 6 * kPeriod;
  for (int stage = 1; stage <= 5; ++stage) point.send(10'000'000, now);
  EXPECT_NEAR(point.target(), 50 + 7 * 0.04, 1e-9);
  point.send(10'000'000, now);
  EXPECT_NEAR(point.target(), 50 + 7 * 0.04 + 0.4, 1e-9);
}

TEST(Dcqcn, NeverBelowTheLeastRate) {
  DcqcnReactionPoint point(parameters());
  for (int i = 0; i < 100; ++i) point.on_cnp(microseconds(i));
  EXPECT_DOUBLE_EQ(point.rate(), 0.1);
}

/// A captured RoCEv2 frame (ToS 0xC2: ECT(0)), up to its BTH.
std::vector<std::uint8_t> captured_header() {
  return from_hex(
      "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b700280000");
}

TEST(EcnMark, ChangesTheCodepointAndTheChecksumThatCoversIt) {
  std::vector<std::uint8_t> frame = captured_header();
  const std::vector<std::uint8_t> before = frame;
  const auto bytes = static_cast<std::uint32_t>(frame.size());
  ASSERT_TRUE(protocol::mark_congestion(frame.data(), bytes));
  EXPECT_EQ(frame[15], 0xC3);
  protocol::InternetChecksum sum;
  sum.add(frame.data() + 14, protocol::Ipv4Header::kBytes);
  EXPECT_EQ(sum.value(), 0);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (i == 15 || i == 24 || i == 25) continue;
    EXPECT_EQ(frame[i], before[i]) << i;
  }
  EXPECT_TRUE(protocol::mark_congestion(frame.data(), bytes));  // marked already: stays so
  EXPECT_EQ(frame[15], 0xC3);
  frame = before;
  frame[15] = 0xC0;  // not ECN-capable
  EXPECT_FALSE(protocol::mark_congestion(frame.data(), bytes));
  frame[12] = 0x89;  // RoCEv1
  frame[13] = 0x15;
  EXPECT_FALSE(protocol::mark_congestion(frame.data(), bytes));
}

TEST(EcnMark, Ipv6AndVlan) {
  std::vector<std::uint8_t> frame(14 + 4 + 40, 0);
  frame[12] = 0x81;
  frame[16] = 0x86;
  frame[17] = 0xDD;
  frame[18] = 0x60;
  frame[19] = 0x20;  // traffic class 2: ECT(0)
  ASSERT_TRUE(protocol::mark_congestion(frame.data(), static_cast<std::uint32_t>(frame.size())));
  EXPECT_EQ(frame[18], 0x60);
  EXPECT_EQ(frame[19], 0x30);
}

transport::RcConfig with_dcqcn(bool notifies, bool reacts) {
  transport::RcConfig config;
  config.dcqcn = parameters();
  config.dcqcn.notifies = notifies;
  config.dcqcn.reacts = reacts;
  return config;
}

/// Ten packets of a WRITE, all marked, 10 us apart; returns the CNPs that come back.
std::vector<RcPacket> cnps_for_marked_packets(RcPair& pair) {
  fill(pair.a, 0, 2560, 1);
  pair.a.post_write(0, 0x2000, 2560);
  std::vector<RcPacket> cnps;
  Time now{0};
  RcPacket packet;
  while (pair.a.request(now, packet)) {
    packet.frame->ecn_marked = true;
    pair.b.receive(packet, now);
    for (const RcPacket& answer : pair.b.send_all(now)) {
      if (answer.bth.opcode == protocol::BthOpcode::kCnp) cnps.push_back(answer);
      pair.a.receive(answer, now);
    }
    now += microseconds(10);
  }
  return cnps;
}

// At 0, 50 and not at 100 us: the tenth packet comes at 90.
TEST(Cnp, OneInAnInterval) {
  RcPair pair(with_dcqcn(true, true));
  const std::vector<RcPacket> cnps = cnps_for_marked_packets(pair);
  ASSERT_EQ(cnps.size(), 2U);
  EXPECT_EQ(pair.b.counters().np_ecn_marked_roce_packets, 10U);
  EXPECT_EQ(pair.b.counters().np_cnp_sent, 2U);
  EXPECT_EQ(pair.a.counters().rp_cnp_handled, 2U);
  EXPECT_TRUE(pair.a.qp.rate->limited());
  // BECN, PSN 0, no ACK asked for, 16 zero bytes: IP length 60 (20 + 8 + 12 + 16 + 4).
  EXPECT_TRUE(cnps[0].bth.becn);
  EXPECT_FALSE(cnps[0].bth.fecn);
  EXPECT_EQ(cnps[0].bth.psn, 0U);
  EXPECT_FALSE(cnps[0].bth.ack_request);
  EXPECT_EQ(cnps[0].bth.dest_qpn, pair.a.qp.qpn);
  EXPECT_EQ(cnps[0].frame->header_bytes, 14 + 20 + 8 + 12 + 16);
  EXPECT_EQ(cnps[0].frame->payload_bytes, 0U);
  EXPECT_EQ(protocol::load_be16(cnps[0].frame->header + 16), 60);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(cnps[0].frame->header[54 + i], 0);
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions[0].status, protocol::WcStatus::kSuccess);
}

TEST(Cnp, NoNotificationPointNoCnp) {
  RcPair pair(with_dcqcn(false, true));
  EXPECT_TRUE(cnps_for_marked_packets(pair).empty());
  EXPECT_EQ(pair.b.counters().np_ecn_marked_roce_packets, 10U);
  EXPECT_FALSE(pair.a.qp.rate->limited());
}

TEST(Cnp, NoReactionPointNoReduction) {
  RcPair pair(with_dcqcn(true, false));
  EXPECT_EQ(cnps_for_marked_packets(pair).size(), 2U);
  EXPECT_EQ(pair.a.counters().rp_cnp_handled, 2U);
  EXPECT_EQ(pair.a.qp.rate, nullptr);
}

}  // namespace
}  // namespace rnic::testbench
