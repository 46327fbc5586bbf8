// SPDX-License-Identifier: Apache-2.0
// One wrong message in a workload: how it and those behind it end, as the program reports it.
#include <gtest/gtest.h>

#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// The tenth of 64 messages that are posted together.
Settings one_in_64(const std::string& protocol, const std::string& op, const std::string& mistake) {
  return {{"transport.protocol", protocol},
          {"workload.op", op},
          {"workload.mistake", mistake},
          {"workload.mistake_at", "10"},
          {"workload.pattern", "bandwidth"},
          {"workload.iterations", "64"},
          {"sim.warmup", "0"},
          {"workload.depth", "64"},
          {"workload.post_batch", "64"},
          {"workload.signal_every", "1"}};
}

struct Expected {
  std::string op;
  std::string mistake;
  std::string status;
  std::string at_receiver;  ///< empty: nothing
};

/// Nine succeed, the tenth fails, the others are flushed (IBTA vol 1, 10.3.1).
class MistakeTest : public ::testing::TestWithParam<Expected> {};

TEST_P(MistakeTest, OfTheTenthOf64) {
  const Expected& expected = GetParam();
  const ProgramRun run = run_well(one_in_64("rocev2", expected.op, expected.mistake));
  ASSERT_EQ(run.status, 0);
  nlohmann::json completions = {{"success", 9}, {expected.status, 1}, {"wr_flush_error", 54}};
  if (!expected.at_receiver.empty()) completions[expected.at_receiver] = 1;
  for (const auto& [name, count] : completions.items()) {
    EXPECT_EQ(run.result["completions"].value(name, 0), count) << name;
  }
  const auto why = run.result["bottleneck"]["why"].get<std::string>();
  EXPECT_NE(why.find(expected.status), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MistakeTest,
    ::testing::Values(
        Expected{"write", "local_key", "local_protection_error", ""},
        Expected{"send", "local_bounds", "local_protection_error", ""},
        Expected{"write_imm", "local_pd", "local_protection_error", ""},
        Expected{"read", "sink_not_writable", "local_protection_error", ""},
        Expected{"atomic_cas", "sink_not_writable", "local_protection_error", ""},
        Expected{"atomic_fadd", "too_long", "local_length_error", ""},
        Expected{"write", "remote_key", "remote_access_error", ""},
        Expected{"read", "remote_bounds", "remote_access_error", ""},
        Expected{"atomic_fadd", "remote_pd", "remote_access_error", ""},
        Expected{"write_imm", "remote_right", "remote_access_error", ""},
        Expected{"atomic_cas", "misaligned", "remote_invalid_request_error", ""},
        Expected{"send", "recv_small", "remote_invalid_request_error", "local_length_error"},
        Expected{"send_imm", "recv_key", "remote_operation_error", "local_protection_error"}),
    [](const auto& test) { return test.param.op + "_" + test.param.mistake; });

TEST(Mistake, WithoutTheRightOfTheQueuePairNoneSucceeds) {
  const ProgramRun run = run_well(one_in_64("ib", "write", "qp_right"));
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.result["completions"]["remote_invalid_request_error"], 1);
  EXPECT_EQ(run.result["completions"]["wr_flush_error"], 63);
}

TEST(Mistake, DatagramsUnderAnotherKeyAreLost) {
  Settings settings = one_in_64("rocev2", "send", "qkey");
  settings.emplace_back("transport.type", "ud");
  const ProgramRun run = run_well(settings);
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.result["completions"]["success"], 64);
  EXPECT_EQ(run.counter("qkey_violations"), 1U);
}

TEST(Mistake, AHandleOfAnotherDomainStopsTheSendQueue) {
  Settings settings = one_in_64("ib", "send", "handle_pd");
  settings.emplace_back("transport.type", "ud");
  const ProgramRun run = run_well(settings);
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.result["completions"]["local_qp_operation_error"], 1);
  EXPECT_EQ(run.result["completions"]["wr_flush_error"], 54);
}

TEST(Mistake, ImmediateDataFromNobodyKnown) {
  Settings settings = one_in_64("rocev2", "write_imm", "no_handle");
  settings.emplace_back("nic.write_imm_needs_handle", "true");
  const ProgramRun run = run_well(settings);
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.result["completions"]["remote_operation_error"], 1);
  settings.emplace_back("workload.mistake", "none");
  EXPECT_EQ(run_well(settings).number("/completions/success"), 64);
}

/// The tenth message of the client in a latency program: nine went well, and it ends there.
TEST_P(MistakeTest, OfTheTenthInALatencyProgram) {
  const Expected& expected = GetParam();
  Settings settings = {{"workload.op", expected.op},
                       {"workload.mistake", expected.mistake},
                       {"workload.mistake_at", "10"},
                       {"workload.iterations", "20"},
                       {"sim.warmup", "0"}};
  const ProgramRun run = run_well(settings);
  ASSERT_EQ(run.status, 0);
  const auto count = [&](const std::string& name) {
    return run.result["completions"].value(name, 0);
  };
  EXPECT_EQ(count(expected.status), 1);
  if (!expected.at_receiver.empty()) {
    EXPECT_EQ(count(expected.at_receiver), 1);
  }
  // What a READ or atomic brings is one completion; a WRITE has one at each player; a message that
  // takes a RECV two at each: who waits for a peer's message that never leaves has polled its own.
  const bool returns = expected.op == "read" || expected.op.rfind("atomic", 0) == 0;
  EXPECT_EQ(count("success"), returns ? 9 : expected.op == "write" ? 18 : 36);
}

TEST(Mistake, APingPongWithoutALimitWhosePeerHearsNothingIsRefusedWithTheReason) {
  const ProgramRun run = run_program({{"workload.op", "send"},
                                      {"transport.type", "ud"},
                                      {"workload.mistake", "qkey"},
                                      {"workload.answer_timeout", "0"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("workload.answer_timeout"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("ping-pong"), std::string::npos) << run.error;
}

struct Unheard {
  std::string type;
  std::string op;
  std::string mistake;
};

Settings tenth_of_20(const Unheard& of) {
  return {{"transport.type", of.type},      {"workload.op", of.op},
          {"workload.mistake", of.mistake}, {"workload.mistake_at", "10"},
          {"workload.iterations", "20"},    {"sim.warmup", "0"}};
}

// The peer drops it and tells nobody: one turn of 20 is lost, and 19 have an answer.
TEST(Mistake, APingPongGoesOnBehindADroppedMessage) {
  for (const Unheard& of : {Unheard{"ud", "send", "qkey"},
                            {"uc", "write", "remote_key"},
                            {"uc", "write", "remote_bounds"},
                            {"uc", "write_imm", "remote_pd"},
                            {"uc", "write", "remote_right"}}) {
    SCOPED_TRACE(of.type + " " + of.op + " " + of.mistake);
    const ProgramRun run = run_well(tenth_of_20(of));
    ASSERT_EQ(run.status, 0) << run.error;
    EXPECT_EQ(run.number("/messages/sent"), 20 + 19);
    EXPECT_EQ(run.number("/messages/lost"), 1);
    EXPECT_EQ(run.number("/messages/late"), 0);
  }
}

// The sender's own mistake is told to it, and the program ends there: nine messages there and back.
TEST(Mistake, APingPongEndsWithAnErrorOfItsSender) {
  for (const Unheard& of : {Unheard{"uc", "send", "local_key"},
                            {"uc", "write", "local_pd"},
                            {"ud", "send", "local_bounds"}}) {
    SCOPED_TRACE(of.type + " " + of.op + " " + of.mistake);
    const ProgramRun run = run_well(tenth_of_20(of));
    ASSERT_EQ(run.status, 0) << run.error;
    EXPECT_EQ(run.number("/completions/local_protection_error"), 1);
    EXPECT_EQ(run.number("/messages/delivered"), 18);
    const auto why = run.result["bottleneck"]["why"].get<std::string>();
    EXPECT_NE(why.find("local_protection_error"), std::string::npos) << why;
  }
}

TEST(Mistake, OneThatIsNeverReachedIsRefused) {
  // 64 messages; of those of four queue pairs the first takes 16.
  for (const auto& [op, mistake, qps, last] :
       {std::tuple{"write", "remote_key", "1", "64"}, {"send", "recv_key", "4", "16"}}) {
    Settings settings = one_in_64("rocev2", op, mistake);
    settings.emplace_back("workload.qps", qps);
    settings.emplace_back("workload.post_batch", "1");
    settings.emplace_back("workload.mistake_at", last);
    const ProgramRun reached = run_well(settings);
    EXPECT_LT(reached.number("/completions/success"), 64) << mistake;
    settings.back().second = std::to_string(std::stoi(last) + 1);
    const ProgramRun run = run_program(settings);
    EXPECT_EQ(run.status, 2) << mistake;
    EXPECT_NE(run.error.find("workload.mistake_at"), std::string::npos) << run.error;
  }
}

/// Every kind that is found where memory is accessed, of messages that access none; those that are
/// found before are seen all the same.
TEST(Mistake, OfMessagesWithoutBytesIsRefusedOrSeen) {
  const std::vector<std::tuple<const char*, const char*, const char*>> kinds = {
      {"rc", "write", "local_key"},    {"rc", "send", "local_bounds"},
      {"rc", "write_imm", "local_pd"}, {"rc", "read", "sink_not_writable"},
      {"ud", "send", "too_long"},      {"rc", "write", "remote_key"},
      {"rc", "write", "lkey_as_rkey"}, {"rc", "read", "remote_bounds"},
      {"rc", "write", "remote_pd"},    {"rc", "write_imm", "remote_right"},
      {"rc", "send", "recv_small"},    {"rc", "send_imm", "recv_key"}};
  const auto of = [](const char* type, const char* op, const char* mistake) {
    return with(one_in_64("rocev2", op, mistake),
                {{"transport.type", type}, {"workload.msg_size", "0"}});
  };
  for (const auto& [type, op, mistake] : kinds) {
    const ProgramRun run = run_program(of(type, op, mistake));
    EXPECT_EQ(run.status, 2) << mistake;
    EXPECT_NE(run.error.find("1 B"), std::string::npos) << run.error;
  }
  EXPECT_EQ(
      run_well(of("rc", "write", "qp_right")).number("/completions/remote_invalid_request_error"),
      1);
  EXPECT_EQ(run_well(of("ud", "send", "handle_pd")).number("/completions/local_qp_operation_error"),
            1);
  EXPECT_EQ(run_well(of("ud", "send", "qkey")).counter("qkey_violations"), 1U);
}

TEST(Mistake, WhatTheOperationCannotMakeIsRefused) {
  for (const auto& [op, mistake] : {std::pair{"write", "recv_small"},
                                    {"send", "remote_key"},
                                    {"write", "misaligned"},
                                    {"write", "qkey"}}) {
    const ProgramRun run = run_program(one_in_64("ib", op, mistake));
    EXPECT_EQ(run.status, 2) << op << " " << mistake;
    EXPECT_NE(run.error.find("workload.mistake"), std::string::npos) << run.error;
  }
}

}  // namespace
}  // namespace rnic::testbench
