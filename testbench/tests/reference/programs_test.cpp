// SPDX-License-Identifier: Apache-2.0
// The example programs: each compares every byte that it receives and fails the run when one
// differs.
#include <gtest/gtest.h>

#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

const std::vector<std::string> kPrograms = {"ping_pong", "kv_store", "ring_buffer", "rendezvous",
                                            "spin_lock"};

class ExamplePrograms : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::string program() const { return std::get<0>(GetParam()); }
  Settings settings(const Settings& more) const {
    return with({{"workload.program", program()},
                 {"transport.protocol", std::get<1>(GetParam())},
                 {"workload.iterations", "200"},
                 {"sim.warmup", "20"}},
                more);
  }
};

TEST_P(ExamplePrograms, EveryByteIsChecked) {
  for (const std::string size : {"1", "64", "5000"}) {
    const ProgramRun run = run_well(settings({{"workload.msg_size", size}, {"workload.qps", "3"}}));
    ASSERT_EQ(run.status, 0);
    EXPECT_EQ(run.number("/completions/success"), 220);
    EXPECT_GT(run.number("/message_rate_mops"), 0);
    // Each operation crosses the wire twice at least: cable 10 ns each way.
    EXPECT_GT(run.number("/latency_ns/min"), 20);
  }
}

TEST_P(ExamplePrograms, LossCostsTimeOnly) {
  const Settings lossy = {{"workload.msg_size", "5000"},
                          {"workload.qps", "2"},
                          {"link.loss_rate", "1e-2"},
                          {"transport.ack_timeout", "8"}};
  const ProgramRun run = run_well(settings(lossy));
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.number("/completions/success"), 220);
  // 220 operations of at least four packets: none is lost with a probability below 2e-4.
  EXPECT_GE(run.counter("retransmitted_packets"), 1U);
}

INSTANTIATE_TEST_SUITE_P(Transports, ExamplePrograms,
                         ::testing::Combine(::testing::ValuesIn(kPrograms),
                                            ::testing::ValuesIn(all_protocols())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

/// Ping-pong runs over every service, with and without a shared receive queue.
class PingPongOver : public ::testing::TestWithParam<std::tuple<std::string, std::string, bool>> {};

TEST_P(PingPongOver, EveryByteIsChecked) {
  const auto& [protocol, type, shared] = GetParam();
  for (const std::string size : {"1", "64", type == "ud" ? "1024" : "5000"}) {
    const ProgramRun run = run_well({{"workload.program", "ping_pong"},
                                     {"transport.protocol", protocol},
                                     {"transport.type", type},
                                     {"transport.mtu", protocol == "iwarp" ? "1500" : "1024"},
                                     {"workload.srq", shared ? "true" : "false"},
                                     {"workload.msg_size", size},
                                     {"workload.iterations", "200"},
                                     {"sim.warmup", "20"}});
    ASSERT_EQ(run.status, 0);
    EXPECT_EQ(run.number("/completions/success"), 220);
    if (protocol != "iwarp") {
      EXPECT_EQ(run.counter("acks_sent") > 0, type == "rc");
    }
  }
}

std::vector<std::tuple<std::string, std::string, bool>> services() {
  std::vector<std::tuple<std::string, std::string, bool>> all;
  for (const std::string& protocol : all_protocols()) {
    for (const std::string type : {"rc", "uc", "ud"}) {
      if (protocol == "iwarp" && type != "rc") continue;
      for (const bool shared : {false, true}) all.emplace_back(protocol, type, shared);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Services, PingPongOver, ::testing::ValuesIn(services()),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param) +
                                  (std::get<2>(test.param) ? "_srq" : "");
                         });

TEST(ExampleProgramsUse, GetsLeaveTheServersCpuAlone) {
  // PUTs alone wake the server: about half of the operations arrive there as SENDs.
  const ProgramRun run = run_well(
      {{"workload.program", "kv_store"}, {"workload.iterations", "400"}, {"sim.warmup", "0"}});
  ASSERT_EQ(run.status, 0);
  const auto& server = run.result["counters"]["host1"];
  const auto puts = server["rx_send_requests"].get<std::uint64_t>();
  const auto gets = server["rx_read_requests"].get<std::uint64_t>();
  EXPECT_EQ(puts + gets, 400U);
  EXPECT_GT(puts, 150U);  // 200 +- 5 standard deviations
  EXPECT_LT(puts, 250U);
}

TEST(ExampleProgramsUse, RefusesWhatCannotRun) {
  const ProgramRun none =
      run_program({{"workload.program", "kv_store"}, {"workload.msg_size", "0"}});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.error.find("workload.msg_size"), std::string::npos) << none.error;
  const ProgramRun ud = run_program({{"workload.program", "kv_store"}, {"transport.type", "ud"}});
  EXPECT_EQ(ud.status, 2);
  EXPECT_NE(ud.error.find("transport.type"), std::string::npos) << ud.error;
}

}  // namespace
}  // namespace rnic::testbench
