// SPDX-License-Identifier: Apache-2.0
// Address Translation Services: what the device's own cache saves, and what asking costs. The rig:
// 125 ps a byte, 100 ns one way, read 150 ns, write 60 ns, engine latency 10 ns and interval 2 ns;
// walk 300 ns, translation agent 50 ns, look-up in the device 0.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "pcie/translation_agent.h"
#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using tlm_ext::Purpose;

constexpr auto kPayload = Purpose::kPayload;
constexpr std::uint64_t kPage = 4096;

struct AtsRig {
  explicit AtsRig(std::uint32_t entries = 64) : parts(config(entries)) {
    agent = std::make_unique<pcie::TranslationAgent>("agent", config(entries).pcie.atc, kPage,
                                                     parts.dma);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  static PcieRigConfig config(std::uint32_t entries) {
    PcieRigConfig c;
    c.iommu.enabled = true;
    c.iommu.ats_latency = nanoseconds(50);
    c.pcie.atc.enabled = true;
    c.pcie.atc.entries = entries;
    c.pcie.atc.ways = entries;
    return c;
  }

  /// Time of one read on its own.
  Time read(std::uint64_t address, std::uint32_t bytes = 64) {
    const Time start = sim_now();
    agent->dma_read(start, address, bytes, nullptr, kPayload, &parts.client, ++token);
    PcieRig::run();
    return parts.client.done_at.at(token) - start;
  }
  std::uint64_t tlps(pcie::Direction direction, Purpose purpose) const {
    return parts.link.counter(direction, purpose).tlps;
  }

  PcieParts parts;
  std::unique_ptr<pcie::TranslationAgent> agent;
  std::uint64_t token = 0;
};

/// A read of 64 B: 373.5 ns. A translation: the same way, 8 B of data and the agent instead of
/// memory: 10 + 3 + 100 + 50 + 3.5 + 100 ns, and a walk.
constexpr Time kRead = picoseconds(373'500);
constexpr Time kAsk = picoseconds(266'500);
constexpr Time kWalk = nanoseconds(300);

TEST(TranslationAgent, AMissAsksAndAHitDoesNot) {
  AtsRig rig;
  EXPECT_EQ(rig.read(0), kAsk + kWalk + kRead);
  EXPECT_EQ(rig.read(64), kRead);
  // The IOMMU knows page 0 as well, but it is not asked again.
  EXPECT_EQ(rig.parts.root.iommu()->hits() + rig.parts.root.iommu()->misses(), 1U);
  EXPECT_EQ(rig.tlps(pcie::Direction::kToHost, Purpose::kTranslation), 1U);
  EXPECT_EQ(rig.tlps(pcie::Direction::kToDevice, Purpose::kTranslation), 1U);
  EXPECT_EQ(rig.agent->misses(), 1U);
  EXPECT_EQ(rig.agent->hits(), 1U);
}

TEST(TranslationAgent, PagesOfOneRequestAreAskedForTogether) {
  AtsRig rig;
  // The walks overlap; the second translation arrives behind the 28 B of the first (3.5 ns). The
  // data come in two completions: 20 B more, 2.5 ns.
  EXPECT_EQ(rig.read(kPage - 32, 64), kAsk + kWalk + picoseconds(3500) + kRead + picoseconds(2500));
  EXPECT_EQ(rig.agent->misses(), 2U);
}

TEST(TranslationAgent, ReadsThatHitOvertakeAReadThatWaits) {
  AtsRig rig;
  rig.read(0);
  rig.parts.client.order.clear();
  rig.agent->dma_read(sim_now(), kPage, 64, nullptr, kPayload, &rig.parts.client, 11);
  rig.agent->dma_read(sim_now(), 0, 64, nullptr, kPayload, &rig.parts.client, 12);
  PcieRig::run();
  EXPECT_EQ(rig.parts.client.order, (std::vector<std::uint64_t>{12, 11}));
}

TEST(TranslationAgent, WritesStayInOrderAndReadsDoNotPassThem) {
  AtsRig rig;
  rig.read(0);
  rig.parts.client.order.clear();
  const std::vector<std::uint8_t> data(64, 7);
  std::vector<std::uint8_t> seen(64);
  rig.agent->dma_write(sim_now(), kPage, 64, data.data(), kPayload, &rig.parts.client, 11);
  rig.agent->dma_write(sim_now(), 0, 64, data.data(), kPayload, &rig.parts.client, 12);
  rig.agent->dma_read(sim_now(), 0, 64, seen.data(), kPayload, &rig.parts.client, 13);
  PcieRig::run();
  EXPECT_EQ(rig.parts.client.order, (std::vector<std::uint64_t>{11, 12, 13}));
  EXPECT_EQ(seen, data);
}

TEST(TranslationAgent, AShortWriteWithoutClientIsCopied) {
  AtsRig rig;
  std::vector<std::uint8_t> data(64, 9);
  rig.agent->dma_write(sim_now(), 0, 64, data.data(), Purpose::kCqe, nullptr, 0);
  data.assign(64, 1);  // taken at once
  PcieRig::run();
  EXPECT_EQ(rig.parts.memory[0], 9);
  EXPECT_EQ(rig.parts.memory[63], 9);
}

TEST(TranslationAgent, APageThatIsAskedForIsWaitedFor) {
  AtsRig rig;
  rig.agent->dma_read(sim_now(), 0, 64, nullptr, kPayload, &rig.parts.client, 1);
  rig.agent->dma_read(sim_now(), 128, 64, nullptr, kPayload, &rig.parts.client, 2);
  PcieRig::run();
  EXPECT_EQ(rig.tlps(pcie::Direction::kToHost, Purpose::kTranslation), 1U);
  EXPECT_EQ(rig.parts.client.order, (std::vector<std::uint64_t>{1, 2}));
}

TEST(TranslationAgent, ItForgetsTheLeastRecentlyUsedPage) {
  AtsRig rig(2);
  rig.read(0);
  rig.read(kPage);
  rig.read(2 * kPage);  // page 0 goes; the IOMMU still has it
  EXPECT_EQ(rig.read(kPage), kRead);
  EXPECT_EQ(rig.read(0), kAsk + kRead);
}

TEST(TranslationAgent, ARequestOfMorePagesThanItHolds) {
  AtsRig rig(2);
  EXPECT_GT(rig.read(0, 8 * kPage), kRead);
  EXPECT_EQ(rig.agent->misses(), 8U);
}

TEST(TranslationAgent, AnInvalidationEndsWithTheDevicesAnswer) {
  AtsRig rig;
  rig.read(0);
  rig.read(kPage);
  rig.agent->invalidate(0, kPage, sim_now());
  // The rig's BAR knows no messages, so the root complex has not asked: nobody waits there.
  EXPECT_EQ(rig.agent->invalidations(), 1U);
}

}  // namespace
}  // namespace rnic::testbench
