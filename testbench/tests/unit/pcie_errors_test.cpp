// SPDX-License-Identifier: Apache-2.0
// What goes wrong on a link: bit errors and their replays, lost and poisoned completions; and what
// lies between the ends. The rig: 125 ps a byte, 100 ns one way, read 150 ns.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "pcie/bit_errors.h"
#include "tests/support/dma_loop.h"
#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using pcie::Direction;
using pcie::DmaError;
using tlm_ext::Purpose;

class PcieErrors : public ::testing::TestWithParam<config::PcieDetail> {
 protected:
  PcieErrors() { config.pcie.detail = GetParam(); }
  PcieRigConfig config;
};

TEST_P(PcieErrors, ReplaysCostARoundTripEach) {
  config.pcie.bit_error_rate = 1e-5;
  PcieRig rig(config);
  DmaLoop loop(rig.dma, writes_of(4096));
  loop.start(64, 2500);
  rig.run();
  EXPECT_EQ(loop.finished(), 2500U);
  // A TLP of 280 B has 0.0224 errors on the average. Each costs the way over, the Nak's way back
  // and the packet again: 235 ns on top of 35 ns; what is sent again may be damaged again.
  const double errors = 280 * 8 * 1e-5;
  const double expected = 256 * 8 / (35 + errors / (1 - errors) * 235);
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
  const double packets = 2500 * 16;
  EXPECT_NEAR(static_cast<double>(rig.link.replays(Direction::kToHost)), packets * errors,
              packets * errors * 0.15);
  EXPECT_EQ(rig.link.replays(Direction::kToDevice), 0U);  // nothing went there
}

TEST_P(PcieErrors, ALinkThatDamagesMostPacketsGoesOn) {
  // 280 B at 1e-3 a bit arrive with a probability of exp(-2.24) = 0.106: 8.4 replays each.
  config.pcie.bit_error_rate = 1e-3;
  PcieRig rig(config);
  DmaLoop loop(rig.dma, writes_of(256));
  loop.start(8, 2000);
  rig.run();
  EXPECT_EQ(loop.finished(), 2000U);
  const double replays = 2000 * (std::exp(280 * 8 * 1e-3) - 1);
  EXPECT_NEAR(static_cast<double>(rig.link.replays(Direction::kToHost)), replays, 0.1 * replays);
}

TEST_P(PcieErrors, DataSurviveReplays) {
  config.pcie.bit_error_rate = 1e-4;
  PcieRig rig(config);
  rig.memory.fill_pattern();
  std::vector<std::uint8_t> buffer(65536);
  rig.dma.dma_read(kTimeZero, 0, 65536, buffer.data(), Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_GT(rig.link.replays(Direction::kToDevice), 10U);
  for (std::size_t i = 0; i < buffer.size(); ++i) ASSERT_EQ(buffer[i], FakeMemory::pattern(i));
}

TEST_P(PcieErrors, ALostCompletionTimesOut) {
  config.pcie.fault.lost_list = {2};
  config.pcie.completion_timeout = nanoseconds(5000);
  PcieRig rig(config);
  for (std::uint64_t token = 1; token <= 3; ++token) {
    rig.dma.dma_read(kTimeZero, 64 * token, 64, nullptr, Purpose::kPayload, &rig.client, token);
  }
  sc_core::sc_start(to_sc_time(nanoseconds(5011)));
  EXPECT_EQ(rig.dma.tags_in_use(), 1U);  // held all the time
  EXPECT_TRUE(rig.client.faults.empty());
  EXPECT_EQ(rig.client.done_at.count(3), 1U);
  rig.run();
  // The second request leaves the engine at 2 + 10 ns.
  EXPECT_EQ(sim_now(), nanoseconds(5012));
  ASSERT_EQ(rig.client.faults.size(), 1U);
  EXPECT_EQ(rig.client.faults[0].token, 2U);
  EXPECT_EQ(rig.client.faults[0].address, 128U);
  EXPECT_EQ(rig.client.faults[0].error, DmaError::kCompletionTimeout);
  EXPECT_EQ(rig.client.done_at.size(), 2U);
  EXPECT_EQ(rig.dma.tags_in_use(), 0U);
  EXPECT_EQ(rig.dma.outstanding(), 0U);
}

TEST_P(PcieErrors, APoisonedCompletionArrivesInTimeButDoesNotCount) {
  config.pcie.fault.poisoned_list = {1};
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(sim_now(), picoseconds(373'500));
  ASSERT_EQ(rig.client.faults.size(), 1U);
  EXPECT_EQ(rig.client.faults[0].error, DmaError::kPoisoned);
  EXPECT_TRUE(rig.client.done_at.empty());
}

TEST_P(PcieErrors, FaultsCountReadRequestsOfTheirPurpose) {
  config.pcie.fault.purpose = "mtt";
  config.pcie.fault.poisoned_list = {2};
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 4096, nullptr, Purpose::kPayload, &rig.client, 1);
  for (std::uint64_t token = 2; token <= 4; ++token) {
    rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kMtt, &rig.client, token);
  }
  rig.run();
  ASSERT_EQ(rig.client.faults.size(), 1U);
  EXPECT_EQ(rig.client.faults[0].token, 3U);
  EXPECT_EQ(rig.client.faults[0].purpose, Purpose::kMtt);
}

TEST_P(PcieErrors, OneBadPieceFailsTheRequestOnce) {
  config.pcie.fault.poisoned_list = {3, 5};
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 65536, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.client.faults.size(), 1U);
  EXPECT_TRUE(rig.client.done_at.empty());
}

TEST_P(PcieErrors, RandomLossIsTheSameForTheSameSeed) {
  config.pcie.fault.loss_rate = 0.1;
  config.pcie.completion_timeout = nanoseconds(1000);
  PcieRig rig(config);
  for (std::uint64_t token = 0; token < 1000; ++token) {
    rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, token);
  }
  rig.run();
  // Binomial: 100 with a standard deviation of 9.5.
  EXPECT_NEAR(static_cast<double>(rig.client.faults.size()), 100, 38);
  EXPECT_EQ(rig.client.faults.size() + rig.client.done_at.size(), 1000U);
}

TEST_P(PcieErrors, SwitchesAndRetimersAddLatencyBothWays) {
  config.pcie.switches = 2;
  config.pcie.switch_latency = nanoseconds(110);
  config.pcie.retimers = 1;
  config.pcie.retimer_latency = nanoseconds(20);
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(1), picoseconds(373'500) + nanoseconds(2 * 240));
}

TEST_P(PcieErrors, ShortHeadersBelow4GiB) {
  config.pcie.short_headers = true;
  PcieRig rig(config, 1 << 20);
  rig.dma.dma_write(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.link.total(Direction::kToHost).wire_bytes, 84U);  // 12 + 8 + 64
}

TEST_P(PcieErrors, EcrcIsFourBytesOnEveryPacket) {
  config.pcie.ecrc = true;
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 512, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.link.total(Direction::kToHost).wire_bytes, 28U);
  EXPECT_EQ(rig.link.total(Direction::kToDevice).wire_bytes, 512U + 2 * 24);
}

INSTANTIATE_TEST_SUITE_P(Detail, PcieErrors,
                         ::testing::Values(config::PcieDetail::kFast, config::PcieDetail::kTlp),
                         [](const auto& test) {
                           return std::string(test.param == config::PcieDetail::kFast ? "Fast"
                                                                                      : "Tlp");
                         });

TEST(PcieBitErrors, AreAsFrequentAsTheirRate) {
  pcie::BitErrors errors(1e-3, 7, "lane");
  // A packet is damaged when one bit is: 1 - exp(-bits x rate), one at a time or several.
  constexpr int kPackets = 10'000;
  const double expected = kPackets * (1 - std::exp(-100 * 1e-3));
  std::uint64_t count = 0;
  for (int i = 0; i < kPackets; ++i) count += errors.damaged(1, 100);
  EXPECT_NEAR(static_cast<double>(count), expected, 4 * std::sqrt(expected));
  EXPECT_NEAR(errors.damaged(kPackets, 100), expected, 4 * std::sqrt(expected));
  // Most bits are bad: no packet counts twice.
  pcie::BitErrors bad(1e-1, 7, "lane");
  EXPECT_EQ(bad.damaged(50, 2000), 50U);
}

TEST(PcieBitErrors, TheSameSeedGivesTheSameErrors) {
  pcie::BitErrors a(1e-3, 7, "lane");
  pcie::BitErrors b(1e-3, 7, "lane");
  pcie::BitErrors other(1e-3, 8, "lane");
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t damaged = a.damaged(2, 250);
    ASSERT_EQ(damaged, b.damaged(2, 250));
    differs |= damaged != other.damaged(2, 250);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace rnic::testbench
