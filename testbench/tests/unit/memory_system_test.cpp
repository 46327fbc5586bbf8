// SPDX-License-Identifier: Apache-2.0
#include "host/memory_system.h"

#include <gtest/gtest.h>

#include "host/physical_memory.h"

namespace rnic::host {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

/// Round numbers: 100 ns to read, 50 to write; DRAM 40 and 30 more; 1 B/ns on each of two channels;
/// an infinitely fast path. 64 KiB of cache, four ways, one of them for devices.
config::MemoryConfig round_config() {
  config::MemoryConfig config{};
  config.read_latency = nanoseconds(100);
  config.write_latency = nanoseconds(50);
  config.bandwidth = BitRate::gbps(8e6);
  config.llc_size = 64 * kKiB;
  config.llc_ways = 4;
  config.ddio = true;
  config.ddio_ways = 1;
  config.dram_latency = nanoseconds(40);
  config.dram_write_latency = nanoseconds(30);
  config.dram_channels = 2;
  config.dram_channel_bandwidth = BitRate::gbps(8);
  config.dram_interleave = 256;
  config.numa_latency = nanoseconds(90);
  config.numa_bandwidth = BitRate::gbps(8);
  return config;
}

/// Accesses so far apart that nothing queues.
class Device {
 public:
  explicit Device(const config::MemoryConfig& config) : memory("memory", config) {}
  Time read(std::uint64_t address, std::uint64_t bytes) {
    now += microseconds(100);
    return memory.read(now, address, bytes) - now;
  }
  Time write(std::uint64_t address, std::uint64_t bytes) {
    now += microseconds(100);
    return memory.write(now, address, bytes) - now;
  }
  MemorySystem memory;
  Time now{0};
};

/// Within the picosecond that the path takes.
void expect_time(Time time, std::int64_t ns) {
  EXPECT_GE(time, nanoseconds(ns));
  EXPECT_LE(time, nanoseconds(ns) + picoseconds(10));
}

TEST(MemorySystem, APathThatIsSlowerThanTheLink) {
  // 1 B/ns, and a link of 2 B/ns: requests wait for each other, each for itself.
  config::MemoryConfig config = round_config();
  config.bandwidth = BitRate::gbps(8);
  config.llc_size = 0;
  MemorySystem memory("memory", config);
  memory.set_link(BitRate::gbps(16));
  EXPECT_TRUE(memory.stands_by_requests());
  const Time far = microseconds(100);
  for (std::uint32_t i = 0; i < 8; ++i) {
    expect_time(memory.read(far, i * 512, 512) - far, 512 * i + 100);
  }
  const Time later = microseconds(200);
  for (std::uint32_t i = 0; i < 16; ++i) {
    expect_time(memory.write(later, i * 256, 256) - later, 256 * i + 50);
  }
  memory.set_link(BitRate::gbps(4));
  EXPECT_FALSE(memory.stands_by_requests());
}

TEST(MemorySystem, WhoComesSoonerDoesNotWaitForWhoComesLater) {
  config::MemoryConfig config = round_config();
  config.bandwidth = BitRate::gbps(8);
  config.llc_size = 0;
  MemorySystem memory("memory", config);
  // A write is known 500 ns before it comes; a read that comes meanwhile finds the path free.
  const Time now = microseconds(100);
  expect_time(memory.write(now + nanoseconds(500), 0, 256) - now, 500 + 50);
  expect_time(memory.read(now, 4096, 256) - now, 100);
}

TEST(MemorySystem, AReadHitsWhatTheCpuTouchedAndMissesTheRest) {
  Device device(round_config());
  device.memory.warm(0, 4 * kKiB);
  expect_time(device.read(0, 64), 100);
  // 40 for DRAM, 64 B at 1 B/ns.
  expect_time(device.read(64 * kKiB, 64), 100 + 40 + 64);
  // Reading allocates nothing.
  expect_time(device.read(64 * kKiB, 64), 100 + 40 + 64);
  EXPECT_EQ(device.memory.llc_hits(), 1U);
  EXPECT_EQ(device.memory.llc_misses(), 2U);
  EXPECT_EQ(device.memory.dram().bytes_read(), 128U);
  EXPECT_EQ(device.memory.dram().bytes_written(), 0U);
}

TEST(MemorySystem, ALongReadUsesAllChannels) {
  Device device(round_config());
  // 512 B on two channels of 256 B each.
  expect_time(device.read(0, 512), 100 + 40 + 256);
}

TEST(MemorySystem, CompetingTrafficLeavesLess) {
  config::MemoryConfig config = round_config();
  config.cpu_traffic = 0.5;
  Device device(config);
  expect_time(device.read(0, 64), 100 + 40 + 128);
}

TEST(MemorySystem, DdioWritesStayInTheirWays) {
  // One way of four is 16 KiB: a footprint of half of that is rewritten in the cache, one of four
  // times as much goes to DRAM at the pace at which it comes.
  for (const auto& [footprint, spills] : {std::pair{8 * kKiB, false}, std::pair{64 * kKiB, true}}) {
    Device device(round_config());
    for (int round = 0; round < 4; ++round) {
      for (std::uint64_t at = 0; at < footprint; at += 512) device.write(at, 512);
    }
    const double share = static_cast<double>(device.memory.dram().bytes_written()) /
                         static_cast<double>(4 * footprint);
    if (spills) {
      EXPECT_GT(share, 0.7);
    } else {
      // Sets are hashed, so some overflow a little.
      EXPECT_LT(share, 0.45);
    }
  }
}

TEST(MemorySystem, WithoutDdioWritesGoToDram) {
  config::MemoryConfig config = round_config();
  config.ddio = false;
  Device device(config);
  device.memory.warm(0, 64);
  expect_time(device.write(0, 64), 64 + 50 + 30);
  EXPECT_EQ(device.memory.dram().bytes_written(), 64U);
  // The line has left the cache.
  expect_time(device.read(0, 64), 100 + 40 + 64);
}

TEST(MemorySystem, APartialLineIsReadBeforeItIsWritten) {
  Device device(round_config());
  // 8 B of a line that is not there: 40 and 64 B from DRAM; then it is there.
  expect_time(device.write(8, 8), 50 + 40 + 64);
  expect_time(device.write(16, 8), 50);
  EXPECT_EQ(device.memory.partial_line_writes(), 2U);
  EXPECT_EQ(device.memory.dram().bytes_read(), 64U);
  // Head and tail of an unaligned write; whole lines need nothing.
  device.write(4 * kKiB + 60, 72);
  EXPECT_EQ(device.memory.partial_line_writes(), 4U);
  device.write(8 * kKiB, 128);
  EXPECT_EQ(device.memory.partial_line_writes(), 4U);
}

TEST(MemorySystem, PartialLinesMayOccupyThePath) {
  config::MemoryConfig config = round_config();
  config.llc_size = 0;
  config.partial_line_time = nanoseconds(20);
  MemorySystem memory("memory", config);
  memory.write(kTimeZero, 4, 120);  // two partial lines
  const Time second = memory.write(kTimeZero, 4096, 64);
  expect_time(second, 40 + 50);
}

TEST(MemorySystem, RemoteReadsAreLateAndRemoteWritesAreNot) {
  config::MemoryConfig config = round_config();
  config.llc_size = 0;
  config.numa_remote = true;
  Device device(config);
  expect_time(device.read(0, 64), 100 + 90 + 64);
  expect_time(device.write(0, 64), 50 + 64);
  // The link between sockets bounds both: 1 B/ns.
  Time last{0};
  for (int i = 0; i < 100; ++i) last = device.memory.read(device.now, 0, 64);
  expect_time(last - device.now, 100 + 90 + 100 * 64);
}

TEST(MemorySystem, WithoutACacheEverythingIsResident) {
  config::MemoryConfig config = round_config();
  config.llc_size = 0;
  Device device(config);
  expect_time(device.read(kMiB, 4096), 100);
  expect_time(device.write(kMiB, 4096), 50);
  EXPECT_FALSE(device.memory.tracks_cache());
  EXPECT_EQ(device.memory.dram().bytes_read() + device.memory.dram().bytes_written(), 0U);
}

TEST(MemorySystem, StoresOfTheCpuAreResidentAndThoseOfTheDeviceAreNotTheirs) {
  MemorySystem memory("memory", round_config());
  PhysicalMemory bytes(kMiB * 16);
  bytes.set_observer(&memory);
  const std::uint64_t word = 1;
  bytes.write(0, &word, sizeof word);
  memory.begin_device_access();
  bytes.write(4096, &word, sizeof word);
  memory.end_device_access();
  memory.read(kTimeZero, 0, 64);
  memory.read(kTimeZero, 4096, 64);
  EXPECT_EQ(memory.llc_hits(), 1U);
  EXPECT_EQ(memory.llc_misses(), 1U);
}

TEST(MemorySystem, WarmthEndsWhereTheCacheEnds) {
  // The CPU touches four times the cache, in order: the last quarter is there, as LRU has it.
  MemorySystem memory("memory", round_config());
  memory.warm(0, 256 * kKiB);
  for (std::uint64_t at = 0; at < 256 * kKiB; at += 64) memory.read(kTimeZero, at, 64);
  const double lines = 256.0 * kKiB / 64;
  EXPECT_NEAR(static_cast<double>(memory.llc_hits()) / lines, 0.25, 0.05);
}

}  // namespace
}  // namespace rnic::host
