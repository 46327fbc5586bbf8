// SPDX-License-Identifier: Apache-2.0
#include "host/frame_allocator.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace rnic::host {
namespace {

constexpr std::uint64_t kGiB = kPage1GiB;

class FrameSizes : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(FrameSizes, FramesAreAlignedDistinctAndScattered) {
  const std::uint64_t size = GetParam();
  FrameAllocator frames(64 * kGiB, Rng(1, "test"));
  std::set<std::uint64_t> seen;
  std::uint64_t previous = 0;
  // 40 frames of 1 GiB fit in the 48 GiB above the contiguous zone.
  const int count = size == kPage1GiB ? 40 : 3000;
  for (int i = 0; i < count; ++i) {
    const auto frame = frames.allocate(size);
    ASSERT_TRUE(frame);
    EXPECT_EQ(*frame % size, 0U);
    EXPECT_GE(*frame, 16 * kGiB) << "the lowest quarter is the contiguous zone";
    EXPECT_LE(*frame + size, 64 * kGiB);
    EXPECT_NE(*frame, previous + size) << "consecutive frames";
    EXPECT_TRUE(seen.insert(*frame).second) << "handed out twice";
    previous = *frame;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FrameSizes, ::testing::Values(kPage4KiB, kPage2MiB, kPage1GiB));

TEST(FrameAllocator, SizesDoNotOverlap) {
  FrameAllocator frames(8 * kGiB, Rng(2, "test"));
  std::set<std::pair<std::uint64_t, std::uint64_t>> ranges;
  Rng rng(3, "sizes");
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t size = rng.below(50) == 0 ? kPage2MiB : kPage4KiB;
    const auto frame = frames.allocate(size);
    ASSERT_TRUE(frame);
    ranges.emplace(*frame, *frame + size);
  }
  ASSERT_TRUE(frames.allocate(kPage1GiB));
  std::uint64_t end = 0;
  for (const auto& [first, last] : ranges) {
    EXPECT_GE(first, end);
    end = last;
  }
}

TEST(FrameAllocator, UsesEveryFrameThenFails) {
  // 16 MiB: the lowest 4 MiB are the contiguous zone, 12 MiB = 3,072 frames remain.
  FrameAllocator frames(16 << 20, Rng(1, "test"));
  std::vector<std::uint64_t> held;
  held.reserve(3072);
  for (int i = 0; i < 3072; ++i) held.push_back(frames.allocate(kPage4KiB).value());
  EXPECT_FALSE(frames.allocate(kPage4KiB));
  EXPECT_FALSE(frames.allocate(kPage2MiB));
  frames.release(held.back(), kPage4KiB);
  EXPECT_EQ(frames.allocate(kPage4KiB), held.back());
}

TEST(FrameAllocator, ContiguousZoneRoundsUpAndReuses) {
  // Zone: [4 KiB, 4 MiB), 1,023 frames.
  FrameAllocator frames(16 << 20, Rng(1, "test"));
  EXPECT_EQ(frames.allocate_contiguous(1, kPage4KiB), kPage4KiB);
  EXPECT_EQ(frames.allocate_contiguous(4097, kPage4KiB), 2 * kPage4KiB);
  EXPECT_EQ(frames.allocate_contiguous(4096, kPage2MiB), kPage2MiB);
  EXPECT_FALSE(frames.allocate_contiguous(4 << 20, kPage4KiB));
  frames.release_contiguous(2 * kPage4KiB, 4097);
  EXPECT_EQ(frames.allocate_contiguous(8192, kPage4KiB), 2 * kPage4KiB);
}

TEST(FrameAllocator, SameSeedSameFrames) {
  FrameAllocator one(8 * kGiB, Rng(5, "host0"));
  FrameAllocator two(8 * kGiB, Rng(5, "host0"));
  FrameAllocator other(8 * kGiB, Rng(6, "host0"));
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto frame = one.allocate(kPage4KiB);
    EXPECT_EQ(frame, two.allocate(kPage4KiB));
    differs = differs || frame != other.allocate(kPage4KiB);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace rnic::host
