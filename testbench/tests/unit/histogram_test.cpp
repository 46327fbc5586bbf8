// SPDX-License-Identifier: Apache-2.0
#include "stats/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace rnic::stats {
namespace {

/// The definition, on the values themselves: the smallest that the share q does not exceed.
std::int64_t exact_quantile(const std::vector<std::int64_t>& sorted, std::uint64_t permille) {
  const std::uint64_t rank = (sorted.size() * permille + 999) / 1000;
  return sorted[std::max<std::uint64_t>(rank, 1) - 1];
}

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_TRUE(histogram.empty());
  EXPECT_EQ(histogram.min(), kTimeZero);
  EXPECT_EQ(histogram.max(), kTimeZero);
  EXPECT_EQ(histogram.quantile(0.5), kTimeZero);
  EXPECT_EQ(histogram.mean_ns(), 0.0);
}

TEST(Histogram, QuantilesOfRandomTimesAreWithinOneInThousand) {
  std::mt19937_64 random(7);
  // Logarithms spread evenly over 1 ps .. 10 s, so that every octave is hit.
  std::uniform_real_distribution<double> exponent(0.0, 13.0);
  Histogram histogram;
  std::vector<std::int64_t> values;
  std::uint64_t sum = 0;
  for (int i = 0; i < 50'000; ++i) {
    const auto value = static_cast<std::int64_t>(std::pow(10.0, exponent(random)));
    values.push_back(value);
    sum += static_cast<std::uint64_t>(value);
    histogram.add(Time{value});
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.sum_ps(), sum);
  EXPECT_EQ(histogram.min().count(), values.front());
  EXPECT_EQ(histogram.max().count(), values.back());
  for (std::uint64_t permille = 0; permille <= 1000; ++permille) {
    const auto exact = static_cast<double>(exact_quantile(values, permille));
    const double found =
        static_cast<double>(histogram.quantile(static_cast<double>(permille) / 1000).count());
    EXPECT_LE(std::fabs(found - exact), exact * 0.001) << permille << " permille";
  }
}

TEST(Histogram, ExactBelowOneNanosecondAndAtTheEdges) {
  Histogram histogram;
  for (const std::int64_t ps : {0, 511, 512, 1023}) histogram.add(Time{ps});
  EXPECT_EQ(histogram.at_rank(1), Time{0});
  EXPECT_EQ(histogram.at_rank(2), Time{511});
  EXPECT_EQ(histogram.at_rank(3), Time{512});
  EXPECT_EQ(histogram.at_rank(4), Time{1023});
  EXPECT_EQ(histogram.at_rank(99), Time{1023});
}

TEST(Histogram, ConstantTimeHasThatQuantileExactly) {
  Histogram histogram;
  for (int i = 0; i < 3; ++i) histogram.add(Time{1'234'567});
  EXPECT_EQ(histogram.quantile(0.5), Time{1'234'567});
  EXPECT_DOUBLE_EQ(histogram.mean_ns(), 1234.567);
}

TEST(Histogram, NearestRank) {
  // Of 100 values the 90th covers 90 %; 0.9 * 100 is not quite 90 in binary.
  EXPECT_EQ(Histogram::nearest_rank(0.9, 100), 90U);
  EXPECT_EQ(Histogram::nearest_rank(0.999, 1000), 999U);
  EXPECT_EQ(Histogram::nearest_rank(0.5, 3), 2U);
  EXPECT_EQ(Histogram::nearest_rank(0.0, 3), 1U);
  EXPECT_EQ(Histogram::nearest_rank(1.0, 3), 3U);
  EXPECT_EQ(Histogram::nearest_rank(0.5, 0), 0U);
}

TEST(Histogram, ExtremesOfTheRange) {
  Histogram histogram;
  histogram.add(Time::max());
  histogram.add(Time{-5});
  EXPECT_EQ(histogram.min(), kTimeZero);
  EXPECT_EQ(histogram.max(), Time::max());
  EXPECT_EQ(histogram.at_rank(2), Time::max());
}

TEST(Histogram, MergeIsTheSameAsAddingAll) {
  Histogram one;
  Histogram two;
  Histogram both;
  for (std::int64_t i = 1; i <= 1000; ++i) {
    const Time value = nanoseconds(i * i);
    (i % 3 == 0 ? one : two).add(value);
    both.add(value);
  }
  one.merge(two);
  one.merge(Histogram());
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.sum_ps(), both.sum_ps());
  EXPECT_EQ(one.min(), both.min());
  EXPECT_EQ(one.max(), both.max());
  for (std::uint64_t rank = 1; rank <= 1000; rank += 37) {
    EXPECT_EQ(one.at_rank(rank), both.at_rank(rank));
  }
}

TEST(Histogram, BucketsCoverEveryValueInOrder) {
  Histogram histogram;
  const std::vector<std::int64_t> values = {3, 700, 5'000, 5'001, 123'456'789};
  for (const std::int64_t value : values) histogram.add(Time{value});
  std::uint64_t count = 0;
  Time last{-1};
  histogram.for_each_bucket([&](const Histogram::Bucket& bucket) {
    EXPECT_GT(bucket.low, last);
    EXPECT_GE(bucket.high, bucket.low);
    for (std::uint64_t i = 0; i < bucket.count; ++i) {
      EXPECT_LE(bucket.low.count(), values[count + i]);
      EXPECT_GE(bucket.high.count(), values[count + i]);
    }
    count += bucket.count;
    last = bucket.high;
  });
  EXPECT_EQ(count, values.size());
}

TEST(Histogram, ResetForgets) {
  Histogram histogram;
  histogram.add(nanoseconds(5));
  histogram.reset();
  EXPECT_TRUE(histogram.empty());
  histogram.add(nanoseconds(7));
  EXPECT_EQ(histogram.min(), nanoseconds(7));
  EXPECT_EQ(histogram.max(), nanoseconds(7));
  EXPECT_EQ(histogram.quantile(0.5), nanoseconds(7));
}

}  // namespace
}  // namespace rnic::stats
