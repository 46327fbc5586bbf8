// SPDX-License-Identifier: Apache-2.0
// More queue pairs and more flows: never less in all, and fair shares.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

class ScalingTest : public ::testing::TestWithParam<std::string> {};

ProgramRun many(const std::string& protocol, const std::string& op, int qps) {
  // The window opens when every queue pair has had its whole depth twice.
  const int depth = 16;
  return run_well({{"transport.protocol", protocol},
                   {"workload.op", op},
                   {"workload.pattern", "bandwidth"},
                   {"workload.msg_size", "64"},
                   {"workload.qps", std::to_string(qps)},
                   {"workload.depth", std::to_string(depth)},
                   {"workload.signal_every", "4"},
                   {"workload.iterations", "12000"},
                   {"sim.warmup", std::to_string(2 * depth * qps)}});
}

double rate(const std::string& protocol, const std::string& op, int qps) {
  const ProgramRun run = many(protocol, op, qps);
  return run.status == 0 ? run.number("/message_rate_mops") : 0;
}

TEST_P(ScalingTest, ManyQueuePairsAreNotSlowerThanOne) {
  for (const std::string op : {"write", "read", "send"}) {
    const double one = rate(GetParam(), op, 1);
    EXPECT_GT(one, 0) << op;
    EXPECT_GE(rate(GetParam(), op, 4), 0.99 * one) << op;
    EXPECT_GE(rate(GetParam(), op, 64), 0.99 * one) << op;
  }
}

TEST_P(ScalingTest, ACoreLimitsAllItsQueuePairs) {
  // A WRITE of 64 B that is not inline costs the core the WQE and one pushed block, and every
  // fourth one a CQE, whatever the number of QPs. Of the 12000 that complete in the window, up to
  // 64 x 16 were posted before it.
  const ProgramRun run = many(GetParam(), "write", 64);
  ASSERT_EQ(run.status, 0);
  const auto cost = [&run](const char* key) { return run.result["config"][key].get<double>(); };
  const double each =
      cost("cpu.post_cost") + cost("cpu.blueflame_cost_per_64b") + cost("cpu.cqe_cost") / 4;
  const double posted = 12000 - 64 * 16;
  EXPECT_LE(run.number("/message_rate_mops") * posted / 12000, 1e3 / each);
}

TEST_P(ScalingTest, FlowsThroughASwitchShareFairly) {
  // Four pairs of hosts; each pair has cables of its own, so each gets the whole rate.
  const ProgramRun run = run_well({{"transport.protocol", GetParam()},
                                   {"fabric.hosts", "8"},
                                   {"fabric.topology", "single_switch"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.msg_size", "16384"},
                                   {"workload.iterations", "400"},
                                   {"workload.depth", "16"}});
  ASSERT_EQ(run.status, 0);
  ASSERT_EQ(run.result["flows"].size(), 4U);
  double sum = 0;
  double squares = 0;
  for (const auto& flow : run.result["flows"]) {
    const double x = flow["throughput_gbps"].get<double>();
    sum += x;
    squares += x * x;
  }
  // Jain's index: 1 when all are equal.
  EXPECT_GT(sum * sum / (4 * squares), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Transports, ScalingTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
