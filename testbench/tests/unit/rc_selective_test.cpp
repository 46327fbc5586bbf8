// SPDX-License-Identifier: Apache-2.0
// Selective repeat packet by packet. MTU 256, first PSN 100, acknowledgement timer 65.536 us.
#include <gtest/gtest.h>

#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::BthOpcode;
using protocol::WcStatus;
using protocol::WqeOpcode;
using Psns = std::vector<std::uint32_t>;

constexpr Time kTimer = nanoseconds(65'536);

transport::RcConfig selective(std::uint32_t window = 64) {
  transport::RcConfig config;
  config.selective_repeat = true;
  config.window = window;
  return config;
}

Packets without(Packets packets, const std::vector<std::size_t>& lost) {
  for (std::size_t i = lost.size(); i-- > 0;) {
    packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(lost[i]));
  }
  return packets;
}

/// PSN behind the AETH of a selective NAK: Ethernet 14, IPv4 20, UDP 8, BTH 12, AETH 4.
std::uint32_t sack_of(const RcPacket& packet) {
  return protocol::load_be32(packet.frame->header + 58);
}

TEST(RcSelective, ResendsOnlyWhatIsMissing) {
  RcPair pair(selective());
  fill(pair.a, 0, 2000, 1);
  pair.a.post_write(0, 0x8000, 2000);  // PSNs 100-107
  pair.b.receive_all(without(pair.a.send_all(), {1, 4}));
  const Packets naks = pair.b.send_all();
  // One NAK for each of 102, 103, 105, 106, 107, all for the expected PSN 101.
  ASSERT_EQ(naks.size(), 5U);
  Psns sacked;
  for (const RcPacket& nak : naks) {
    EXPECT_EQ(nak.aeth.syndrome, 0x60);
    EXPECT_EQ(nak.bth.psn, 101U);
    EXPECT_EQ(nak.frame->header_bytes, 14 + 20 + 8 + 12 + 4 + 4);
    sacked.push_back(sack_of(nak));
  }
  EXPECT_EQ(sacked, (Psns{102, 103, 105, 106, 107}));
  pair.a.receive_all(naks);
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{101, 104}));
  EXPECT_EQ(pair.a.counters().retransmitted_packets, 2U);
  EXPECT_EQ(pair.a.counters().packet_seq_err, 1U);
  pair.b.receive_all(again);
  pair.run();
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);
  EXPECT_TRUE(same_bytes(pair.a, 0, pair.b, 0x8000, 2000));
  EXPECT_EQ(pair.b.executed.size(), 3U);      // 100, 101, 104 at their turn
  EXPECT_EQ(pair.b.placed_early.size(), 5U);  // the others before it
  EXPECT_EQ(pair.b.qp.msn, 1U);
}

// A packet counts as lost only when a later one is known to have arrived: 101 at the first NAK,
// 103 not before the second.
TEST(RcSelective, FindsAGapByWhatArrivedBehindIt) {
  RcPair pair(selective());
  pair.a.post_write(0, 0x8000, 5 * 256);  // PSNs 100-104
  const Packets sent = pair.a.send_all();
  pair.b.receive_all({sent[0], sent[2]});
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{101}));
  pair.b.receive(sent[4]);
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{103}));
}

// What several paths reorder is not resent: 101 not before 104 is known to have arrived; and 108,
// which nothing is so far ahead of, by the timer.
TEST(RcSelective, ToleratesWhatPathsReorder) {
  transport::RcConfig config = selective();
  config.reorder_tolerance = 3;
  RcPair pair(config);
  pair.a.post_write(0, 0x8000, 10 * 256);  // PSNs 100-109
  const Packets sent = pair.a.send_all();
  pair.b.receive_all({sent[0], sent[2], sent[3]});
  pair.a.receive_all(pair.b.send_all());
  EXPECT_TRUE(pair.a.send_all().empty());
  pair.b.receive(sent[4]);
  pair.a.receive_all(pair.b.send_all());
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{101}));
  pair.b.receive_all(again);
  pair.b.receive_all({sent[6], sent[5], sent[7], sent[9]});
  pair.a.receive_all(pair.b.send_all());
  EXPECT_TRUE(pair.a.send_all().empty()) << "109 is one ahead of 108";
  EXPECT_TRUE(pair.a.expire(2 * kTimer));
  EXPECT_EQ(psns(pair.a.send_all(2 * kTimer)), (Psns{108}));
}

TEST(RcSelective, EveryWritePacketSaysWhereItGoes) {
  RcPair pair(selective());
  pair.a.post_write(0, 0x8000, 600);
  const Packets sent = pair.a.send_all();
  ASSERT_EQ(sent.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16
    ASSERT_EQ(sent[i].frame->header_bytes, 70);
    const auto reth = protocol::Reth::decode(sent[i].frame->header + 54);
    EXPECT_EQ(reth.va, 0x8000U + 256 * i);
    EXPECT_EQ(reth.dma_length, 600 - 256 * i);
  }
}

TEST(RcSelective, SendsWaitForTheirTurn) {
  RcPair pair(selective());
  for (std::uint32_t i = 0; i < 3; ++i) {
    fill(pair.a, 0x1000 * i, 300, i);
    pair.b.post_recv(0x10000 + 0x1000 * i, 512);
    pair.a.post_send(0x1000 * i, 300);  // PSNs 100-101, 102-103, 104-105
  }
  pair.b.receive_all(without(pair.a.send_all(), {0}));
  EXPECT_EQ(pair.b.held.size(), 5U);
  EXPECT_TRUE(pair.b.received.empty());
  pair.a.receive_all(pair.b.send_all());
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{100}));
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.b.received.size(), 3U);
  EXPECT_EQ(pair.a.completions.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bytes(pair.a, 0x1000 * i, pair.b, 0x10000 + 0x1000 * i, 300));
  }
}

TEST(RcSelective, ResentPacketThatIsLostIsNoticedByLaterOnes) {
  RcPair pair(selective());
  pair.a.qp.retry_count = 2;
  pair.restart(100);
  for (int i = 0; i < 3; ++i) pair.a.post_write(0, 0x8000, 10);  // PSNs 100-102
  pair.b.receive_all(without(pair.a.send_all(), {1}));
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{101}));  // lost again
  pair.a.post_write(0, 0x8000, 10);
  const Packets later = pair.a.send_all();
  EXPECT_EQ(psns(later), (Psns{103}));
  pair.b.receive_all(later);
  pair.a.receive_all(pair.b.send_all());
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{101}));
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 4U);
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 0U);
}

TEST(RcSelective, TimeoutResendsWhatIsNotKnownToHaveArrived) {
  RcPair pair(selective());
  pair.a.post_write(0, 0x8000, 5 * 256);  // PSNs 100-104
  const Packets sent = pair.a.send_all();
  pair.b.receive(sent[2]);
  pair.b.receive(sent[3]);
  const Packets naks = pair.b.send_all();
  pair.a.receive_all(naks);
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{100, 101}));  // lost, with 104
  ASSERT_TRUE(pair.a.expire(kTimer));
  const Packets again = pair.a.send_all(kTimer);
  EXPECT_EQ(psns(again), (Psns{100, 101, 104}));
  for (const RcPacket& packet : again) EXPECT_TRUE(packet.bth.ack_request);
  pair.b.receive_all(again, kTimer);
  pair.run(kTimer);
  EXPECT_EQ(pair.a.completions.size(), 1U);
}

TEST(RcSelective, AsksForTheMissingRunOfARead) {
  RcPair pair(selective());
  fill(pair.b, 0x9000, 2000, 2);
  pair.a.post_read(0x4000, 0x9000, 2000);  // PSNs 100-107
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(without(pair.b.send_all(), {2, 3, 6}));
  const Packets again = pair.a.send_all();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(psns(again), (Psns{102, 106}));
  EXPECT_EQ(again[0].reth.va, 0x9000U + 512);
  EXPECT_EQ(again[0].reth.dma_length, 512U);
  EXPECT_EQ(again[1].reth.va, 0x9000U + 1536);
  EXPECT_EQ(again[1].reth.dma_length, 256U);
  EXPECT_EQ(pair.a.counters().implied_nak_seq_err, 1U);
  pair.b.receive_all(again);
  const Packets answers = pair.b.send_all();
  EXPECT_EQ(psns(answers), (Psns{102, 103, 106}));
  pair.a.receive_all(answers);
  EXPECT_EQ(pair.a.completions.size(), 1U);
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 2000));
  EXPECT_EQ(pair.a.qp.outstanding_reads, 0U);
}

TEST(RcSelective, CompletionsStayInOrderWhenALaterReadIsAnsweredFirst) {
  RcPair pair(selective());
  fill(pair.b, 0x9000, 100, 2);
  pair.a.post_read(0x4000, 0x9000, 100);
  pair.a.post_read(0x5000, 0x9000, 100);
  pair.b.receive_all(pair.a.send_all());
  const Packets answers = pair.b.send_all();
  pair.a.receive(answers[1]);
  EXPECT_TRUE(pair.a.completions.empty());
  pair.a.receive(answers[0]);
  ASSERT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.completions[0].tag, 0U);
}

// Window 4: the fourth packet asks for an ACK, and the fifth waits for it.
TEST(RcSelective, WindowBoundsThePacketsInFlight) {
  RcPair pair(selective(4));
  pair.a.post_write(0, 0x8000, 10 * 256);
  const Packets first = pair.a.send_all();
  EXPECT_EQ(psns(first), (Psns{100, 101, 102, 103}));
  EXPECT_TRUE(first[3].bth.ack_request);
  EXPECT_EQ(pair.a.last_status, transport::PlanStatus::kBlocked);
  pair.b.receive_all(first);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.counters().retransmitted_packets, 0U);
}

TEST(RcSelective, RnrResendsTheRefusedPacketOnly) {
  RcPair pair(selective());
  pair.a.post_send(0, 10);           // PSN 100
  pair.a.post_write(0, 0x8000, 10);  // PSN 101
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(pair.a.qp.rnr_until, microseconds(10));
  pair.b.post_recv(0x100, 64);
  const Packets again = pair.a.send_all(microseconds(10));
  EXPECT_EQ(psns(again), (Psns{100}));
  pair.b.receive_all(again, microseconds(10));
  pair.run(microseconds(10));
  EXPECT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.b.executed.size(), 1U);
}

TEST(RcSelective, EarlyWriteThatMayNotBeDoneIsRefusedAtItsTurn) {
  RcPair pair(selective());
  pair.a.post_write(0, 0x8000, 10);  // PSN 100
  pair.a.post_write(0, RcSide::kMemoryBytes, 10);
  pair.b.receive_all(without(pair.a.send_all(), {0}));
  EXPECT_TRUE(pair.b.send_all().empty());  // nothing was accepted: no NAK tells of it
  ASSERT_TRUE(pair.a.expire(kTimer));
  pair.run(kTimer);
  ASSERT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);
  EXPECT_EQ(pair.a.completions[1].status, WcStatus::kRemoteAccessError);
}

}  // namespace
}  // namespace rnic::testbench
