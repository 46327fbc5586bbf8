// SPDX-License-Identifier: Apache-2.0
#include "host/frame_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "base/zeroed_array.h"

namespace rnic::host {
namespace {

bool is_zero(const std::uint8_t* bytes) {
  return std::all_of(bytes, bytes + FrameStore::kFrameBytes,
                     [](std::uint8_t byte) { return byte == 0; });
}

TEST(FrameStore, FramesAreAlignedZeroAndApart) {
  // More than two chunks of 2 MiB hold.
  constexpr std::size_t kFrames = 1100;
  std::vector<FrameStore::Frame> frames;
  std::set<std::uintptr_t> addresses;
  for (std::size_t i = 0; i < kFrames; ++i) {
    frames.push_back(FrameStore::take());
    const auto address = reinterpret_cast<std::uintptr_t>(frames.back().get());
    EXPECT_EQ(address % FrameStore::kFrameBytes, 0U);
    EXPECT_TRUE(is_zero(frames.back().get()));
    addresses.insert(address);
    std::memset(frames.back().get(), 0xA5, FrameStore::kFrameBytes);
  }
  EXPECT_EQ(addresses.size(), kFrames);
}

TEST(FrameStore, AFrameThatIsTakenAgainIsZeroAgain) {
  FrameStore::Frame frame = FrameStore::take();
  const std::uint8_t* address = frame.get();
  std::memset(frame.get(), 0xFF, FrameStore::kFrameBytes);
  frame.reset();
  frame = FrameStore::take();
  EXPECT_EQ(frame.get(), address);  // the last one that was given back, still in the caches
  EXPECT_TRUE(is_zero(frame.get()));
}

TEST(ZeroedArray, StartsAtZeroOnACacheLine) {
  ZeroedArray<std::uint64_t> array(1000);
  EXPECT_EQ(array.size(), 1000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % 64, 0U);
  for (const std::uint64_t value : array) EXPECT_EQ(value, 0U);
  array[999] = 7;
  EXPECT_EQ(array.data()[999], 7U);
}

}  // namespace
}  // namespace rnic::host
