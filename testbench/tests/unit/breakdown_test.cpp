// SPDX-License-Identifier: Apache-2.0
#include "stats/breakdown.h"

#include <gtest/gtest.h>

#include <random>

namespace rnic::stats {
namespace {

TEST(Breakdown, StagesSumToTheLatenciesToThePicosecond) {
  std::mt19937_64 random(11);
  Breakdown breakdown;
  Histogram latency;
  for (int message = 0; message < 5000; ++message) {
    MessageTrace trace;
    Time now{static_cast<std::int64_t>(random() % 1'000'000'000)};
    trace.start(now);
    // Journeys of different length, with stages left out, repeated, and marked in the past.
    for (int step = 0; step < 12; ++step) {
      now += Time{static_cast<std::int64_t>(random() % 900'001) - 200'000};
      trace.mark(static_cast<Stage>(random() % kStageCount), now);
    }
    breakdown.add(trace);
    latency.add(trace.total());
  }
  EXPECT_EQ(breakdown.messages(), 5000U);
  EXPECT_EQ(breakdown.total_ps(), latency.sum_ps());
  EXPECT_DOUBLE_EQ(breakdown.total_mean_ns(), latency.mean_ns());
}

TEST(Breakdown, QuantilesCountMessagesThatSkipTheStage) {
  // 8 of 10 messages need no WQE fetch; the others take 300 and 500 ps (kept exactly).
  Breakdown breakdown;
  for (int i = 0; i < 10; ++i) {
    MessageTrace trace;
    trace.start(kTimeZero);
    if (i == 4) trace.mark(Stage::kWqeFetch, Time{300});
    if (i == 7) trace.mark(Stage::kWqeFetch, Time{500});
    breakdown.add(trace);
  }
  EXPECT_DOUBLE_EQ(breakdown.mean_ns(Stage::kWqeFetch), 0.08);
  EXPECT_EQ(breakdown.quantile(Stage::kWqeFetch, 0.8), kTimeZero);
  EXPECT_EQ(breakdown.quantile(Stage::kWqeFetch, 0.9), Time{300});
  EXPECT_EQ(breakdown.quantile(Stage::kWqeFetch, 0.99), Time{500});
  EXPECT_EQ(breakdown.quantile(Stage::kPoll, 0.99), kTimeZero);
}

TEST(Breakdown, MergeAndReset) {
  MessageTrace trace;
  trace.start(kTimeZero);
  trace.mark(Stage::kPost, nanoseconds(100));
  Breakdown one;
  Breakdown two;
  one.add(trace);
  two.add(trace);
  one.merge(two);
  EXPECT_EQ(one.messages(), 2U);
  EXPECT_EQ(one.sum_ps(Stage::kPost), 200'000U);
  one.reset();
  EXPECT_EQ(one.messages(), 0U);
  EXPECT_EQ(one.total_ps(), 0U);
  EXPECT_EQ(one.total_mean_ns(), 0.0);
  EXPECT_EQ(one.quantile(Stage::kPost, 0.5), kTimeZero);
}

}  // namespace
}  // namespace rnic::stats
