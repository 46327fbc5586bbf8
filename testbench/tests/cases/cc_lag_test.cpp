// SPDX-License-Identifier: Apache-2.0
// Public case CC-11: link aggregation. Each connection is hashed to one of two ports.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Two ports of 200 Gb/s as one of 400, `qps` queue pairs with a thread each, that can fill one:
/// what counts is the time in which all of them run. The share of both ports' payload rate, 98.04 %
/// of the line.
double share(const std::string& protocol, const std::string& qps, const char* messages, int seed) {
  const ProgramRun run = run_well({{"transport.protocol", protocol},
                                   {"link.rate", "400Gbps"},
                                   {"link.paths", "2"},
                                   {"link.path_choice", "hashed"},
                                   {"link.flow_control", "none"},
                                   {"pcie.gen", "5"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.qps", qps},
                                   {"workload.threads", qps},
                                   {"workload.msg_size", "64KiB"},
                                   {"workload.depth", "16"},
                                   {"workload.iterations", messages},
                                   {"sim.warmup", "100"},
                                   {"sim.payload", "none"},
                                   {"sim.seed", std::to_string(seed)}});
  return run.number("/throughput_gbps") / (0.9804 * 400);
}

std::vector<double> shares(const std::string& protocol, const std::string& qps,
                           const char* messages, int seeds) {
  std::vector<double> found;
  for (int seed = 1; seed <= seeds; ++seed) found.push_back(share(protocol, qps, messages, seed));
  return found;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_half(double share) { return share > 0.47 && share < 0.51; }

// One queue pair has one port, whichever it is.
TEST(CaseCC, CC11_OneQueuePairHasOnePort) {
  for (const char* protocol : {"rocev2", "rocev1"}) {
    for (const double found : shares(protocol, "1", "600", 4)) EXPECT_TRUE(is_half(found)) << found;
  }
}

// Two meet on one port in half of all cases: 75 % on average. 40 of them deviate by 0.25 / sqrt(40)
// = 4 % from it.
TEST(CaseCC, CC11_TwoQueuePairsMeetOrDoNot) {
  const std::vector<double> found = shares("rocev2", "2", "600", 40);
  for (const double one : found) EXPECT_TRUE(is_half(one) || one > 0.94) << one;
  EXPECT_NEAR(mean(found), 0.75, 0.12);
}

// Eight are all on one port in 2 of 256 cases; else both ports are busy, whatever their shares.
// (Two that have a port for themselves are done in a third of the time that the other six take.)
TEST(CaseCC, CC11_EightQueuePairsFillBoth) {
  const std::vector<double> found = shares("rocev2", "8", "3000", 11);
  for (const double one : found) EXPECT_TRUE(is_half(one) || one > 0.95) << one;
  EXPECT_GT(mean(found), 0.95);
}

}  // namespace
}  // namespace rnic::testbench
