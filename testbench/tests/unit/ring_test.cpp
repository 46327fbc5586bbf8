// SPDX-License-Identifier: Apache-2.0
#include "base/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/pool.h"
#include "base/rng.h"

namespace rnic::testbench {
namespace {

TEST(Ring, BehavesAsADeque) {
  Ring<int> ring;
  std::deque<int> expected;
  Rng rng(1, "ring");
  for (int i = 0; i < 5000; ++i) {
    if (expected.empty() || rng.below(100) < 52) {
      EXPECT_EQ(ring.push_back(i), i);
      expected.push_back(i);
    } else if (rng.below(4) == 0) {
      ring.pop_back();
      expected.pop_back();
    } else {
      ring.pop_front();
      expected.pop_front();
    }
    ASSERT_EQ(ring.size(), expected.size());
    ASSERT_EQ(ring.empty(), expected.empty());
    if (expected.empty()) continue;
    ASSERT_EQ(ring.front(), expected.front());
    ASSERT_EQ(ring.back(), expected.back());
    const std::size_t middle = expected.size() / 2;
    ASSERT_EQ(ring[middle], expected[middle]);
  }
  ring.clear();
  EXPECT_TRUE(ring.empty());
}

TEST(Ring, GrowsAcrossTheWrapInOrder) {
  Ring<std::unique_ptr<int>> ring;
  for (int i = 0; i < 4; ++i) ring.push_back(std::make_unique<int>(i));
  ring.pop_front();
  ring.pop_front();
  for (int i = 4; i < 7; ++i) ring.push_back(std::make_unique<int>(i));  // full at 6, then grows
  for (int i = 2; i < 7; ++i) {
    EXPECT_EQ(*ring.front(), i);
    ring.pop_front();
  }
}

TEST(Ring, ASlotKeepsItsBuffer) {
  Ring<std::vector<int>> ring;
  for (int i = 0; i < 4; ++i) ring.push_slot().assign(100, i);
  for (int i = 0; i < 4; ++i) ring.pop_front();
  EXPECT_EQ(ring.push_slot().capacity(), 100U);
}

TEST(Pool, TakesWhatWasGiven) {
  Pool<int> pool;
  int* first = pool.take();
  int* second = pool.take();
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.in_use(), 2U);
  pool.give(first);
  EXPECT_EQ(pool.take(), first);
  EXPECT_EQ(pool.created(), 2U);
}

}  // namespace
}  // namespace rnic::testbench
