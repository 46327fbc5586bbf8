// SPDX-License-Identifier: Apache-2.0
// Workloads of every shape come to their end with all messages delivered intact (the program
// compares the bytes), whatever the sizes of queues, caches and buffers.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

class WorkloadTest : public ::testing::TestWithParam<std::string> {};

TEST_P(WorkloadTest, BothSidesSendAndReceiveWithShortQueues) {
  // Each side needs 200 RECVs and has room for 3 at a time: it has to receive while it sends.
  for (const std::string& op : operations_of(GetParam())) {
    const ProgramRun run = run_well({{"transport.protocol", GetParam()},
                                     {"workload.op", op},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.bidirectional", "true"},
                                     {"workload.msg_size", "5000"},
                                     {"workload.depth", "3"},
                                     {"workload.signal_every", "1"},
                                     {"workload.qps", "2"},
                                     {"sim.warmup", "0"},
                                     {"workload.iterations", "200"}});
    ASSERT_EQ(run.status, 0);
    EXPECT_EQ(run.number("/completions/success"), 400) << op;
    ASSERT_EQ(run.result["flows"].size(), 2U);
    // Two equal directions over two equal lines.
    const double there = run.number("/flows/0/throughput_gbps");
    EXPECT_NEAR(run.number("/flows/1/throughput_gbps"), there, 0.05 * there) << op;
  }
}

TEST_P(WorkloadTest, PingPongWithAQueueOfOneAndLosses) {
  // The peer's answer may overtake the acknowledgement of what it answers.
  const ProgramRun run = run_well({{"transport.protocol", GetParam()},
                                   {"workload.op", "write"},
                                   {"workload.pattern", "latency"},
                                   {"workload.msg_size", "65536"},
                                   {"workload.depth", "1"},
                                   {"workload.iterations", "100"},
                                   {"transport.ack_timeout", "8"},
                                   {"link.loss_rate", "0.01"}});
  EXPECT_EQ(run.status, 0);
}

/// A configuration drawn by lot; small structures more often than not.
Settings drawn(const std::string& protocol, Rng& rng) {
  const auto pick = [&rng](const std::vector<std::string>& from) {
    return from[rng.below(from.size())];
  };
  Settings s = {{"transport.protocol", protocol}, {"workload.iterations", "50"}};
  const auto draw = [&](const std::string& key, const std::vector<std::string>& from) {
    if (rng.below(2) == 0) s.emplace_back(key, pick(from));
  };
  const bool bandwidth = rng.below(3) != 0;
  const std::string op = pick(operations_of(protocol));
  s.emplace_back("workload.op", op);
  s.emplace_back("workload.pattern", bandwidth ? "bandwidth" : "latency");
  s.emplace_back("workload.msg_size", pick({"1", "64", "1000", "4096", "9000", "65536"}));
  if (bandwidth) draw("workload.bidirectional", {"true"});
  draw("workload.qps", {"2", "7", "20"});
  draw("workload.inline_max", {"0", op == "read" ? "0" : "64"});
  draw("workload.access", {"random", "zipf"});
  draw("workload.mrs", {"4"});
  draw("workload.idle_qps", {"3"});
  if (rng.below(2) == 0) {
    s.emplace_back("workload.depth", pick({"1", "3", "16"}));
    s.emplace_back("workload.signal_every", "1");
  }
  draw("nic.tx_slots", {"1", "4"});
  draw("pcie.read_tags", {"1", "8"});
  for (const char* cache : {"qpc", "mpt", "mtt"}) {
    if (rng.below(2) == 0) {
      s.emplace_back(std::string("nic.") + cache + "_cache.entries", "2");
      s.emplace_back(std::string("nic.") + cache + "_cache.ways", "1");
    }
  }
  draw("nic.context_misses", {"1"});
  draw("nic.blueflame", {"false"});
  draw("pcie.mps", {"128", "512"});
  draw("pcie.mrrs", {"128", "4096"});
  draw("pcie.relaxed_ordering", {"false"});
  draw("iommu.enabled", {"true"});
  draw("memory.page_size", {"2MiB"});
  draw("link.rate", {"10Gbps", "400Gbps"});
  draw("link.delay", {"1us"});
  draw("link.loss_rate", {"0", "0.01"});
  draw("link.corrupt_rate", {"0", "0.005"});
  draw("fabric.topology", {"single_switch"});
  draw("transport.max_rd_atomic", {"1", "4"});
  draw("transport.ack_every", {"1"});
  draw("transport.ack_timeout", {"8"});
  draw("transport.ack_coalesce_time", {"500ns"});
  return s;
}

TEST_P(WorkloadTest, DrawnByLot) {
  Rng rng(1, "configurations of " + GetParam());
  for (int i = 0; i < 25; ++i) {
    const Settings settings = drawn(GetParam(), rng);
    SCOPED_TRACE(text_of(settings));
    const ProgramRun run = run_well(settings);
    ASSERT_EQ(run.status, 0);
    double sum = 0;
    for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
    EXPECT_NEAR(sum, run.number("/latency_ns/mean"), run.number("/latency_ns/mean") / 1000);
    EXPECT_EQ(run.counter("dma_faults"), 0U);
    for (const auto& unit : run.result["units"]) {
      EXPECT_LE(unit["utilization"].get<double>(), 1.0) << unit["name"];
    }
  }
}

TEST_P(WorkloadTest, AMessageMayCompleteBeforeItsLastBytesAreInMemory) {
  // Posted writes have no answer, so a WRITE is acknowledged when they are on their way: however
  // long that is, the bytes come, and are compared only then.
  const Settings base = {{"workload.pattern", "bandwidth"}, {"workload.op", "write"},
                         {"workload.msg_size", "64"},       {"workload.access", "random"},
                         {"workload.mr_size", "1MiB"},      {"workload.iterations", "500"},
                         {"transport.protocol", GetParam()}};
  const std::vector<Settings> slow = {
      {{"iommu.enabled", "true"}, {"iommu.walkers", "1"}},
      {{"iommu.enabled", "true"}, {"iommu.walk_latency", "2us"}},
      {{"pcie.relaxed_time", "1us"}},
      {{"pcie.relaxed_ordering", "false"}, {"pcie.ordering_time", "2us"}},
      {{"memory.write_latency", "1ms"}},
      {{"memory.numa_remote", "true"}, {"memory.numa_bandwidth", "1Gbps"}},
      {{"workload.remote_memory", "peer"}, {"peer.write_latency", "50us"}}};
  for (const Settings& way : slow) {
    SCOPED_TRACE(text_of(way));
    run_well(with(base, way));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, WorkloadTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

// The programs of write_lat spin on the last byte of a buffer, which brings its page in; the device
// still has a fault of its own for each page, once.
TEST(OnDemandLatency, EveryOperationCompletes) {
  for (const char* odp : {"explicit", "implicit"}) {
    for (const char* op : {"write", "write_imm", "send", "read"}) {
      const ProgramRun run = run_well({{"workload.op", op},
                                       {"workload.pattern", "latency"},
                                       {"workload.iterations", "20"},
                                       {"workload.odp", odp},
                                       {"sim.warmup", "0"}});
      ASSERT_EQ(run.status, 0) << odp << ' ' << op << ": " << run.error;
      EXPECT_GE(run.number("/completions/success"), 20) << odp << ' ' << op;
      // The first message waits for pages, the median one for none.
      EXPECT_GT(run.number("/latency_ns/max"), 2 * run.number("/latency_ns/p50")) << odp << op;
    }
  }
}

}  // namespace
}  // namespace rnic::testbench
