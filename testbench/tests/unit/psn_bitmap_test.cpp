// SPDX-License-Identifier: Apache-2.0
#include "transport/psn_bitmap.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace rnic::transport {
namespace {

TEST(PsnBitmap, MarksAndForgets) {
  PsnBitmap bitmap;
  EXPECT_FALSE(bitmap.test(5));
  bitmap.set(5, 3);
  bitmap.set(5, 3);
  EXPECT_TRUE(bitmap.test(5));
  EXPECT_EQ(bitmap.marks(), 1U);
  bitmap.clear(5);
  EXPECT_FALSE(bitmap.test(5));
  EXPECT_EQ(bitmap.marks(), 0U);
}

/// Against a set, over a window that slides through the wrap and grows.
TEST(PsnBitmap, DoesWhatASetDoes) {
  Rng rng(1, "bitmap");
  PsnBitmap bitmap;
  std::set<std::uint32_t> reference;
  std::uint32_t base = 0xFF'FF00;
  for (int i = 0; i < 20'000; ++i) {
    const auto window = static_cast<std::uint32_t>(i < 5000 ? 60 : 700);
    const std::uint32_t psn =
        protocol::psn_add(base, static_cast<std::uint32_t>(rng.below(window)));
    if (rng.below(3) == 0) {
      const auto step = static_cast<std::uint32_t>(rng.below(20));
      const std::uint32_t to = protocol::psn_add(base, step);
      bitmap.clear(base, to);
      for (std::uint32_t p = base; p != to; p = protocol::psn_add(p, 1)) reference.erase(p);
      base = to;
    } else {
      bitmap.set(psn, base);
      reference.insert(psn);
    }
    for (std::uint32_t k = 0; k < window; k += 13) {
      const std::uint32_t p = protocol::psn_add(base, k);
      ASSERT_EQ(bitmap.test(p), reference.count(p) != 0) << i;
    }
    ASSERT_EQ(bitmap.marks(), reference.size());
  }
}

}  // namespace
}  // namespace rnic::transport
