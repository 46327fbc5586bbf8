// SPDX-License-Identifier: Apache-2.0
// Congestion cases of several senders into one port: bursts at once or one after the other, and a
// small message beside bulk data, as the program's keys give them.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Eight hosts send 4 MiB each to a ninth, which a line of 98 Gb/s of payload takes 342 us for; a
/// switch with little buffer, and nothing that keeps it from losing.
Settings bursts(const std::string& protocol, const std::string& gap) {
  return {{"transport.protocol", protocol},
          {"fabric.topology", "single_switch"},
          {"fabric.hosts", "9"},
          {"workload.traffic", "incast"},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},
          {"workload.iterations", "64"},
          {"workload.depth", "64"},
          {"sim.warmup", "0"},
          {"link.flow_control", "none"},
          {"switch.buffer", "256KiB"},
          {"transport.ack_timeout", "12"},
          {"workload.start_gap", gap},
          {"sim.payload", "none"}};
}

double lost(const ProgramRun& run) { return run.link_sum("dropped"); }

TEST(CaseCC, CC17_StaggeredBurstsFillTheLine) {
  for (const char* protocol : {"rocev1", "rocev2"}) {
    const ProgramRun run = run_well(bursts(protocol, "350us"));
    EXPECT_GT(run.number("/throughput_gbps"), 90) << protocol;
    EXPECT_EQ(lost(run), 0) << protocol;
    EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U) << protocol;
    EXPECT_EQ(run.counter("out_of_sequence"), 0U) << protocol;
  }
}

TEST(CaseCC, CC17_SynchronisedBurstsCollapse) {
  for (const char* protocol : {"rocev1", "rocev2"}) {
    const ProgramRun run = run_well(bursts(protocol, "0"));
    EXPECT_LT(run.number("/throughput_gbps"), 10) << protocol;
    EXPECT_GT(lost(run), 0) << protocol;
    EXPECT_GT(run.counter("local_ack_timeout_err"), 0U) << protocol;
    EXPECT_EQ(run.number("/completions/success"), 32) << protocol;  // late, but all
    EXPECT_EQ(run.result.at("bottleneck").at("unit"), "transport.recovery") << protocol;
  }
}

// What the maintainer of the case says is missing: with flow control the same bursts lose nothing.
TEST(CaseCC, CC17_SynchronisedBurstsWithPfc) {
  Settings settings = bursts("rocev2", "0");
  settings.emplace_back("link.flow_control", "pfc");
  settings.emplace_back("switch.buffer", "16MiB");
  const ProgramRun run = run_well(settings);
  EXPECT_GT(run.number("/throughput_gbps"), 90);
  EXPECT_EQ(lost(run), 0);
}

// A flow begins workload.start_gap behind the one before: of bursts that do not meet, the last one
// ends (flows - 1) gaps and one burst behind the first one's start.
TEST(CaseCC, CC17_TheGapIsBetweenFlows) {
  for (const double gap_us : {400.0, 1000.0}) {
    const ProgramRun run =
        run_well(bursts("rocev2", std::to_string(static_cast<int>(gap_us)) + "us"));
    const double burst = 64.0 * 65536 * 8 / 98.02;  // ns at 98.02 Gb/s, and the way there
    EXPECT_NEAR(run.number("/window_ns"), 7 * gap_us * 1e3 + burst, 5e3) << gap_us;
  }
}

/// Four flows of 1 MiB WRITEs that fill the way to host 0, and a WRITE of 64 B each 10 us from
/// host 1.
Settings probe_beside(const std::string& protocol, const std::string& bulk) {
  return {{"transport.protocol", protocol},
          {"transport.vlan", protocol == "ib" ? "false" : "true"},
          {"link.data_vls", "2"},
          {"fabric.topology", "single_switch"},
          {"fabric.hosts", "5"},
          {"workload.traffic", "incast"},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", bulk},
          {"workload.iterations", "60"},
          {"workload.depth", "4"},
          {"workload.probe_size", "64"},
          {"sim.payload", "none"}};
}

class ProbeBesideBulk : public ::testing::TestWithParam<std::string> {
 protected:
  /// The probe alone, but for messages of 64 B one at a time.
  double idle() const {
    return run_well(with(probe_beside(GetParam(), "64"),
                         {{"workload.depth", "1"}, {"workload.iterations", "2000"}}))
        .number("/probe/latency_ns/p99");
  }
};

// In the class of the bulk it waits in every queue on the way: ten times as long and more.
TEST_P(ProbeBesideBulk, CC16_SameClass) {
  const ProgramRun run = run_well(probe_beside(GetParam(), "1MiB"));
  EXPECT_GE(run.number("/probe/latency_ns/p99"), 10 * idle());
  EXPECT_GT(run.number("/throughput_gbps"), 95);
}

// In a class of its own that goes first: at each of two hops behind the frame that is being sent,
// 336 ns, and the one that the port has committed itself to.
TEST_P(ProbeBesideBulk, CC16_ClassOfItsOwn) {
  const Settings strict = GetParam() == "ib"
                              ? Settings{{"link.vl_arb_high", "1:255"}, {"link.vl_arb_low", "0:64"}}
                              : Settings{{"link.ets", "0:10,1:strict"}};
  const ProgramRun run = run_well(with(
      with(probe_beside(GetParam(), "1MiB"), {{"workload.probe_service_level", "1"}}), strict));
  EXPECT_LE(run.number("/probe/latency_ns/p99"), idle() + 2 * 2 * 336);
  EXPECT_GT(run.number("/throughput_gbps"), 95);
  EXPECT_GE(run.number("/probe/measured"), 1000);
}

INSTANTIATE_TEST_SUITE_P(CaseCC, ProbeBesideBulk, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
