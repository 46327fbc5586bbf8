// SPDX-License-Identifier: Apache-2.0
// Frames that get lost or damaged cost time, never data. The program compares all payload bytes
// with what was sent and fails when one differs.
#include <gtest/gtest.h>

#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

class LossTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  Settings base() const {
    return {{"transport.protocol", std::get<0>(GetParam())},
            {"workload.op", std::get<1>(GetParam())},
            {"workload.pattern", "bandwidth"},
            {"workload.msg_size", "65536"},
            {"workload.signal_every", "1"},
            {"workload.mr_size", "6553600"},  // 100 messages, each with bytes of its own
            {"sim.warmup", "0"}};
  }
  std::uint64_t retransmitted(const ProgramRun& run) const {
    return run.counter(std::get<0>(GetParam()) == "iwarp" ? "tcp_retransmitted_segments"
                                                          : "retransmitted_packets");
  }
};

TEST_P(LossTest, AnyOneDataPacketMayBeLost) {
  // 64 KiB are 16 packets of 4096 B, and over iWARP (MTU 9000) 8 segments: a loss in the first
  // message, in a later one, and in between.
  for (int n = 1; n <= 20; ++n) {
    const Settings settings = with(base(), {{"workload.iterations", "3"},
                                            {"workload.mr_size", "196608"},
                                            {"workload.depth", "1"},
                                            {"link.drop_list", std::to_string(n)}});
    SCOPED_TRACE(text_of(settings));
    const ProgramRun run = run_well(settings);
    ASSERT_EQ(run.status, 0);
    EXPECT_EQ(run.number("/completions/success"), 3);
    EXPECT_GE(retransmitted(run), 1U);
    // Back to back, whatever is sent and not lost arrives.
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    for (const auto& link : run.result["link"]) {
      sent += link["packets"].get<std::uint64_t>();
      received += link["received_frames"].get<std::uint64_t>();
    }
    EXPECT_EQ(sent - received, 1U);
  }
}

TEST_P(LossTest, RandomLoss) {
  // 100 messages of at least 8 packets at a rate of 0.01: 8 losses are expected; none at all has a
  // probability of 0.99^800 = 3e-4.
  const Settings settings =
      with(base(),
           {{"workload.iterations", "100"}, {"workload.depth", "8"}, {"link.loss_rate", "1e-2"}});
  const ProgramRun run = run_well(settings);
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.number("/completions/success"), 100);
  EXPECT_GE(retransmitted(run), 1U);
  EXPECT_EQ(run.counter("rx_bad_checksum"), 0U);
}

TEST_P(LossTest, RandomDamage) {
  const Settings settings = with(
      base(),
      {{"workload.iterations", "100"}, {"workload.depth", "8"}, {"link.corrupt_rate", "1e-2"}});
  const ProgramRun run = run_well(settings);
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.number("/completions/success"), 100);
  EXPECT_GE(run.counter("rx_bad_checksum"), 1U);
}

INSTANTIATE_TEST_SUITE_P(Transports, LossTest,
                         ::testing::Combine(::testing::ValuesIn(all_protocols()),
                                            ::testing::Values("write", "read", "send")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace rnic::testbench
