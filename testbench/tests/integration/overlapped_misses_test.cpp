// SPDX-License-Identifier: Apache-2.0
// nic.translation_order=free: what the packets of a queue pair behind a miss will need is looked up
// meanwhile, as many misses at a time as there are miss-status registers.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Messages to pages in random order, none of which a cache of 64 lines is likely to hold.
Settings scattered(const char* op, const char* order, const char* misses) {
  return {{"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "1KiB"},
          {"workload.iterations", "8000"},
          {"workload.depth", "64"},
          {"workload.post_batch", "8"},
          {"workload.access", "random"},
          {"workload.mr_size", "64MiB"},
          {"nic.mtt_cache.entries", "64"},
          {"nic.translation_order", order},
          {"nic.context_misses", misses},
          {"sim.payload", "none"}};
}

double rate(const Settings& settings) { return run_well(settings).number("/message_rate_mops"); }

TEST(OverlappedMisses, OfOneQueuePairWithFreeOrderOnly) {
  const double one = rate(scattered("write", "free", "1"));
  // In order, a miss of the queue pair waits for the one before: as with one register.
  EXPECT_NEAR(rate(scattered("write", "qp", "16")), one, 0.01 * one);
  EXPECT_NEAR(rate(scattered("write", "strict", "16")), one, 0.01 * one);
  // Two at a time are not quite twice as fast: a packet's own time comes between its misses.
  const double two = rate(scattered("write", "free", "2"));
  EXPECT_GT(two, 1.7 * one);
  EXPECT_LE(two, 2.05 * one);
  double before = two;
  for (const char* misses : {"4", "8", "16", "64"}) {
    const double more = rate(scattered("write", "free", misses));
    EXPECT_GE(more, 0.999 * before) << misses;
    before = more;
  }
  EXPECT_GT(before, 4 * one);
}

TEST(OverlappedMisses, OfOneTransferOfManyPages) {
  // 64 KiB of READ data into 16 pages, a translation each line: without overlap a fetch for each.
  const auto latency = [](const char* order, const char* misses) {
    return run_well(with(scattered("read", order, misses), {{"workload.pattern", "latency"},
                                                            {"workload.msg_size", "64KiB"},
                                                            {"workload.iterations", "200"},
                                                            {"workload.post_batch", "1"},
                                                            {"nic.mtt_cache.line", "1"}}))
        .number("/latency_ns/p50");
  };
  const double serial = latency("qp", "16");
  const double overlapped = latency("free", "16");
  // A miss is a DMA read of some 450 ns, against 330 ns of a packet on the wire: of 16 fetches one
  // after the other, and of those ahead of the wire all but the first are hidden.
  EXPECT_GT(serial - overlapped, 10 * 330);
  EXPECT_NEAR(latency("free", "1"), serial, 0.01 * serial);
}

TEST(OverlappedMisses, OfDifferentQueuePairsInAnyOrder) {
  for (const char* order : {"qp", "free"}) {
    SCOPED_TRACE(order);
    const Settings many{{"workload.qps", "16"}, {"workload.threads", "4"}};
    double before = 0;
    for (const char* misses : {"1", "2", "4", "16"}) {
      const double more = rate(with(scattered("write", order, misses), many));
      EXPECT_GE(more, 0.99 * before) << misses;
      before = more;
    }
    EXPECT_GT(before, 4 * rate(with(scattered("write", order, "1"), many)));
  }
}

/// A look-up that is made early is still that of the request it is made for: of a cache without
/// room for what comes twice, nearly all are misses, as in order.
TEST(OverlappedMisses, CountAsMisses) {
  for (const std::string op : {"write", "read"}) {
    SCOPED_TRACE(op);
    // Where data come to a place that was told before.
    const char* name = op == "write" ? "host1.nic.mtt_cache" : "host0.nic.mtt_cache";
    const auto counts = [&](const char* order) {
      const ProgramRun run = run_well(scattered(op.c_str(), order, "16"));
      for (const auto& cache : run.result["caches"]) {
        if (cache["name"] != name) continue;
        return std::pair(cache["hits"].get<double>(), cache["misses"].get<double>());
      }
      return std::pair(0.0, 0.0);
    };
    const auto [hits, misses] = counts("qp");
    const auto [early_hits, early_misses] = counts("free");
    EXPECT_GT(misses, 7000);
    EXPECT_NEAR(early_misses, misses, 0.02 * misses);
    EXPECT_NEAR(early_hits + early_misses, hits + misses, 0.01 * (hits + misses));
  }
}

TEST(OverlappedMisses, BytesArriveWhateverTheOrder) {
  for (const std::string& protocol : all_protocols()) {
    for (const std::string& op : operations_of(protocol)) {
      SCOPED_TRACE(protocol + " " + op);
      run_well(with(scattered(op.c_str(), "free", "8"), {{"transport.protocol", protocol},
                                                         {"workload.msg_size", "9000B"},
                                                         {"workload.mr_size", "2MiB"},
                                                         {"workload.alignment", "1"},
                                                         {"workload.iterations", "100"},
                                                         {"workload.qps", "3"},
                                                         {"nic.mpt_cache.entries", "8"},
                                                         {"nic.mtt_cache.line", "1"},
                                                         {"sim.payload", "bytes"}}));
    }
  }
}

}  // namespace
}  // namespace rnic::testbench
