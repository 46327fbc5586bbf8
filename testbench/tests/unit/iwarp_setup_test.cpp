// SPDX-License-Identifier: Apache-2.0
#include "transport/iwarp_setup.h"

#include <gtest/gtest.h>

namespace rnic::transport {
namespace {

constexpr Time kRetry = microseconds(10);

/// Takes what is due and gives it to the other end unless `lost`.
SetupSegment pass(IwarpSetup& from, IwarpSetup& to, Time now, bool lost = false) {
  const bool finished = from.done();
  const SetupSegment segment = from.take(now);
  // An ACK of an end that has the whole set-up behind it acknowledges the reply.
  const bool acknowledges = segment == SetupSegment::kAck || segment == SetupSegment::kRequest;
  const SetupAck ack = !acknowledges ? SetupAck::kNothing
                       : finished    ? SetupAck::kAll
                                     : SetupAck::kSyn;
  if (!lost) to.received(segment, ack);
  return segment;
}

TEST(IwarpSetup, GoodCase) {
  IwarpSetup a;
  IwarpSetup b;
  EXPECT_TRUE(a.done());  // nothing was asked for
  a.start(true, kRetry, kTimeNever);
  b.start(false, kRetry, kTimeNever);
  EXPECT_FALSE(b.due());
  EXPECT_EQ(pass(a, b, kTimeZero), SetupSegment::kSyn);
  EXPECT_EQ(a.deadline(), kRetry);
  EXPECT_EQ(pass(b, a, kTimeZero), SetupSegment::kSynAck);
  EXPECT_EQ(pass(a, b, kTimeZero), SetupSegment::kAck);
  EXPECT_EQ(pass(a, b, kTimeZero), SetupSegment::kRequest);
  EXPECT_EQ(pass(b, a, kTimeZero), SetupSegment::kReply);
  EXPECT_FALSE(b.done());  // its reply may still be lost
  EXPECT_EQ(pass(a, b, kTimeZero), SetupSegment::kAck);
  for (IwarpSetup* end : {&a, &b}) {
    EXPECT_TRUE(end->done());
    EXPECT_FALSE(end->due());
    EXPECT_EQ(end->deadline(), kTimeNever);
  }
}

// Whatever single segment is lost, the retry of one end or the other completes the set-up.
TEST(IwarpSetup, AnyLostSegmentIsRepaired) {
  for (int lost = 0; lost < 6; ++lost) {
    IwarpSetup a;
    IwarpSetup b;
    a.start(true, kRetry, kTimeNever);
    b.start(false, kRetry, kTimeNever);
    Time now{0};
    int sent = 0;
    while (!(a.done() && b.done())) {
      ASSERT_LT(sent, 20) << "segment " << lost;
      if (a.due()) {
        pass(a, b, now, sent++ == lost);
      } else if (b.due()) {
        pass(b, a, now, sent++ == lost);
      } else {
        now = std::min(a.deadline(), b.deadline());
        ASSERT_NE(now, kTimeNever) << "segment " << lost << ": both wait for ever";
        if (a.deadline() <= now) {
          ASSERT_TRUE(a.timeout(7, now));
        }
        if (b.deadline() <= now) {
          ASSERT_TRUE(b.timeout(7, now));
        }
      }
    }
  }
}

// The request is lost. The SYN-ACK is acknowledged, so that the passive end has nothing to send
// again, and a SYN that comes late is acknowledged only (RFC 9293, 3.10.7.4).
TEST(IwarpSetup, WhatIsAcknowledgedIsNotSentAgain) {
  IwarpSetup a;
  IwarpSetup b;
  a.start(true, kRetry, kTimeNever);
  b.start(false, kRetry, microseconds(500));
  pass(a, b, kTimeZero);
  pass(b, a, kTimeZero);
  EXPECT_EQ(b.deadline(), kRetry);
  EXPECT_EQ(pass(a, b, kTimeZero), SetupSegment::kAck);
  EXPECT_EQ(b.deadline(), microseconds(500));  // of giving up
  EXPECT_FALSE(b.due());
  EXPECT_STREQ(b.stage_name(), "waits for the MPA request");
  EXPECT_EQ(pass(a, b, kTimeZero, true), SetupSegment::kRequest);
  b.received(SetupSegment::kSyn, SetupAck::kNothing);
  EXPECT_EQ(pass(b, a, kTimeZero), SetupSegment::kAck);
  EXPECT_FALSE(b.due());
  ASSERT_TRUE(a.timeout(7, kRetry));
  EXPECT_EQ(pass(a, b, kRetry), SetupSegment::kRequest);
  EXPECT_EQ(pass(b, a, kRetry), SetupSegment::kReply);
  EXPECT_EQ(pass(a, b, kRetry), SetupSegment::kAck);
  EXPECT_TRUE(a.done() && b.done());
}

TEST(IwarpSetup, RetriesDoubleAndEnd) {
  IwarpSetup a;
  a.start(true, kRetry, kTimeNever);
  Time now{0};
  for (int i = 0; i <= 3; ++i) {
    EXPECT_EQ(a.take(now), SetupSegment::kSyn);
    EXPECT_EQ(a.deadline() - now, kRetry * (1 << i));
    now = a.deadline();
    EXPECT_EQ(a.timeout(3, now), i < 3);
  }
  EXPECT_FALSE(a.due());
  EXPECT_EQ(a.deadline(), kTimeNever);
}

// With 10 us, 20 us, 40 us of waiting the third retry would come due at 70 us: at 50 us it is over.
TEST(IwarpSetup, GivesUpInTime) {
  IwarpSetup a;
  a.start(true, kRetry, microseconds(50));
  Time now{0};
  for (const Time due : {microseconds(10), microseconds(30)}) {
    EXPECT_EQ(a.take(now), SetupSegment::kSyn);
    now = a.deadline();
    EXPECT_EQ(now, due);
    EXPECT_TRUE(a.timeout(7, now));
  }
  EXPECT_EQ(a.take(now), SetupSegment::kSyn);
  EXPECT_EQ(a.deadline(), microseconds(50));
  EXPECT_FALSE(a.timeout(7, microseconds(50)));
  EXPECT_FALSE(a.due());
  EXPECT_EQ(a.deadline(), kTimeNever);
}

// Who waits for the peer's SYN has nothing to send again, and gives up all the same.
TEST(IwarpSetup, WhoListensGivesUpToo) {
  IwarpSetup b;
  b.start(false, kRetry, microseconds(50));
  EXPECT_FALSE(b.due());
  EXPECT_EQ(b.deadline(), microseconds(50));
  EXPECT_FALSE(b.timeout(7, microseconds(50)));
}

}  // namespace
}  // namespace rnic::transport
