// SPDX-License-Identifier: Apache-2.0
// Runs that cannot end well: who says so, with which status, and in how many words.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "support/program.h"
#include "support/temporary_file.h"

namespace rnic::testbench {
namespace {

void expect_failure(const Settings& settings, int status, const std::vector<std::string>& needles) {
  SCOPED_TRACE(text_of(settings));
  const ProgramRun run = run_program(settings);
  EXPECT_EQ(run.status, status) << run.error;
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
  EXPECT_EQ(run.error.compare(0, 9, "rnicsim: "), 0) << run.error;
  for (const std::string& needle : needles) {
    EXPECT_NE(run.error.find(needle), std::string::npos) << needle << " not in: " << run.error;
  }
}

TEST(LimitsTest, TooLittleSimulatedTime) {
  // Connecting takes some hundred microseconds, 1000 ping-pongs of 1 us milliseconds.
  expect_failure({{"sim.max_time", "1ms"}}, 3, {"sim.max_time", "of 1128 messages", "host0"});
  expect_failure({{"sim.max_time", "1us"}}, 3, {"sim.max_time", "0 of 1128 messages"});
}

TEST(LimitsTest, AWireThatLosesEverything) {
  // 8 timeouts of 4.096 us x 2^1: the queue pair gives up, the program sees an error completion and
  // either ends in status 3 or reports it; it never hangs and never claims success.
  const ProgramRun run = run_program({{"link.loss_rate", "1"},
                                      {"workload.pattern", "bandwidth"},
                                      {"workload.iterations", "10"},
                                      {"sim.warmup", "0"},
                                      {"sim.max_time", "1s"},
                                      {"transport.ack_timeout", "1"}});
  if (run.status == 0) {
    EXPECT_EQ(run.result["completions"].value("success", 0), 0);
    EXPECT_EQ(run.result["completions"].value("retry_exceeded_error", 0), 1);
  } else {
    EXPECT_EQ(run.status, 3) << run.error;
  }
}

// Whether the program waits for its own completion, a RECV or a byte that the peer writes.
TEST(LimitsTest, ALatencyProgramOnADeadWireSeesTheError) {
  for (const char* op : {"write", "send", "read", "atomic_fadd"}) {
    const ProgramRun run =
        run_well({{"link.loss_rate", "1"}, {"transport.ack_timeout", "1"}, {"workload.op", op}});
    if (run.status != 0) continue;
    EXPECT_EQ(run.result["completions"].value("success", 0), 0) << op;
    EXPECT_EQ(run.result["completions"].value("retry_exceeded_error", 0), 1) << op;
    EXPECT_EQ(run.counter("local_ack_timeout_err"), 8U) << op;
  }
}

TEST(LimitsTest, ALatencyProgramWhosePeerFallsSilent) {
  for (const char* protocol : {"rocev2", "iwarp"}) {
    for (const char* op : {"write", "send", "atomic_cas"}) {
      for (const char* host : {"0", "1"}) {
        const ProgramRun run = run_well({{"transport.protocol", protocol},
                                         {"workload.op", op},
                                         {"fabric.silent_host", host},
                                         {"fabric.silent_from", "300us"},
                                         {"transport.ack_timeout", "4"},
                                         {"tcp.min_rto", "100us"}});
        if (run.status != 0) continue;
        EXPECT_GE(run.result["completions"].value("retry_exceeded_error", 0), 1) << op << host;
        EXPECT_GT(run.result["completions"].value("success", 0), 0) << op << host;
      }
    }
  }
}

TEST(LimitsTest, APeerThatNeverAnswersIsExplained) {
  // A datagram is lost and nobody is told: without a limit the ping-pong waits for ever.
  expect_failure({{"link.drop_list", "9"},
                  {"transport.type", "ud"},
                  {"workload.op", "send"},
                  {"workload.answer_timeout", "0"}},
                 3, {"host0", "workload.answer_timeout"});
}

TEST(LimitsTest, AppliedLimitsOfMemoryAndDevice) {
  expect_failure({{"memory.memlock_limit", "4096"}}, 2, {"memory.memlock_limit", "ENOMEM"});
  expect_failure({{"memory.memlock_limit", "0"}}, 2, {"memory.memlock_limit", "EPERM"});
  expect_failure({{"workload.inline_max", "300"}}, 2, {"inline_max", "nic.max_inline"});
  expect_failure({{"workload.msg_size", "0"}}, 2, {"workload.msg_size=0", "1 B or more"});
  expect_failure({{"nic.max_rd_atomic", "4"}}, 2, {"max_rd_atomic"});
  expect_failure({{"fabric.hosts", "3"}}, 2, {"fabric.hosts"});
}

TEST(LimitsTest, ADirectoryThatMayNotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const TemporaryFile place("read_only");
  std::filesystem::remove(place.path());
  std::filesystem::create_directory(place.path());
  chmod(place.path().c_str(), 0555);
  const std::string errors = place.path() + ".err";
  const std::string command = program_path() + " run --workload.iterations=10 --output.dir='" +
                              place.path() + "/below' >/dev/null 2>'" + errors + "'";
  const int ended = std::system(command.c_str());
  std::filesystem::remove(errors);
  ASSERT_TRUE(WIFEXITED(ended));
  EXPECT_EQ(WEXITSTATUS(ended), 4);
}

TEST(LimitsTest, OddShapesThatMustWork) {
  // No bytes at all, one message, more queue pairs than messages, a queue of one.
  for (const Settings& settings : std::vector<Settings>{
           {{"workload.msg_size", "0"}, {"workload.pattern", "bandwidth"}},
           {{"workload.msg_size", "0"}, {"workload.op", "read"}},
           {{"workload.msg_size", "0"}, {"workload.op", "send"}, {"workload.pattern", "bandwidth"}},
           {{"workload.iterations", "1"}, {"sim.warmup", "0"}},
           {{"workload.iterations", "1"}, {"sim.warmup", "0"}, {"workload.pattern", "bandwidth"}},
           {{"workload.iterations", "3"},
            {"sim.warmup", "0"},
            {"workload.qps", "8"},
            {"workload.pattern", "bandwidth"}},
           {{"workload.depth", "1"}, {"workload.pattern", "bandwidth"}},
           {{"nic.tx_slots", "1"},
            {"workload.pattern", "bandwidth"},
            {"workload.msg_size", "64KiB"}},
           {{"pcie.read_tags", "1"}, {"workload.pattern", "bandwidth"}},
           {{"nic.qpc_cache.entries", "1"},
            {"nic.qpc_cache.ways", "1"},
            {"nic.mpt_cache.entries", "1"},
            {"nic.mpt_cache.ways", "1"},
            {"nic.mtt_cache.entries", "1"},
            {"nic.mtt_cache.ways", "1"},
            {"nic.context_misses", "1"},
            {"workload.qps", "4"},
            {"workload.bidirectional", "true"},
            {"workload.pattern", "bandwidth"}}}) {
    const ProgramRun run = run_well(with({{"workload.iterations", "100"}}, settings));
    ASSERT_EQ(run.status, 0);
    EXPECT_GT(run.number("/completions/success"), 0) << text_of(settings);
  }
}

}  // namespace
}  // namespace rnic::testbench
