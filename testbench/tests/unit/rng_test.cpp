// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace rnic::testbench {
namespace {

TEST(Rng, IsXoshiro256StarStarSeededBySplitmix64) {
  // FNV-1a of the empty name is its offset basis, so this seed starts splitmix64 at 0; the numbers
  // are those of the published reference code for seed 0.
  Rng rng(0xCBF29CE484222325ULL, "");
  EXPECT_EQ(rng.next(), 11091344671253066420ULL);
  EXPECT_EQ(rng.next(), 13793997310169335082ULL);
  EXPECT_EQ(rng.next(), 1900383378846508768ULL);
  EXPECT_EQ(rng.next(), 7684712102626143532ULL);
}

TEST(Rng, StreamsAreReproducibleAndDiffer) {
  Rng a(1, "host0.nic");
  Rng again(1, "host0.nic");
  Rng other_name(1, "host1.nic");
  Rng other_seed(2, "host0.nic");
  const std::uint64_t first = a.next();
  EXPECT_EQ(first, again.next());
  EXPECT_NE(first, other_name.next());
  EXPECT_NE(first, other_seed.next());
}

TEST(Rng, BelowIsUniform) {
  // 60000 draws of 6: 10000 each, standard deviation sqrt(60000 x 5 / 36) = 91.
  Rng rng(1, "dice");
  std::array<int, 6> count{};
  for (int i = 0; i < 60000; ++i) ++count.at(rng.below(6));
  for (const int n : count) EXPECT_NEAR(n, 10000, 5 * 91);
  EXPECT_EQ(rng.below(0), 0U);
  EXPECT_EQ(rng.below(1), 0U);
}

TEST(Rng, UniformAndExponentialMeans) {
  // 100000 draws: standard deviation of the mean 0.29 / 316 = 0.0009, and 50 / 316 = 0.16.
  Rng rng(1, "means");
  double uniform = 0;
  double exponential = 0;
  double beyond = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    const double e = rng.exponential(50);
    ASSERT_GE(e, 0.0);
    exponential += e;
    beyond += e > 100 ? 1 : 0;
  }
  EXPECT_NEAR(uniform / 100000, 0.5, 0.0046);
  EXPECT_NEAR(exponential / 100000, 50, 0.8);
  EXPECT_NEAR(beyond / 100000, std::exp(-2.0), 0.0054);  // deviation 0.00108
}

}  // namespace
}  // namespace rnic::testbench
