// SPDX-License-Identifier: Apache-2.0
// Ping-pong over UC and UD: a message that is late or comes twice is never taken for the one that
// is waited for, and each message is accounted for.
#include <gtest/gtest.h>

#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

constexpr double kTurns = 400;

double messages(const ProgramRun& run, const std::string& which) {
  return run.number(("/messages/" + which).c_str());
}

/// type, op, protocol, bytes
using Point = std::tuple<std::string, std::string, std::string, std::string>;

class TurnNumber : public ::testing::TestWithParam<Point> {
 protected:
  std::string op() const { return std::get<1>(GetParam()); }
  /// Whether the program sees all that arrives: a WRITE only where it looks, a message of several
  /// packets only when each of them comes, once and in its turn.
  bool sees_all() const { return op() != "write" && std::get<3>(GetParam()) != "4097"; }
  Settings settings() const {
    return {{"transport.type", std::get<0>(GetParam())},
            {"workload.op", op()},
            {"transport.protocol", std::get<2>(GetParam())},
            {"workload.msg_size", std::get<3>(GetParam())},
            {"workload.pattern", "latency"},
            {"workload.iterations", std::to_string(static_cast<int>(kTurns))},
            {"sim.warmup", "0"}};
  }
  /// Half the way there and back without faults. The first turn finds cold caches, all others are
  /// alike.
  double undisturbed() const { return run_well(settings()).number("/latency_ns/p50"); }

  /// A turn behind one that was given up begins without the RECV that is posted behind an answer
  /// (two posts of at most 60 ns, halved) and its poll: 6 % at most. Below that no answer of this
  /// turn can be there.
  static void expect_no_faster(const ProgramRun& run, double whole) {
    EXPECT_GT(run.number("/latency_ns/min"), 0.94 * whole);
    double sum = 0;
    for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
    EXPECT_NEAR(sum, run.number("/latency_ns/mean"), run.number("/latency_ns/mean") / 1000);
  }
  static void expect_balance(const ProgramRun& run) {
    EXPECT_EQ(messages(run, "sent"), messages(run, "delivered") + messages(run, "lost"));
    EXPECT_GE(messages(run, "sent"), kTurns);
  }
};

// The limit is half of the time that an answer takes: no turn ends well, though nothing is lost.
TEST_P(TurnNumber, AnAnswerBehindTheLimitIsLate) {
  const double whole = undisturbed();
  const std::string limit = std::to_string(static_cast<int>(whole)) + "ns";
  const ProgramRun run = run_well(with(settings(), {{"workload.answer_timeout", limit}}));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_EQ(run.number("/latency_ns/max"), 0);
  EXPECT_EQ(run.number("/throughput_gbps"), 0);
  expect_balance(run);
  if (!sees_all()) return;
  EXPECT_EQ(messages(run, "sent"), 2 * kTurns);
  EXPECT_EQ(messages(run, "lost"), 0);
  EXPECT_EQ(messages(run, "late"), kTurns);
}

// Each fifth frame comes twice.
TEST_P(TurnNumber, ADuplicateAnswersNothing) {
  const double whole = undisturbed();
  const ProgramRun run = run_well(with(settings(), {{"link.duplicate_rate", "0.2"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  expect_no_faster(run, whole);
  EXPECT_NEAR(run.number("/latency_ns/p50"), whole, 0.001 * whole);
  expect_balance(run);
  EXPECT_EQ(messages(run, "late"), 0);
  if (!sees_all()) return;
  EXPECT_EQ(messages(run, "sent"), 2 * kTurns);
  EXPECT_EQ(messages(run, "lost"), 0);
  // Copies of the last answer may come behind the end.
  EXPECT_NEAR(messages(run, "duplicates"), run.link_sum("cable_duplicated"), 1);
  EXPECT_GT(messages(run, "duplicates"), 100);
}

// Each fifth frame is lost, some with a limit that just suffices.
TEST_P(TurnNumber, WhatIsLostIsCounted) {
  const double whole = undisturbed();
  for (const double factor : {2.6, 10.0, 1.9}) {
    const std::string limit = std::to_string(static_cast<int>(factor * whole)) + "ns";
    const ProgramRun run =
        run_well(with(settings(), {{"link.loss_rate", "0.2"}, {"workload.answer_timeout", limit}}));
    ASSERT_EQ(run.status, 0) << run.error;
    if (run.number("/latency_ns/max") > 0) expect_no_faster(run, whole);
    expect_balance(run);
    if (!sees_all()) continue;
    EXPECT_EQ(messages(run, "lost"), run.link_sum("cable_lost")) << limit;
    EXPECT_GT(messages(run, "lost"), 50) << limit;
  }
}

// Each tenth frame is held for ten round trips, and the limit is two and a half: it comes when its
// turn is long over.
TEST_P(TurnNumber, WhatIsOvertakenIsLate) {
  const double whole = undisturbed();
  const auto ns = [whole](double factor) {
    return std::to_string(static_cast<int>(factor * whole)) + "ns";
  };
  const ProgramRun run = run_well(with(settings(), {{"link.reorder_rate", "0.1"},
                                                    {"link.reorder_delay", ns(20)},
                                                    {"workload.answer_timeout", ns(5)}}));
  ASSERT_EQ(run.status, 0) << run.error;
  expect_no_faster(run, whole);
  EXPECT_LT(run.number("/latency_ns/p99"), 2.5 * whole);
  expect_balance(run);
  if (!sees_all()) return;
  EXPECT_EQ(messages(run, "lost"), 0);
  // A question that is held is late, and its answer as well unless the server has answered a later
  // one by then: as many as frames were held, within two.
  EXPECT_NEAR(messages(run, "late"), run.link_sum("cable_reordered"), 2);
  EXPECT_GT(messages(run, "late"), 30);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, TurnNumber,
    ::testing::Values(Point{"uc", "write", "rocev2", "64"}, Point{"uc", "write", "ib", "9000"},
                      Point{"uc", "send", "rocev2", "64"}, Point{"uc", "send", "ib", "1"},
                      Point{"uc", "send", "rocev1", "4097"},
                      Point{"uc", "write_imm", "rocev2", "2"}, Point{"uc", "send_imm", "ib", "0"},
                      Point{"ud", "send", "rocev2", "64"}, Point{"ud", "send", "ib", "3"},
                      Point{"ud", "send_imm", "rocev1", "0"}),
    [](const auto& test) {
      return std::get<0>(test.param) + "_" + std::get<1>(test.param) + "_" +
             std::get<2>(test.param) + "_" + std::get<3>(test.param);
    });

// Several queue pairs, a shared receive queue, events, gathered messages: each finds the number.
TEST(TurnNumbers, WhereverTheNumberLies) {
  const Settings base = {{"transport.type", "ud"},
                         {"workload.op", "send"},
                         {"workload.pattern", "latency"},
                         {"workload.iterations", "300"},
                         {"link.duplicate_rate", "0.2"},
                         {"link.loss_rate", "0.1"},
                         {"workload.answer_timeout", "100us"},
                         {"sim.warmup", "0"}};
  const double least =
      0.94 * run_well(with(base, {{"link.duplicate_rate", "0"}, {"link.loss_rate", "0"}}))
                 .number("/latency_ns/p50");
  const std::vector<Settings> variants = {
      {{"workload.qps", "3"}},
      {{"workload.qps", "3"}, {"workload.srq", "true"}},
      {{"workload.completion", "event"}},
      {{"workload.sges", "3"}, {"workload.inline_max", "0"}},
      {{"workload.alignment", "1"}, {"workload.offset", "3"}, {"workload.msg_size", "77"}},
      {{"workload.mrs", "5"}, {"workload.access", "random"}},
      {{"workload.poll_interval", "5us"}}};
  for (const Settings& more : variants) {
    const ProgramRun whole =
        run_well(with(with(base, more), {{"link.duplicate_rate", "0"}, {"link.loss_rate", "0"}}));
    const ProgramRun run = run_well(with(base, more));
    SCOPED_TRACE(text_of(more));
    ASSERT_EQ(run.status, 0) << run.error;
    EXPECT_GT(run.number("/latency_ns/min"), least);
    EXPECT_EQ(messages(run, "lost"), run.link_sum("cable_lost"));
    EXPECT_NEAR(messages(run, "duplicates"), run.link_sum("cable_duplicated"), 1);
    EXPECT_EQ(messages(run, "late"), 0);
  }
}

// No room for a number, where it is needed.
TEST(TurnNumbers, WithoutRoomForThemDisturbancesAreRefused) {
  const Settings ud = {{"transport.type", "ud"}, {"workload.op", "send"}};
  for (const Settings& room : {Settings{{"sim.payload", "none"}}, {{"workload.msg_size", "0"}}}) {
    EXPECT_EQ(run_program(with(ud, room)).status, 0) << text_of(room);
    for (const Settings& fault : {Settings{{"link.duplicate_rate", "0.1"}},
                                  {{"link.loss_rate", "0.1"}},
                                  {{"link.reorder_list", "3"}},
                                  {{"workload.answer_timeout", "2us"}}}) {
      const ProgramRun run = run_program(with(with(ud, room), fault));
      EXPECT_EQ(run.status, 2) << text_of(room) << text_of(fault);
      EXPECT_NE(run.error.find(room.front().first), std::string::npos) << run.error;
      EXPECT_NE(run.error.find("send_imm"), std::string::npos) << run.error;
    }
  }
}

// One that dies in the middle: what was sent until then is accounted for, on both sides.
TEST(TurnNumbers, APeerThatDiesLeavesAnAccount) {
  for (const char* host : {"0", "1"}) {
    const ProgramRun run = run_well({{"transport.type", "uc"},
                                     {"workload.op", "send"},
                                     {"workload.pattern", "latency"},
                                     {"fabric.fatal_host", host},
                                     {"fabric.fatal_at", "700us"},
                                     {"sim.warmup", "0"}});
    ASSERT_EQ(run.status, 0) << run.error;
    EXPECT_GT(messages(run, "delivered"), 10) << host;
    EXPECT_LE(messages(run, "lost"), 2) << host;
    EXPECT_EQ(messages(run, "sent"), messages(run, "delivered") + messages(run, "lost")) << host;
  }
}

}  // namespace
}  // namespace rnic::testbench
