// SPDX-License-Identifier: Apache-2.0
// Knees of the NIC's caches, end to end: hits exactly as an independent simulation of the same
// addresses, and throughput that falls where the working set passes the configured cache.
#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "support/program.h"
#include "support/reference_cache.h"
#include "workload/address_pattern.h"

namespace rnic::testbench {
namespace {

struct Counts {
  std::uint64_t hits;
  std::uint64_t misses;
};

Counts counts_of(const ProgramRun& run, const std::string& name) {
  for (const auto& row : run.result["caches"]) {
    if (row["name"] == name) return {row["hits"], row["misses"]};
  }
  ADD_FAILURE() << "no cache " << name;
  return {};
}

config::Access access_of(const std::string& name) {
  if (name == "random") return config::Access::kRandom;
  return name == "zipf" ? config::Access::kZipf : config::Access::kSequential;
}

/// One WRITE of a page after the other over `pages` pages: the device looks up the pages of the
/// flow's own pattern, in its order. The last page of a region may end in a line of its own.
void compare_with_reference(const std::string& access, const std::string& replacement,
                            std::uint64_t pages) {
  constexpr std::uint64_t kMessages = 1500;
  constexpr std::uint64_t kLines = 32;
  SCOPED_TRACE(access + " " + replacement);
  const ProgramRun run = run_well({{"workload.pattern", "bandwidth"},
                                   {"workload.depth", "1"},
                                   {"workload.msg_size", "4KiB"},
                                   {"workload.mr_size", std::to_string(pages * 4096)},
                                   {"workload.access", access},
                                   {"workload.iterations", std::to_string(kMessages)},
                                   {"sim.warmup", "0"},
                                   {"sim.payload", "none"},
                                   {"nic.mtt_cache.entries", std::to_string(kLines)},
                                   {"nic.mtt_cache.ways", std::to_string(kLines)},
                                   {"nic.mtt_cache.replacement", replacement}});
  ReferenceCache reference(
      kLines, kLines,
      replacement == "lru" ? ReferenceCache::Policy::kLru : ReferenceCache::Policy::kTreePlru);
  AddressPattern pattern(access_of(access), pages, Rng(1, "flow0.qp0"));
  for (std::uint64_t i = 0; i < kMessages; ++i) reference.access(pattern.next() / 8);
  for (const char* host : {"host0", "host1"}) {
    const Counts mtt = counts_of(run, std::string(host) + ".nic.mtt_cache");
    EXPECT_EQ(mtt.hits, reference.hits) << host;
    EXPECT_EQ(mtt.misses, reference.misses) << host;
  }
}

TEST(CacheKneeTest, HitsAreThoseOfTheReference) {
  for (const char* replacement : {"lru", "tree_plru"}) {
    compare_with_reference("sequential", replacement, 320);  // 40 lines over 32
    compare_with_reference("random", replacement, 512);
    compare_with_reference("zipf", replacement, 1024);
  }
}

/// Throughput of 4 KiB WRITEs over a region of `mr_size` on a device that keeps 64 translations and
/// fetches one at a time, one a read.
double over_region(const std::string& mr_size, const std::string& page, const std::string& access) {
  return run_well({{"workload.pattern", "bandwidth"},
                   {"workload.depth", "64"},
                   {"workload.msg_size", "4KiB"},
                   {"workload.mr_size", mr_size},
                   {"workload.access", access},
                   {"workload.iterations", "1000"},
                   {"sim.warmup", "1000"},
                   {"sim.payload", "none"},
                   {"memory.page_size", page},
                   {"nic.context_misses", "1"},
                   {"nic.mtt_cache.line", "1"},
                   {"nic.mtt_cache.entries", "64"},
                   {"nic.mtt_cache.ways", "64"}})
      .number("/throughput_gbps");
}

TEST(CacheKneeTest, ThroughputFallsWhereTheRegionPassesTheTranslations) {
  const double line = over_region("128KiB", "4KiB", "sequential");
  EXPECT_GT(line, 95);
  // 256 KiB are 64 pages. LRU and a sequence: one page more, and none hits: a read of some 450 ns
  // for each 4 KiB, 73 Gb/s.
  EXPECT_NEAR(over_region("256KiB", "4KiB", "sequential"), line, 0.01 * line);
  EXPECT_LT(over_region("260KiB", "4KiB", "sequential"), 0.85 * line);
  EXPECT_LT(over_region("1MiB", "4KiB", "sequential"), 0.85 * line);
  // At random, half of a region of twice the size hits.
  EXPECT_NEAR(over_region("256KiB", "4KiB", "random"), line, 0.01 * line);
  const double half = over_region("512KiB", "4KiB", "random");
  const double few = over_region("4MiB", "4KiB", "random");
  EXPECT_LT(few, 0.85 * line);
  EXPECT_GE(half, few);
  // Zipf keeps the popular pages: gentler.
  EXPECT_GE(over_region("4MiB", "4KiB", "zipf"), few);
  // Pages of 2 MiB: the same region takes two of the 64.
  EXPECT_NEAR(over_region("4MiB", "2MiB", "random"), line, 0.01 * line);
}

/// One WRITE at a time on a device of 32 contexts, so that each costs what its misses
/// cost and nothing overlaps.
ProgramRun one_at_a_time(const Settings& settings) {
  return run_well(with({{"workload.pattern", "bandwidth"},
                        {"workload.depth", "8"},
                        {"workload.outstanding", "1"},
                        {"workload.iterations", "1500"},
                        {"sim.warmup", "0"},
                        {"sim.payload", "none"},
                        {"nic.qpc_cache.entries", "32"},
                        {"nic.qpc_cache.ways", "32"}},
                       settings));
}

double time_of(const ProgramRun& run) { return 1e3 / run.number("/message_rate_mops"); }  // ns

/// Settings for `count` queue pairs in turn, or regions in the order `access`.
Settings queue_pairs(int count) {
  return {{"workload.qps", std::to_string(count)}, {"workload.inline_max", "64"}};
}
Settings regions(int count, const std::string& access) {
  return {{"workload.mrs", std::to_string(count)},
          {"workload.access", access},
          {"workload.mr_size", "4096"},
          {"workload.msg_size", "4KiB"},
          {"nic.mpt_cache.entries", "32"},
          {"nic.mpt_cache.ways", "32"}};
}

/// What the trace of `count` objects leaves in a cache of 32.
ReferenceCache reference_of(const std::string& access, int count, const std::string& seed) {
  ReferenceCache cache(32, 32, ReferenceCache::Policy::kLru);
  AddressPattern pattern(access_of(access), static_cast<std::uint64_t>(count), Rng(1, seed));
  for (int i = 0; i < 1500; ++i) {
    cache.access(pattern.next());
  }
  return cache;
}

void expect_counts(const ProgramRun& run, const std::string& cache,
                   const ReferenceCache& reference) {
  for (const std::string host : {"host0", "host1"}) {
    const Counts counts = counts_of(run, host + ".nic." + cache);
    EXPECT_EQ(counts.hits, reference.hits) << host;
    EXPECT_EQ(counts.misses, reference.misses) << host;
  }
}

TEST(CacheKneeTest, RateFallsWhereQueuePairsPassTheContexts) {
  // LRU and queue pairs in turn: 32 stay, of 33 none does. Both ends read a context for each
  // message: 300 ns of PCIe and 150 ns of memory, and what the device takes.
  const double here = time_of(one_at_a_time(queue_pairs(16)));
  EXPECT_NEAR(time_of(one_at_a_time(queue_pairs(32))), here, 0.03 * here);
  const double missed = time_of(one_at_a_time(queue_pairs(33)));
  EXPECT_GT(missed - here, 2 * 450);
  EXPECT_LT(missed - here, 2 * 550);
  EXPECT_NEAR(time_of(one_at_a_time(queue_pairs(64))), missed, 0.03 * missed);
}

TEST(CacheKneeTest, QueuePairsAtRandomAndByZipfMissAsTheReference) {
  // A WRITE at a time: its context is looked up for the request and, when it is answered, once more
  // at either end; nothing else is used between.
  const double here = time_of(one_at_a_time(queue_pairs(16)));
  const double missed = time_of(one_at_a_time(queue_pairs(33)));
  for (const char* order : {"random", "zipf"}) {
    SCOPED_TRACE(order);
    const ProgramRun run = one_at_a_time(
        with(queue_pairs(96), {{"workload.qp_order", order}, {"workload.depth", "16"}}));
    const ReferenceCache reference = reference_of(order, 96, "flow0.qps0");
    for (const std::string host : {"host0", "host1"}) {
      EXPECT_EQ(counts_of(run, host + ".nic.qpc_cache").misses, reference.misses) << host;
    }
    const double share = static_cast<double>(reference.misses) / 1500;
    EXPECT_NEAR(time_of(run), here + share * (missed - here), 0.03 * missed);
  }
}

TEST(CacheKneeTest, OneRegionOfAllQueuePairsNeedsOneKey) {
  // 64 queue pairs in turn: with a region for each none of 32 keys is used again in time.
  const Settings many = with(queue_pairs(64), {{"nic.mpt_cache.entries", "32"},
                                               {"nic.mpt_cache.ways", "32"},
                                               {"nic.qpc_cache.entries", "128"},
                                               {"nic.qpc_cache.ways", "128"}});
  const Counts own = counts_of(one_at_a_time(many), "host1.nic.mpt_cache");
  EXPECT_EQ(own.hits, 0U);
  const Counts shared = counts_of(one_at_a_time(with(many, {{"workload.mr_per_qp", "false"}})),
                                  "host1.nic.mpt_cache");
  EXPECT_EQ(shared.misses, 1U);
}

TEST(CacheKneeTest, EvictedWorkRequestsAreReadAgain) {
  // READs stay in the WQE cache from their arrival on chip until their answer. In the order of one
  // queue pair LRU gives up the one that is needed next: with as many posted as entries none is
  // read twice, with twice as many each is, but for those of the beginning, also when requests
  // leave one at a time and the others only wait for their turn. A line is a read of its own over
  // PCIe.
  constexpr std::uint64_t kMessages = 2000;
  const auto reads = [](const char* posted, const char* outstanding) {
    return run_well({{"workload.pattern", "bandwidth"},
                     {"workload.op", "read"},
                     {"workload.msg_size", "8"},
                     {"workload.depth", posted},
                     {"workload.iterations", std::to_string(kMessages)},
                     {"sim.warmup", "0"},
                     {"sim.payload", "none"},
                     {"link.delay", "20us"},
                     {"link.flow_control", "none"},
                     {"transport.protocol", "rocev2"},
                     {"nic.max_rd_atomic", "64"},
                     {"transport.max_rd_atomic", outstanding},
                     {"transport.max_dest_rd_atomic", "64"},
                     {"nic.wqe_cache.entries", "16"},
                     {"nic.wqe_cache.ways", "16"}});
  };
  const ProgramRun fit = reads("16", "16");
  const Counts kept = counts_of(fit, "host0.nic.wqe_cache");
  EXPECT_EQ(kept.misses, 0U);
  EXPECT_EQ(kept.hits, kMessages);
  for (const char* outstanding : {"32", "1"}) {
    SCOPED_TRACE(outstanding);
    const ProgramRun spilled = reads("32", outstanding);
    const Counts lost = counts_of(spilled, "host0.nic.wqe_cache");
    EXPECT_EQ(lost.hits + lost.misses, kMessages);
    EXPECT_GE(lost.misses, kMessages - 64);
  }
}

TEST(CacheKneeTest, RateFallsWhereRegionsPassTheKeys) {
  const double here = time_of(one_at_a_time(regions(16, "sequential")));
  EXPECT_NEAR(time_of(one_at_a_time(regions(32, "sequential"))), here, 0.03 * here);
  const double missed = time_of(one_at_a_time(regions(33, "sequential")));
  EXPECT_GT(missed - here, 2 * 450);
  EXPECT_LT(missed - here, 2 * 550);
  for (const char* access : {"random", "zipf"}) {
    SCOPED_TRACE(access);
    const ProgramRun run = one_at_a_time(regions(96, access));
    const ReferenceCache reference = reference_of(access, 96, "flow0.qp0");
    expect_counts(run, "mpt_cache", reference);
    const double share = static_cast<double>(reference.misses) / 1500;
    EXPECT_NEAR(time_of(run), here + share * (missed - here), 0.03 * missed);
  }
}

/// READs of 4 threads, 16 on each of 8 queue pairs, on a device that keeps 8 of their WQEs and
/// fetches one context at a time.
ProgramRun evicting_reads(const Settings& settings) {
  return run_well(with({{"workload.op", "read"},
                        {"workload.pattern", "bandwidth"},
                        {"workload.threads", "4"},
                        {"workload.qps", "8"},
                        {"workload.depth", "16"},
                        {"workload.iterations", "2000"},
                        {"sim.warmup", "500"},
                        {"sim.payload", "none"},
                        {"nic.context_misses", "1"},
                        {"nic.wqe_cache.entries", "8"},
                        {"nic.wqe_cache.ways", "8"}},
                       settings));
}

TEST(CacheKneeTest, EvictedWqesWaitForTheirOwnFetchesOnly) {
  // A WQE that is read again takes 300 ns of PCIe and 150 ns of memory: 2.2 M/s one after the
  // other, as with a single miss-status register; contexts, which all fit, are no reason to.
  const ProgramRun run = evicting_reads({});
  const Counts wqes = counts_of(run, "host0.nic.wqe_cache");
  EXPECT_GT(wqes.misses, 9 * wqes.hits);
  EXPECT_GT(run.number("/message_rate_mops"), 4 * 2.2);
  const ProgramRun serial = evicting_reads({{"nic.wqe_cache.misses", "1"}});
  EXPECT_LT(serial.number("/message_rate_mops"), 2.3);
}

TEST(CacheKneeTest, AnAnswerThatWaitsForItsWqeTakesAnotherTurn) {
  // Look-ups of contexts start every 100 cycles of 2 ns: one for a request, one for its answer, 400
  // ns a READ; the responder needs as many. An answer whose WQE fell out is looked at once more:
  // 600 ns.
  const ProgramRun kept =
      evicting_reads({{"nic.qpc_lookup.interval", "100"}, {"nic.wqe_cache.entries", "unlimited"}});
  EXPECT_NEAR(kept.number("/message_rate_mops"), 1e3 / 400, 0.03 * 1e3 / 400);
  const ProgramRun again =
      evicting_reads({{"nic.qpc_lookup.interval", "100"}, {"nic.context_misses", "16"}});
  const Counts wqes = counts_of(again, "host0.nic.wqe_cache");
  const double share =
      static_cast<double>(wqes.misses) / static_cast<double>(wqes.hits + wqes.misses);
  EXPECT_GT(share, 0.8);
  const double expected = 1e3 / (400 + 200 * share);
  EXPECT_NEAR(again.number("/message_rate_mops"), expected, 0.03 * expected);
}

}  // namespace
}  // namespace rnic::testbench
