// SPDX-License-Identifier: Apache-2.0
#include "transport/retransmission_timers.h"

#include <gtest/gtest.h>

#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::WcStatus;
using transport::RetransmissionTimers;

TEST(RetransmissionTimers, SpecificationIsThePlainTime) {
  const RetransmissionTimers timers;
  EXPECT_EQ(timers.interval(14, 0), Time{4'096'000LL << 14});
  EXPECT_FALSE(timers.quick(14, 0));
  EXPECT_EQ(timers.rnr_wait(1), microseconds(10));
}

TEST(RetransmissionTimers, FloorAndFactor) {
  RetransmissionTimers timers;
  timers.min_ack_timeout = 16;
  timers.ack_timeout_factor = 2;
  timers.rnr_factor = 1.5;
  for (std::uint32_t n = 1; n <= 16; ++n) {
    EXPECT_EQ(timers.interval(n, 0), 2 * Time{4'096'000LL << 16});
  }
  EXPECT_EQ(timers.interval(20, 0), 2 * Time{4'096'000LL << 20});
  EXPECT_EQ(timers.rnr_wait(1), microseconds(15));
}

/// Time from sending to the error, and how often it was sent again, when nobody answers.
struct GivingUp {
  Time time{0};
  std::uint32_t resends = 0;
};

GivingUp give_up(const transport::RcConfig& config, std::uint8_t exponent, std::uint8_t retries) {
  RcPair pair(config);
  pair.a.qp.timeout_exponent = exponent;
  pair.a.qp.retry_count = retries;
  pair.restart(100);
  pair.a.post_write(0, 0x8000, 10);
  pair.a.send_all();
  GivingUp end;
  while (pair.a.qp.retry_deadline != kTimeNever) {
    end.time = pair.a.qp.retry_deadline;
    pair.a.expire(end.time);
    if (!pair.a.send_all(end.time).empty()) ++end.resends;
  }
  EXPECT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions.at(0).status, WcStatus::kRetryExceededError);
  return end;
}

// The adaptive phase lasts while its interval does not exceed 4.096 us x 2^n: 2, 4 .. 256 ms for
// n = 16 (268 ms) are 8 resends in 510 ms; R - 1 expiries of twice 268.4 ms follow, R - 1 resends
// in all (one at the end of the phase, none at the last).
TEST(RetransmissionTimers, AdaptivePhaseComesBeforeAllButOneRetry) {
  transport::RcConfig config;
  config.timers.min_ack_timeout = 16;
  config.timers.ack_timeout_factor = 2;
  config.timers.adaptive = true;
  config.timers.adaptive_start = microseconds(2000);
  const Time regular = 2 * Time{4'096'000LL << 16};
  for (const std::uint8_t retries : {std::uint8_t{2}, std::uint8_t{3}, std::uint8_t{7}}) {
    const GivingUp end = give_up(config, 14, retries);
    EXPECT_EQ(end.time, microseconds(510'000) + (retries - 1) * regular) << retries;
    EXPECT_EQ(end.resends, 8 + retries - 2) << retries;
  }
  EXPECT_EQ(give_up(config, 14, 1).time, microseconds(510'000));
  // Without a retry nothing is sent again, whatever the device likes to do.
  const GivingUp at_once = give_up(config, 14, 0);
  EXPECT_EQ(at_once.time, regular);
  EXPECT_EQ(at_once.resends, 0U);
}

TEST(RetransmissionTimers, ProgressStartsTheAdaptivePhaseAnew) {
  transport::RcConfig config;
  config.timers.adaptive = true;
  config.timers.adaptive_start = microseconds(2000);
  RcPair pair(config);
  pair.a.qp.timeout_exponent = 14;
  pair.a.post_write(0, 0x8000, 10);
  pair.a.post_write(0, 0x9000, 10);
  pair.a.send_all();
  ASSERT_TRUE(pair.a.expire(microseconds(2000)));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(6000));
  pair.b.receive(pair.a.send_all(microseconds(2000))[0]);
  pair.a.receive_all(pair.b.send_all(), microseconds(2001));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(4001));
  EXPECT_EQ(pair.a.qp.retries_left, 7U);
}

}  // namespace
}  // namespace rnic::testbench
