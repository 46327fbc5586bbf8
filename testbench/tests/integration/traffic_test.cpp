// SPDX-License-Identifier: Apache-2.0
// Who talks to whom, and how many threads do the talking.
#include "simulation/traffic.h"

#include <gtest/gtest.h>

#include <set>

#include "config/loader.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

config::Config config_with(const Settings& settings) { return config::load_from(settings).config; }

std::vector<HostPair> matrix(const std::string& traffic, int hosts) {
  return traffic_matrix(config_with({{"fabric.topology", "single_switch"},
                                     {"fabric.hosts", std::to_string(hosts)},
                                     {"workload.traffic", traffic}}));
}

TEST(Traffic, MatricesAreWhatTheirNamesSay) {
  EXPECT_EQ(matrix("pair", 4), (std::vector<HostPair>{{0, 1}, {2, 3}}));
  EXPECT_EQ(matrix("incast", 4), (std::vector<HostPair>{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_EQ(matrix("ring", 3), (std::vector<HostPair>{{0, 1}, {1, 2}, {2, 0}}));
  const auto all = matrix("all_to_all", 4);
  EXPECT_EQ(std::set<HostPair>(all.begin(), all.end()).size(), 12U);
  for (const auto& [from, to] : all) EXPECT_NE(from, to);
}

TEST(Traffic, APermutationSendsAndReceivesOnceEverywhere) {
  for (int hosts = 2; hosts <= 16; ++hosts) {
    const auto pairs = matrix("permutation", hosts);
    std::set<std::uint32_t> from;
    std::set<std::uint32_t> to;
    for (const auto& [a, b] : pairs) {
      EXPECT_NE(a, b);
      from.insert(a);
      to.insert(b);
    }
    EXPECT_EQ(from.size(), static_cast<std::size_t>(hosts));
    EXPECT_EQ(to.size(), static_cast<std::size_t>(hosts));
  }
}

TEST(Traffic, QueuePairsAreDealtOutToThreads) {
  const auto shares = thread_configs(
      config_with({{"workload.threads", "4"}, {"workload.qps", "10"}, {"workload.idle_qps", "5"}}));
  ASSERT_EQ(shares.size(), 4U);
  EXPECT_EQ(shares[0].workload.qps, 3U);
  EXPECT_EQ(shares[1].workload.qps, 3U);
  EXPECT_EQ(shares[2].workload.qps, 2U);
  EXPECT_EQ(shares[3].workload.qps, 2U);
  EXPECT_EQ(shares[0].workload.idle_qps, 5U);
  EXPECT_EQ(shares[3].workload.idle_qps, 0U);
}

// One thread posts at 1 / (post + doorbell) whatever the number of its queue pairs; threads have a
// core each, so the rate grows with them until the NIC or the wire is the limit.
TEST(Traffic, ThreadsPostSideBySide) {
  const Settings base = {{"workload.pattern", "bandwidth"}, {"workload.qps", "8"}};
  const ProgramRun one = run_well(with(base, {{"workload.threads", "1"}}));
  const ProgramRun two = run_well(with(base, {{"workload.threads", "2"}}));
  const ProgramRun four = run_well(with(base, {{"workload.threads", "4"}}));
  const double rate = one.number("/message_rate_mops");
  EXPECT_EQ(one.result["bottleneck"]["unit"], "host0.cpu");
  EXPECT_NEAR(two.number("/message_rate_mops") / rate, 2, 0.1);
  EXPECT_NEAR(four.number("/message_rate_mops") / rate, 4, 0.2);
  EXPECT_EQ(four.result["host"][0]["cores"], 4);
  EXPECT_EQ(four.result["flows"].size(), 1U);
}

// Three senders share the receiver's one line, equally; all payload passes switch.port0.
TEST(Traffic, IncastSharesTheReceiversLine) {
  const ProgramRun run = run_well({{"fabric.topology", "single_switch"},
                                   {"fabric.hosts", "4"},
                                   {"transport.protocol", "rocev2"},
                                   {"workload.traffic", "incast"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.msg_size", "64KiB"},
                                   {"workload.iterations", "300"}});
  const double line = 100.0 * 4096 / (4096 + 82);  // RoCEv2 headers, gap and preamble
  EXPECT_NEAR(run.number("/throughput_gbps"), line, 0.02 * line);
  ASSERT_EQ(run.result["flows"].size(), 3U);
  for (const auto& flow : run.result["flows"]) {
    EXPECT_EQ(flow["dst"], 0);
    EXPECT_NEAR(flow["throughput_gbps"].get<double>(), line / 3, 0.03 * line / 3);
  }
  EXPECT_EQ(run.result["bottleneck"]["unit"], "switch.port0");
}

// A thread with a window of 2 over 8 queue pairs has 2 READs in flight: 2 / round trip, whatever
// the depth and however many queue pairs share it.
TEST(Traffic, AWindowIsSharedByTheQueuePairsOfAThread) {
  const Settings read = {{"workload.op", "read"}, {"workload.pattern", "bandwidth"}};
  const ProgramRun one = run_well(with(read, {{"workload.depth", "2"}}));
  const ProgramRun eight =
      run_well(with(read, {{"workload.qps", "8"}, {"workload.outstanding", "2"}}));
  EXPECT_NEAR(eight.number("/message_rate_mops"), one.number("/message_rate_mops"),
              0.02 * one.number("/message_rate_mops"));
}

TEST(Traffic, AWindowThatCouldNeverCompleteIsRefused) {
  const ProgramRun run = run_program({{"workload.pattern", "bandwidth"},
                                      {"workload.qps", "8"},
                                      {"workload.signal_every", "4"},
                                      {"workload.outstanding", "16"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("workload.outstanding"), std::string::npos) << run.error;
}

TEST(Traffic, MoreThreadsThanQueuePairsAreRefused) {
  const ProgramRun run = run_program({{"workload.threads", "3"}, {"workload.qps", "2"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("workload.threads"), std::string::npos) << run.error;
}

}  // namespace
}  // namespace rnic::testbench
