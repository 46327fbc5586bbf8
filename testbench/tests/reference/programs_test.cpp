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
  /// Only the lock has more than one.
  std::string clients(const std::string& count) const {
    return program() == "spin_lock" ? count : "1";
  }
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
    const ProgramRun run =
        run_well(settings({{"workload.msg_size", size}, {"workload.qps", clients("3")}}));
    ASSERT_EQ(run.status, 0);
    EXPECT_EQ(run.number("/completions/success"), 220);
    EXPECT_GT(run.number("/message_rate_mops"), 0);
    // Each operation crosses the wire twice at least: cable 10 ns each way.
    EXPECT_GT(run.number("/latency_ns/min"), 20);
  }
}

TEST_P(ExamplePrograms, LossCostsTimeOnly) {
  const Settings lossy = {{"workload.msg_size", "5000"},
                          {"workload.qps", clients("2")},
                          {"link.loss_rate", "1e-2"},
                          {"transport.ack_timeout", "8"}};
  const ProgramRun run = run_well(settings(lossy));
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.number("/completions/success"), 220);
  // 220 operations of at least four packets: none is lost with a probability below 2e-4.
  EXPECT_GE(run.counter("retransmitted_packets"), 1U);
}

TEST_P(ExamplePrograms, ASleepingProcessIsWokenByItsCompletions) {
  const Settings small = settings({{"workload.msg_size", "64"}});
  const ProgramRun poll = run_well(small);
  const ProgramRun event = run_well(with(small, {{"workload.completion", "event"}}));
  ASSERT_EQ(event.status, 0);
  EXPECT_EQ(event.number("/completions/success"), 220);
  EXPECT_GE(event.number("/counters/host0/completion_events"), 220);
  EXPECT_EQ(poll.number("/counters/host0/completion_events"), 0);
  // Each operation of the client has one waking at least: 1 us of the handler, 4.5 us of the
  // thread. (Those of the ring buffer overlap: what its messages wait for is the server's pace.)
  if (program() == "ring_buffer") return;
  EXPECT_GT(event.number("/latency_ns/mean"), poll.number("/latency_ns/mean") + 5000);
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

TEST(ExampleProgramsUse, RefusesWhatItWouldIgnore) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"workload.pattern", "bandwidth"},
                                                        {"fabric.hosts", "4"},
                                                        {"workload.qps", "16"},
                                                        {"workload.mrs", "4"},
                                                        {"workload.remote_memory", "peer"}}) {
    const ProgramRun run = run_program({{"workload.program", "kv_store"}, {key, value}});
    EXPECT_EQ(run.status, 2) << key;
    EXPECT_NE(run.error.find(key), std::string::npos) << run.error;
  }
  const ProgramRun lossy = run_program(
      {{"workload.program", "ping_pong"}, {"transport.type", "ud"}, {"link.loss_rate", "0.01"}});
  EXPECT_EQ(lossy.status, 2);
  EXPECT_NE(lossy.error.find("transport.type=rc"), std::string::npos) << lossy.error;
}

/// What happens to a host in the middle of a program, and what the program says of it.
struct Death {
  const char* name;
  Settings how;
  std::vector<const char*> statuses;  ///< of the completion that ends it: one of these
};

const std::vector<Death>& deaths() {
  static const std::vector<Death> all = {
      {"the server's port ignores what comes",
       {{"fabric.silent_host", "1"}, {"fabric.silent_from", "1ms"}},
       {"retry_exceeded_error"}},
      {"the client's port ignores what comes",
       {{"fabric.silent_host", "0"}, {"fabric.silent_from", "1ms"}},
       {"retry_exceeded_error"}},
      {"unplugged",
       {{"link.down_at", "1ms"}, {"link.down_time", "100s"}},
       {"retry_exceeded_error"}},
      // Its own processes see their queue pairs flushed; or the other host hears nothing first.
      {"the server's device fails",
       {{"fabric.fatal_host", "1"}, {"fabric.fatal_at", "1ms"}},
       {"wr_flush_error", "retry_exceeded_error"}},
      {"the client's device fails",
       {{"fabric.fatal_host", "0"}, {"fabric.fatal_at", "1ms"}},
       {"wr_flush_error", "retry_exceeded_error"}}};
  return all;
}

class DeadPeer : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

/// As an application would: the program ends with the completion that tells it, and the run with a
/// report; nothing is stuck, whatever a process waits for.
TEST_P(DeadPeer, EndsTheProgramWithItsCompletionError) {
  const auto& [program, protocol] = GetParam();
  for (const Death& death : deaths()) {
    for (const char* wait : {"poll", "event"}) {
      SCOPED_TRACE(std::string(death.name) + " " + wait);
      const ProgramRun run = run_program(with({{"workload.program", program},
                                               {"transport.protocol", protocol},
                                               {"workload.completion", wait},
                                               {"transport.ack_timeout", "8"},
                                               {"transport.retry_count", "2"},
                                               {"workload.iterations", "20000"}},
                                              death.how));
      ASSERT_EQ(run.status, 0) << run.error;
      double errors = 0;
      std::vector<const char*> statuses = death.statuses;
      // A process that only waits for RECVs when its TCP connection is given up sees them flushed.
      if (protocol == "iwarp") statuses.push_back("wr_flush_error");
      for (const char* status : statuses) {
        const auto& told = run.result.at("completions");
        if (told.contains(status)) errors += told.at(status).get<double>();
      }
      EXPECT_GE(errors, 1) << run.result.at("completions");
      EXPECT_LT(run.number("/completions/success"), 20000);
      ASSERT_TRUE(run.result.contains("ended_early"));
      const auto why = run.result.at("ended_early").get<std::string>();
      EXPECT_NE(why.find("a work request completed with "), std::string::npos) << why;
      EXPECT_NE(why.find("_error, after "), std::string::npos) << why;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, DeadPeer,
                         ::testing::Combine(::testing::ValuesIn(kPrograms),
                                            ::testing::ValuesIn(all_protocols())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

/// Whenever the device fails, set-up included, the run ends and says what was the matter: a program
/// as above, a plain workload by its completions, or by one line when there are no queues yet.
TEST(ExampleProgramsUse, ADeviceMayFailAtAnyTime) {
  const std::vector<Settings> what = {
      {{"workload.program", "kv_store"}},
      {{"workload.program", "ping_pong"}, {"workload.srq", "true"}},
      {{"workload.op", "write"}, {"workload.pattern", "bandwidth"}},
      {{"workload.op", "send"}, {"workload.srq", "true"}, {"workload.pattern", "bandwidth"}}};
  for (const Settings& workload : what) {
    for (const char* host : {"0", "1"}) {
      for (const char* at : {"1us", "15us", "25us", "35us", "60us", "90us", "120us", "150us"}) {
        SCOPED_TRACE(text_of(workload) + " host " + host + " at " + at);
        const ProgramRun run =
            run_program(with(workload, {{"fabric.fatal_host", host}, {"fabric.fatal_at", at}}));
        if (run.status == 0) {
          // The event's interrupt may come after the completion that has ended the program.
          EXPECT_TRUE(run.counter("event_device_fatal") > 0 || run.result.contains("ended_early"));
          continue;
        }
        EXPECT_EQ(run.status, 2) << run.error;
        EXPECT_NE(run.error.find("fabric.fatal_at"), std::string::npos) << run.error;
      }
    }
  }
}

TEST(ExampleProgramsUse, AProgramThatRunsToItsEndDoesNotSayOtherwise) {
  EXPECT_FALSE(run_well({{"workload.program", "ping_pong"}}).result.contains("ended_early"));
}

/// The device cannot read its completion queue's context any more: nothing completes, and who
/// sleeps would sleep for ever.
TEST(ExampleProgramsUse, ALostCompletionQueueEndsTheProgram) {
  for (const char* wait : {"poll", "event"}) {
    const ProgramRun run = run_program({{"workload.program", "ping_pong"},
                                        {"workload.completion", wait},
                                        {"pcie.fault.purpose", "cqc"},
                                        {"pcie.fault.poisoned", "9"},
                                        {"nic.cqc_cache.entries", "1"},
                                        {"nic.cqc_cache.ways", "1"}});
    ASSERT_EQ(run.status, 0) << run.error;
    EXPECT_TRUE(run.result.contains("ended_early")) << wait;
    EXPECT_EQ(run.counter("event_cq_err"), 1U) << wait;
  }
}

TEST(ExampleProgramsUse, TheReportNamesWhatIsSaturatedOrThatNothingIs) {
  const ProgramRun locks = run_well({{"workload.program", "spin_lock"}, {"workload.qps", "16"}});
  EXPECT_EQ(locks.result["bottleneck"]["unit"], "host1.nic.atomic.bucket");
  const ProgramRun idle = run_well({{"workload.program", "kv_store"}});
  EXPECT_EQ(idle.result["bottleneck"]["unit"], "workload");
  EXPECT_LT(idle.number("/bottleneck/utilization"), 0.9);
}

}  // namespace
}  // namespace rnic::testbench
