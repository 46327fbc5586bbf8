// SPDX-License-Identifier: Apache-2.0
// Moderation of completion events and solicited events in a workload: how many interrupts, and what
// they cost in latency.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// 640 SENDs, far apart: each finds the receiver asleep.
const Settings kSlow = {{"workload.op", "send"},
                        {"workload.pattern", "bandwidth"},
                        {"workload.msg_size", "4KiB"},
                        {"workload.iterations", "640"},
                        {"sim.warmup", "0"},
                        {"workload.depth", "64"},
                        {"workload.signal_every", "1"},
                        {"link.rate", "1Gbps"},  // a message every 34 us
                        {"workload.completion", "event"}};

double receiver_events(const ProgramRun& run) {
  return run.number("/counters/host1/completion_events");
}

TEST(EventModeration, OneEventForMessagesFarApart) {
  const ProgramRun run = run_well(kSlow);
  EXPECT_EQ(receiver_events(run), 640);
  EXPECT_EQ(run.number("/host/1/interrupts"), 640);
}

TEST(EventModeration, ByCount) {
  const ProgramRun run =
      run_well(with(kSlow, {{"workload.cq_count", "16"}, {"workload.cq_period", "10000us"}}));
  // The count restarts when the thread arms anew. It does so while the next message is under way
  // (34 us against some 6 us of waking): 640 / 16.
  EXPECT_EQ(receiver_events(run), 40);
  EXPECT_EQ(run.number("/host/1/interrupts"), 40);
  EXPECT_EQ(run.number("/completions/success"), 640);
}

TEST(EventModeration, ByTime) {
  // Every 34 us a message; 150 us after the first one that waits there have been five: at 0, 34,
  // 68, 102, 136. Then the sixth is the first of the next event.
  const ProgramRun run =
      run_well(with(kSlow, {{"workload.cq_count", "1000"}, {"workload.cq_period", "150us"}}));
  EXPECT_NEAR(receiver_events(run), 640.0 / 5, 2);
}

TEST(EventModeration, APingPongWaitsForThePeriod) {
  const Settings ping_pong = {{"workload.op", "send"},
                              {"workload.iterations", "50"},
                              {"sim.warmup", "5"},
                              {"workload.completion", "event"}};
  const double alone = run_well(ping_pong).number("/latency_ns/mean");
  const double moderated =
      run_well(with(ping_pong, {{"workload.cq_count", "4"}, {"workload.cq_period", "20us"}}))
          .number("/latency_ns/mean");
  // Half a round trip has one receiver, whose only completion waits out the period. It starts when
  // the CQE is written, as the interrupt did before.
  EXPECT_NEAR(moderated - alone, 20000, 50);
}

TEST(SolicitedEvents, OnlyForWhatAsksForOne) {
  const ProgramRun all = run_well(kSlow);
  const ProgramRun run = run_well(
      with(kSlow, {{"workload.solicited_only", "true"}, {"workload.solicited_every", "16"}}));
  EXPECT_EQ(receiver_events(run), 40);  // 640 / 16
  EXPECT_EQ(run.number("/host/1/interrupts"), 40);
  EXPECT_EQ(run.number("/completions/success"), 640);
  // The sender's completions are its own affair.
  EXPECT_EQ(run.number("/counters/host0/completion_events"),
            all.number("/counters/host0/completion_events"));
  EXPECT_LT(run.number("/host/1/cpu_busy"), all.number("/host/1/cpu_busy") / 2);
}

TEST(SolicitedEvents, TheLastMessageAsksForOne) {
  Settings settings =
      with(kSlow, {{"workload.solicited_only", "true"}, {"workload.solicited_every", "32"}});
  settings.emplace_back("workload.iterations", "650");
  settings.erase(settings.begin() + 3);
  // 20 of 32 messages, and the ten that are left.
  EXPECT_EQ(receiver_events(run_well(settings)), 21);
}

TEST(SolicitedEvents, WithoutTheBitEachMessageOfAPingPongWouldWaitForEver) {
  const Settings ping_pong = {{"workload.op", "send"},
                              {"workload.iterations", "50"},
                              {"sim.warmup", "5"},
                              {"workload.completion", "event"}};
  const ProgramRun any = run_well(ping_pong);
  const ProgramRun solicited = run_well(with(ping_pong, {{"workload.solicited_only", "true"}}));
  EXPECT_EQ(solicited.number("/latency_ns/mean"), any.number("/latency_ns/mean"));
}

TEST(EventKeys, WhatWouldNeverBeSeenOrNeverEndIsRefused) {
  const Settings event = {{"workload.op", "send"}, {"workload.completion", "event"}};
  const auto refused = [&](const Settings& more, const char* key) {
    const ProgramRun run = run_program(with(event, more));
    EXPECT_EQ(run.status, 2) << key;
    EXPECT_NE(run.error.find(key), std::string::npos) << run.error;
  };
  refused({{"workload.cq_count", "4"}}, "workload.cq_period");
  refused({{"workload.cq_period", "4us"}}, "workload.cq_count");
  refused({{"workload.cq_count", "4"}, {"workload.cq_period", "1500ns"}}, "workload.cq_period");
  refused(
      {{"workload.cq_count", "4"}, {"workload.cq_period", "4us"}, {"workload.completion", "poll"}},
      "workload.completion");
  refused({{"workload.solicited_only", "true"}, {"workload.completion", "poll"}},
          "workload.completion");
  refused({{"workload.solicited_only", "true"}, {"workload.op", "write"}}, "workload.op");
  refused({{"workload.solicited_only", "true"}, {"workload.solicited_every", "2"}},
          "workload.solicited_every");
  refused({{"workload.solicited_only", "true"},
           {"workload.solicited_every", "17"},
           {"workload.pattern", "bandwidth"},
           {"workload.recv_depth", "16"}},
          "workload.recv_depth");
}

}  // namespace
}  // namespace rnic::testbench
