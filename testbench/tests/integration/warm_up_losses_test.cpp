// SPDX-License-Identifier: Apache-2.0
// What is lost before the measured window costs time in it, too, or shows that a setting is wrong:
// the report tells of it as of what is lost later.
#include <gtest/gtest.h>

#include "report/drops.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

const Settings kStream = {{"transport.protocol", "rocev2"},
                          {"workload.pattern", "bandwidth"},
                          {"workload.msg_size", "64KiB"},
                          {"workload.iterations", "40"},
                          {"sim.payload", "none"}};

/// A figure summed over all ports, of the time before the window.
std::uint64_t before(const ProgramRun& run, const char* name) {
  std::uint64_t sum = 0;
  for (const auto& link : run.result.at("link")) {
    if (link.contains("before_window")) sum += link["before_window"].value(name, std::uint64_t{0});
  }
  return sum;
}

std::string why(const ProgramRun& run) { return run.result["bottleneck"]["why"]; }

std::string port_reasons(const ProgramRun& run) {
  std::string all;
  for (const auto& link : run.result.at("link")) all += link.value("dropped_because", "");
  return all;
}

struct Point {
  const char* name;
  Settings more;
  const char* reason;  ///< part of it
};

class DropsInTheWarmUp : public ::testing::TestWithParam<Point> {};

// What fills too small a buffer is the first window of messages, and the warm-up is longer.
TEST_P(DropsInTheWarmUp, AreToldWithTheirReason) {
  const ProgramRun run = run_well(with(kStream, GetParam().more));
  ASSERT_EQ(run.status, 0);
  ASSERT_GT(before(run, "dropped"), 0U);
  EXPECT_NE(port_reasons(run).find(GetParam().reason), std::string::npos) << port_reasons(run);
  EXPECT_NE(why(run).find("before the measured window"), std::string::npos) << why(run);
  EXPECT_NE(why(run).find(GetParam().reason), std::string::npos) << why(run);
}

const Settings kIncast = {{"fabric.topology", "single_switch"},
                          {"workload.traffic", "incast"},
                          {"fabric.hosts", "4"},
                          {"workload.depth", "128"},
                          {"link.delay", "10us"},
                          {"switch.buffer", "256KiB"},
                          {"sim.warmup", "300"}};

/// Writes of 256 B wait 400 ns each for their order, at several a time: half of the wire's rate.
const Settings kSlowReceiver = {{"pcie.relaxed_ordering", "false"},
                                {"pcie.ordering_time", "400ns"},
                                {"link.delay", "5us"},
                                {"workload.depth", "128"},
                                {"sim.warmup", "100"}};

INSTANTIATE_TEST_SUITE_P(
    Reasons, DropsInTheWarmUp,
    ::testing::Values(Point{"switch_buffer", kIncast, "switch.buffer=262144; pauses need"},
                      Point{"switch_buffer_of_rocev1",
                            with(kIncast, {{"transport.protocol", "rocev1"}}),
                            "switch.buffer=262144; pauses need"},
                      Point{"switch_buffer_with_pause",
                            with(kIncast, {{"link.flow_control", "pause"}}),
                            "switch.buffer=262144; pauses need"},
                      Point{"headroom", with(kSlowReceiver, {{"link.pfc_headroom", "8KiB"}}),
                            "link.pfc_headroom"},
                      Point{"no_flow_control", with(kSlowReceiver, {{"link.flow_control", "none"}}),
                            "nothing stops the sender"}),
    [](const auto& test) { return test.param.name; });

class FaultsInTheWarmUp : public ::testing::TestWithParam<Point> {};

// 10 messages of 16 packets each are the warm-up: 54 us from 165 us on.
TEST_P(FaultsInTheWarmUp, AreCounted) {
  const ProgramRun run = run_well(with(with(kStream, {{"sim.warmup", "10"}}), GetParam().more));
  ASSERT_EQ(run.status, 0);
  EXPECT_GT(before(run, GetParam().reason), 0U) << run.result["link"];
  EXPECT_EQ(run.link_sum(GetParam().reason), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FaultsInTheWarmUp,
    ::testing::Values(Point{"lost", {{"link.drop_list", "31"}}, "cable_lost"},
                      Point{"corrupted", {{"link.corrupt_list", "31"}}, "cable_corrupted"},
                      Point{"duplicated", {{"link.duplicate_list", "31"}}, "cable_duplicated"},
                      Point{"reordered", {{"link.reorder_list", "31"}}, "cable_reordered"},
                      Point{"down",
                            {{"link.down_at", "185us"}, {"link.down_time", "2us"}},
                            "cable_lost_while_down"}),
    [](const auto& test) { return test.param.name; });

// Where nothing may be dropped one frame of a million is worth a sentence; elsewhere not.
TEST(DropsOfALosslessLink, AreToldHoweverFew) {
  Result result;
  result.sim.data_packets = 1'000'000;
  result.links.resize(2);
  result.links[1].name = "host1.nic.port";
  result.links[1].dropped_because = "it is full";
  result.links[1].before = {{"dropped", 1}};
  EXPECT_EQ(drop_sentence(result), "");
  result.links[1].lossless = true;
  EXPECT_EQ(
      drop_sentence(result),
      " 1 frame was dropped (all before the measured window): at host1.nic.port, it is full.");
}

// Both causes of repetitions stand side by side.
TEST(DropsBesideLossesOfCables, AreBothTold) {
  Result result;
  result.sim.data_packets = 100;
  result.links.resize(2);
  result.links[0].more = {{"cable_lost", 5}, {"cable_corrupted", 2}};
  result.links[0].before = {{"cable_lost_while_down", 1}};
  result.links[1].name = "host1.nic.port";
  result.links[1].dropped = 3;
  result.links[1].dropped_because = "it is full";
  EXPECT_EQ(
      drop_sentence(result),
      " 3 frames were dropped: at host1.nic.port, it is full. Cables lost or damaged 8 frames "
      "besides (faults of link.*).");
}

TEST(ARunWithoutLosses, TellsOfNothingBefore) {
  const ProgramRun run = run_well(with(kStream, {{"sim.warmup", "10"}}));
  for (const auto& link : run.result.at("link")) EXPECT_FALSE(link.contains("before_window"));
}

}  // namespace
}  // namespace rnic::testbench
