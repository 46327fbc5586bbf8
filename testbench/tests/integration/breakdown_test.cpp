// SPDX-License-Identifier: Apache-2.0
// Where the time goes: every operation on every transport has the stages that its path passes, and
// they add up to its latency.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/program.h"

namespace rnic::testbench {
namespace {

using Names = std::vector<std::string>;

/// The arrows of a 4 KiB message's path by hand. Without BlueFlame the WQE is read from the ring,
/// and the scheduler's decision and the context lookup come before the read.
Names stages_of(const std::string& op, bool latency) {
  Names stages = {"post",      "doorbell",           "sq_schedule", "qp_context",
                  "wqe_fetch", "packetize",          "serialize",   "propagate",
                  "rx_parse",  "remote_translation", "poll"};
  const auto add = [&stages](const Names& more) {
    stages.insert(stages.end(), more.begin(), more.end());
  };
  if (op == "read") {
    // Request over, the responder's rights check, its payload read; the data come back, are
    // translated by the sink's lkey and written; then the CQE.
    add({"responder_read", "local_translation", "placement", "completion"});
    return stages;
  }
  add({"local_translation", "payload_fetch"});
  // A SEND's data wait for the RECV. A WRITE with immediate takes one behind its key check; it has
  // been fetched ahead by then and takes no time.
  if (op == "send" || op == "send_imm") add({"rq_fetch"});
  if (latency) {
    add({"placement"});                      // ends when the peer's program sees the data
    if (op != "write") add({"completion"});  // which it learns from a CQE of its own
  } else {
    add({"ack", "completion"});  // ends at the requester
  }
  return stages;
}

class BreakdownTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BreakdownTest, StagesSumToTheLatencyAndNoneIsMissing) {
  for (const std::string& op : operations_of(GetParam())) {
    for (const std::string pattern : {"latency", "bandwidth"}) {
      const Settings settings = {{"transport.protocol", GetParam()}, {"workload.op", op},
                                 {"workload.pattern", pattern},      {"workload.msg_size", "4096"},
                                 {"nic.blueflame", "false"},         {"workload.inline_max", "0"},
                                 {"workload.iterations", "200"},     {"sim.warmup", "20"}};
      SCOPED_TRACE(text_of(settings));
      const ProgramRun run = run_well(settings);
      ASSERT_EQ(run.status, 0);
      double sum = 0;
      for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
      const double mean = run.number("/latency_ns/mean");
      EXPECT_NEAR(sum, mean, mean / 1000);
      // Over iWARP the immediate data are a message of their own (RFC 7306) without payload, and
      // the trace follows the last packet: what the WRITE's payload does shows as segmentation.
      const bool two_messages = GetParam() == "iwarp" && op == "write_imm";
      for (const std::string& stage : stages_of(op, pattern == "latency")) {
        if (two_messages) break;
        EXPECT_GT(run.stage(stage), 0) << stage;
      }
      if (op == "write" || op == "read") {
        EXPECT_EQ(run.stage("rq_fetch"), 0) << "one-sided operations use no RECV";
      }
      EXPECT_EQ(run.stage("switch"), 0) << "hosts are connected back to back";
    }
  }
}

TEST_P(BreakdownTest, OfManySizesAndDepths) {
  // 2 B (inline), one MTU and a bit, many packets; alone in its queue, and in a queue.
  for (const std::string size : {"2", "5000", "65537"}) {
    for (const std::string depth : {"1", "16"}) {
      for (const std::string op : {"write", "read", "send"}) {
        const Settings settings = {{"transport.protocol", GetParam()},
                                   {"workload.op", op},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.depth", depth},
                                   {"workload.msg_size", size},
                                   {"workload.iterations", "60"},
                                   {"sim.warmup", "8"}};
        SCOPED_TRACE(text_of(settings));
        const ProgramRun run = run_well(settings);
        ASSERT_EQ(run.status, 0);
        double sum = 0;
        for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
        EXPECT_NEAR(sum, run.number("/latency_ns/mean"), run.number("/latency_ns/mean") / 1000);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, BreakdownTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
