// SPDX-License-Identifier: Apache-2.0
// The rig's numbers: 125 ps a byte, 100 ns one way, memory read 150 ns, write 60 ns, engine latency
// 10 ns and interval 2 ns, MPS 256, MRRS 512. A request is 24 B = 3 ns.
#include "pcie/dma_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/dma_loop.h"
#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using stats::StallCause;
using tlm_ext::Purpose;

constexpr auto kPayload = Purpose::kPayload;

TEST(DmaEngine, LatencyOfASmallRead) {
  PcieRig rig;
  rig.memory.fill_pattern();
  std::array<std::uint8_t, 64> buffer{};
  rig.dma.dma_read(kTimeZero, 128, 64, buffer.data(), Purpose::kWqe, &rig.client, 7);
  rig.run();
  // 10 + 3 + 100 + 150 + 84 B x 125 ps (10.5) + 100.
  EXPECT_EQ(rig.client.done_at.at(7), picoseconds(373'500));
  EXPECT_EQ(buffer[63], FakeMemory::pattern(128 + 63));
  EXPECT_EQ(rig.dma.tags_in_use(), 0U);
  EXPECT_EQ(rig.dma.outstanding(), 0U);
}

TEST(DmaEngine, EarliestDelaysARequest) {
  PcieRig rig;
  rig.dma.dma_read(nanoseconds(1000), 0, 64, nullptr, kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(1), picoseconds(1'373'500));
}

TEST(DmaEngine, LatencyOfAWrite) {
  PcieRig rig;
  std::array<std::uint8_t, 64> data{9, 8, 7};
  const Time left = rig.dma.dma_write(kTimeZero, 256, 64, data.data(), kPayload, &rig.client, 3);
  EXPECT_EQ(left, nanoseconds(21));  // 10 + 88 B x 125 ps
  sc_core::sc_start(to_sc_time(picoseconds(180'999)));
  EXPECT_EQ(rig.memory[256], 0);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(3), nanoseconds(181));  // 21 + 100 + 60
  EXPECT_EQ(rig.memory[258], 7);
}

TEST(DmaEngine, AWriteWithoutClientIsCopiedAtOnce) {
  PcieRig rig;
  std::array<std::uint8_t, 257> cqe{};
  cqe[0] = 5;
  rig.dma.dma_write(kTimeZero, 64, 256, cqe.data(), Purpose::kCqe, nullptr, 0);
  cqe[0] = 6;
  rig.run();
  EXPECT_EQ(rig.memory[64], 5);
  EXPECT_THROW(rig.dma.dma_write(sim_now(), 64, 257, cqe.data(), Purpose::kCqe, nullptr, 0),
               SimulationError);
}

TEST(DmaEngine, KernelEventBudget) {
  PcieRig rig;
  std::array<std::uint8_t, 4096> buffer{};
  const std::uint64_t start = ModelEvents::count();
  rig.dma.dma_read(kTimeZero, 0, 4096, buffer.data(), kPayload, &rig.client, 1);
  rig.run();
  const std::uint64_t after_read = ModelEvents::count();
  EXPECT_EQ(after_read - start, 2U);
  rig.dma.dma_write(sim_now(), 0, 4096, buffer.data(), kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(ModelEvents::count() - after_read, 2U) << "strictly ordered: it waits for its time";
}

TEST(DmaEngine, KernelEventBudgetOfARelaxedWrite) {
  PcieRigConfig config;
  config.pcie.relaxed_ordering = true;
  PcieRig rig(config);
  std::array<std::uint8_t, 4096> buffer{};
  rig.dma.dma_write(kTimeZero, 0, 4096, buffer.data(), kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(ModelEvents::count(), 1U);
}

TEST(DmaEngine, ReadsOfDifferentCallersOverlap) {
  PcieRig rig;
  FakeClient other;
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &other, 2);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(1), picoseconds(373'500));
  // Its completion follows the first's on the wire, 10.5 ns later.
  EXPECT_EQ(other.done_at.at(2), nanoseconds(384));
}

TEST(DmaEngine, EachCallerIsToldAtItsOwnLastByte) {
  PcieRig rig;
  rig.dma.dma_read(kTimeZero, 0, 4096, nullptr, kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 8192, 64, nullptr, kPayload, &rig.client, 2);
  rig.run();
  // The first: 10 + 3 + 100 + 150 + 4416 B (552) + 100; the second's 84 B follow.
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(915));
  EXPECT_EQ(rig.client.done_at.at(2), picoseconds(925'500));
}

TEST(DmaEngine, IntervalSpacesRequests) {
  PcieRigConfig config;
  config.dma_interval = nanoseconds(50);
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(2) - rig.client.done_at.at(1), nanoseconds(50));
  EXPECT_EQ(rig.dma.unit().busy(), nanoseconds(100));
}

TEST(DmaEngine, SmallMrrsCostsCompletionHeaders) {
  PcieRigConfig config;
  config.pcie.mrrs = 128;
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 1024, nullptr, kPayload, &rig.client, 1);
  rig.run();
  // Eight completions of 128 + 20 B = 148 ns, where MRRS 512 would have four of 276 B = 138 ns.
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(10 + 3 + 100 + 150 + 148 + 100));
}

TEST(DmaEngine, SmallMpsCostsWriteHeaders) {
  PcieRigConfig config;
  config.pcie.mps = 128;
  PcieRig rig(config);
  // Eight TLPs of 128 + 24 B = 152 ns.
  EXPECT_EQ(rig.dma.dma_write(kTimeZero, 0, 1024, nullptr, kPayload, &rig.client, 1),
            nanoseconds(162));
  rig.run();
}

TEST(DmaEngine, AReadWaitsForATag) {
  PcieRigConfig config;
  config.pcie.read_tags = 1;
  PcieRig rig(config);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 2);
  EXPECT_EQ(rig.dma.waiting(), 1U);
  EXPECT_EQ(rig.dma.tags_in_use(), 1U);
  rig.run();
  // The tag comes back at 373.5 ns; then 3 + 100 + 150 + 10.5 + 100.
  EXPECT_EQ(rig.client.done_at.at(2), nanoseconds(737));
  EXPECT_EQ(rig.dma.unit().stalled(StallCause::kNoTag), picoseconds(373'500));
  EXPECT_EQ(rig.dma.waiting(), 0U);
}

TEST(DmaEngine, MoreRequestsThanTagsStillFinish) {
  PcieRigConfig config;
  config.pcie.read_tags = 3;
  PcieRig rig(config);
  rig.memory.fill_pattern();
  std::vector<std::uint8_t> buffer(100'000);
  rig.dma.dma_read(kTimeZero, 777, 100'000, buffer.data(), kPayload, &rig.client, 1);
  rig.dma.dma_read(kTimeZero, 0, 64, nullptr, kPayload, &rig.client, 2);
  rig.run();
  ASSERT_EQ(rig.client.done_at.count(1), 1U);
  ASSERT_EQ(rig.client.done_at.count(2), 1U);
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    ASSERT_EQ(buffer[i], FakeMemory::pattern(777 + i)) << i;
  }
}

TEST(DmaEngine, DataIsRightAtOddAddressesAcrossPages) {
  PcieRig rig;
  rig.memory.fill_pattern();
  for (const std::uint32_t address : {1U, 4001U, 4095U, 8191U}) {
    std::vector<std::uint8_t> in(5003);
    const Time now = sim_now();
    rig.dma.dma_read(now, address, 5003, in.data(), kPayload, &rig.client, 1);
    rig.run();
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(in[i], FakeMemory::pattern(address + i)) << address << " + " << i;
    }
    rig.dma.dma_write(sim_now(), 100'000 + address, 5003, in.data(), kPayload, &rig.client, 2);
    rig.run();
    EXPECT_EQ(rig.memory[100'000 + address + 5002], in.back());
    EXPECT_EQ(rig.memory[100'000 + address], in.front());
  }
  EXPECT_EQ(rig.dma.faults(), 0U);
}

TEST(DmaEngine, TimingIsTheSameWithoutData) {
  PcieRig rig;
  rig.dma.dma_read(kTimeZero, 1, 4096, nullptr, kPayload, &rig.client, 1);
  rig.run();
  const Time without = rig.client.done_at.at(1);
  std::array<std::uint8_t, 4096> buffer{};
  const Time start = sim_now();
  rig.dma.dma_read(start, 1, 4096, buffer.data(), kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(2) - start, without);
}

TEST(DmaEngine, AFaultNobodyAnswersForIsFatal) {
  PcieRig rig(PcieRigConfig(), 4096);
  std::array<std::uint8_t, 64> cqe{};
  rig.dma.dma_write(kTimeZero, 1 << 20, 64, cqe.data(), Purpose::kCqe, nullptr, 0);
  try {
    rig.run();
    FAIL() << "the simulation went on";
  } catch (const std::exception& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("fatal device error: DMA write of cqe at bus address 0x100000 failed: "
                        "unsupported request"),
              std::string::npos)
        << what;
  }
}

TEST(DmaEngine, AFaultIsCountedAndTheClientTold) {
  PcieRig rig(PcieRigConfig(), 4096);
  std::array<std::uint8_t, 64> buffer{};
  rig.dma.dma_read(kTimeZero, 1 << 20, 64, buffer.data(), kPayload, &rig.client, 1);
  rig.dma.dma_write(kTimeZero, 1 << 20, 64, buffer.data(), kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.dma.faults(), 2U);
  EXPECT_EQ(rig.root.faults(), 2U);
  EXPECT_TRUE(rig.client.done_at.empty());
  ASSERT_EQ(rig.client.faults.size(), 2U);  // the write is refused first: it has no way back
  EXPECT_EQ(rig.client.faults[0].token, 2U);
  EXPECT_FALSE(rig.client.faults[0].is_read);
  EXPECT_EQ(rig.client.faults[1].token, 1U);
  EXPECT_EQ(rig.client.faults[1].address, 1U << 20);
  EXPECT_EQ(rig.client.faults[1].error, pcie::DmaError::kUnsupportedRequest);
}

TEST(DmaEngine, NoTagsIsAConfigurationError) {
  config::PcieConfig config = PcieRigConfig().pcie;
  config.read_tags = 0;
  EXPECT_THROW(pcie::DmaEngine("dma", config, kTimeZero, kTimeZero), ConfigError);
}

TEST(DmaEngine, FewTagsBoundReadBandwidth) {
  PcieRigConfig config;
  config.pcie.read_tags = 4;
  PcieRig rig(config);
  DmaLoop loop(rig.dma, reads_of(4096));
  loop.start(16, 2000);
  rig.run();
  // A 512 B request: 3 + 100 + 150 + 552 B (69) + 100 = 422 ns; 4 x 512 B in that time = 38.8 Gb/s,
  // where the link would carry 64 x 512/552 = 59.4.
  const double expected = 4 * 512 * 8 / 422.0;
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
  EXPECT_GT(rig.dma.unit().stalled(StallCause::kNoTag), nanoseconds(1000));
}

/// Bandwidth of 4 KiB reads is the lesser of tags x 512 B / 422 ns and the link's 59.4 Gb/s, also
/// near the point where the two meet (6.1 tags).
class DmaEngineTags : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(DmaEngineTags, TagsOrLinkBound) {
  PcieRigConfig config;
  config.pcie.read_tags = GetParam();
  PcieRig rig(config);
  DmaLoop loop(rig.dma, reads_of(4096));
  loop.start(16, 2000);
  rig.run();
  const double expected = std::min(GetParam() * 512 * 8 / 422.0, 64 * 512.0 / 552);
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
}

INSTANTIATE_TEST_SUITE_P(Counts, DmaEngineTags,
                         ::testing::Values(1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 100));

TEST(DmaEngine, FewTagsBoundSmallReadsToo) {
  PcieRigConfig config;
  config.pcie.read_tags = 8;
  PcieRig rig(config);
  DmaLoop loop(rig.dma, reads_of(64));
  loop.start(32, 4000);
  rig.run();
  // 3 + 100 + 150 + 10.5 + 100 = 363.5 ns for each of eight 64 B reads.
  const double expected = 8 * 64 * 8 / 363.5;
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
}

TEST(DmaEngine, WithTagsEnoughTheLinkBoundsReads) {
  PcieRig rig;
  DmaLoop loop(rig.dma, reads_of(4096));
  const std::uint64_t start = ModelEvents::count();
  loop.start(64, 4000);
  rig.run();
  const double expected = 64 * 512.0 / 552;
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
  // More is asked for than tags can hold, and still a read costs its two events.
  EXPECT_LT(static_cast<double>(ModelEvents::count() - start), 4000 * 2.1);
}

TEST(DmaEngine, TheLinkBoundsWrites) {
  PcieRig rig;
  DmaLoop loop(rig.dma, writes_of(4096));
  loop.start(64, 4000);
  rig.run();
  const double expected = 64 * 256.0 / 280;
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
}

TEST(DmaEngine, ReadsAndWritesShareTheUpstreamWire) {
  PcieRig rig;
  DmaLoop loop(rig.dma, both_of(512));
  loop.start(64, 4000);
  rig.run();
  // Up: 512 + 2 x 24 B of the write and 24 B of the read; down: 552 B.
  const double expected = 64 * 512.0 / 584;
  EXPECT_NEAR(loop.gbps(), expected, expected * 0.02);
}

}  // namespace
}  // namespace rnic::testbench
