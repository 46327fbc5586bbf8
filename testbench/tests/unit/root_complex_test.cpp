// SPDX-License-Identifier: Apache-2.0
// The rig's numbers: 125 ps a byte, 100 ns one way, memory read 150 ns, write 60 ns, engine latency
// 10 ns and interval 2 ns. A 64 B read alone takes 373.5 ns, a 64 B write is visible after 181 ns.
#include "host/root_complex.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using tlm_ext::Purpose;

constexpr auto kPayload = Purpose::kPayload;

TEST(RootComplex, AReadDoesNotPassAnEarlierWrite) {
  PcieRigConfig config;
  config.memory.write_latency = nanoseconds(500);
  PcieRig rig(config);
  const std::array<std::uint8_t, 64> fresh{77};
  std::array<std::uint8_t, 64> seen{};
  rig.dma.dma_write(kTimeZero, 0, 64, fresh.data(), kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, seen.data(), kPayload, &rig.client, 2);
  rig.run();
  // The write is visible at 21 + 100 + 500 = 621 ns. The read arrives at 124 ns and would sample at
  // 274 ns; it samples at 621 ns instead, and its 84 B arrive 10.5 + 100 ns later.
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(621));
  EXPECT_EQ(rig.client.done_at.at(2), picoseconds(731'500));
  EXPECT_EQ(seen[0], 77);
}

TEST(RootComplex, NorDoesARelaxedRead) {
  // Relaxed ordering lets writes pass writes; in a read request it is for the completion's sake
  // (PCI Express Base, ordering table, entry B2).
  PcieRigConfig config;
  config.memory.write_latency = nanoseconds(500);
  config.pcie.relaxed_ordering = true;
  PcieRig rig(config);
  const std::array<std::uint8_t, 64> fresh{77};
  std::array<std::uint8_t, 64> seen{};
  rig.dma.dma_write(kTimeZero, 0, 64, fresh.data(), kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, seen.data(), kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(2), picoseconds(731'500));
  EXPECT_EQ(seen[0], 77);
}

TEST(RootComplex, RelaxedWritesPassAWriteThatWalks) {
  PcieRigConfig config;
  config.pcie.relaxed_ordering = true;
  config.iommu.enabled = true;
  PcieRig rig(config);
  rig.dma.dma_write(kTimeZero, 8192, 64, nullptr, kPayload, &rig.client, 0);  // warms the page
  rig.run();
  rig.dma.dma_write(sim_now(), 0, 64, nullptr, kPayload, &rig.client, 1);  // walks
  rig.dma.dma_write(sim_now(), 8192, 64, nullptr, kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.order, (std::vector<std::uint64_t>{0, 2, 1}));
}

/// The rig's write of 256 B on the wire: 35 ns; 100 ns over, 60 ns until it would be visible.
TEST(RootComplex, StrictWritesTakeTheirTimeToBeOrdered) {
  PcieRigConfig config;
  config.pcie.ordering_time = nanoseconds(400);
  config.pcie.ordering_overlap = 4;  // one every 100 ns
  PcieRig rig(config);
  for (std::uint64_t i = 0; i < 8; ++i) {
    rig.dma.dma_write(kTimeZero, 256 * i, 256, nullptr, kPayload, &rig.client, i);
  }
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(0), nanoseconds(10 + 35 + 100 + 60 + 400));
  EXPECT_EQ(rig.client.done_at.at(7), nanoseconds(10 + 35 + 100 + 60 + 400 + 7 * 100));
}

TEST(RootComplex, RelaxedWritesDoNotButMayCostThePlatform) {
  PcieRigConfig config;
  config.pcie.ordering_time = nanoseconds(400);
  config.pcie.relaxed_time = nanoseconds(50);
  config.pcie.relaxed_ordering = true;
  PcieRig rig(config);
  for (std::uint64_t i = 0; i < 8; ++i) {
    rig.dma.dma_write(kTimeZero, 256 * i, 256, nullptr, kPayload, &rig.client, i);
  }
  rig.dma.dma_write(kTimeZero, 8192, 64, nullptr, Purpose::kCqe, &rig.client, 8);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(0), nanoseconds(10 + 35 + 100 + 60 + 50));
  EXPECT_EQ(rig.client.done_at.at(7), nanoseconds(10 + 35 + 100 + 60 + 8 * 50));
  EXPECT_GE(rig.client.done_at.at(8), rig.client.done_at.at(7));  // a CQE is strict
}

TEST(RootComplex, AStrictWriteWaitsForRelaxedOnes) {
  PcieRigConfig config;
  config.pcie.relaxed_ordering = true;
  config.iommu.enabled = true;
  PcieRig rig(config);
  const std::array<std::uint8_t, 64> data{1};
  // Warm the CQE's page, so that only the payload write has to walk.
  rig.dma.dma_write(kTimeZero, 8192, 64, data.data(), Purpose::kCqe, &rig.client, 0);
  rig.run();
  rig.dma.dma_write(sim_now(), 0, 64, data.data(), kPayload, &rig.client, 1);
  rig.dma.dma_write(sim_now(), 8192, 64, data.data(), Purpose::kCqe, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.order, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(rig.client.done_at.at(1), rig.client.done_at.at(2));
}

TEST(RootComplex, WritesBecomeVisibleInCallOrder) {
  PcieRigConfig config;
  config.iommu.enabled = true;
  PcieRig rig(config);
  const std::array<std::uint8_t, 64> data{1};
  rig.dma.dma_write(kTimeZero, 4096, 64, data.data(), kPayload, &rig.client, 0);
  rig.run();
  rig.dma.dma_write(sim_now(), 65536, 64, data.data(), kPayload, &rig.client, 1);  // walks
  rig.dma.dma_write(sim_now(), 4096, 64, data.data(), Purpose::kCqe, nullptr, 2);  // hits
  rig.dma.dma_write(sim_now(), 4096, 64, data.data(), kPayload, &rig.client, 3);
  rig.run();
  EXPECT_EQ(rig.client.order, (std::vector<std::uint64_t>{0, 1, 3}));
}

TEST(RootComplex, AReadSeesWhatIsThereWhenItSamples) {
  PcieRig rig;
  std::array<std::uint8_t, 64> seen{};
  rig.dma.dma_read(kTimeZero, 0, 64, seen.data(), kPayload, &rig.client, 1);
  // Sampled at 10 + 3 + 100 + 150 = 263 ns: a store of the CPU before that is seen, one after not.
  sc_core::sc_start(to_sc_time(nanoseconds(262)));
  rig.memory[0] = 1;
  sc_core::sc_start(to_sc_time(nanoseconds(2)));
  rig.memory[1] = 1;
  rig.run();
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(seen[1], 0);
}

TEST(RootComplex, MemoryBandwidthBoundsWhenItIsLow) {
  PcieRigConfig config;
  config.memory.bandwidth = BitRate::gbps(8);
  PcieRig rig(config);
  for (std::uint64_t i = 0; i < 100; ++i) {
    rig.dma.dma_write(kTimeZero, 0, 1024, nullptr, kPayload, &rig.client, i);
  }
  rig.run();
  // 1 KiB at 1 ns a byte.
  EXPECT_EQ(rig.client.done_at.at(99) - rig.client.done_at.at(49), nanoseconds(51'200));
  EXPECT_EQ(rig.root.unit().busy(), nanoseconds(102'400));
  EXPECT_EQ(rig.memory.touches, 100U);
}

TEST(RootComplex, AnIotlbMissAddsAWalk) {
  PcieRigConfig config;
  config.iommu.enabled = true;
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(1), picoseconds(673'500));
  Time start = sim_now();
  rig.dma.dma_read(start, 64, 64, nullptr, kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(2) - start, picoseconds(373'500));
  // From the known page into the next: one walk; two requests of 32 B, so a second header on the
  // way back (2.5 ns), while the second request overlaps with the first.
  start = sim_now();
  rig.dma.dma_read(start, 4096 - 32, 64, nullptr, kPayload, &rig.client, 3);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(3) - start, picoseconds(676'000));
  EXPECT_EQ(rig.root.iommu()->misses(), 2U);
  EXPECT_EQ(rig.root.iommu()->hits(), 2U);
}

/// A device-side look-up long after all earlier walks.
class Lookups {
 public:
  explicit Lookups(const config::IommuConfig& config) : iommu("iommu", config) {}
  Time operator()(std::uint64_t address, std::uint64_t bytes) {
    now += microseconds(10);
    return iommu.translate(now, address, bytes);
  }
  host::Iommu iommu;
  Time now{0};
};

config::IommuConfig iommu_of(std::uint32_t entries, std::uint64_t page_size) {
  config::IommuConfig config{};
  config.enabled = true;
  config.iotlb_entries = entries;
  config.page_size = page_size;
  config.walk_latency = nanoseconds(300);
  return config;
}

TEST(RootComplex, TheIotlbForgetsTheLeastRecentlyUsedPage) {
  Lookups look_up(iommu_of(2, 4096));
  EXPECT_EQ(look_up(0, 64), nanoseconds(300));
  EXPECT_EQ(look_up(4096, 64), nanoseconds(300));
  EXPECT_EQ(look_up(0, 64), kTimeZero);
  EXPECT_EQ(look_up(8192, 64), nanoseconds(300));  // page 1 goes
  EXPECT_EQ(look_up(0, 4096), kTimeZero);
  EXPECT_EQ(look_up(4096, 64), nanoseconds(300));    // page 2 goes
  EXPECT_EQ(look_up(4095, 4098), nanoseconds(300));  // pages 0 and 1 hit, 2 walks
  EXPECT_EQ(look_up.iommu.misses(), 5U);
}

TEST(RootComplex, LargePagesNeedFewerEntries) {
  Lookups look_up(iommu_of(96, 2 << 20));
  EXPECT_EQ(look_up(0, 64), nanoseconds(300));
  EXPECT_EQ(look_up((2 << 20) - 64, 64), kTimeZero);
}

TEST(RootComplex, APassThroughIommuTakesNoTime) {
  config::IommuConfig config = iommu_of(1, 4096);
  config.passthrough = true;
  Lookups look_up(config);
  EXPECT_EQ(look_up(0, 64), kTimeZero);
  EXPECT_EQ(look_up(1 << 20, 64), kTimeZero);
}

TEST(RootComplex, WalksBeyondTheWalkersWait) {
  config::IommuConfig config = iommu_of(64, 4096);
  config.walkers = 2;
  host::Iommu iommu("iommu", config);
  const Time now = microseconds(1);
  EXPECT_EQ(iommu.translate(now, 0, 64), nanoseconds(300));
  EXPECT_EQ(iommu.translate(now, 4096, 64), nanoseconds(300));
  EXPECT_EQ(iommu.translate(now, 8192, 64), nanoseconds(600));
  // A page under way is waited for.
  EXPECT_EQ(iommu.translate(now + nanoseconds(100), 8192, 64), nanoseconds(500));
  EXPECT_EQ(iommu.misses(), 3U);
  EXPECT_EQ(iommu.unit().busy(), nanoseconds(450));  // three walks of two walkers
}

TEST(RootComplex, APageTakesItsPlaceInTheIotlbWhenItsWalkIsOver) {
  host::Iommu iommu("iommu", iommu_of(1, 4096));
  const Time now = microseconds(1);
  EXPECT_EQ(iommu.translate(now, 0, 64), nanoseconds(300));
  EXPECT_EQ(iommu.translate(now + nanoseconds(350), 4096, 64), nanoseconds(300));
  // Page 1 is still being walked: page 0 has its place, and is waited for by nobody.
  EXPECT_EQ(iommu.translate(now + nanoseconds(400), 0, 64), kTimeZero);
  EXPECT_EQ(iommu.translate(now + nanoseconds(400), 4096, 64), nanoseconds(250));
  EXPECT_EQ(iommu.translate(now + nanoseconds(700), 0, 64), nanoseconds(300));
}

TEST(RootComplex, WalksOfOnePageTablePageFollowEachOther) {
  config::IommuConfig config = iommu_of(64, 4096);
  config.walkers = 2;
  config.serial_tables = true;
  host::Iommu iommu("iommu", config);
  constexpr std::uint64_t kTableReach = 512 * 4096;
  const Time now = microseconds(1);
  EXPECT_EQ(iommu.translate(now, 0, 64), nanoseconds(300));
  EXPECT_EQ(iommu.translate(now, kTableReach, 64), nanoseconds(300));
  EXPECT_EQ(iommu.translate(now, 4096, 64), nanoseconds(600));  // behind page 0
  // In order: not before the walk that waits for its table.
  EXPECT_EQ(iommu.translate(now, 2 * kTableReach, 64), nanoseconds(600));
  EXPECT_EQ(iommu.translate(now, 3 * kTableReach, 64), nanoseconds(900));  // no walker is left
}

TEST(RootComplex, FurtherLinesOfAReadMayTakeTheirTime) {
  PcieRigConfig config;
  config.memory.read_line_latency = nanoseconds(50);
  PcieRig rig(config);
  std::uint64_t token = 0;
  const auto latency = [&](std::uint64_t address, std::uint32_t bytes) {
    const Time start = sim_now();
    rig.dma.dma_read(start, address, bytes, nullptr, kPayload, &rig.client, ++token);
    rig.run();
    return rig.client.done_at.at(token) - start;
  };
  // Engine 10 ns, request 3 ns, 100 ns each way, memory 150 ns; then completions of 20 B and data.
  const auto plain = [](std::uint32_t completion_bytes) {
    return nanoseconds(10 + 3 + 100 + 150 + 100) + picoseconds(125) * completion_bytes;
  };
  EXPECT_EQ(latency(0, 64), plain(84));
  EXPECT_EQ(latency(32, 64), plain(52 + 52) + nanoseconds(50));
  EXPECT_EQ(latency(0, 256), plain(276) + nanoseconds(150));
  EXPECT_EQ(latency(0, 512), plain(2 * 276) + nanoseconds(350));
  // Requests of 512 B, side by side.
  EXPECT_EQ(latency(0, 2048), plain(8 * 276) + nanoseconds(350));
}

TEST(RootComplex, AnUncachedUpperLevelMakesAWalkLonger) {
  config::IommuConfig config = iommu_of(1, 4096);
  config.walk_cache = 1;
  config.walk_level_latency = nanoseconds(40);
  Lookups look_up(config);
  constexpr std::uint64_t kTableReach = 512 * 4096;
  EXPECT_EQ(look_up(0, 64), nanoseconds(340));
  EXPECT_EQ(look_up(4096, 64), nanoseconds(300));
  EXPECT_EQ(look_up(kTableReach, 64), nanoseconds(340));
  EXPECT_EQ(look_up(0, 64), nanoseconds(340));
}

class InterruptLog : public host::InterruptSink {
 public:
  void interrupt(std::uint64_t address, const std::uint8_t* data, std::uint32_t bytes) override {
    at = sim_now();
    vector = data[0];
    where = address;
    length = bytes;
  }
  Time at{0};
  int vector = -1;
  std::uint64_t where = 0;
  std::uint32_t length = 0;
};

TEST(RootComplex, AnInterruptGoesToItsSinkAfterEarlierWrites) {
  PcieRig rig;
  InterruptLog log;
  rig.root.set_interrupt_sink(&log);
  const std::array<std::uint8_t, 64> data{33};
  rig.dma.dma_write(kTimeZero, 0, 64, data.data(), Purpose::kEqe, &rig.client, 1);
  rig.dma.dma_write(kTimeZero, 0xFEE0'0000, 4, data.data(), Purpose::kMsix, nullptr, 0);
  rig.run();
  EXPECT_EQ(log.vector, 33);
  EXPECT_EQ(log.where, 0xFEE0'0000U);
  EXPECT_EQ(log.length, 4U);
  // Behind the 88 B of the write (leaves at 21 ns), its own 28 B: 3.5 ns, 100, 60.
  EXPECT_EQ(log.at, picoseconds(184'500));
  EXPECT_EQ(rig.root.faults(), 0U);
  EXPECT_EQ(rig.memory.writes, 1U);
}

/// An interrupt is a strictly ordered write: payload that was written with relaxed ordering before
/// it is visible when it comes.
TEST(RootComplex, AnInterruptWaitsForRelaxedWrites) {
  PcieRigConfig config;
  config.pcie.relaxed_ordering = true;
  config.iommu.enabled = true;
  PcieRig rig(config);
  InterruptLog log;
  rig.root.set_interrupt_sink(&log);
  const std::array<std::uint8_t, 64> data{33};
  rig.dma.dma_write(kTimeZero, 0, 64, data.data(), kPayload, &rig.client, 1);  // walks
  rig.dma.dma_write(kTimeZero, 0xFEE0'0000, 4, data.data(), Purpose::kMsix, nullptr, 0);
  rig.run();
  EXPECT_EQ(log.at, rig.client.done_at.at(1));
}

}  // namespace
}  // namespace rnic::testbench
