// SPDX-License-Identifier: Apache-2.0
// Selective acknowledgement and congestion control of TCP: MSS 1000, first sequence 100.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/rng.h"
#include "transport/tcp/tcp_connection.h"

namespace rnic::transport {
namespace {

using AckEvent = TcpConnection::AckEvent;
using config::CongestionControl;
using protocol::TcpOptions;

constexpr std::uint32_t kMss = 1000;
constexpr std::uint64_t kWindow = 64'000;
constexpr std::uint32_t kFirst = 100;

TcpConnection connected(std::uint32_t initial_cwnd = 10) {
  TcpParameters p;
  p.mss = kMss;
  p.initial_cwnd = initial_cwnd;
  p.window = kWindow;
  p.min_rto = microseconds(1000);
  p.sack = true;
  TcpConnection c(p);
  c.open_receive(kFirst);
  c.open_send(kFirst);
  while (c.can_send(kMss)) c.send(kMss, kTimeZero);
  return c;
}

/// An ACK for everything before segment `first` (from 0) with SACK blocks of whole segments.
AckEvent ack(TcpConnection& c, std::uint32_t first,
             const std::vector<std::pair<std::uint32_t, std::uint32_t>>& blocks) {
  TcpOptions options;
  for (const auto& [from, to] : blocks) {
    options.sack[options.sack_count++] = {kFirst + from * kMss, kFirst + to * kMss};
  }
  return c.on_ack(kFirst + first * kMss, kWindow, true, kTimeZero, &options);
}

std::uint32_t segment(const TcpConnection& c, std::uint64_t sequence) {
  return static_cast<std::uint32_t>(sequence - (c.send_unacknowledged() & ~0xFFFF'FFFFULL) -
                                    kFirst) /
         kMss;
}

// 10 segments, 2 and 5 lost. The third ACK with news starts recovery: flight 8 (2..9), window 4.
TEST(TcpSack, FillsTheGapsAndNothingElse) {
  TcpConnection c = connected();
  EXPECT_EQ(ack(c, 2, {}), AckEvent::kAdvanced);
  EXPECT_EQ(ack(c, 2, {{3, 4}}), AckEvent::kNone);
  EXPECT_EQ(ack(c, 2, {{3, 5}}), AckEvent::kNone);
  EXPECT_EQ(ack(c, 2, {{6, 7}, {3, 5}}), AckEvent::kFastRetransmit);
  EXPECT_TRUE(c.recovering());
  EXPECT_EQ(segment(c, c.send_next()), 2U);
  c.send(kMss, kTimeZero);
  EXPECT_EQ(c.send_next(), c.send_max());  // 5 is not known to be lost: one segment is behind it
  // 7, 8, 9 behind 5: more than two segments.
  ack(c, 2, {{6, 10}, {3, 5}});
  EXPECT_EQ(segment(c, c.send_next()), 5U);
  c.send(kMss, kTimeZero);
  EXPECT_EQ(c.send_next(), c.send_max());
  EXPECT_EQ(ack(c, 10, {}), AckEvent::kAdvanced);
  EXPECT_FALSE(c.recovering());
}

TEST(TcpSack, AnAckWithoutNewsIsNoDuplicate) {
  TcpConnection c = connected();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ack(c, 0, {{1, 2}}), AckEvent::kNone);
  EXPECT_FALSE(c.recovering());
}

// 20 segments, 0 lost, window halved to 10: the pipe is 20 - 1 lost - 3 arrived = 16. New data
// waits until the pipe has drained below the window.
TEST(TcpSack, ThePipeLimitsWhatIsSentInRecovery) {
  TcpConnection c = connected(20);
  for (std::uint32_t i = 2; i <= 4; ++i) ack(c, 0, {{1, i}});
  ASSERT_TRUE(c.recovering());
  EXPECT_EQ(c.congestion_window(), 10'000U);
  // Nothing of the gap is in the pipe yet: 16 segments are, more than the window.
  EXPECT_FALSE(c.can_send(kMss));
  for (std::uint32_t i = 5; i <= 10; ++i) ack(c, 0, {{1, i}});
  EXPECT_FALSE(c.can_send(kMss));  // 10 in the pipe
  ack(c, 0, {{1, 11}});
  EXPECT_TRUE(c.can_send(kMss));  // 9 and the resent one
  c.send(kMss, kTimeZero);
  EXPECT_FALSE(c.can_send(kMss));
  EXPECT_EQ(c.send_next(), c.send_max());
}

TEST(TcpSack, PartialAcknowledgementResendsTheNextGap) {
  TcpConnection c = connected();
  for (std::uint32_t i = 2; i <= 4; ++i) ack(c, 0, {{1, i}});  // 0 is lost
  c.send(kMss, kTimeZero);
  // 0 arrived, but 4 is missing: one segment behind it would not be enough to call it lost.
  ack(c, 4, {{5, 6}});
  EXPECT_TRUE(c.recovering());
  EXPECT_EQ(segment(c, c.send_next()), 4U);
}

TEST(TcpSack, TimeoutResendsEveryGap) {
  TcpConnection c = connected();
  ack(c, 0, {{3, 5}});
  c.on_timeout(microseconds(1000));
  EXPECT_EQ(c.congestion_window(), kMss);
  std::set<std::uint32_t> resent;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(c.retransmitting());
    if (!c.can_send(kMss)) {
      ack(c, 0, {{3, 5}});
      const std::uint32_t next = *resent.rbegin() + 1;
      ack(c, next == 3 ? 5 : next, {});
      continue;
    }
    resent.insert(segment(c, c.send(kMss, microseconds(1000))));
  }
  EXPECT_EQ(resent.count(3) + resent.count(4), 0U);
  EXPECT_EQ(resent.count(0) + resent.count(1) + resent.count(2), 3U);
}

// 0 is lost, 1 to 3 were reported and are thrown away by the peer, which may do that: it
// acknowledges 0 alone. Behind the time-out all of it is sent again, each as the one before is
// acknowledged.
TEST(TcpSack, WhatThePeerThrewAwayIsSentAgain) {
  TcpConnection c = connected();
  for (std::uint32_t i = 2; i <= 4; ++i) ack(c, 0, {{1, i}});
  ASSERT_TRUE(c.recovering());
  c.send(kMss, kTimeZero);
  ack(c, 1, {});
  c.on_timeout(microseconds(1000));
  std::set<std::uint32_t> resent;
  for (std::uint32_t i = 1; i < 10; ++i) {
    while (c.retransmitting() && c.can_send(kMss)) {
      resent.insert(segment(c, c.send(kMss, microseconds(1000))));
    }
    EXPECT_EQ(resent.count(i), 1U) << i;
    EXPECT_EQ(ack(c, i + 1, {}), AckEvent::kAdvanced);
  }
  EXPECT_EQ(resent.size(), 9U);
  EXPECT_FALSE(c.retransmitting());
}

TEST(TcpSack, ReceiverTellsOfTheNewestFirst) {
  TcpConnection c = connected();
  const auto keep = [&c](std::uint32_t i) {
    return c.keep_early(kFirst + i * kMss, kMss, false, false);
  };
  EXPECT_TRUE(keep(2));
  EXPECT_TRUE(keep(6));
  EXPECT_TRUE(keep(4));
  EXPECT_TRUE(keep(3));
  EXPECT_FALSE(keep(3));
  EXPECT_FALSE(keep(64));  // beyond the window
  TcpOptions options;
  c.fill_sack(options);
  ASSERT_EQ(options.sack_count, 2);
  EXPECT_EQ(options.sack[0].left, kFirst + 2 * kMss);
  EXPECT_EQ(options.sack[0].right, kFirst + 5 * kMss);
  EXPECT_EQ(options.sack[1].left, kFirst + 6 * kMss);
  EXPECT_EQ(c.early_due(), nullptr);
  c.accept(kMss, kTimeZero);
  c.accept(kMss, kTimeZero);
  ASSERT_NE(c.early_due(), nullptr);
  EXPECT_EQ(static_cast<std::uint32_t>(c.early_due()->sequence), kFirst + 2 * kMss);
}

TEST(SequenceRanges, DoesWhatASetOfBytesDoes) {
  Rng rng(1, "ranges");
  for (int round = 0; round < 200; ++round) {
    SequenceRanges ranges;
    std::set<std::uint64_t> bytes;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t begin = rng.below(100);
      const std::uint64_t end = begin + 1 + rng.below(15);
      bool news = false;
      for (std::uint64_t b = begin; b < end; ++b) news = bytes.insert(b).second || news;
      ASSERT_EQ(ranges.add(begin, end), news);
      const std::uint64_t from = rng.below(100);
      std::uint64_t missing = 0;
      for (std::uint64_t b = from; b < from + 20; ++b) missing += 1 - bytes.count(b);
      ASSERT_EQ(ranges.missing(from, from + 20), missing);
      std::uint64_t skip = from;
      while (bytes.count(skip) != 0) ++skip;
      ASSERT_EQ(ranges.skip(from), skip);
      for (std::size_t k = 1; k < ranges.size(); ++k) ASSERT_LT(ranges[k - 1].end, ranges[k].begin);
    }
  }
}

// RFC 9438 with W_max = 100 segments: after the reduction to 70, K = cbrt(30 / 0.4) = 4.217 s, and
// W(t) = 0.4 (t - K)^3 + 100; the round trip of 1 s is short enough for Reno to be slower.
TEST(Cubic, FollowsItsFormula) {
  CongestionWindow w(CongestionControl::kCubic, kMss, 100);
  w.reduce(100 * kMss);
  EXPECT_EQ(w.bytes(), 70'000U);
  const double k = std::cbrt(30 / 0.4);
  const Time rtt = microseconds(1'000'000);
  for (int second = 0; second <= 8; ++second) {
    const Time now = rtt * second;
    for (int i = 0; i < 400; ++i) w.grow(kMss, now, rtt);  // enough ACKs to reach the target
    const double target = 0.4 * std::pow(second + 1 - k, 3) + 100;
    if (second == 0 || second > 4) continue;
    EXPECT_NEAR(static_cast<double>(w.bytes()) / kMss, target, 0.02 * target) << second;
  }
}

TEST(Cubic, FastConvergenceLowersTheOldMaximum) {
  CongestionWindow w(CongestionControl::kCubic, kMss, 100);
  w.reduce(100 * kMss);
  w.reduce(70 * kMss);  // below the last maximum: W_max = 70 * 1.7 / 2 = 59.5
  EXPECT_EQ(w.bytes(), 49'000U);
  w.grow(kMss, kTimeZero, kTimeZero);
  // K = cbrt((59.5 - 49) / 0.4) = 2.97 s: at that time the window is back at 59.5.
  const Time k = Time{static_cast<Time::rep>(std::cbrt(10.5 / 0.4) * 1e12)};
  // Ten windows of acknowledgements: what is left of the distance is e^-10 of it.
  for (int i = 0; i < 600; ++i) w.grow(kMss, k, kTimeZero);
  EXPECT_NEAR(static_cast<double>(w.bytes()) / kMss, 59.5, 0.6);
}

TEST(CongestionWindow, NoneNeverLimits) {
  CongestionWindow w(CongestionControl::kNone, kMss, 1);
  const std::uint64_t open = w.bytes();
  EXPECT_GT(open, std::uint64_t{1} << 40);
  w.reduce(1000);
  w.collapse(1000, true);
  EXPECT_EQ(w.bytes(), open);
}

}  // namespace
}  // namespace rnic::transport
