// SPDX-License-Identifier: Apache-2.0
// Lossless means lossless through a switch, too: the automatic buffer never drops; one that was
// asked for and is too small does, and the report says why.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings incast(const std::string& hosts, const std::string& delay) {
  return {{"transport.protocol", "rocev2"}, {"fabric.topology", "single_switch"},
          {"fabric.hosts", hosts},          {"link.delay", delay},
          {"workload.traffic", "incast"},   {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},   {"workload.depth", "64"},
          {"workload.iterations", "100"},   {"sim.warmup", "20"},
          {"sim.payload", "none"}};
}

struct Point {
  const char* name;
  Settings more;
};

class LosslessSwitch : public ::testing::TestWithParam<Point> {};

// Ten senders of 8 MiB in flight each to one port, over cables that hold 1.25 MB each way: more
// than 16 MiB come before the senders hear of a pause.
TEST_P(LosslessSwitch, TheAutomaticBufferDropsNothing) {
  const ProgramRun run = run_well(with(incast("12", "100us"), GetParam().more));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_EQ(run.link_sum("dropped"), 0);
  EXPECT_EQ(run.counter("retransmitted_packets"), 0U);
  EXPECT_GT(run.link_sum("paused_ns"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Wires, LosslessSwitch,
    ::testing::Values(
        Point{"pfc", {}}, Point{"rocev1", {{"transport.protocol", "rocev1"}}},
        Point{"pause", {{"link.flow_control", "pause"}}},
        // With TCP's usual window of 1 MiB nobody fills a buffer that grows with the cable.
        Point{"iwarp",
              {{"transport.protocol", "iwarp"},
               {"link.flow_control", "pause"},
               {"tcp.window", "4MiB"}}},
        Point{"priorities", {{"transport.service_level", "0,3"}, {"workload.qps", "2"}}},
        Point{"fast", {{"link.rate", "400Gbps"}, {"link.delay", "25us"}}},
        Point{"ports", {{"nic.ports", "2"}, {"fabric.hosts", "8"}}},
        Point{"datagrams",
              {{"transport.type", "ud"},
               {"workload.op", "send"},
               {"workload.msg_size", "4096"},
               {"workload.iterations", "3000"},
               {"workload.recv_depth", "4096"}}}),
    [](const auto& test) { return test.param.name; });

TEST(LosslessSwitchThatIsTooSmall, IsNamedWithItsKey) {
  const ProgramRun run = run_well(with(incast("4", "100us"), {{"switch.buffer", "1MiB"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_GT(run.link_sum("dropped"), 0);
  const std::string why = run.result["bottleneck"]["why"];
  EXPECT_NE(why.find("frames were dropped"), std::string::npos) << why;
  EXPECT_NE(why.find("repetitions"), std::string::npos) << why;
  EXPECT_NE(why.find("switch.buffer=1048576"), std::string::npos) << why;
  EXPECT_NE(why.find("pauses need"), std::string::npos) << why;
}

/// Two senders to one port; enough for several round trips of the pauses.
ProgramRun long_cable(const Settings& more) {
  return run_well(with(with(incast("3", "50us"), {{"workload.iterations", "1500"}}), more));
}

// Lossless does not cost throughput: what a port holds at the end of a pause lasts until frames
// come again. One that is given thresholds for short cables runs dry, and the report names them.
TEST(LosslessSwitchOverLongCables, KeepsTheRate) {
  const Settings fast = {{"link.rate", "400Gbps"}, {"link.delay", "5us"}, {"pcie.gen", "5"}};
  EXPECT_GT(long_cable({}).number("/throughput_gbps"), 0.97 * 98);
  EXPECT_GT(long_cable({{"link.delay", "100us"}}).number("/throughput_gbps"), 0.97 * 98);
  EXPECT_GT(long_cable(fast).number("/throughput_gbps"), 0.97 * 392);
}

TEST(LosslessSwitchOverLongCables, SmallThresholdsAreNamed) {
  const ProgramRun small = long_cable({{"switch.pfc_xoff", "128KiB"}, {"switch.pfc_xon", "96KiB"}});
  EXPECT_LT(small.number("/throughput_gbps"), 0.9 * 98);
  EXPECT_EQ(small.result["bottleneck"]["unit"], "switch.pfc_xoff");
  const std::string why = small.result["bottleneck"]["why"];
  EXPECT_NE(why.find("switch.pfc_xon=98304"), std::string::npos) << why;
  // 4 MiB hold headroom, but little below it: 3 x (1.27 MB + 128 KiB).
  const ProgramRun full = long_cable({{"switch.buffer", "4300KB"}});
  EXPECT_LT(full.number("/throughput_gbps"), 0.9 * 98);
  EXPECT_EQ(full.link_sum("dropped"), 0);
  EXPECT_EQ(full.result["bottleneck"]["unit"], "switch.buffer");
}

}  // namespace
}  // namespace rnic::testbench
