// SPDX-License-Identifier: Apache-2.0
// The unit takes 5 ns, a DMA read 100 ns. The MPT lies at 0x1000, the MTT at 0x4000 in host memory.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "nic/translation_unit.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using nic::Translation;
using protocol::AccessResult;
using tlm_ext::Purpose;

constexpr std::uint64_t kMpt = 0x1000;
constexpr std::uint64_t kMtt = 0x4000;
constexpr std::uint32_t kPd = 3;
constexpr std::uint32_t kKey = protocol::make_key(2, 0x55);
constexpr std::uint64_t kStart = 0x10'0000;
constexpr std::uint32_t kPages = 24;
constexpr Time kHit = nanoseconds(5);

config::NicConfig translation_config() {
  config::NicConfig config = nic_config();
  config.translation = {5, 1};
  config.mpt_cache = {8, 8, config::Replacement::kLru};
  config.mtt_cache = {8, 8, config::Replacement::kLru};
  return config;
}

struct Rig : nic::TranslationClient {
  explicit Rig(std::uint32_t misses = 16)
      : budget(misses), unit("unit", translation_config(), 1, kMpt, kMtt, 16, budget) {
    unit.dma.bind(dma);
    protocol::MptEntry mpt;
    mpt.state = protocol::MptState::kValid;
    mpt.key = kKey;
    mpt.pd = kPd;
    mpt.access = protocol::kAccessRemoteWrite | protocol::kAccessLocalWrite;
    mpt.start = kStart;
    mpt.length = kPages * 4096;
    mpt.mtt_base = 16;
    mpt.mtt_count = kPages;
    mpt.encode(&dma.memory[kMpt + 2 * 64]);
    // Pages 0x200000, 0x202000, ...: never neighbours, but for page 5, which follows page 4.
    for (std::uint32_t i = 0; i < kPages; ++i) set_page(i, 0x20'0000 + std::uint64_t{i} * 0x2000);
    set_page(5, 0x20'0000 + 4 * 0x2000 + 0x1000);
  }

  void set_page(std::uint32_t page, std::uint64_t address) {
    protocol::MttEntry{address, true, true}.encode(&dma.memory[kMtt + (16 + page) * 8]);
  }

  Translation make(std::uint64_t offset, std::uint32_t length) {
    Translation request;
    request.key = kKey;
    request.pd = kPd;
    request.needed_access = protocol::kAccessRemoteWrite;
    request.address = request.check_address = kStart + offset;
    request.length = length;
    request.check_length = length;
    request.client = this;
    return request;
  }

  void translated(Translation& request, Time t) override { answers.emplace_back(&request, t); }

  /// Brings the key and the line of page 0 on chip; forgets about it.
  void warm() {
    Translation request = make(0, 64);
    unit.translate(request, sim_now());
    sc_core::sc_start();
    answers.clear();
    dma.reads.clear();
    unit.mpt_cache().cache().reset_statistics();
    unit.mtt_cache().cache().reset_statistics();
  }

  FakeDma dma;
  nic::MissBudget budget;
  nic::TranslationUnit unit;
  std::vector<std::pair<Translation*, Time>> answers;
};

TEST(TranslationUnit, AHitTakesThePipelineLatency) {
  Rig rig;
  rig.warm();
  const Time now = sim_now();
  Translation first = rig.make(0x123, 64);
  Translation second = rig.make(0x1010, 64);
  rig.unit.translate(first, now);
  rig.unit.translate(second, now);
  ASSERT_EQ(rig.answers.size(), 2U);
  EXPECT_EQ(rig.answers[0], std::pair(&first, now + kHit));
  EXPECT_EQ(rig.answers[1], std::pair(&second, now + kHit + nanoseconds(1)));  // interval
  EXPECT_TRUE(rig.dma.reads.empty());
  EXPECT_EQ(first.segments[0].address, 0x20'0123U);
  EXPECT_EQ(second.segments[0].address, 0x20'2010U);
  EXPECT_EQ(rig.unit.mpt_cache().cache().hits(), 2U);
  EXPECT_EQ(rig.unit.mtt_cache().cache().hits(), 2U);
}

TEST(TranslationUnit, MissesAreOneReadOf64BytesEach) {
  Rig rig;
  Translation request = rig.make(9 * 4096, 64);
  rig.unit.translate(request, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.dma.reads.size(), 2U);
  const auto& mpt = rig.dma.reads[0];
  EXPECT_EQ(mpt.at, kHit);
  EXPECT_EQ(mpt.address, kMpt + 2 * 64);
  EXPECT_EQ(mpt.bytes, 64U);
  EXPECT_EQ(mpt.purpose, Purpose::kMpt);
  const auto& mtt = rig.dma.reads[1];
  EXPECT_EQ(mtt.at, nanoseconds(105));
  EXPECT_EQ(mtt.address, kMtt + (16 + 8) * 8);  // page 9 is in the line of pages 8 to 15
  EXPECT_EQ(mtt.bytes, 64U);
  EXPECT_EQ(mtt.purpose, Purpose::kMtt);
  ASSERT_EQ(rig.answers.size(), 1U);
  EXPECT_EQ(rig.answers[0].second, nanoseconds(205));
  EXPECT_EQ(rig.unit.mpt_cache().cache().misses(), 1U);
  EXPECT_EQ(rig.unit.mtt_cache().cache().misses(), 1U);
  EXPECT_EQ(rig.unit.mpt_cache().cache().hits(), 0U);
  EXPECT_EQ(rig.unit.stats().stalled(stats::StallCause::kTranslation), nanoseconds(205));
}

TEST(TranslationUnit, ASecondMissOfALineWaitsForTheFirst) {
  Rig rig;
  rig.warm();
  const Time now = sim_now();
  Translation first = rig.make(8 * 4096, 64);
  Translation second = rig.make(15 * 4096, 64);  // same line of eight
  rig.unit.translate(first, now);
  rig.unit.translate(second, now);
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.size(), 1U);
  ASSERT_EQ(rig.answers.size(), 2U);
  EXPECT_EQ(rig.answers[0], std::pair(&first, now + kHit + nanoseconds(100)));
  EXPECT_EQ(rig.answers[1], std::pair(&second, now + kHit + nanoseconds(100)));
}

TEST(TranslationUnit, HitsGoOnUnderAMiss) {
  Rig rig;
  rig.warm();
  const Time now = sim_now();
  Translation miss = rig.make(8 * 4096, 64);
  Translation hit = rig.make(0, 64);
  hit.qpn = 1;  // another queue pair than the one that misses
  rig.unit.translate(miss, now);
  rig.unit.translate(hit, now);
  ASSERT_EQ(rig.answers.size(), 1U);
  EXPECT_EQ(rig.answers[0], std::pair(&hit, now + kHit + nanoseconds(1)));
  sc_core::sc_start();
  ASSERT_EQ(rig.answers.size(), 2U);
  EXPECT_EQ(rig.answers[1].first, &miss);
}

TEST(TranslationUnit, RefusesWhatTheRegionDoesNotAllow) {
  Rig rig;
  rig.warm();
  const auto result = [&rig](Translation request) {
    rig.unit.translate(request, sim_now());
    sc_core::sc_start();
    EXPECT_EQ(request.segment_count, 0U);
    return request.result;
  };
  Translation request = rig.make(0, 64);
  request.key = protocol::make_key(2, 0x54);  // a stale variant byte
  EXPECT_EQ(result(request), AccessResult::kBadKey);
  request.key = protocol::make_key(16, 0x55);  // beyond the table of 16
  EXPECT_EQ(result(request), AccessResult::kBadKey);
  EXPECT_TRUE(rig.dma.reads.empty());
  request.key = protocol::make_key(3, 0);  // never written: zeros
  EXPECT_NE(result(request), AccessResult::kOk);
  request = rig.make(0, 64);
  request.pd = kPd + 1;
  EXPECT_EQ(result(request), AccessResult::kWrongPd);
  request = rig.make(kPages * 4096 - 63, 64);
  EXPECT_EQ(result(request), AccessResult::kOutOfBounds);
  request = rig.make(0, 64);
  request.address = request.check_address = kStart - 1;
  EXPECT_EQ(result(request), AccessResult::kOutOfBounds);
  request = rig.make(0, 64);
  request.needed_access = protocol::kAccessRemoteRead;
  EXPECT_EQ(result(request), AccessResult::kNoRight);
}

TEST(TranslationUnit, ThreePagesAreThreeSegments) {
  Rig rig;
  Translation request = rig.make(0x800, 8192);  // half of page 0, page 1, half of page 2
  rig.unit.translate(request, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(request.segment_count, 3U);
  EXPECT_EQ(request.segments[0].address, 0x20'0800U);
  EXPECT_EQ(request.segments[0].bytes, 2048U);
  EXPECT_EQ(request.segments[1].address, 0x20'2000U);
  EXPECT_EQ(request.segments[1].bytes, 4096U);
  EXPECT_EQ(request.segments[2].address, 0x20'4000U);
  EXPECT_EQ(request.segments[2].bytes, 2048U);
}

TEST(TranslationUnit, ContiguousPagesAreMerged) {
  Rig rig;
  Translation request = rig.make(4 * 4096 + 100, 8000);  // pages 4 and 5
  rig.unit.translate(request, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(request.segment_count, 1U);
  EXPECT_EQ(request.segments[0].address, 0x20'8064U);
  EXPECT_EQ(request.segments[0].bytes, 8000U);
}

TEST(TranslationUnit, ARequestAcrossTwoLinesMissesTwice) {
  Rig rig;
  rig.warm();
  const Time now = sim_now();
  Translation request = rig.make(15 * 4096 + 4000, 200);  // pages 15 and 16
  rig.unit.translate(request, now);
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.size(), 2U);
  EXPECT_EQ(rig.answers.at(0).second, now + kHit + nanoseconds(200));
  EXPECT_EQ(request.segment_count, 2U);
  EXPECT_EQ(rig.unit.mpt_cache().cache().hits(), 1U);  // one request, one counted lookup
  EXPECT_EQ(rig.unit.mtt_cache().cache().misses(), 2U);
}

TEST(TranslationUnit, ACheckWithoutLengthReadsNoMtt) {
  Rig rig;
  Translation request = rig.make(0, 0);
  request.check_length = 4096;
  rig.unit.translate(request, kTimeZero);
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.size(), 1U);
  EXPECT_EQ(request.result, AccessResult::kOk);
}

TEST(TranslationUnit, InvalidationDropsKeyAndPages) {
  Rig rig;
  rig.warm();
  std::fill_n(&rig.dma.memory[kMpt + 2 * 64], 64, std::uint8_t{0});
  Translation request = rig.make(0, 64);
  rig.unit.translate(request, sim_now());
  EXPECT_EQ(request.result, AccessResult::kOk);  // cached: the device does not see memory change
  rig.unit.invalidate(kKey, 16, kPages);
  Translation after = rig.make(0, 64);
  rig.unit.translate(after, sim_now());
  sc_core::sc_start();
  EXPECT_NE(after.result, AccessResult::kOk);
  EXPECT_EQ(rig.unit.mtt_cache().cache().touch(2), nullptr);  // entries 16 to 23
}

TEST(TranslationUnit, AFetchThatAnInvalidationOvertakesIsNotKept) {
  Rig rig;
  rig.dma.hold = true;
  Translation request = rig.make(0, 0);
  rig.unit.translate(request, kTimeZero);  // the read samples the valid entry
  ASSERT_EQ(rig.dma.held.size(), 1U);
  std::fill_n(&rig.dma.memory[kMpt + 2 * 64], 64, std::uint8_t{0});
  rig.unit.invalidate(kKey, 16, kPages);
  while (!rig.dma.held.empty()) rig.dma.release();
  Translation after = rig.make(0, 0);
  rig.unit.translate(after, sim_now());
  while (!rig.dma.held.empty()) rig.dma.release();
  EXPECT_NE(after.result, AccessResult::kOk);
  EXPECT_EQ(rig.answers.size(), 2U);
}

TEST(TranslationUnit, FetchesBeyondTheMissBudgetQueue) {
  Rig rig(1);
  rig.warm();
  const Time now = sim_now();
  Translation first = rig.make(8 * 4096, 64);
  Translation second = rig.make(16 * 4096, 64);
  rig.unit.translate(first, now);
  rig.unit.translate(second, now);
  EXPECT_EQ(rig.dma.reads.size(), 1U);
  sc_core::sc_start();
  ASSERT_EQ(rig.answers.size(), 2U);
  EXPECT_EQ(rig.answers[0].second, now + nanoseconds(105));
  EXPECT_EQ(rig.answers[1].second, now + nanoseconds(205));  // starts when the first is over
}

}  // namespace
}  // namespace rnic::testbench
