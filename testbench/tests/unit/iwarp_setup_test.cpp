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
  if (!lost) to.received(segment, segment == SetupSegment::kAck && finished);
  return segment;
}

TEST(IwarpSetup, GoodCase) {
  IwarpSetup a;
  IwarpSetup b;
  EXPECT_TRUE(a.done());  // nothing was asked for
  a.start(true, kRetry);
  b.start(false, kRetry);
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
    a.start(true, kRetry);
    b.start(false, kRetry);
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
          ASSERT_TRUE(a.timeout(7));
        }
        if (b.deadline() <= now) {
          ASSERT_TRUE(b.timeout(7));
        }
      }
    }
  }
}

TEST(IwarpSetup, RetriesDoubleAndEnd) {
  IwarpSetup a;
  a.start(true, kRetry);
  Time now{0};
  for (int i = 0; i <= 3; ++i) {
    EXPECT_EQ(a.take(now), SetupSegment::kSyn);
    EXPECT_EQ(a.deadline() - now, kRetry * (1 << i));
    now = a.deadline();
    EXPECT_EQ(a.timeout(3), i < 3);
  }
  EXPECT_FALSE(a.due());
  EXPECT_EQ(a.deadline(), kTimeNever);
}

}  // namespace
}  // namespace rnic::transport
