// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Four pairs at one switch: what is simulated in turns when it may be.
Settings pairs() {
  return {{"fabric.hosts", "8"},          {"fabric.topology", "single_switch"},
          {"workload.traffic", "pair"},   {"workload.pattern", "bandwidth"},
          {"workload.qps", "4"},          {"workload.depth", "4"},
          {"workload.msg_size", "64KiB"}, {"workload.iterations", "400"},
          {"transport.mtu", "4096"},      {"sim.warmup", "16"}};
}

/// Without what tells how it was run.
nlohmann::json figures(const ProgramRun& run) {
  nlohmann::json figures = run.result;
  figures.erase("config");
  for (const char* of_the_machine :
       {"wall_s", "packets_per_s", "peak_rss_bytes", "kernel_events"}) {
    figures["sim"].erase(of_the_machine);
  }
  return figures;
}

class HostGroups : public ::testing::TestWithParam<Settings> {};

// Turns are how the simulator works, not what it simulates: every figure is the same, bit by bit.
TEST_P(HostGroups, ChangeNoFigure) {
  const Settings settings = with(pairs(), GetParam());
  const ProgramRun apart = run_well(settings);
  const ProgramRun together = run_well(with(settings, {{"sim.host_groups", "together"}}));
  ASSERT_FALSE(apart.result.empty());
  // Programs that wake up in delta cycles: turns were taken.
  EXPECT_NE(apart.number("/sim/kernel_events"), together.number("/sim/kernel_events"));
  EXPECT_EQ(figures(apart), figures(together));
}

INSTANTIATE_TEST_SUITE_P(
    Streams, HostGroups,
    ::testing::Values(Settings{{"transport.protocol", "rocev2"}},
                      Settings{{"transport.protocol", "ib"}, {"workload.op", "read"}},
                      Settings{{"transport.protocol", "iwarp"}, {"workload.op", "send"}},
                      Settings{{"transport.protocol", "rocev1"},
                               {"workload.bidirectional", "true"}},
                      Settings{{"workload.op", "write_imm"}, {"workload.completion", "event"}},
                      Settings{{"workload.threads", "2"},
                               {"workload.msg_size", "64"},
                               {"workload.iterations", "20000"}},
                      Settings{{"fabric.hosts", "7"}}));

// What concerns several pairs happens in the order of time.
TEST(HostGroups, TrafficBetweenGroupsIsSimulatedTogether) {
  for (const char* traffic : {"permutation", "incast", "ring"}) {
    const Settings settings = with(pairs(), {{"workload.traffic", traffic}});
    const ProgramRun apart = run_well(settings);
    const ProgramRun together = run_well(with(settings, {{"sim.host_groups", "together"}}));
    EXPECT_EQ(apart.number("/sim/kernel_events"), together.number("/sim/kernel_events")) << traffic;
    EXPECT_EQ(figures(apart), figures(together)) << traffic;
  }
}

}  // namespace
}  // namespace rnic::testbench
