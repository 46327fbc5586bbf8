// SPDX-License-Identifier: Apache-2.0
// Flow-control credits on the rig's link (125 ps a byte, 100 ns one way, read 150 ns, write 60 ns,
// MPS 256, MRRS 512), by arithmetic and TLP by TLP. With `n` credits the receiver lets `n` packets
// pass in the time a credit takes to come back: over, in the buffer, UpdateFC back.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/dma_loop.h"
#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using pcie::Direction;
using stats::StallCause;
using tlm_ext::Purpose;

class PcieCreditsTest : public ::testing::TestWithParam<config::PcieDetail> {
 protected:
  PcieCreditsTest() { config.pcie.detail = GetParam(); }

  /// Bandwidth of a pattern over `rig`, with much in flight.
  static double gbps(PcieRig& rig, const DmaPattern& pattern) {
    DmaLoop loop(rig.dma, pattern);
    loop.start(64, 2000);
    rig.run();
    EXPECT_EQ(loop.finished(), 2000U);
    return loop.gbps();
  }
  /// Share of the run that `direction` had a packet waiting for credits.
  static double stalled(const PcieRig& rig, Direction direction) {
    return to_ns(rig.link.unit(direction).stalled(StallCause::kNoCredit)) / to_ns(sim_now());
  }

  PcieRigConfig config;
};

TEST_P(PcieCreditsTest, PostedHeadersBoundWrites) {
  config.pcie.root_credits.posted_headers = 4;
  PcieRig rig(config);
  // 280 B = 35 ns, 100, 60 until written, 100 for the UpdateFC: 4 x 256 B in 295 ns.
  const double expected = 4 * 256 * 8 / 295.0;
  EXPECT_NEAR(gbps(rig, writes_of(256)), expected, expected * 0.01);
  EXPECT_GT(stalled(rig, Direction::kToHost), 0.4);
}

TEST_P(PcieCreditsTest, PostedDataBoundWrites) {
  config.pcie.root_credits.posted_data = 64;  // 1 KiB
  PcieRig rig(config);
  const double expected = 4 * 256 * 8 / 295.0;
  EXPECT_NEAR(gbps(rig, writes_of(256)), expected, expected * 0.01);
}

TEST_P(PcieCreditsTest, LongWritesAreCutToTheCredits) {
  config.pcie.root_credits.posted_headers = 4;
  PcieRig rig(config);
  const double expected = 4 * 256 * 8 / 295.0;
  EXPECT_NEAR(gbps(rig, writes_of(4096)), expected, expected * 0.01);
}

TEST_P(PcieCreditsTest, ABufferSmallerThanAPacketStillLetsItPass) {
  config.pcie.root_credits.posted_data = 8;  // 128 B
  PcieRig rig(config);
  const double expected = 256 * 8 / 295.0;
  EXPECT_NEAR(gbps(rig, writes_of(256)), expected, expected * 0.01);
}

TEST_P(PcieCreditsTest, NonPostedHeadersBoundReads) {
  config.pcie.root_credits.nonposted_headers = 2;
  PcieRig rig(config);
  // 24 B = 3 ns, 100, 150 until read, 100: 2 x 512 B in 353 ns.
  const double expected = 2 * 512 * 8 / 353.0;
  EXPECT_NEAR(gbps(rig, reads_of(4096)), expected, expected * 0.01);
  EXPECT_GT(stalled(rig, Direction::kToHost), 0.9);
}

TEST_P(PcieCreditsTest, CompletionHeadersBoundReads) {
  config.pcie.device_credits.completion_headers = 2;
  PcieRig rig(config);
  // 276 B = 34.5 ns, 100, taken at once, 100: 2 x 256 B in 234.5 ns.
  const double expected = 2 * 256 * 8 / 234.5;
  EXPECT_NEAR(gbps(rig, reads_of(4096)), expected, expected * 0.01);
  EXPECT_GT(stalled(rig, Direction::kToDevice), 0.5);
}

TEST_P(PcieCreditsTest, CompletionDataBoundReads) {
  config.pcie.device_credits.completion_data = 48;  // three of 256 B
  PcieRig rig(config);
  const double expected = 3 * 256 * 8 / 234.5;
  EXPECT_NEAR(gbps(rig, reads_of(4096)), expected, expected * 0.01);
}

TEST_P(PcieCreditsTest, CollectedUpdatesBoundWrites) {
  config.pcie.root_credits.posted_headers = 8;
  config.pcie.update_fc_interval = nanoseconds(1000);
  PcieRig rig(config);
  // Eight packets (280 ns) are written well before the next UpdateFC: 8 x 256 B a microsecond.
  const double expected = 8 * 256 * 8 / 1000.0;
  EXPECT_NEAR(gbps(rig, writes_of(256)), expected, expected * 0.01);
}

TEST_P(PcieCreditsTest, LateUpdatesBoundWrites) {
  config.pcie.root_credits.posted_headers = 4;
  config.pcie.update_fc_latency = nanoseconds(205);
  PcieRig rig(config);
  const double expected = 4 * 256 * 8 / 500.0;
  EXPECT_NEAR(gbps(rig, writes_of(256)), expected, expected * 0.01);
}

TEST_P(PcieCreditsTest, ManyCreditsChangeNothing) {
  config.pcie.root_credits = {2047, 32767, 2047, 32767, 2047, 32767};
  config.pcie.device_credits = config.pcie.root_credits;
  PcieRig rig(config);
  // As without: 64 Gb/s x 512 / 584 each way.
  const double expected = 64 * 512.0 / 584;
  EXPECT_NEAR(gbps(rig, both_of(512)), expected, expected * 0.01);
  EXPECT_EQ(rig.link.unit(Direction::kToHost).stalled(StallCause::kNoCredit), kTimeZero);
}

TEST_P(PcieCreditsTest, AWritePassesAReadThatHasNoCredit) {
  config.pcie.root_credits.nonposted_headers = 1;
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, 2);
  rig.dma.dma_write(kTimeZero, 4096, 64, nullptr, Purpose::kPayload, &rig.client, 3);
  rig.run();
  // The first read frees its credit at 10 + 3 + 100 + 150 = 263 ns, known at 363 ns; the second
  // then takes 3 + 100 + 150 + 10.5 + 100. The write, started at 14 ns, needs 11 + 100 + 60 and at
  // most the 3 ns of a request before it.
  EXPECT_EQ(rig.client.done_at.at(2), picoseconds(726'500));
  EXPECT_LE(rig.client.done_at.at(3), nanoseconds(188));
}

TEST_P(PcieCreditsTest, AReadDoesNotPassAWriteThatHasNoCredit) {
  config.pcie.root_credits.posted_headers = 1;
  PcieRig rig(config);
  const std::array<std::uint8_t, 64> fresh{42};
  std::array<std::uint8_t, 64> seen{};
  rig.dma.dma_write(kTimeZero, 4096, 64, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.dma.dma_write(kTimeZero, 0, 64, fresh.data(), Purpose::kPayload, &rig.client, 2);
  rig.dma.dma_read(kTimeZero, 0, 64, seen.data(), Purpose::kPayload, &rig.client, 3);
  rig.run();
  EXPECT_EQ(seen[0], 42);
  // The first write is done at 10 + 11 + 100 + 60 = 181 ns, its credit back at 281 ns; the second
  // leaves until 292 ns, the read after it: 3 + 100 + 150 + 10.5 + 100.
  EXPECT_EQ(rig.client.done_at.at(2), nanoseconds(292 + 100 + 60));
  EXPECT_EQ(rig.client.done_at.at(3), picoseconds(655'500));
}

TEST_P(PcieCreditsTest, CompletionsWaitBehindABlockedDoorbell) {  // D2a
  config.pcie.device_credits.posted_headers = 1;
  PcieRig rig(config);
  const std::array<std::uint8_t, 8> doorbell{};
  // Completions are ready at 10 + 3 + 100 + 150 = 263 ns. Doorbells at 160 and 161 ns: the second
  // has no credit until the first's UpdateFC, 160 + 4 + 100 + 100 = 364 ns.
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kWqe, &rig.client, 1);
  rig.root.mmio_write(nanoseconds(160), 0, doorbell.data(), 8, Purpose::kDoorbell);
  rig.root.mmio_write(nanoseconds(161), 0, doorbell.data(), 8, Purpose::kDoorbell);
  rig.run();
  EXPECT_EQ(rig.bar.writes.at(1).at, nanoseconds(364 + 4 + 100));
  EXPECT_EQ(rig.client.done_at.at(1), picoseconds(478'500));  // 368 + 10.5 + 100
}

TEST_P(PcieCreditsTest, RelaxedCompletionsPassABlockedDoorbell) {  // D2b
  config.pcie.device_credits.posted_headers = 1;
  config.pcie.relaxed_ordering = true;
  PcieRig rig(config);
  const std::array<std::uint8_t, 8> doorbell{};
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, Purpose::kPayload, &rig.client, 1);
  rig.root.mmio_write(nanoseconds(160), 0, doorbell.data(), 8, Purpose::kDoorbell);
  rig.root.mmio_write(nanoseconds(161), 0, doorbell.data(), 8, Purpose::kDoorbell);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(1), picoseconds(373'500));  // as if there were no doorbells
}

INSTANTIATE_TEST_SUITE_P(Detail, PcieCreditsTest,
                         ::testing::Values(config::PcieDetail::kFast, config::PcieDetail::kTlp),
                         [](const auto& test) {
                           return std::string(test.param == config::PcieDetail::kFast ? "Fast"
                                                                                      : "Tlp");
                         });

}  // namespace
}  // namespace rnic::testbench
