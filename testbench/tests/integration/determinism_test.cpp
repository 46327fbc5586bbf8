// SPDX-License-Identifier: Apache-2.0
// Same configuration and seed, same result; another seed changes only what uses randomness.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// The text of result.json without the three figures that depend on the computer, and without
/// output.dir, which is a new one for each run.
std::string comparable(const ProgramRun& run) {
  std::istringstream lines(run.text);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    bool skip = false;
    for (const char* key : {"\"wall_s\"", "\"packets_per_s\"", "\"peak_rss_bytes\"",
                            "\"output.dir\"", "\"sim.seed\""}) {
      skip = skip || line.find(key) != std::string::npos;
    }
    if (!skip) text += line + "\n";
  }
  return text;
}

std::string result_of(const Settings& settings) { return comparable(run_well(settings)); }

class DeterminismTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeterminismTest, SameSeedSameBytes) {
  const Settings settings = {{"transport.protocol", GetParam()},
                             {"workload.op", "send"},
                             {"workload.pattern", "bandwidth"},
                             {"workload.qps", "4"},
                             {"workload.bidirectional", "true"},
                             {"workload.msg_size", "3000"},
                             {"workload.access", "random"},
                             {"workload.iterations", "300"},
                             {"link.loss_rate", "0.01"},
                             {"link.corrupt_rate", "0.01"},
                             {"nic.mtt_cache.replacement", "random"}};
  const std::string first = result_of(settings);
  EXPECT_GT(first.size(), 1000U);
  EXPECT_EQ(result_of(settings), first);
}

TEST_P(DeterminismTest, AnotherSeedMattersOnlyWhereChanceIsUsed) {
  const Settings base = {{"transport.protocol", GetParam()},
                         {"workload.pattern", "bandwidth"},
                         {"workload.msg_size", "8192"},
                         {"workload.iterations", "300"}};
  const auto with_seed = [&base](const char* seed, const char* loss) {
    return with(base, {{"sim.seed", seed}, {"link.loss_rate", loss}});
  };
  EXPECT_EQ(result_of(with_seed("1", "0")), result_of(with_seed("2", "0")));
  // 300 messages of 2 to 8 packets at 2 %: at least 600 packets, and no loss at all has a chance of
  // 0.98^600 = 5e-6.
  EXPECT_NE(result_of(with_seed("1", "0.02")), result_of(with_seed("2", "0.02")));
}

TEST_P(DeterminismTest, LeavingOutPayloadBytesChangesNoTime) {
  // READs over iWARP with losses: retransmission buffers and both directions are involved.
  const Settings base = {{"transport.protocol", GetParam()}, {"workload.op", "read"},
                         {"workload.pattern", "bandwidth"},  {"workload.msg_size", "5000"},
                         {"workload.iterations", "200"},     {"link.loss_rate", "0.005"}};
  const ProgramRun bytes = run_well(with(base, {{"sim.payload", "bytes"}}));
  const ProgramRun none = run_well(with(base, {{"sim.payload", "none"}}));
  ASSERT_EQ(bytes.status + none.status, 0);
  for (const char* part : {"latency_ns", "breakdown_ns", "counters", "pcie", "link", "units"}) {
    EXPECT_EQ(bytes.result[part], none.result[part]) << part;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, DeterminismTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
