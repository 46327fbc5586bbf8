// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/tcp_connection.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "base/error.h"
#include "transport/tcp/connection_table.h"

namespace rnic::transport {
namespace {

using AckEvent = TcpConnection::AckEvent;
using Arrival = TcpConnection::Arrival;

constexpr std::uint32_t kMss = 1000;
constexpr std::uint64_t kWindow = 64'000;
constexpr std::uint32_t kFirst = 100;  // both initial sequences

TcpParameters parameters() {
  TcpParameters p;
  p.mss = kMss;
  p.initial_cwnd = 4;
  p.window = kWindow;
  p.delayed_ack = 2;
  p.delayed_ack_time = microseconds(100);
  p.min_rto = microseconds(1000);
  return p;
}

TcpConnection connected(const TcpParameters& p = parameters()) {
  TcpConnection c(p);
  c.open_receive(kFirst);
  c.open_send(kFirst);
  return c;
}

void send_all_that_fits(TcpConnection& c, Time now) {
  while (c.can_send(kMss)) c.send(kMss, now);
}

TEST(TcpConnection, SequencesAreWideInsideAndWrapOnTheWire) {
  TcpConnection c(parameters());
  c.open_send(0xFFFF'FF00);
  const std::uint64_t first = c.send(kMss, kTimeZero);
  EXPECT_EQ(static_cast<std::uint32_t>(first), 0xFFFF'FF00U);
  // 0xFFFFFF00 + 1000 = 0x1'000002E8.
  EXPECT_EQ(c.on_ack(0x2E8, kWindow, true, kTimeZero), AckEvent::kAdvanced);
  EXPECT_EQ(c.send_unacknowledged(), first + kMss);
}

TEST(TcpConnection, InitialWindowLimitsTheFlight) {
  TcpConnection c = connected();
  // 4 segments of 1000; a fifth, of any size, must wait.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(c.can_send(kMss));
    c.send(kMss, kTimeZero);
  }
  EXPECT_FALSE(c.can_send(1));
}

TEST(TcpConnection, PeerWindowLimitsTheFlight) {
  TcpConnection c = connected();
  c.send(kMss, kTimeZero);
  c.on_ack(kFirst + kMss, 2500, true, kTimeZero);
  // min(cwnd 5000, window 2500): two segments of 1000 and 500 bytes more.
  c.send(kMss, kTimeZero);
  c.send(kMss, kTimeZero);
  EXPECT_TRUE(c.can_send(500));
  EXPECT_FALSE(c.can_send(501));
}

TEST(TcpConnection, SlowStartAddsWhatWasAcknowledgedUpToASegment) {
  TcpConnection c = connected();
  send_all_that_fits(c, kTimeZero);
  EXPECT_EQ(c.congestion_window(), 4000U);
  c.on_ack(kFirst + 300, kWindow, true, kTimeZero);  // +300
  EXPECT_EQ(c.congestion_window(), 4300U);
  c.on_ack(kFirst + 2300, kWindow, true, kTimeZero);  // 2000 acknowledged: +1000 only
  EXPECT_EQ(c.congestion_window(), 5300U);
}

TEST(TcpConnection, AcknowledgementsOutsideTheFlightAreIgnored) {
  TcpConnection c = connected();
  c.send(kMss, kTimeZero);
  EXPECT_EQ(c.on_ack(kFirst - 1, kWindow, true, kTimeZero), AckEvent::kNone);
  EXPECT_EQ(c.on_ack(kFirst + kMss + 1, kWindow, true, kTimeZero), AckEvent::kNone);
  EXPECT_EQ(c.send_unacknowledged(), c.send_max() - kMss);
}

TEST(TcpConnection, RtoFollowsRfc6298) {
  TcpParameters p = parameters();
  p.min_rto = microseconds(1);
  TcpConnection c = connected(p);
  // First sample 80 us: srtt 80, rttvar 40, rto 80 + 4*40 = 240.
  c.send(kMss, microseconds(0));
  c.on_ack(kFirst + 1000, kWindow, true, microseconds(80));
  EXPECT_EQ(c.smoothed_rtt(), microseconds(80));
  EXPECT_EQ(c.rto(), microseconds(240));
  // Second sample 160 us: rttvar = (3*40 + |80-160|)/4 = 50, srtt = (7*80 + 160)/8 = 90,
  // rto = 90 + 200 = 290.
  c.send(kMss, microseconds(100));
  EXPECT_EQ(c.rto_deadline(), microseconds(340));  // 100 + 240, the estimate so far
  c.on_ack(kFirst + 2000, kWindow, true, microseconds(260));
  EXPECT_EQ(c.smoothed_rtt(), microseconds(90));
  EXPECT_EQ(c.rto(), microseconds(290));
  EXPECT_EQ(c.rto_deadline(), kTimeNever);  // nothing outstanding
}

TEST(TcpConnection, RtoIsNeverBelowItsMinimum) {
  TcpConnection c = connected();
  c.send(kMss, microseconds(0));
  c.on_ack(kFirst + 1000, kWindow, true, microseconds(8));  // 8 + 4*4 = 24 us < 1000 us
  EXPECT_EQ(c.rto(), microseconds(1000));
}

TEST(TcpConnection, TimerRestartsWithEveryNewAcknowledgement) {
  TcpConnection c = connected();
  c.send(kMss, microseconds(10));
  c.send(kMss, microseconds(20));
  EXPECT_EQ(c.rto_deadline(), microseconds(1010));  // of the oldest
  c.on_ack(kFirst + 1000, kWindow, true, microseconds(50));
  EXPECT_EQ(c.rto_deadline(), microseconds(1050));
}

TEST(TcpConnection, TimeoutGoesBackHalvesAndDoublesTheTimer) {
  TcpConnection c = connected();
  send_all_that_fits(c, kTimeZero);
  c.on_timeout(microseconds(1000));
  EXPECT_EQ(c.send_next(), c.send_unacknowledged());
  EXPECT_TRUE(c.retransmitting());
  EXPECT_EQ(c.congestion_window(), 1000U);
  EXPECT_EQ(c.slow_start_threshold(), 2000U);  // max(4000/2, 2*1000)
  EXPECT_EQ(c.rto(), microseconds(2000));
  EXPECT_EQ(c.rto_deadline(), microseconds(3000));
  EXPECT_EQ(c.timeouts(), 1U);
  // The second timeout of the same segment leaves the threshold alone.
  c.send(kMss, microseconds(1000));
  c.on_timeout(microseconds(3000));
  EXPECT_EQ(c.slow_start_threshold(), 2000U);
  EXPECT_EQ(c.rto(), microseconds(4000));
  EXPECT_EQ(c.timeouts(), 2U);
  // Karn: the resent segment's acknowledgement is no sample, the timer stays backed off.
  c.send(kMss, microseconds(3000));
  c.on_ack(kFirst + 1000, kWindow, true, microseconds(3005));
  EXPECT_EQ(c.rto(), microseconds(4000));
  EXPECT_EQ(c.timeouts(), 0U);
}

TEST(TcpConnection, CongestionAvoidanceAddsASegmentPerWindow) {
  TcpConnection c = connected();
  send_all_that_fits(c, kTimeZero);
  c.on_timeout(microseconds(1000));  // ssthresh 2000, cwnd 1000
  c.send(kMss, microseconds(1000));
  c.on_ack(kFirst + 1000, kWindow, true, microseconds(1010));
  EXPECT_EQ(c.congestion_window(), 2000U);  // slow start reached the threshold
  c.send(kMss, microseconds(1010));
  c.on_ack(kFirst + 2000, kWindow, true, microseconds(1020));
  EXPECT_EQ(c.congestion_window(), 2000U);  // 1000 of a window of 2000 acknowledged
  c.send(kMss, microseconds(1020));
  c.on_ack(kFirst + 3000, kWindow, true, microseconds(1030));
  EXPECT_EQ(c.congestion_window(), 3000U);
}

TEST(TcpConnection, ThirdDuplicateAckGoesBack) {
  TcpParameters p = parameters();
  p.initial_cwnd = 8;
  TcpConnection c = connected(p);
  send_all_that_fits(c, kTimeZero);
  EXPECT_EQ(c.on_ack(kFirst, kWindow, true, kTimeZero), AckEvent::kNone);
  EXPECT_EQ(c.on_ack(kFirst, kWindow, true, kTimeZero), AckEvent::kNone);
  EXPECT_EQ(c.on_ack(kFirst, kWindow, true, kTimeZero), AckEvent::kFastRetransmit);
  EXPECT_EQ(c.send_next(), c.send_unacknowledged());
  EXPECT_EQ(c.slow_start_threshold(), 4000U);  // half of the 8000 in flight
  EXPECT_EQ(c.congestion_window(), 4000U);
  // Later duplicates belong to the same loss.
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(c.on_ack(kFirst, kWindow, true, kTimeZero), AckEvent::kNone);
  }
}

TEST(TcpConnection, DataAndWindowUpdatesAreNoDuplicateAcks) {
  TcpConnection c = connected();
  send_all_that_fits(c, kTimeZero);
  for (int i = 0; i < 5; ++i) c.on_ack(kFirst, kWindow, false, kTimeZero);
  for (std::uint64_t i = 1; i < 6; ++i) c.on_ack(kFirst, kWindow - i, true, kTimeZero);
  EXPECT_FALSE(c.retransmitting());
}

TEST(TcpConnection, ResentSegmentThatIsLostAgainIsNoticed) {
  TcpParameters p = parameters();
  p.initial_cwnd = 8;
  TcpConnection c = connected(p);
  send_all_that_fits(c, kTimeZero);
  for (int i = 0; i < 3; ++i) c.on_ack(kFirst, kWindow, true, kTimeZero);
  for (int i = 0; i < 4; ++i) c.send(kMss, kTimeZero);  // window of 4: the second is lost
  EXPECT_EQ(c.on_ack(kFirst + 1000, kWindow, true, kTimeZero), AckEvent::kAdvanced);
  EXPECT_EQ(c.on_ack(kFirst + 1000, kWindow, true, kTimeZero), AckEvent::kNone);
  EXPECT_EQ(c.on_ack(kFirst + 1000, kWindow, true, kTimeZero), AckEvent::kNone);
  EXPECT_EQ(c.on_ack(kFirst + 1000, kWindow, true, kTimeZero), AckEvent::kFastRetransmit);
}

TEST(TcpConnection, AcknowledgementPastTheResendPointSkipsAhead) {
  TcpConnection c = connected();
  send_all_that_fits(c, kTimeZero);
  c.on_timeout(microseconds(1000));
  EXPECT_EQ(c.on_ack(kFirst + 3000, kWindow, true, microseconds(1001)), AckEvent::kAdvanced);
  EXPECT_EQ(c.send_next(), c.send_unacknowledged());
  EXPECT_EQ(c.send_max() - c.send_next(), 1000U);
}

TEST(TcpConnection, EverySecondSegmentIsAcknowledgedAtOnce) {
  TcpConnection c = connected();
  c.accept(kMss, microseconds(5));
  EXPECT_FALSE(c.ack_due());
  EXPECT_EQ(c.ack_deadline(), microseconds(105));
  c.accept(kMss, microseconds(6));
  EXPECT_TRUE(c.ack_due());
  EXPECT_EQ(c.ack_deadline(), kTimeNever);
  EXPECT_EQ(static_cast<std::uint32_t>(c.take_ack(true)), kFirst + 2 * kMss);
  EXPECT_FALSE(c.ack_due());
}

TEST(TcpConnection, DataSettlesADelayedAck) {
  TcpConnection c = connected();
  c.accept(kMss, microseconds(5));
  c.take_ack(false);
  EXPECT_EQ(c.ack_deadline(), kTimeNever);
  c.accept(kMss, microseconds(7));  // counts from one again
  EXPECT_FALSE(c.ack_due());
}

TEST(TcpConnection, ArrivalsAreSortedBySequence) {
  TcpConnection c = connected();
  EXPECT_EQ(c.classify(kFirst), Arrival::kInOrder);
  EXPECT_EQ(c.classify(kFirst + 1), Arrival::kGap);
  EXPECT_EQ(c.classify(kFirst - 1), Arrival::kDuplicate);
}

TEST(TcpConnection, EverySegmentBehindAGapOwesABareAck) {
  TcpConnection c = connected();
  c.owe_duplicate_ack();
  c.owe_duplicate_ack();
  c.take_ack(false);  // a data segment does not count as a duplicate
  EXPECT_TRUE(c.duplicate_ack_owed());
  c.take_ack(true);
  EXPECT_TRUE(c.duplicate_ack_owed());
  c.take_ack(true);
  EXPECT_FALSE(c.ack_due());
  // What fills the gap is acknowledged at once, in place of the rest.
  c.owe_duplicate_ack();
  c.accept(kMss, kTimeZero);
  EXPECT_FALSE(c.duplicate_ack_owed());
  EXPECT_TRUE(c.ack_due());
}

// Against a map that does the same the slow way.
TEST(ConnectionTable, FindsWhatAMapFinds) {
  ConnectionTable table;
  std::map<std::tuple<std::uint64_t, std::uint16_t, std::uint16_t>, std::uint32_t> by_key;
  std::map<std::uint32_t, ConnectionKey> by_qpn;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto qpn = static_cast<std::uint32_t>(1 + random() % 500);
    if (by_qpn.count(qpn) != 0) {
      const ConnectionKey& k = by_qpn[qpn];
      by_key.erase({k.peer, k.peer_port, k.local_port});
      by_qpn.erase(qpn);
    }
    if (random() % 3 == 0) {
      table.erase(qpn);
      continue;
    }
    const ConnectionKey key{0x0A00'0000 + random() % 4, static_cast<std::uint16_t>(random() % 64),
                            static_cast<std::uint16_t>(0x8000 + random() % 64)};
    const auto tuple = std::make_tuple(key.peer, key.peer_port, key.local_port);
    if (by_key.count(tuple) != 0) {
      EXPECT_THROW(table.insert(key, qpn), ConfigError);
      continue;
    }
    table.insert(key, qpn);
    by_key[tuple] = qpn;
    by_qpn[qpn] = key;
  }
  EXPECT_EQ(table.size(), by_key.size());
  for (std::uint64_t peer = 0x0A00'0000; peer < 0x0A00'0004; ++peer) {
    for (std::uint16_t peer_port = 0; peer_port < 64; ++peer_port) {
      for (std::uint16_t local = 0x8000; local < 0x8040; ++local) {
        const auto found = by_key.find({peer, peer_port, local});
        EXPECT_EQ(table.find({peer, peer_port, local}), found == by_key.end() ? 0 : found->second);
      }
    }
  }
}

}  // namespace
}  // namespace rnic::transport
