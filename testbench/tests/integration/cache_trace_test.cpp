// SPDX-License-Identifier: Apache-2.0
// Hits and misses of the caches for contexts, keys and translations, end to end, exactly as an
// independent simulation of the same trace has them: each replacement, each order of access. (Sets:
// nic_translation_options_test.)
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "support/program.h"
#include "support/reference_cache.h"
#include "workload/address_pattern.h"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kMessages = 1200;
constexpr int kEntries = 32;

/// (replacement, order of access)
using Case = std::tuple<const char*, const char*>;

class CacheTrace : public ::testing::TestWithParam<Case> {
 protected:
  static std::string replacement() { return std::get<0>(GetParam()); }
  static std::string order() { return std::get<1>(GetParam()); }

  static config::Access access() {
    if (order() == "random") return config::Access::kRandom;
    return order() == "zipf" ? config::Access::kZipf : config::Access::kSequential;
  }

  /// One WRITE of a page after the other on a device whose `cache` has 32 entries.
  static ProgramRun run(const std::string& cache, const Settings& settings) {
    const std::string key = "nic." + cache + ".";
    return run_well(with(with({{"workload.pattern", "bandwidth"},
                               {"workload.depth", "1"},
                               {"workload.outstanding", "1"},
                               {"workload.msg_size", "4KiB"},
                               {"workload.iterations", std::to_string(kMessages)},
                               {"sim.warmup", "0"},
                               {"sim.payload", "none"}},
                              {{key + "entries", std::to_string(kEntries)},
                               {key + "ways", std::to_string(kEntries)},
                               {key + "replacement", replacement()}}),
                         settings));
  }

  static ReferenceCache reference(const std::string& name) {
    const auto policy = replacement() == "lru"      ? ReferenceCache::Policy::kLru
                        : replacement() == "random" ? ReferenceCache::Policy::kRandom
                                                    : ReferenceCache::Policy::kTreePlru;
    return {kEntries, kEntries, policy, Rng(1, name)};
  }

  /// `misses_only`: hits are more, by look-ups of what has just been used.
  static void expect_as_reference(const ProgramRun& run, const std::string& cache,
                                  const std::vector<std::uint64_t>& trace, bool misses_only) {
    for (const std::string host : {"host0", "host1"}) {
      const std::string name = host + ".nic." + cache;
      const bool in_translation = cache != "qpc_cache";
      ReferenceCache expected =
          reference(host + (in_translation ? ".nic.translation." : ".nic.") + cache);
      for (const std::uint64_t key : trace) expected.access(key);
      const auto& rows = run.result["caches"];
      const auto row =
          std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r["name"] == name; });
      ASSERT_NE(row, rows.end()) << name;
      EXPECT_EQ((*row)["misses"].get<std::uint64_t>(), expected.misses) << name;
      if (!misses_only) {
        EXPECT_EQ((*row)["hits"].get<std::uint64_t>(), expected.hits) << name;
      }
    }
  }

  /// The places that one queue pair's messages use, of `count`.
  static std::vector<std::uint64_t> places(std::uint64_t count) {
    AddressPattern pattern(access(), count, Rng(1, "flow0.qp0"));
    std::vector<std::uint64_t> trace;
    for (std::uint64_t i = 0; i < kMessages; ++i) trace.push_back(pattern.next());
    return trace;
  }
};

TEST_P(CacheTrace, Translations) {
  constexpr std::uint64_t kPages = 512;  // 64 lines of eight translations
  std::vector<std::uint64_t> trace = places(kPages);
  for (std::uint64_t& page : trace) page /= 8;
  const ProgramRun measured = run("mtt_cache", {{"workload.mr_size", std::to_string(kPages * 4096)},
                                                {"workload.access", order()}});
  expect_as_reference(measured, "mtt_cache", trace, false);
}

TEST_P(CacheTrace, Keys) {
  constexpr std::uint64_t kRegions = 96;
  const ProgramRun measured = run("mpt_cache", {{"workload.mrs", std::to_string(kRegions)},
                                                {"workload.mr_size", "4096"},
                                                {"workload.access", order()}});
  expect_as_reference(measured, "mpt_cache", places(kRegions), false);
}

/// Queue pairs in the order in which a thread posts: as they are drawn, to the last message.
std::vector<std::uint64_t> turns(const std::string& order, std::uint64_t count) {
  const auto access = order == "zipf" ? config::Access::kZipf : config::Access::kRandom;
  AddressPattern draws(access, count, Rng(1, "flow0.qps0"));
  std::vector<std::uint64_t> trace;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    trace.push_back(order == "sequential" ? i % count : draws.next());
  }
  return trace;
}

TEST_P(CacheTrace, Contexts) {
  constexpr std::uint64_t kQps = 48;
  const ProgramRun measured =
      run("qpc_cache", {{"workload.qps", std::to_string(kQps)},
                        {"workload.qp_order", order() == "sequential" ? "in_turn" : order()},
                        {"workload.depth", "16"},
                        {"workload.msg_size", "64"},
                        {"workload.inline_max", "64"}});
  expect_as_reference(measured, "qpc_cache", turns(order(), kQps), true);
}

/// 64 of 256 contexts are in the cache, so three WRITEs in four miss with their request, whatever
/// the length of the run; their acknowledgement hits: 0.625 of all look-ups. The standard deviation
/// over 8,000 draws is sqrt(0.75 * 0.25 / 8000) / 2 = 0.0024; four of them are allowed.
TEST(CacheTraceTest, QueuePairsAtRandomHitAsOftenToTheEnd) {
  const ProgramRun run = run_well({{"workload.pattern", "bandwidth"},
                                   {"workload.qps", "256"},
                                   {"workload.qp_order", "random"},
                                   {"workload.outstanding", "1"},
                                   {"workload.msg_size", "64"},
                                   {"workload.iterations", "8000"},
                                   {"sim.payload", "none"},
                                   {"nic.qpc_cache.entries", "64"},
                                   {"nic.qpc_cache.ways", "64"}});
  const auto& rows = run.result["caches"];
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [](const auto& r) { return r["name"] == "host0.nic.qpc_cache"; });
  ASSERT_NE(row, rows.end());
  const double hits = (*row)["hits"].get<double>();
  EXPECT_NEAR(hits / (hits + (*row)["misses"].get<double>()), 0.625, 4 * 0.0024);
}

INSTANTIATE_TEST_SUITE_P(Caches, CacheTrace,
                         ::testing::Combine(::testing::Values("lru", "tree_plru", "random"),
                                            ::testing::Values("sequential", "random", "zipf")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

}  // namespace
}  // namespace rnic::testbench
