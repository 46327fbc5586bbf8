// SPDX-License-Identifier: Apache-2.0
#include "host/address_space.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace rnic::host {
namespace {

constexpr std::uint64_t kGiB = kPage1GiB;

class AddressSpaceTest : public ::testing::Test {
 protected:
  AddressSpace make(std::uint64_t limit = AddressSpace::kUnlimited) {
    return {memory_, kPage4KiB, limit, Rng(1, "app")};
  }
  static std::string load(AddressSpace& space, std::uint64_t va, std::size_t bytes) {
    std::string text(bytes, '?');
    EXPECT_EQ(space.read(va, text.data(), bytes), Status::kOk);
    return text;
  }
  static void store(AddressSpace& space, std::uint64_t va, const std::string& text) {
    EXPECT_EQ(space.write(va, text.data(), text.size()), Status::kOk);
  }
  /// What a device does: physical addresses only.
  void dma_write(std::uint64_t pa, const std::string& text) {
    EXPECT_TRUE(memory_.write(pa, text.data(), text.size()));
  }

  PhysicalMemory memory_{8 * kGiB};
};

TEST_F(AddressSpaceTest, FramesComeAtFirstTouch) {
  AddressSpace space = make();
  const auto va = space.map(3 * kPage4KiB);
  EXPECT_EQ(va % kPage4KiB, 0U);
  EXPECT_EQ(space.translate(va), std::nullopt);
  store(space, va + kPage4KiB + 5, "x");
  EXPECT_EQ(space.translate(va), std::nullopt);
  const auto pa = space.translate(va + kPage4KiB + 5);
  ASSERT_TRUE(pa);
  EXPECT_EQ(*pa % kPage4KiB, 5U);
  EXPECT_EQ(load(space, va, 1), std::string(1, '\0'));
}

TEST_F(AddressSpaceTest, NeighbouringPagesAreNotNeighboursInPhysicalMemory) {
  AddressSpace space = make();
  const auto va = space.map(1000 * kPage4KiB);
  ASSERT_EQ(space.pin(va, 1000 * kPage4KiB), Status::kOk);
  for (std::uint64_t page = 1; page < 1000; ++page) {
    const auto previous = space.translate(va + (page - 1) * kPage4KiB).value();
    EXPECT_NE(space.translate(va + page * kPage4KiB), previous + kPage4KiB);
  }
}

TEST_F(AddressSpaceTest, LargePages) {
  AddressSpace space = make();
  for (const std::uint64_t size : {kPage2MiB, kPage1GiB}) {
    const auto va = space.map(size + 1, size);
    EXPECT_EQ(va % size, 0U);
    EXPECT_EQ(space.page_size_at(va + size), size) << "rounded up to two pages";
    EXPECT_EQ(space.page_size_at(va + 2 * size), 0U);
    store(space, va + size - 3, "across");
    EXPECT_EQ(load(space, va + size - 3, 6), "across");
    const auto pa = space.translate(va).value();
    EXPECT_EQ(pa % size, 0U);
    EXPECT_EQ(space.translate(va + size - 1), pa + size - 1) << "a page is one piece";
  }
}

TEST_F(AddressSpaceTest, UnmappedAddressesFault) {
  AddressSpace space = make();
  const auto va = space.map(kPage4KiB);
  const auto next = space.map(kPage4KiB);
  char byte = 0;
  EXPECT_EQ(space.read(va - 1, &byte, 1), Status::kEfault);
  EXPECT_EQ(space.write(va + kPage4KiB, &byte, 1), Status::kEfault) << "guard page";
  EXPECT_EQ(space.write(va + kPage4KiB - 1, "xy", 2), Status::kEfault);
  EXPECT_EQ(load(space, va + kPage4KiB - 1, 1), std::string(1, '\0')) << "nothing was written";
  EXPECT_EQ(space.pin(va, kPage4KiB + 1), Status::kEfault);
  EXPECT_EQ(space.read(0, &byte, 1), Status::kEfault);
  EXPECT_EQ(space.unmap(next), Status::kOk);
  EXPECT_EQ(space.write(next, &byte, 1), Status::kEfault);
  EXPECT_EQ(space.unmap(next), Status::kEinval);
}

TEST_F(AddressSpaceTest, BadMappingsAreRefused) {
  AddressSpace space = make();
  EXPECT_THROW(space.map(0), ConfigError);
  EXPECT_THROW(space.map(1, 8192), ConfigError);
  EXPECT_THROW(space.map(~std::uint64_t{0}), ConfigError);
  EXPECT_THROW(AddressSpace(memory_, 1000, 0, Rng(1, "x")), ConfigError);
}

TEST_F(AddressSpaceTest, MemlockLimitIsExact) {
  constexpr std::uint64_t kLimit = 4 * kPage4KiB;
  AddressSpace space = make(kLimit);
  const auto va = space.map(16 * kPage4KiB);
  EXPECT_EQ(space.pin(va, kLimit + 1), Status::kEnomem);
  EXPECT_EQ(space.pin(va + 1, kLimit), Status::kEnomem) << "touches five pages";
  EXPECT_EQ(space.pinned_bytes(), 0U);
  EXPECT_EQ(space.pin(va, kLimit), Status::kOk);
  EXPECT_EQ(space.pinned_bytes(), kLimit);
  EXPECT_EQ(space.pin(va + 8 * kPage4KiB, 1), Status::kEnomem);
  EXPECT_EQ(space.unpin(va, kLimit), Status::kOk);
  // 2 bytes over a page boundary count as 2 pages.
  EXPECT_EQ(space.pin(va + kPage4KiB - 1, 2), Status::kOk);
  EXPECT_EQ(space.pinned_bytes(), 2 * kPage4KiB);
}

TEST_F(AddressSpaceTest, ALimitThatIsNotWholePagesRoundsDown) {
  AddressSpace space = make(3 * kPage4KiB - 1);
  const auto va = space.map(16 * kPage4KiB);
  EXPECT_EQ(space.pin(va, 2 * kPage4KiB + 1), Status::kEnomem);
  EXPECT_EQ(space.pin(va, 2 * kPage4KiB), Status::kOk);
}

TEST_F(AddressSpaceTest, LimitZeroForbidsPinning) {
  AddressSpace space = make(0);
  EXPECT_EQ(space.pin(space.map(1), 1), Status::kEperm);
}

TEST_F(AddressSpaceTest, PinArguments) {
  AddressSpace space = make();
  const auto va = space.map(kPage4KiB);
  EXPECT_EQ(space.pin(va, 0), Status::kEinval);
  EXPECT_EQ(space.pin(va, ~std::uint64_t{0}), Status::kEinval);
  EXPECT_EQ(space.unpin(va, 1), Status::kEinval) << "not pinned";
}

TEST_F(AddressSpaceTest, PinningPhysicalMemoryAwayEndsInEnomemWithoutPins) {
  // 16 MiB of which 12 MiB are for pages.
  PhysicalMemory small(16 << 20);
  AddressSpace space(small, kPage4KiB, AddressSpace::kUnlimited, Rng(1, "app"));
  const auto va = space.map(13 << 20);
  EXPECT_EQ(space.pin(va, 13 << 20), Status::kEnomem);
  EXPECT_EQ(space.pinned_bytes(), 0U);
  EXPECT_EQ(space.unpin(va, 1), Status::kEinval);
  EXPECT_EQ(space.unmap(va), Status::kOk) << "no page stayed pinned";
  EXPECT_EQ(space.pin(space.map(12 << 20), 12 << 20), Status::kOk) << "all frames came back";
}

TEST_F(AddressSpaceTest, PinsNest) {
  AddressSpace space = make();
  const auto va = space.map(kPage4KiB);
  ASSERT_EQ(space.pin(va, 10), Status::kOk);
  ASSERT_EQ(space.pin(va + 100, 10), Status::kOk);
  EXPECT_EQ(space.pinned_bytes(), 2 * kPage4KiB) << "each pin counts";
  EXPECT_EQ(space.unpin(va, 10), Status::kOk);
  EXPECT_EQ(space.migrate(va), Status::kEbusy);
  EXPECT_EQ(space.unmap(va), Status::kEbusy);
  EXPECT_EQ(space.unpin(va + 100, 10), Status::kOk);
  EXPECT_EQ(space.migrate(va), Status::kOk);
  EXPECT_EQ(space.unmap(va), Status::kOk);
}

// Why pages are pinned: the device keeps the physical address, the kernel moves the page.
TEST_F(AddressSpaceTest, WithoutAPinDmaHitsAStaleFrame) {
  AddressSpace space = make();
  const auto va = space.map(kPage4KiB);
  store(space, va, "old contents");
  const auto pa = space.translate(va).value();
  EXPECT_EQ(space.reclaim(1), 1U);
  dma_write(pa, "from the wire");
  EXPECT_EQ(load(space, va, 12), "old contents") << "the DMA missed the application's buffer";
  EXPECT_NE(space.translate(va), pa);
}

TEST_F(AddressSpaceTest, WithoutAPinMigrationMakesDmaStaleToo) {
  AddressSpace space = make();
  const auto va = space.map(kPage2MiB, kPage2MiB);
  store(space, va + 70000, "old contents");
  const auto pa = space.translate(va + 70000).value();
  EXPECT_EQ(space.migrate(va), Status::kOk);
  dma_write(pa, "from the wire");
  EXPECT_EQ(load(space, va + 70000, 12), "old contents");
  EXPECT_NE(space.translate(va + 70000), pa);
}

TEST_F(AddressSpaceTest, WithAPinDmaReachesTheBuffer) {
  AddressSpace space = make();
  const auto va = space.map(kPage4KiB);
  store(space, va, "old contents");
  ASSERT_EQ(space.pin(va, kPage4KiB), Status::kOk);
  const auto pa = space.translate(va).value();
  EXPECT_EQ(space.reclaim(1), 0U);
  EXPECT_EQ(space.migrate(va), Status::kEbusy);
  EXPECT_EQ(space.swap_out(va), Status::kEbusy);
  dma_write(pa, "from the wire");
  EXPECT_EQ(load(space, va, 13), "from the wire");
}

TEST_F(AddressSpaceTest, AFreedFrameIsReusedScrubbed) {
  PhysicalMemory small(16 << 20);
  AddressSpace space(small, kPage4KiB, AddressSpace::kUnlimited, Rng(1, "app"));
  const auto secret = space.map(12 << 20);
  for (std::uint64_t at = 0; at < 12 << 20; at += kPage4KiB) {
    ASSERT_EQ(space.write(secret + at, "secret", 6), Status::kOk);
  }
  const auto other = space.map(kPage4KiB);
  EXPECT_EQ(space.write(other, "x", 1), Status::kEnomem);
  EXPECT_EQ(space.reclaim(1), 1U);
  // The only free frame held "secret" a moment ago.
  EXPECT_EQ(load(space, other, 6), std::string(6, '\0'));
}

// Property: whatever is written, pinned, moved and swapped, the application reads what it wrote,
// pinned pages keep their frames, and two pages never share a frame. The model is a std::map of
// bytes and one of pin counts.
TEST_F(AddressSpaceTest, RandomUseAgreesWithAModel) {
  constexpr std::uint64_t kPages = 64;
  AddressSpace space = make(200 * kPage4KiB);
  const auto va = space.map(kPages * kPage4KiB);
  Rng rng(3, "address_space_test");
  std::map<std::uint64_t, char> bytes;
  std::map<std::uint64_t, std::uint32_t> pins;
  std::map<std::uint64_t, std::uint64_t> pinned_frames;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  std::uint64_t pinned = 0;
  const auto pages_of = [&](std::uint64_t at, std::uint64_t n) {
    return std::pair{(at - va) / kPage4KiB, (at + n - 1 - va) / kPage4KiB};
  };
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t at = va + rng.below(kPages * kPage4KiB);
    const std::uint64_t n =
        1 + rng.below(std::min<std::uint64_t>(va + kPages * kPage4KiB - at, 3 * kPage4KiB));
    const std::uint64_t page = (at - va) / kPage4KiB;
    switch (rng.below(7)) {
      case 0:
      case 1: {
        const char value = static_cast<char>(rng.next());
        ASSERT_EQ(space.write(at, &value, 1), Status::kOk);
        bytes[at] = value;
        break;
      }
      case 2: {
        const auto [first, last] = pages_of(at, n);
        const std::uint64_t span = (last - first + 1) * kPage4KiB;
        const Status want = pinned + span > 200 * kPage4KiB ? Status::kEnomem : Status::kOk;
        ASSERT_EQ(space.pin(at, n), want);
        if (want != Status::kOk) break;
        pinned += span;
        ranges.emplace_back(at, n);
        for (auto p = first; p <= last; ++p) {
          if (pins[p]++ == 0) pinned_frames[p] = space.translate(va + p * kPage4KiB).value();
        }
        break;
      }
      case 3: {
        if (ranges.empty()) break;
        const std::size_t victim = rng.below(ranges.size());
        const auto [start, length] = ranges[victim];
        ranges[victim] = ranges.back();
        ranges.pop_back();
        ASSERT_EQ(space.unpin(start, length), Status::kOk);
        const auto [first, last] = pages_of(start, length);
        pinned -= (last - first + 1) * kPage4KiB;
        for (auto p = first; p <= last; ++p) --pins[p];
        break;
      }
      case 4: {
        const Status status = space.migrate(at);
        EXPECT_EQ(status == Status::kEbusy, pins[page] > 0);
        break;
      }
      case 5: {
        const Status status = space.swap_out(at);
        EXPECT_EQ(status == Status::kEbusy, pins[page] > 0);
        break;
      }
      default:
        space.reclaim(rng.below(4));
    }
    ASSERT_EQ(space.pinned_bytes(), pinned);
  }
  for (const auto& [address, value] : bytes) EXPECT_EQ(load(space, address, 1)[0], value);
  std::map<std::uint64_t, std::uint64_t> frames;
  for (std::uint64_t p = 0; p < kPages; ++p) {
    const auto frame = space.translate(va + p * kPage4KiB);
    if (!frame) continue;
    EXPECT_TRUE(frames.emplace(*frame, p).second) << "a frame with two pages";
    if (pins[p] > 0) {
      EXPECT_EQ(*frame, pinned_frames[p]);
    }
  }
}

}  // namespace
}  // namespace rnic::host
