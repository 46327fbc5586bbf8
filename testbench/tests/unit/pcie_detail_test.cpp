// SPDX-License-Identifier: Apache-2.0
// The two ways a link is simulated, bursts by arithmetic and TLP by TLP, are one link: throughput
// within 1 %, latency within 2 %, the same packets and bytes.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/support/dma_loop.h"
#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using pcie::Direction;

/// What of a link a scenario varies.
struct Slot {
  const char* name;
  std::uint32_t gen, lanes, mps, mrrs, rcb, tags;
};

constexpr Slot kSlots[] = {
    {"gen1x1", 1, 1, 128, 128, 64, 32},      {"gen2x4", 2, 4, 128, 512, 128, 32},
    {"gen3x8", 3, 8, 256, 512, 64, 32},      {"gen3x16", 3, 16, 512, 4096, 64, 64},
    {"gen4x16", 4, 16, 256, 512, 64, 256},   {"gen4x16_few_tags", 4, 16, 256, 512, 64, 12},
    {"gen5x16", 5, 16, 512, 1024, 128, 256}, {"gen6x16", 6, 16, 1024, 4096, 64, 768},
};

struct Scenario {
  Slot slot;
  DmaPattern pattern;
  std::string name;
};

PcieRigConfig config_of(const Scenario& scenario, config::PcieDetail detail) {
  PcieRigConfig config;
  config.pcie.detail = detail;
  config.pcie.gen = scenario.slot.gen;
  config.pcie.lanes = scenario.slot.lanes;
  config.pcie.mps = scenario.slot.mps;
  config.pcie.mrrs = scenario.slot.mrrs;
  config.pcie.rcb = scenario.slot.rcb;
  config.pcie.read_tags = scenario.slot.tags;
  config.pcie.dllp_overhead = -1;
  // The link is what is compared: memory takes a burst at once, at its last byte, and packets as
  // they come, which a slower one would show.
  config.memory.bandwidth = BitRate::gbps(100'000);
  return config;
}

/// A scenario on both links; built before anything runs.
struct Pair {
  Pair(const Scenario& what, const std::string& suffix)
      : scenario(what),
        fast(config_of(what, config::PcieDetail::kFast), kMemory, suffix + "f"),
        tlp(config_of(what, config::PcieDetail::kTlp), kMemory, suffix + "t") {}

  static constexpr std::size_t kMemory = 1 << 17;
  Scenario scenario;
  PcieParts fast;
  PcieParts tlp;
};

std::vector<Scenario> scenarios(const DmaPattern& operation) {
  std::vector<Scenario> all;
  for (const Slot& slot : kSlots) {
    for (const std::uint32_t bytes : {64U, 300U, 512U, 4096U, 16384U}) {
      for (const std::uint64_t offset : {0U, 20U}) {
        DmaPattern pattern = operation;
        pattern.bytes = bytes;
        pattern.offset = offset;
        pattern.stride = bytes;  // sequential; addresses of 300 B meet every alignment
        pattern.window = 4;
        all.push_back({slot, pattern,
                       std::string(slot.name) + " " + std::to_string(bytes) + " B at " +
                           std::to_string(offset)});
      }
    }
  }
  return all;
}

class PcieDetail : public ::testing::TestWithParam<std::pair<const char*, DmaPattern>> {
 protected:
  void SetUp() override {
    for (const Scenario& scenario : scenarios(GetParam().second)) {
      pairs_.emplace_back(scenario, std::to_string(pairs_.size()));
    }
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  static DmaLoop run(PcieParts& parts, const Scenario& scenario, std::uint32_t depth,
                     std::uint32_t total) {
    DmaLoop loop(parts.dma, scenario.pattern);
    loop.start(depth, total);
    sc_core::sc_start();
    return loop;
  }

  std::deque<Pair> pairs_;
};

TEST_P(PcieDetail, ThroughputAgreesWithinOnePercent) {
  for (Pair& pair : pairs_) {
    const bool small = pair.scenario.pattern.bytes < 4096;
    const std::uint32_t depth = small ? 80 : 16;
    const std::uint32_t total = small ? 640 : 96;
    const double fast = run(pair.fast, pair.scenario, depth, total).gbps();
    const double tlp = run(pair.tlp, pair.scenario, depth, total).gbps();
    EXPECT_NEAR(fast, tlp, tlp * 0.01) << pair.scenario.name;
  }
}

TEST_P(PcieDetail, LatencyAgreesWithinTwoPercent) {
  for (Pair& pair : pairs_) {
    const double fast = run(pair.fast, pair.scenario, 1, 8).mean_latency_ns();
    const double tlp = run(pair.tlp, pair.scenario, 1, 8).mean_latency_ns();
    EXPECT_NEAR(fast, tlp, tlp * 0.02) << pair.scenario.name;
  }
}

TEST_P(PcieDetail, PacketsAndBytesAreTheSame) {
  for (Pair& pair : pairs_) {
    run(pair.fast, pair.scenario, 3, 12);
    run(pair.tlp, pair.scenario, 3, 12);
    for (const Direction direction : {Direction::kToHost, Direction::kToDevice}) {
      const pcie::TlpCounter fast = pair.fast.link.total(direction);
      const pcie::TlpCounter tlp = pair.tlp.link.total(direction);
      EXPECT_EQ(fast.tlps, tlp.tlps) << pair.scenario.name;
      EXPECT_EQ(fast.payload_bytes, tlp.payload_bytes) << pair.scenario.name;
      EXPECT_EQ(fast.wire_bytes, tlp.wire_bytes) << pair.scenario.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, PcieDetail,
                         ::testing::Values(std::make_pair("Read", reads_of(0)),
                                           std::make_pair("Write", writes_of(0)),
                                           std::make_pair("Both", both_of(0))),
                         [](const auto& test) { return std::string(test.param.first); });

TEST(PcieTlpDetail, EveryPacketIsAnEvent) {
  PcieRigConfig config;
  config.pcie.detail = config::PcieDetail::kTlp;
  PcieRig rig(config);
  std::vector<std::uint8_t> buffer(1024);
  rig.memory.fill_pattern();
  rig.dma.dma_read(kTimeZero, 0, 1024, buffer.data(), tlm_ext::Purpose::kPayload, &rig.client, 1);
  rig.run();
  // 10 + 3 + 100 + 150, four completions of 276 B = 138 ns, 100: as the burst takes.
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(501));
  EXPECT_EQ(buffer[1023], FakeMemory::pattern(1023));
  // Two requests and four completions, each enters and arrives.
  EXPECT_GE(ModelEvents::count(), 12U);
}

TEST(PcieTlpDetail, AWriteBecomesVisiblePacketByPacket) {
  PcieRigConfig config;
  config.pcie.detail = config::PcieDetail::kTlp;
  PcieRig rig(config);
  std::vector<std::uint8_t> data(512, 9);
  rig.dma.dma_write(kTimeZero, 0, 512, data.data(), tlm_ext::Purpose::kPayload, &rig.client, 1);
  // 10 ns, 280 B = 35 ns each, 100 ns, 60 ns: the first half at 205 ns, the second at 240 ns.
  sc_core::sc_start(to_sc_time(nanoseconds(206)));
  EXPECT_EQ(rig.memory[255], 9);
  EXPECT_EQ(rig.memory[256], 0);
  rig.run();
  EXPECT_EQ(rig.memory[511], 9);
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(240));
}

TEST(PcieTlpDetail, ADoorbellArrivesAsInABurst) {
  PcieRigConfig config;
  config.pcie.detail = config::PcieDetail::kTlp;
  PcieRig rig(config);
  const std::vector<std::uint8_t> doorbell(8);
  rig.root.mmio_write(nanoseconds(5), 0x800, doorbell.data(), 8, tlm_ext::Purpose::kDoorbell);
  rig.run();
  ASSERT_EQ(rig.bar.writes.size(), 1U);
  EXPECT_EQ(rig.bar.writes[0].at, nanoseconds(109));  // 5 + 32 B x 125 ps + 100
}

TEST(PcieTlpDetail, ADoorbellComesBetweenTheCompletionsOfABurst) {
  PcieRigConfig config;
  config.pcie.detail = config::PcieDetail::kTlp;
  PcieRig rig(config);
  std::vector<std::uint8_t> buffer(4096);
  rig.dma.dma_read(kTimeZero, 0, 4096, buffer.data(), tlm_ext::Purpose::kPayload, &rig.client, 1);
  const std::vector<std::uint8_t> doorbell(8);
  rig.root.mmio_write(nanoseconds(300), 0x800, doorbell.data(), 8, tlm_ext::Purpose::kDoorbell);
  rig.run();
  // Completions of 276 B, 34.5 ns each, from 263 ns on: the second is over at 332 ns.
  ASSERT_EQ(rig.bar.writes.size(), 1U);
  EXPECT_EQ(rig.bar.writes[0].at, nanoseconds(332 + 4 + 100));
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(815 + 4 + 100));
}

}  // namespace
}  // namespace rnic::testbench
