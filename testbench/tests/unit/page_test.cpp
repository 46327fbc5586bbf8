// SPDX-License-Identifier: Apache-2.0
#include "base/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "base/zeroed_array.h"
#include "host/physical_memory.h"
#include "protocol/frame.h"

namespace rnic {
namespace {

bool all_are(const std::uint8_t* bytes, std::uint8_t value) {
  return std::all_of(bytes, bytes + Page::kBytes,
                     [value](std::uint8_t byte) { return byte == value; });
}

TEST(Page, PagesAreAlignedZeroAndApart) {
  // More than two chunks of 2 MiB hold.
  constexpr std::size_t kPages = 1100;
  std::vector<Page> pages;
  std::set<std::uintptr_t> addresses;
  for (std::size_t i = 0; i < kPages; ++i) {
    pages.push_back(Page::zeros());
    const auto address = reinterpret_cast<std::uintptr_t>(pages.back().get());
    EXPECT_EQ(address % Page::kBytes, 0U);
    EXPECT_TRUE(all_are(pages.back().get(), 0));
    addresses.insert(address);
    std::memset(pages.back().get(), 0xA5, Page::kBytes);
  }
  EXPECT_EQ(addresses.size(), kPages);
}

TEST(Page, OneThatIsTakenAgainIsZeroAgain) {
  Page page = Page::zeros();
  const std::uint8_t* address = page.get();
  std::memset(page.get(), 0xFF, Page::kBytes);
  page.reset();
  page = Page::zeros();
  EXPECT_EQ(page.get(), address);  // the last one that was given back, still in the caches
  EXPECT_TRUE(all_are(page.get(), 0));
}

TEST(Page, LivesAsLongAsAnyHolder) {
  Page first = Page::zeros();
  EXPECT_FALSE(first.shared());
  std::memset(first.get(), 0x11, Page::kBytes);
  const std::uint8_t* address = first.get();
  Page second = first;
  EXPECT_TRUE(first.shared());
  EXPECT_EQ(second.get(), address);
  first.reset();
  EXPECT_FALSE(second.shared());
  EXPECT_NE(Page::zeros().get(), address);  // not free yet
  Page& itself = second;
  second = itself;
  EXPECT_TRUE(all_are(second.get(), 0x11));
  first = std::move(second);
  EXPECT_FALSE(first.shared());
  EXPECT_TRUE(all_are(first.get(), 0x11));
}

TEST(Page, UnshareCopiesOnlyWhatOthersHold) {
  Page first = Page::zeros();
  std::memset(first.get(), 0x22, Page::kBytes);
  const std::uint8_t* address = first.get();
  first.unshare();
  EXPECT_EQ(first.get(), address);
  const Page second = first;
  first.unshare();
  EXPECT_NE(first.get(), address);
  EXPECT_EQ(second.get(), address);
  std::memset(first.get(), 0x33, Page::kBytes);
  EXPECT_TRUE(all_are(second.get(), 0x22));
}

/// A frame of one memory that has become a frame of another.
struct LentPage : ::testing::Test {
  static constexpr std::uint64_t kFrom = 5 * Page::kBytes;
  static constexpr std::uint64_t kTo = 9 * Page::kBytes;

  LentPage() {
    from.fill(kFrom, 0x44, Page::kBytes);
    EXPECT_TRUE(to.adopt(kTo, from.lend(kFrom)));
  }
  static std::vector<std::uint8_t> page_of(const host::PhysicalMemory& memory, std::uint64_t pa) {
    std::vector<std::uint8_t> bytes(Page::kBytes);
    EXPECT_TRUE(memory.read(pa, bytes.data(), bytes.size()));
    return bytes;
  }
  void expect(std::uint8_t in_from, std::uint8_t in_to) {
    EXPECT_TRUE(all_are(page_of(from, kFrom).data(), in_from));
    EXPECT_TRUE(all_are(page_of(to, kTo).data(), in_to));
  }

  host::PhysicalMemory from{1U << 20};
  host::PhysicalMemory to{1U << 20};
};

TEST_F(LentPage, HasTheSameBytesWithoutACopy) {
  expect(0x44, 0x44);
  EXPECT_EQ(from.lend(kFrom).get(), to.lend(kTo).get());
}

// Every way to change a frame, on either side: the other one keeps its bytes.
TEST_F(LentPage, AWriteOnOneSideLeavesTheOther) {
  const std::vector<std::uint8_t> other(Page::kBytes, 0x55);
  from.write(kFrom, other.data(), other.size());
  expect(0x55, 0x44);
}
TEST_F(LentPage, AWriteOfAByteChangesOne) {
  const std::uint8_t byte = 0x66;
  to.write(kTo + 7, &byte, 1);
  EXPECT_TRUE(all_are(page_of(from, kFrom).data(), 0x44));
  std::vector<std::uint8_t> expected(Page::kBytes, 0x44);
  expected[7] = byte;
  EXPECT_EQ(page_of(to, kTo), expected);
}
TEST_F(LentPage, AWriteAcrossFramesLeavesTheOther) {
  const std::vector<std::uint8_t> other(2 * Page::kBytes, 0x77);
  from.write(kFrom - 100, other.data(), other.size());
  expect(0x77, 0x44);
}
TEST_F(LentPage, AFillLeavesTheOther) {
  to.fill(kTo, 0, Page::kBytes);
  expect(0x44, 0);
}
TEST_F(LentPage, TheEndOfAFrameLeavesTheOther) {
  const std::uint64_t allocated = from.allocate_contiguous(Page::kBytes).value();
  from.fill(allocated, 0x88, Page::kBytes);
  to.adopt(kTo, from.lend(allocated));
  from.free_contiguous(allocated, Page::kBytes);
  EXPECT_TRUE(all_are(page_of(from, allocated).data(), 0));
  EXPECT_TRUE(all_are(page_of(to, kTo).data(), 0x88));
}
TEST_F(LentPage, AFrameThatMovesTakesItAlong) {
  host::PageImage image = from.take_image(kFrom, Page::kBytes);
  expect(0, 0x44);
  from.put_image(kFrom + Page::kBytes, std::move(image));
  EXPECT_TRUE(all_are(page_of(from, kFrom + Page::kBytes).data(), 0x44));
}
TEST_F(LentPage, OnlyWholeFramesAreLent) {
  EXPECT_FALSE(from.lend(kFrom + 64));
  EXPECT_FALSE(from.lend(2 * Page::kBytes));  // never written: reads zero
  EXPECT_FALSE(from.lend(1U << 20));          // no such memory
  EXPECT_FALSE(to.adopt(kTo + 64, from.lend(kFrom)));
  EXPECT_FALSE(to.adopt(1U << 20, from.lend(kFrom)));
}
TEST_F(LentPage, WatchersHearOfIt) {
  struct : host::MemoryWatcher {
    void memory_written(std::uint64_t pa, std::uint32_t bytes) override {
      at = pa;
      length = bytes;
    }
    std::uint64_t at = 0;
    std::uint32_t length = 0;
  } watcher;
  to.watch(kTo + 128, 8, &watcher);
  to.adopt(kTo, from.lend(kFrom));
  EXPECT_EQ(watcher.at, kTo + 128);
  EXPECT_EQ(watcher.length, 8U);
}

TEST(PayloadBuffer, APageIsCopiedBeforeItIsChanged) {
  Page page = Page::zeros();
  std::memset(page.get(), 0x12, Page::kBytes);
  protocol::PayloadBuffer payload;
  payload.page() = page;
  EXPECT_EQ(payload.data(), page.get());
  payload.writable()[3] = 0x34;
  EXPECT_TRUE(all_are(page.get(), 0x12));
  EXPECT_EQ(payload.data()[3], 0x34);
  EXPECT_EQ(payload.data()[4], 0x12);
  EXPECT_FALSE(page.shared());
}

TEST(PayloadBuffer, LetsGoOfThePageWithItsNextUse) {
  const Page page = Page::zeros();
  protocol::PayloadBuffer payload;
  payload.page() = page;
  payload.reserve(16);
  EXPECT_FALSE(page.shared());
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
}  // namespace rnic
