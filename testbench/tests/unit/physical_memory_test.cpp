// SPDX-License-Identifier: Apache-2.0
#include "host/physical_memory.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/error.h"

namespace rnic::host {
namespace {

constexpr std::uint64_t kSize = 64 << 20;

std::vector<std::uint8_t> counting_bytes(std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

std::vector<std::uint8_t> read_back(const PhysicalMemory& memory, std::uint64_t pa, std::size_t n) {
  std::vector<std::uint8_t> bytes(n, 0xEE);
  EXPECT_TRUE(memory.read(pa, bytes.data(), n));
  return bytes;
}

class Recorder : public MemoryWatcher {
 public:
  explicit Recorder(PhysicalMemory& memory) : memory_(memory) {}
  void memory_written(std::uint64_t pa, std::uint32_t bytes) override {
    calls.emplace_back(pa, bytes);
    std::uint8_t first = 0;
    memory_.read(pa, &first, 1);
    first_bytes.push_back(first);
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> calls;
  std::vector<std::uint8_t> first_bytes;

 private:
  PhysicalMemory& memory_;
};

using Calls = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

TEST(PhysicalMemory, UnwrittenMemoryReadsZeroAndCostsNothing) {
  const PhysicalMemory memory;
  EXPECT_EQ(memory.size(), std::uint64_t{64} << 30);
  EXPECT_EQ(read_back(memory, 12345, 9000), std::vector<std::uint8_t>(9000, 0));
  EXPECT_EQ(memory.resident_bytes(), 0U);
}

TEST(PhysicalMemory, BytesCrossFramesAndTableRegions) {
  PhysicalMemory memory(kSize);
  const auto bytes = counting_bytes(10000);
  // 8 MiB is where the second-level table changes.
  const std::uint64_t pa = (8 << 20) - 5000;
  ASSERT_TRUE(memory.write(pa, bytes.data(), bytes.size()));
  EXPECT_EQ(read_back(memory, pa, bytes.size()), bytes);
  EXPECT_EQ(read_back(memory, pa - 1, 2), (std::vector<std::uint8_t>{0, 1}));
  // Bytes 8383608 to 8393607 lie in frames 2046 to 2049.
  EXPECT_EQ(memory.resident_bytes(), 4U * 4096);
}

TEST(PhysicalMemory, AccessOutsideIsAFaultThatChangesNothing) {
  PhysicalMemory memory(kSize);
  const auto bytes = counting_bytes(16);
  std::vector<std::uint8_t> into(16, 0xEE);
  EXPECT_TRUE(memory.write(kSize - 16, bytes.data(), 16));
  EXPECT_FALSE(memory.write(kSize - 15, bytes.data(), 16));
  EXPECT_FALSE(memory.read(kSize - 15, into.data(), 16));
  EXPECT_FALSE(memory.read(kSize, into.data(), 1));
  EXPECT_FALSE(memory.read(~std::uint64_t{0}, into.data(), 16));
  EXPECT_FALSE(memory.write(~std::uint64_t{0} - 7, bytes.data(), 16));
  EXPECT_FALSE(memory.fill(kSize - 1, 1, 2));
  EXPECT_FALSE(memory.touch(kSize, 1));
  EXPECT_EQ(into, std::vector<std::uint8_t>(16, 0xEE));
  EXPECT_EQ(read_back(memory, kSize - 16, 16), bytes);
}

TEST(PhysicalMemory, NoBytesIsNoAccess) {
  PhysicalMemory memory(kSize);
  EXPECT_TRUE(memory.read(0, nullptr, 0));
  EXPECT_TRUE(memory.write(4096, nullptr, 0));
  EXPECT_TRUE(memory.fill(4096, 1, 0));
  EXPECT_EQ(memory.resident_bytes(), 0U);
}

TEST(PhysicalMemory, Fill) {
  PhysicalMemory memory(kSize);
  ASSERT_TRUE(memory.fill(4000, 0xAB, 5000));
  EXPECT_EQ(read_back(memory, 4000, 5000), std::vector<std::uint8_t>(5000, 0xAB));
  EXPECT_EQ(read_back(memory, 3999, 1)[0], 0);
  EXPECT_EQ(read_back(memory, 9000, 1)[0], 0);
  ASSERT_TRUE(memory.fill(4000, 0, 5000));
  EXPECT_EQ(read_back(memory, 4000, 5000), std::vector<std::uint8_t>(5000, 0));
}

TEST(PhysicalMemory, CapacityMustBeWholeFrames) {
  EXPECT_THROW(PhysicalMemory(0), ConfigError);
  EXPECT_THROW(PhysicalMemory(4097), ConfigError);
}

TEST(PhysicalMemoryWatch, SeesTheOverlapAfterTheBytesAreThere) {
  PhysicalMemory memory(kSize);
  Recorder recorder(memory);
  memory.watch(4096, 64, &recorder);
  const auto bytes = counting_bytes(100);
  memory.write(4086, bytes.data(), 20);   // 4086..4105: 4096..4105 are watched
  memory.write(4150, bytes.data(), 100);  // 4150..4159 are watched
  memory.write(4160, bytes.data(), 50);   // just behind
  memory.write(4000, bytes.data(), 96);   // just in front
  EXPECT_EQ(recorder.calls, (Calls{{4096, 10}, {4150, 10}}));
  EXPECT_EQ(recorder.first_bytes, (std::vector<std::uint8_t>{11, 1}));
}

TEST(PhysicalMemoryWatch, AWriteOverSeveralFramesTellsOnce) {
  PhysicalMemory memory(kSize);
  Recorder recorder(memory);
  memory.watch(5000, 10000, &recorder);
  const auto bytes = counting_bytes(20000);
  memory.write(0, bytes.data(), bytes.size());
  memory.fill(6000, 7, 5000);
  memory.touch(5000, 1);
  EXPECT_EQ(recorder.calls, (Calls{{5000, 10000}, {6000, 5000}, {5000, 1}}));
}

TEST(PhysicalMemoryWatch, UnwatchEndsOneWatchOnly) {
  PhysicalMemory memory(kSize);
  Recorder one(memory);
  Recorder two(memory);
  const auto first = memory.watch(4096, 8, &one);
  memory.watch(4100, 8, &two);
  const std::uint8_t byte = 1;
  memory.unwatch(first);
  memory.unwatch(first);
  memory.write(4100, &byte, 1);
  EXPECT_TRUE(one.calls.empty());
  EXPECT_EQ(two.calls.size(), 1U);
  // The slot of the ended watch is used again; the old id must not end the new watch.
  memory.watch(4096, 8, &one);
  memory.unwatch(first);
  memory.write(4096, &byte, 1);
  EXPECT_EQ(one.calls.size(), 1U);
}

class OneShot : public MemoryWatcher {
 public:
  explicit OneShot(PhysicalMemory& memory) : memory_(memory) {}
  void memory_written(std::uint64_t pa, std::uint32_t) override {
    ++calls;
    memory_.unwatch(id);
    if (peer != nullptr) memory_.unwatch(peer->id);
    const std::uint8_t byte = 9;
    memory_.write(pa, &byte, 1);
  }
  int calls = 0;
  PhysicalMemory::WatchId id = 0;
  OneShot* peer = nullptr;

 private:
  PhysicalMemory& memory_;
};

TEST(PhysicalMemoryWatch, WatchersMayUnwatchAndWriteFromTheCall) {
  PhysicalMemory memory(kSize);
  OneShot one(memory);
  OneShot two(memory);
  Recorder always(memory);
  one.id = memory.watch(4096, 8, &one);
  two.id = memory.watch(4096, 8, &two);
  memory.watch(4096, 8, &always);
  one.peer = &two;
  const std::uint8_t byte = 1;
  memory.write(4096, &byte, 1);
  EXPECT_EQ(one.calls, 1);
  EXPECT_EQ(two.calls, 0) << "its watch was over before its turn";
  EXPECT_EQ(always.calls.size(), 2U) << "the write and the write from the watcher";
}

/// Replaces another watch from within the call.
class Replacer : public MemoryWatcher {
 public:
  Replacer(PhysicalMemory& memory, MemoryWatcher* replacement)
      : memory_(memory), replacement_(replacement) {}
  void memory_written(std::uint64_t, std::uint32_t) override {
    memory_.unwatch(victim);
    memory_.watch(8192, 8, replacement_);
  }
  PhysicalMemory::WatchId victim = 0;

 private:
  PhysicalMemory& memory_;
  MemoryWatcher* replacement_;
};

TEST(PhysicalMemoryWatch, AWatchBegunInTheCallDoesNotSeeThatWrite) {
  PhysicalMemory memory(kSize);
  Recorder recorder(memory);
  Replacer replacer(memory, &recorder);
  memory.watch(4096, 8, &replacer);
  replacer.victim = memory.watch(4096, 8, &recorder);
  const std::uint8_t byte = 1;
  // The new watch takes the ended one's place in the list of this write's watches.
  memory.write(4096, &byte, 1);
  EXPECT_TRUE(recorder.calls.empty());
  memory.write(8192, &byte, 1);
  EXPECT_EQ(recorder.calls, (Calls{{8192, 1}}));
}

TEST(PhysicalMemoryWatch, EmptyOrOutsideIsABug) {
  PhysicalMemory memory(kSize);
  Recorder recorder(memory);
  EXPECT_THROW(memory.watch(4096, 0, &recorder), SimulationError);
  EXPECT_THROW(memory.watch(kSize, 1, &recorder), SimulationError);
  EXPECT_THROW(memory.watch(4096, 1, nullptr), SimulationError);
}

TEST(PhysicalMemory, FreedFramesAreScrubbed) {
  PhysicalMemory memory(kSize);
  const auto frame = memory.allocate_frame(kPage2MiB).value();
  memory.fill(frame, 0x55, kPage2MiB);
  EXPECT_EQ(memory.resident_bytes(), kPage2MiB);
  memory.free_frame(frame, kPage2MiB);
  EXPECT_EQ(memory.resident_bytes(), 0U);
  EXPECT_EQ(read_back(memory, frame + 4096, 4), std::vector<std::uint8_t>(4, 0));
}

TEST(PhysicalMemory, ImagesMoveContents) {
  PhysicalMemory memory(kSize);
  const auto from = memory.allocate_frame(kPage2MiB).value();
  const auto to = memory.allocate_frame(kPage2MiB).value();
  const auto bytes = counting_bytes(6000);
  memory.write(from + 100000, bytes.data(), bytes.size());
  memory.put_image(to, memory.take_image(from, kPage2MiB));
  EXPECT_EQ(read_back(memory, to + 100000, bytes.size()), bytes);
  EXPECT_EQ(read_back(memory, from + 100000, 6000), std::vector<std::uint8_t>(6000, 0));
}

// Property: random reads, writes and fills agree with one flat array.
TEST(PhysicalMemory, RandomAccessesAgreeWithAFlatArray) {
  constexpr std::uint64_t kBytes = 16 << 20;
  PhysicalMemory memory(kBytes);
  std::vector<std::uint8_t> model(kBytes, 0);
  Rng rng(11, "physical_memory_test");
  std::vector<std::uint8_t> bytes(std::size_t{3} * 4096);
  for (int step = 0; step < 5000; ++step) {
    const std::uint64_t n = rng.below(bytes.size());
    // Around the 8 MiB table boundary, so that accesses overlap each other often.
    const std::uint64_t pa = (8 << 20) - 65536 + rng.below(131072);
    switch (rng.below(3)) {
      case 0:
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
        ASSERT_TRUE(memory.write(pa, bytes.data(), n));
        std::copy_n(bytes.begin(), n, model.begin() + static_cast<std::ptrdiff_t>(pa));
        break;
      case 1: {
        const auto value = static_cast<std::uint8_t>(rng.next());
        ASSERT_TRUE(memory.fill(pa, value, n));
        std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(pa), n, value);
        break;
      }
      default:
        ASSERT_TRUE(memory.read(pa, bytes.data(), n));
        ASSERT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n),
                               model.begin() + static_cast<std::ptrdiff_t>(pa)));
    }
  }
}

}  // namespace
}  // namespace rnic::host
