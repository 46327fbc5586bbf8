// SPDX-License-Identifier: Apache-2.0
// Random work over a wire that loses, duplicates and delays: below the retry limits everything
// arrives intact, once and in order; beyond them the right error comes at the right place.
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>

#include "tests/support/rc_traffic.h"

namespace rnic::testbench {
namespace {

using protocol::WcStatus;

constexpr Time kLimit = microseconds(50'000);

/// With go-back-N and with selective repeat (true), on each wire.
class RcProperty : public ::testing::TestWithParam<std::tuple<bool, config::Protocol>> {
 protected:
  static bool selective() { return std::get<0>(GetParam()); }
  static config::Protocol wire() { return std::get<1>(GetParam()); }
};

/// Seeds of a test: `few`, or more when RNICSIM_SEEDS asks for them.
std::uint64_t seeds(std::uint64_t few) {
  const char* more = std::getenv("RNICSIM_SEEDS");
  return more == nullptr ? few : std::max<std::uint64_t>(few, std::strtoull(more, nullptr, 10));
}

TEST_P(RcProperty, EverythingArrivesOnceAndInOrder) {
  std::uint64_t retransmitted = 0;
  std::uint64_t repeated_reads = 0;
  const std::uint64_t last = seeds(3000);
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    Rng rng(seed, "faults");
    RcFaults faults;
    faults.loss = rng.below(4) == 0 ? 0 : 0.04 * rng.uniform();
    faults.duplicate = rng.below(2) == 0 ? 0 : 0.05 * rng.uniform();
    faults.delay = rng.below(2) == 0 ? 0 : 0.05 * rng.uniform();
    faults.most_delay = microseconds(20);
    faults.corrupt = rng.below(2) == 0 ? 0 : 0.02 * rng.uniform();
    faults.burst = rng.below(3) == 0 ? 0.005 * rng.uniform() : 0;
    // Counted in packets: a longer one would outlast the eight of a lonely packet.
    faults.burst_ends = 0.6 + 0.4 * rng.uniform();
    if (rng.below(4) == 0) {  // less than two time-outs of 65.5 us
      faults.down_from = microseconds(static_cast<std::int64_t>(rng.below(40)));
      faults.down_until =
          faults.down_from + microseconds(static_cast<std::int64_t>(rng.below(120)));
    }
    RcTraffic traffic(seed, faults, selective(), wire());
    traffic.post(traffic.pair.a, traffic.from_a,
                 static_cast<std::uint32_t>(1 + rng.below(RcTraffic::kMostOperations)));
    if (rng.below(2) == 0) {
      traffic.post(traffic.pair.b, traffic.from_b,
                   static_cast<std::uint32_t>(1 + rng.below(RcTraffic::kMostOperations)));
    }
    // Sometimes slower than the requests come: RNR NAKs among everything else.
    const Time every = rng.below(2) == 0 ? kTimeZero : microseconds(8);
    traffic.supply(traffic.pair.b, traffic.from_a, every);
    traffic.supply(traffic.pair.a, traffic.from_b, every);
    ASSERT_TRUE(traffic.run(kLimit)) << "seed " << seed << " does not finish";
    ASSERT_EQ(traffic.pair.a.qp.state, protocol::QpState::kRts) << "seed " << seed;
    ASSERT_EQ(traffic.pair.b.qp.state, protocol::QpState::kRts) << "seed " << seed;
    ASSERT_EQ(traffic.check(traffic.pair.a, traffic.pair.b, traffic.from_a), "") << "seed " << seed;
    ASSERT_EQ(traffic.check(traffic.pair.b, traffic.pair.a, traffic.from_b), "") << "seed " << seed;
    retransmitted += traffic.pair.a.counters().retransmitted_packets;
    repeated_reads += traffic.pair.a.counters().implied_nak_seq_err;
  }
  // The faults did happen.
  EXPECT_GT(retransmitted, 3000U);
  EXPECT_GT(repeated_reads, 100U);
}

TEST_P(RcProperty, WithoutFaultsNothingIsSentTwice) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    RcTraffic traffic(seed, RcFaults{}, selective(), wire());
    traffic.post(traffic.pair.a, traffic.from_a, RcTraffic::kMostOperations);
    traffic.post(traffic.pair.b, traffic.from_b, RcTraffic::kMostOperations);
    traffic.supply(traffic.pair.b, traffic.from_a, kTimeZero);
    traffic.supply(traffic.pair.a, traffic.from_b, kTimeZero);
    ASSERT_TRUE(traffic.run(kLimit)) << "seed " << seed;
    for (const RcSide* side : {&traffic.pair.a, &traffic.pair.b}) {
      const transport::TransportCounters& counters = side->counters();
      ASSERT_EQ(counters.retransmitted_packets, 0U) << "seed " << seed;
      ASSERT_EQ(counters.out_of_sequence + counters.duplicate_request, 0U) << "seed " << seed;
      ASSERT_EQ(counters.rnr_naks_sent + counters.implied_nak_seq_err, 0U) << "seed " << seed;
    }
    ASSERT_EQ(traffic.check(traffic.pair.a, traffic.pair.b, traffic.from_a), "") << "seed " << seed;
    ASSERT_EQ(traffic.check(traffic.pair.b, traffic.pair.a, traffic.from_b), "") << "seed " << seed;
  }
}

/// Completions are successes, then one `status`, then flushed ones; "" or what is wrong.
std::string ends_with(const RcSide& side, std::size_t posted, WcStatus status) {
  if (side.completions.size() != posted) return "completions missing";
  std::size_t i = 0;
  while (i < posted && side.completions[i].status == WcStatus::kSuccess) ++i;
  if (i == posted) return "no error";
  if (side.completions[i].status != status) return "another error";
  for (++i; i < posted; ++i) {
    if (side.completions[i].status != WcStatus::kWrFlushError) return "not flushed";
  }
  return side.qp.state == protocol::QpState::kError ? "" : "not in the error state";
}

TEST_P(RcProperty, APeerThatFallsSilentExhaustsTheRetries) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed, "silence");
    RcFaults faults;
    // The last answer cannot have come within the first 2 us: there are two flights of 1 us.
    faults.dead_to_a = nanoseconds(static_cast<std::int64_t>(rng.below(2'000)));
    RcTraffic traffic(seed, faults, selective(), wire());
    traffic.post(traffic.pair.a, traffic.from_a, RcTraffic::kMostOperations);
    traffic.supply(traffic.pair.b, traffic.from_a, kTimeZero);
    ASSERT_TRUE(traffic.run(kLimit)) << "seed " << seed;
    ASSERT_EQ(ends_with(traffic.pair.a, traffic.from_a.size(), WcStatus::kRetryExceededError), "")
        << "seed " << seed;
    ASSERT_EQ(traffic.check(traffic.pair.a, traffic.pair.b, traffic.from_a), "") << "seed " << seed;
    ASSERT_EQ(traffic.pair.a.counters().local_ack_timeout_err, 8U) << "seed " << seed;
  }
}

TEST_P(RcProperty, APeerWithoutReceiveRequestsExhaustsTheRnrRetries) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    RcTraffic traffic(seed, RcFaults{}, selective(), wire());
    traffic.post(traffic.pair.a, traffic.from_a, RcTraffic::kMostOperations);
    // One receive request in 200 us is too slow for two RNR waits of 10 us.
    traffic.supply(traffic.pair.b, traffic.from_a, microseconds(200));
    traffic.pair.a.qp.rnr_retry = traffic.pair.a.qp.rnr_retries_left = 2;
    ASSERT_TRUE(traffic.run(kLimit)) << "seed " << seed;
    ASSERT_EQ(traffic.check(traffic.pair.a, traffic.pair.b, traffic.from_a), "") << "seed " << seed;
    const auto needing = std::count_if(traffic.from_a.begin(), traffic.from_a.end(), needs_recv);
    if (needing < 2) continue;
    ++failures;
    ASSERT_EQ(ends_with(traffic.pair.a, traffic.from_a.size(), WcStatus::kRnrRetryExceededError),
              "")
        << "seed " << seed;
    ASSERT_EQ(traffic.pair.b.counters().rnr_naks_sent, 3U) << "seed " << seed;
  }
  EXPECT_GT(failures, 400);
}

std::string name_of(const std::tuple<bool, config::Protocol>& parameters) {
  const auto [selective, wire] = parameters;
  const char* name = wire == config::Protocol::kIb       ? "Ib"
                     : wire == config::Protocol::kRoceV1 ? "RoceV1"
                                                         : "RoceV2";
  return std::string(selective ? "SelectiveRepeat" : "GoBackN") + name;
}

INSTANTIATE_TEST_SUITE_P(Recovery, RcProperty,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(config::Protocol::kIb,
                                                              config::Protocol::kRoceV1,
                                                              config::Protocol::kRoceV2)),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace rnic::testbench
