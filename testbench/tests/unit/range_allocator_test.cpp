// SPDX-License-Identifier: Apache-2.0
#include "host/range_allocator.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace rnic::host {
namespace {

TEST(RangeAllocator, TakesTheLowestRangeThatFits) {
  RangeAllocator ranges(10, 30);
  EXPECT_EQ(ranges.allocate(5), 10U);
  EXPECT_EQ(ranges.allocate(5), 15U);
  ranges.release(10, 5);
  // [10, 15) is too short for 6, so [20, 30) has to serve; 3 fit in front.
  EXPECT_EQ(ranges.allocate(6), 20U);
  EXPECT_EQ(ranges.allocate(3), 10U);
  EXPECT_EQ(ranges.free_count(), 20U - 5 - 6 - 3);
}

TEST(RangeAllocator, AlignmentLeavesThePaddingFree) {
  RangeAllocator ranges(1, 33);
  EXPECT_EQ(ranges.allocate(8, 8), 8U);
  EXPECT_EQ(ranges.allocate(7), 1U);
  // [16, 33) is left: 17 numbers from 16 on.
  EXPECT_EQ(ranges.allocate(18, 16), std::nullopt);
  EXPECT_EQ(ranges.allocate(17, 16), 16U);
}

TEST(RangeAllocator, FullAndEmptyRequests) {
  RangeAllocator ranges(0, 4);
  EXPECT_EQ(ranges.allocate(0), std::nullopt);
  EXPECT_EQ(ranges.allocate(5), std::nullopt);
  EXPECT_EQ(ranges.allocate(4), 0U);
  EXPECT_EQ(ranges.allocate(1), std::nullopt);
}

TEST(RangeAllocator, RefusesDoubleAndForeignReleases) {
  RangeAllocator ranges(0, 16);
  ASSERT_EQ(ranges.allocate(8), 0U);
  ranges.release(2, 2);
  EXPECT_THROW(ranges.release(3, 2), SimulationError);
  EXPECT_THROW(ranges.release(1, 2), SimulationError);
  EXPECT_THROW(ranges.release(15, 2), SimulationError);
  EXPECT_THROW(ranges.release(0, ~std::uint64_t{0}), SimulationError);
}

// Property: against a set of single numbers, ranges never overlap, and first fit fails only when
// the set has no aligned run that long.
TEST(RangeAllocator, RandomUseAgreesWithASetOfNumbers) {
  constexpr std::uint64_t kEnd = 256;
  Rng rng(7, "range_allocator_test");
  RangeAllocator ranges(0, kEnd);
  std::vector<bool> used(kEnd, false);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
  const auto expected = [&](std::uint64_t count,
                            std::uint64_t align) -> std::optional<std::uint64_t> {
    for (std::uint64_t start = 0; start + count <= kEnd; start += align) {
      bool fits = true;
      for (std::uint64_t i = start; i < start + count; ++i) fits = fits && !used[i];
      if (fits) return start;
    }
    return std::nullopt;
  };
  for (int step = 0; step < 20000; ++step) {
    if (held.empty() || rng.below(100) < 55) {
      const std::uint64_t count = 1 + rng.below(24);
      const std::uint64_t align = std::uint64_t{1} << rng.below(4);
      const auto want = expected(count, align);
      const auto got = ranges.allocate(count, align);
      // First fit looks at ranges in order and at each range's first aligned number only, which is
      // the lowest aligned start of all.
      ASSERT_EQ(got, want) << "step " << step;
      if (!got) continue;
      for (std::uint64_t i = *got; i < *got + count; ++i) used[i] = true;
      held.emplace_back(*got, count);
    } else {
      const std::size_t victim = rng.below(held.size());
      const auto [begin, count] = held[victim];
      ranges.release(begin, count);
      for (std::uint64_t i = begin; i < begin + count; ++i) used[i] = false;
      held[victim] = held.back();
      held.pop_back();
    }
  }
  for (const auto& [begin, count] : held) ranges.release(begin, count);
  EXPECT_EQ(ranges.allocate(kEnd), 0U) << "everything merges into one range again";
}

}  // namespace
}  // namespace rnic::host
