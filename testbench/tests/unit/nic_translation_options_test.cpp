// SPDX-License-Identifier: Apache-2.0
// Options of the translation unit: lines, levels, fetching ahead, directories, order of answers;
// and hit rates against an independent cache simulation of the same trace. The unit takes 5 ns, a
// DMA read 100 ns. One region of 2048 pages from kStart on; page n lies at 0x40000000 + n * 0x2000.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "nic/translation_unit.h"
#include "support/nic_fakes.h"
#include "support/reference_cache.h"
#include "workload/address_pattern.h"

namespace rnic::testbench {
namespace {

using nic::Translation;
using protocol::AccessResult;
using tlm_ext::Purpose;

constexpr std::uint64_t kMpt = 0x1000;
constexpr std::uint64_t kMtt = 0x4000;
constexpr std::uint32_t kKeys = 64;
constexpr std::uint64_t kStart = 0x10'0000;
constexpr std::uint32_t kPages = 2048;

config::NicConfig options() {
  config::NicConfig config = nic_config();
  config.translation = {5, 1};
  config.mpt_cache = {8, 8, config::Replacement::kLru};
  config.mtt_cache = {8, 8, config::Replacement::kLru};
  return config;
}

struct Rig : nic::TranslationClient {
  explicit Rig(const config::NicConfig& config)
      : unit("unit", config, 1, kMpt, kMtt, kKeys, budget) {
    unit.dma.bind(dma);
    // All keys stand for the same pages.
    for (std::uint32_t key = 0; key < kKeys; ++key) {
      protocol::MptEntry mpt;
      mpt.state = protocol::MptState::kValid;
      mpt.key = protocol::make_key(key, 0);
      mpt.access = protocol::kAccessRemoteWrite | protocol::kAccessLocalWrite;
      mpt.start = kStart;
      mpt.length = std::uint64_t{kPages} * 4096;
      mpt.mtt_count = kPages;
      mpt.encode(&dma.memory[kMpt + std::size_t{key} * 64]);
    }
    for (std::uint32_t i = 0; i < kPages; ++i) {
      protocol::MttEntry{0x4000'0000 + std::uint64_t{i} * 0x2000, true, true}.encode(
          &dma.memory[kMtt + std::size_t{i} * 8]);
    }
  }

  Translation make(std::uint64_t page, std::uint32_t length = 64, std::uint32_t key = 2) {
    Translation request;
    request.key = protocol::make_key(key, 0);
    request.needed_access = protocol::kAccessRemoteWrite;
    request.address = request.check_address = kStart + page * 4096;
    request.length = length;
    request.check_length = length;
    request.client = this;
    return request;
  }

  void translated(Translation& request, Time t) override {
    EXPECT_EQ(request.result, AccessResult::kOk);
    answers.emplace_back(&request, t);
  }

  /// Asks, waits, and gives the time it took.
  Time ask(std::uint64_t page, std::uint32_t length = 64, std::uint32_t key = 2,
           bool responder = false) {
    Translation request = make(page, length, key);
    request.responder = responder;
    const Time start = sim_now();
    unit.translate(request, start);
    sc_core::sc_start();
    const Time answered = answers.back().second;
    answers.clear();
    sc_core::sc_start(to_sc_time(microseconds(1)));  // the pipeline is idle again
    return answered - start;
  }

  std::uint64_t reads(Purpose purpose) const {
    return static_cast<std::uint64_t>(
        std::count_if(dma.reads.begin(), dma.reads.end(),
                      [purpose](const FakeDma::Request& r) { return r.purpose == purpose; }));
  }

  FakeDma dma{nanoseconds(100), 1U << 16};
  nic::MissBudget budget{16};
  nic::TranslationUnit unit;
  std::vector<std::pair<Translation*, Time>> answers;
};

// Lines, first level, fetching ahead, directories ------------------------------------------------

TEST(TranslationOptions, AShorterLineBringsFewerTranslations) {
  config::NicConfig config = options();
  config.mtt_line = 2;
  Rig rig(config);
  rig.ask(0);
  rig.ask(1);
  EXPECT_EQ(rig.reads(Purpose::kMtt), 1U);
  rig.ask(2);
  EXPECT_EQ(rig.reads(Purpose::kMtt), 2U);
  EXPECT_EQ(rig.dma.reads.back().address, kMtt + 16);
  EXPECT_EQ(rig.dma.reads.back().bytes, 16U);
}

TEST(TranslationOptions, TheSecondLevelAnswersLater) {
  config::NicConfig config = options();
  config.mtt_cache.l0_entries = config.mtt_cache.l0_ways = 2;
  config.translation_l1_latency = 4;
  Rig rig(config);
  rig.ask(0);
  EXPECT_EQ(rig.ask(0), nanoseconds(5));  // first level
  rig.ask(8);
  rig.ask(16);  // two other lines take the first level
  EXPECT_EQ(rig.ask(0), nanoseconds(5 + 4));
  EXPECT_EQ(rig.ask(0), nanoseconds(5));
  EXPECT_EQ(rig.unit.mtt_cache().cache().misses(), 3U);
  EXPECT_EQ(rig.unit.mtt_cache().cache().hits(), 1U);
  EXPECT_EQ(rig.unit.mtt_cache().first_level()->hits(), 2U);
}

TEST(TranslationOptions, InvalidationReachesTheFirstLevel) {
  config::NicConfig config = options();
  config.mpt_cache.l0_entries = config.mpt_cache.l0_ways = 2;
  config.mtt_cache.l0_entries = config.mtt_cache.l0_ways = 2;
  Rig rig(config);
  rig.ask(0);
  rig.unit.invalidate(protocol::make_key(2, 0), 0, kPages);
  rig.ask(0);
  EXPECT_EQ(rig.reads(Purpose::kMpt), 2U);
  EXPECT_EQ(rig.reads(Purpose::kMtt), 2U);
}

TEST(TranslationOptions, LinesFetchedAheadSaveTheirMisses) {
  config::NicConfig config = options();
  config.mtt_cache.prefetch = 3;
  Rig rig(config);
  for (std::uint64_t page = 0; page < 256; ++page) rig.ask(page);
  // 32 lines in sequence; one in four is missing and brings the next three.
  EXPECT_EQ(rig.unit.mtt_cache().cache().misses(), 8U);
  EXPECT_EQ(rig.unit.mtt_cache().prefetches(), 24U);
  EXPECT_EQ(rig.reads(Purpose::kMtt), 32U);
}

TEST(TranslationOptions, NothingIsFetchedBeyondTheRegion) {
  config::NicConfig config = options();
  config.mtt_cache.prefetch = 3;
  Rig rig(config);
  rig.ask(kPages - 9);  // the last line but one
  EXPECT_EQ(rig.reads(Purpose::kMtt), 2U);
}

TEST(TranslationOptions, ALargeRegionNeedsItsDirectoriesFirst) {
  config::NicConfig config = options();
  config.mtt_reach = 256;
  config.mtt_fanout = 4;
  Rig rig(config);
  EXPECT_EQ(rig.unit.directories(256), 0U);
  EXPECT_EQ(rig.unit.directories(257), 1U);
  EXPECT_EQ(rig.unit.directories(1024), 1U);
  EXPECT_EQ(rig.unit.directories(kPages), 2U);
  rig.ask(0);                                   // the key is on chip now
  EXPECT_EQ(rig.ask(8), nanoseconds(5 + 300));  // two directories and the line, one by one
  EXPECT_EQ(rig.ask(9), nanoseconds(5));
}

TEST(TranslationOptions, SplitCachesAreOneEach) {
  config::NicConfig config = options();
  config.mpt_cache.ways = config.mtt_cache.ways = 4;
  config.mpt_cache.split = config.mtt_cache.split = true;
  Rig rig(config);
  rig.ask(0, 64, 2, false);
  rig.ask(0, 64, 2, true);
  EXPECT_EQ(rig.reads(Purpose::kMpt), 2U);
  EXPECT_EQ(rig.reads(Purpose::kMtt), 2U);
  EXPECT_EQ(rig.unit.mtt_cache().cache().entries(), 4U);
  EXPECT_EQ(rig.unit.responder_mtt_cache()->cache().misses(), 1U);
  rig.unit.invalidate(protocol::make_key(2, 0), 0, 8);
  rig.ask(0, 64, 2, true);
  EXPECT_EQ(rig.reads(Purpose::kMtt), 3U);
}

/// Whoever asks for a key that is not valid yet must not keep that: the driver registers a region
/// there without a word to the device. For both halves' caches.
TEST(TranslationOptions, AKeyThatBecomesValidIsFoundByBothHalves) {
  struct Results : nic::TranslationClient {
    void translated(Translation& request, Time /*t*/) override { all.push_back(request.result); }
    std::vector<AccessResult> all;
  } results;
  config::NicConfig config = options();
  config.mpt_cache.ways = config.mtt_cache.ways = 4;
  config.mpt_cache.split = config.mtt_cache.split = true;
  Rig rig(config);
  const auto entry = rig.dma.memory.begin() + static_cast<std::ptrdiff_t>(kMpt + 2 * 64);
  const std::vector<std::uint8_t> valid(entry, entry + 64);
  std::fill(entry, entry + 64, std::uint8_t{0});
  for (const bool responder : {false, true}) {
    Translation request = rig.make(0);
    request.client = &results;
    request.responder = responder;
    rig.unit.translate(request, sim_now());
    sc_core::sc_start();
  }
  ASSERT_EQ(results.all.size(), 2U);
  for (const AccessResult result : results.all) EXPECT_NE(result, AccessResult::kOk);
  std::copy(valid.begin(), valid.end(), entry);
  rig.ask(0, 64, 2, false);  // fails the test when it is refused
  rig.ask(0, 64, 2, true);
}

/// A read that was lost, of an entry that was invalidated meanwhile, is not the message's fault.
TEST(TranslationOptions, ALostReadOfWhatIsInvalidIsMadeAgain) {
  Rig rig(options());
  rig.dma.hold = true;
  Translation request = rig.make(0);
  rig.unit.translate(request, sim_now());
  ASSERT_EQ(rig.reads(Purpose::kMpt), 1U);
  rig.unit.invalidate(protocol::make_key(2, 0), 0, 0);
  rig.dma.fail();
  EXPECT_TRUE(rig.answers.empty());
  EXPECT_EQ(rig.reads(Purpose::kMpt), 2U);
  rig.dma.release();
  rig.dma.release();                  // the translation
  ASSERT_EQ(rig.answers.size(), 1U);  // and translated() has seen that it is granted
}

// Order of answers
// ---------------------------------------------------------------------------------

/// A miss of QP 1, then hits of QP 1 and of QP 2, asked at once; the order of their answers.
std::vector<int> order_of_answers(config::TranslationOrder order) {
  config::NicConfig config = options();
  config.translation_order = order;
  Rig rig(config);
  rig.ask(0);
  std::vector<Translation> requests{rig.make(8), rig.make(0), rig.make(0)};
  requests[0].qpn = requests[1].qpn = 1;
  requests[2].qpn = 2;
  for (Translation& request : requests) rig.unit.translate(request, sim_now());
  sc_core::sc_start();
  std::vector<int> order_seen;
  Time last = kTimeZero;
  for (const auto& [request, t] : rig.answers) {
    order_seen.push_back(static_cast<int>(request - requests.data()));
    EXPECT_GE(t, last);
    last = t;
  }
  return order_seen;
}

TEST(TranslationOrder, FreeAnswersHitsAtOnce) {
  EXPECT_EQ(order_of_answers(config::TranslationOrder::kFree), (std::vector<int>{1, 2, 0}));
}
TEST(TranslationOrder, InOrderWithinAQueuePair) {
  EXPECT_EQ(order_of_answers(config::TranslationOrder::kQp), (std::vector<int>{2, 0, 1}));
}
TEST(TranslationOrder, StrictlyAsAsked) {
  EXPECT_EQ(order_of_answers(config::TranslationOrder::kStrict), (std::vector<int>{0, 1, 2}));
}

TEST(TranslationOrder, MissesOfAQueuePairOverlapInAnyCase) {
  Rig rig(options());
  rig.ask(0);
  Translation first = rig.make(8);
  Translation second = rig.make(16);
  const Time now = sim_now();
  rig.unit.translate(first, now);
  rig.unit.translate(second, now);
  sc_core::sc_start();
  ASSERT_EQ(rig.answers.size(), 2U);
  EXPECT_EQ(rig.answers[0].second, now + nanoseconds(105));
  EXPECT_EQ(rig.answers[1].second, now + nanoseconds(106));
}

TEST(TranslationOrder, OneMissAtATimeWhenThereIsOneRegister) {
  config::NicConfig config = options();
  config.mtt_cache.misses = 1;
  Rig rig(config);
  rig.ask(0);
  std::vector<Translation> requests{rig.make(8), rig.make(16), rig.make(0)};
  requests[1].qpn = 1;
  requests[2].qpn = 2;
  const Time now = sim_now();
  for (Translation& request : requests) rig.unit.translate(request, now);
  sc_core::sc_start();
  ASSERT_EQ(rig.answers.size(), 3U);
  EXPECT_EQ(rig.answers[0], std::pair(&requests[2], now + nanoseconds(7)));  // hit under miss
  EXPECT_EQ(rig.answers[1], std::pair(&requests[0], now + nanoseconds(105)));
  EXPECT_EQ(rig.answers[2], std::pair(&requests[1], now + nanoseconds(205)));
}

// Pages
// ----------------------------------------------------------------------------------------------

TEST(TranslationPages, EachFurtherPageTakesItsTime) {
  config::NicConfig config = options();
  config.translation_page_interval = 3;
  Rig rig(config);
  rig.ask(0);
  EXPECT_EQ(rig.ask(0, 4096), nanoseconds(5));
  EXPECT_EQ(rig.ask(0, 4097), nanoseconds(5 + 3));
  EXPECT_EQ(rig.ask(0, 5 * 4096), nanoseconds(5 + 4 * 3));
  // The unit is busy as long: the next request starts 1 + 4 * 3 ns behind the long one.
  Translation longer = rig.make(0, 5 * 4096);
  Translation next = rig.make(0);
  next.qpn = 1;
  const Time now = sim_now();
  rig.unit.translate(longer, now);
  rig.unit.translate(next, now);
  EXPECT_EQ(rig.answers.at(1).second, now + nanoseconds(13 + 5));
}

TEST(TranslationPages, AnUnalignedPageSizedTransferTouchesTwo) {
  Rig rig(options());
  Translation aligned = rig.make(0, 4096);
  rig.unit.translate(aligned, kTimeZero);
  sc_core::sc_start();
  EXPECT_EQ(aligned.segment_count, 1U);
  Translation unaligned = rig.make(0, 4096);
  unaligned.address = unaligned.check_address = kStart + 64;
  rig.unit.translate(unaligned, sim_now());
  ASSERT_EQ(unaligned.segment_count, 2U);
  EXPECT_EQ(unaligned.segments[0].bytes, 4096U - 64);
  EXPECT_EQ(unaligned.segments[1].bytes, 64U);
}

// Hit rates against the reference
// ------------------------------------------------------------------

/// 4000 accesses to `pages` pages and `keys` keys: both caches must hit exactly where the reference
/// does.
void compare(config::Replacement replacement, std::uint32_t entries, std::uint32_t ways,
             config::Access access, std::uint64_t pages, std::uint64_t keys) {
  config::NicConfig config = options();
  config.mpt_cache = config.mtt_cache = {entries, ways, replacement};
  Rig rig(config);
  const auto policy = replacement == config::Replacement::kLru ? ReferenceCache::Policy::kLru
                                                               : ReferenceCache::Policy::kTreePlru;
  ReferenceCache mpt(entries, ways, policy);
  ReferenceCache mtt(entries, ways, policy);
  AddressPattern page_of(access, pages, Rng(1, "pages"));
  AddressPattern key_of(access, keys, Rng(2, "keys"));
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t page = page_of.next();
    const std::uint64_t key = key_of.next();
    rig.ask(page, 64, static_cast<std::uint32_t>(key));
    const bool key_hit = mpt.access(key);
    const bool page_hit = mtt.access(page / 8);
    ASSERT_EQ(rig.reads(Purpose::kMpt), mpt.misses) << i << (key_hit ? " hit" : " miss");
    ASSERT_EQ(rig.reads(Purpose::kMtt), mtt.misses) << i << (page_hit ? " hit" : " miss");
  }
  EXPECT_EQ(rig.unit.mpt_cache().cache().hits(), mpt.hits);
  EXPECT_EQ(rig.unit.mtt_cache().cache().hits(), mtt.hits);
  EXPECT_GT(mtt.misses, pages / 8 - 1);
}

using Replacement = config::Replacement;
using Access = config::Access;

TEST(ReferenceHits, LruSequential) {
  compare(Replacement::kLru, 32, 8, Access::kSequential, 300, 40);
}
TEST(ReferenceHits, LruRandom) { compare(Replacement::kLru, 32, 8, Access::kRandom, 1000, 48); }
TEST(ReferenceHits, LruZipf) { compare(Replacement::kLru, 32, 4, Access::kZipf, 2000, 64); }
TEST(ReferenceHits, PlruSequential) {
  compare(Replacement::kTreePlru, 32, 8, Access::kSequential, 300, 40);
}
TEST(ReferenceHits, PlruRandom) {
  compare(Replacement::kTreePlru, 32, 8, Access::kRandom, 1000, 48);
}
TEST(ReferenceHits, PlruZipf) { compare(Replacement::kTreePlru, 64, 16, Access::kZipf, 2000, 64); }

TEST(ReferenceHits, TheKneeOfASequentialTraceIsTheCapacity) {
  // 16 lines of eight pages, fully associative. 128 pages in turn: the first pass misses, all later
  // ones hit. One line more, and LRU throws each line out just before it is needed.
  Rig rig([] {
    config::NicConfig config = options();
    config.mtt_cache = {16, 16, config::Replacement::kLru};
    return config;
  }());
  for (const std::uint64_t lines : {16U, 17U}) {
    for (int pass = 0; pass < 4; ++pass) {
      if (pass == 1) rig.unit.mtt_cache().reset_statistics();
      for (std::uint64_t line = 0; line < lines; ++line) rig.ask(line * 8);
    }
    EXPECT_EQ(rig.unit.mtt_cache().cache().misses(), lines == 16 ? 0U : 3 * 17U);
  }
}

}  // namespace
}  // namespace rnic::testbench
