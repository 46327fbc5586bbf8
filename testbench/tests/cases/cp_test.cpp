// SPDX-License-Identifier: Apache-2.0
// Public cases, theme CP: completion notification and host CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/program.h"

namespace rnic::testbench {
namespace {

const Settings kPingPong = {{"workload.op", "send"},      {"workload.pattern", "latency"},
                            {"workload.msg_size", "64B"}, {"workload.iterations", "200"},
                            {"workload.depth", "16"},     {"sim.warmup", "10"}};

TEST(CaseCP, CP01_EventAgainstPoll) {
  const ProgramRun poll = run_well(kPingPong);
  const ProgramRun event = run_well(with(kPingPong, {{"workload.completion", "event"}}));
  // Half a round trip has one waking: the handler (1 us) and the thread (4.5 us), counted from the
  // interrupt, which follows the CQE behind an event queue entry by a few ns of PCIe. Arming and
  // the system call pass while the message is under way. A spinning thread loses what this one does
  // not: half a look until it looks, and the look.
  constexpr double kWaking = 1000 + 4500;
  constexpr double kSpinning = 1.5 * 25;
  const double more = event.number("/latency_ns/mean") - poll.number("/latency_ns/mean");
  EXPECT_GT(more, kWaking - kSpinning);
  EXPECT_LT(more, kWaking - kSpinning + 20);
  EXPECT_GT(event.result["host"][0]["interrupts"].get<int>(), 200);
  EXPECT_EQ(poll.result["host"][0]["interrupts"].get<int>(), 0);
  EXPECT_LT(event.number("/host/0/cpu_busy"), 0.3);
  EXPECT_GT(poll.number("/host/0/cpu_busy"), 0.9);
}

TEST(CaseCP, CP01_LittleDifferenceInABusyQueue) {
  const Settings busy = {{"workload.op", "send"},       {"workload.pattern", "bandwidth"},
                         {"workload.msg_size", "4KiB"}, {"workload.iterations", "4000"},
                         {"workload.depth", "128"},     {"sim.warmup", "400"}};
  const ProgramRun poll = run_well(busy);
  const ProgramRun event = run_well(with(busy, {{"workload.completion", "event"}}));
  EXPECT_GT(event.number("/throughput_gbps") / poll.number("/throughput_gbps"), 0.85);
}

TEST(CaseCP, CP03_LatencyInStepsOfThePollInterval) {
  const Settings read = {{"workload.op", "read"},
                         {"workload.pattern", "latency"},
                         {"workload.msg_size", "64B"},
                         {"workload.iterations", "20"},
                         {"sim.warmup", "2"}};
  const ProgramRun spin = run_well(read);
  const double spinning = spin.number("/latency_ns/mean");
  for (const double interval : {100e3, 1000e3}) {
    const ProgramRun run = run_well(with(
        read, {{"workload.poll_interval", std::to_string(static_cast<int>(interval)) + "ns"}}));
    // The first look is too early, the second one comes an interval later.
    const double expected = std::ceil(spinning / interval) * interval;
    EXPECT_NEAR(run.number("/latency_ns/mean") / expected, 1.0, 0.01);
    // All before the look is as it was.
    EXPECT_NEAR(run.number("/latency_ns/mean") - run.stage("poll"), spinning - spin.stage("poll"),
                1);
  }
}

/// Half a second of retries at five million looks a second and end: what nobody writes to is not
/// looked at by events.
TEST(CaseCP, CP03_LooksInVainCostTheSimulationNothing) {
  const ProgramRun run = run_well({{"workload.op", "write"},
                                   {"workload.poll_interval", "100ns"},
                                   {"fabric.silent_host", "1"},
                                   {"fabric.silent_from", "100us"}});
  EXPECT_EQ(run.number("/completions/retry_exceeded_error"), 1);
  EXPECT_GT(run.number("/sim/simulated_ns"), 500e6);
  EXPECT_LT(run.number("/sim/kernel_events"), 1000);
}

/// Messages a second of threads that post small WRITEs, each on a queue pair of its own.
double rate_of_threads(const std::string& threads, const Settings& more) {
  return run_well(with({{"workload.op", "write"},
                        {"workload.pattern", "bandwidth"},
                        {"workload.msg_size", "8"},
                        {"workload.depth", "16"},
                        {"workload.iterations", "3000"},
                        {"workload.threads", threads},
                        {"workload.qps", threads}},
                       more))
      .number("/message_rate_mops");
}

TEST(CaseCP, CP05_ThreadsOfOneDoorbellRegister) {
  // 40 ns of posting and 101 of the register: 7 M/s for one thread. On a shared register each
  // message waits for a lock that 60 ns take from core to core, for each core that is at it.
  const Settings shared = {{"cpu.doorbell_registers", "1"}};
  const double one = rate_of_threads("1", shared);
  EXPECT_LT(one, 1e3 / 141);
  // Two: one holds it for 101 ns while the other posts and comes back, then 60 ns pass.
  const double two = rate_of_threads("2", shared);
  EXPECT_NEAR(two, 1e3 / 161, 0.02 * 1e3 / 161);
  double before = two;
  for (const char* threads : {"3", "4", "8", "16"}) {
    const double rate = rate_of_threads(threads, shared);
    EXPECT_LE(rate, before) << threads;
    before = rate;
  }
  EXPECT_LT(before, 0.6 * one);
  // Registers of their own: as many times the rate as threads, until the device is the limit.
  EXPECT_NEAR(rate_of_threads("1", {}), one, 0.02 * one);
  EXPECT_NEAR(rate_of_threads("2", {}), 2 * one, 0.1 * one);
  EXPECT_NEAR(rate_of_threads("4", {}), 4 * one, 0.4 * one);
  EXPECT_NEAR(rate_of_threads("8", {}), 8 * one, 0.8 * one);
}

/// Sixteen threads with registers of their own reach what the device takes, and it is named.
TEST(CaseCP, CP05_RegistersOfTheirOwnUpToTheLimitOfTheDevice) {
  const Settings capped = {{"nic.message_rate", "60"}};
  EXPECT_NEAR(rate_of_threads("4", capped), 4 * rate_of_threads("1", {}), 0.1 * 4 * 7);
  EXPECT_NEAR(rate_of_threads("16", capped), 60, 1);
}

TEST(CaseCP, CP05_StoresLeaveUnderTheLock) {
  // Of the same 101 ns, 70 pass while the stores leave: nobody else may store meanwhile, so it is
  // as slow as if the core had been busy for all of it.
  const Settings waits = {{"cpu.doorbell_cost", "25ns"},
                          {"cpu.doorbell_stall", "70ns"},
                          {"cpu.doorbell_registers", "1"}};
  const double one = rate_of_threads("1", waits);
  EXPECT_NEAR(one, rate_of_threads("1", {}), 0.01 * one);
  EXPECT_NEAR(rate_of_threads("2", waits), 1e3 / 161, 0.02 * 1e3 / 161);
  // A lock that is not taken costs nothing.
  EXPECT_NEAR(rate_of_threads("2", with(waits, {{"cpu.doorbell_lock", "false"}})), 2 * one,
              0.1 * one);
}

TEST(CaseCP, CP06_APollerThatLosesItsCore) {
  const Settings read = {{"workload.op", "read"},
                         {"workload.pattern", "latency"},
                         {"workload.msg_size", "64B"},
                         {"workload.iterations", "100"},
                         {"sim.warmup", "2"}};
  const ProgramRun pinned = run_well(read);
  const ProgramRun preempted = run_well(with(read, {{"cpu.preempt_probability", "0.3"}}));
  // Two modes a millisecond apart, and the same outcome.
  EXPECT_NEAR(preempted.number("/latency_ns/min"), pinned.number("/latency_ns/min"), 50);
  EXPECT_NEAR(preempted.number("/latency_ns/max") - pinned.number("/latency_ns/max"), 1e6, 1e4);
  const double slow = (preempted.number("/latency_ns/mean") - pinned.number("/latency_ns/mean")) /
                      1e6;  // share of the second mode
  EXPECT_GT(slow, 0.15);
  EXPECT_LT(slow, 0.45);
  EXPECT_EQ(preempted.result["completions"], pinned.result["completions"]);
  EXPECT_LT(pinned.number("/latency_ns/max"), 1e5);
}

TEST(CaseCP, CP08_SleepingCoresAndIdleGaps) {
  const Settings states = {{"cpu.sleep1_after", "20us"},  {"cpu.sleep1_exit", "2us"},
                           {"cpu.sleep2_after", "200us"}, {"cpu.sleep2_exit", "100us"},
                           {"workload.iterations", "20"}, {"sim.warmup", "2"}};
  const auto latency = [&](const std::string& gap, const Settings& more) {
    return run_well(with(with(with(kPingPong, states), more), {{"workload.gap", gap}}))
        .number("/latency_ns/mean");
  };
  const Settings event = {{"workload.completion", "event"}};
  const double short_gap = latency("10us", event);
  const double c1 = latency("100us", event);
  const double c2 = latency("1ms", event);
  const double longest = latency("10ms", event);
  // Half a round trip has half of all exits from sleep in it. The receiver slept lightly; or
  // deeply, and then the sender, who waits longer than 20 us for it, has fallen into the light
  // sleep.
  EXPECT_NEAR(c1 - short_gap, 2000.0 / 2, 50);
  EXPECT_NEAR(c2 - short_gap, (100'000.0 + 2000.0) / 2, 500);
  EXPECT_NEAR(longest, c2, 100);
  // Who polls is always awake.
  EXPECT_NEAR(latency("10ms", {}), latency("10us", {}), 20);
}

TEST(CaseCP, CP08_MixedGapsHaveTwoModesAndTheDeviceSeesNeither) {
  const Settings states = {{"cpu.sleep1_after", "20us"},     {"cpu.sleep1_exit", "2us"},
                           {"cpu.sleep2_after", "200us"},    {"cpu.sleep2_exit", "100us"},
                           {"workload.iterations", "40"},    {"sim.warmup", "2"},
                           {"workload.completion", "event"}, {"workload.gap", "10us"}};
  const ProgramRun even = run_well(with(kPingPong, states));
  const ProgramRun mixed = run_well(with(with(kPingPong, states), {{"workload.long_gap", "1ms"}}));
  // Every second message finds the receiver in the deep sleep, and its sender in the light one when
  // the answer comes; half a round trip has half of that.
  constexpr double kSlept = (100'000.0 + 2'000.0) / 2;
  EXPECT_NEAR(mixed.number("/latency_ns/min"), even.number("/latency_ns/mean"), 100);
  EXPECT_NEAR(mixed.number("/latency_ns/p50"), mixed.number("/latency_ns/min"), 100);
  EXPECT_NEAR(mixed.number("/latency_ns/p90") - mixed.number("/latency_ns/min"), kSlept, 200);
  EXPECT_NEAR(mixed.number("/latency_ns/max"), mixed.number("/latency_ns/p90"), 100);
  EXPECT_NEAR(mixed.number("/latency_ns/mean"), mixed.number("/latency_ns/min") + kSlept / 2, 200);
  // Between doorbell and CQE nothing depends on how long nobody has asked.
  for (const char* stage : {"doorbell", "qp_context", "wqe_fetch", "packetize", "serialize",
                            "propagate", "rx_parse", "placement", "completion"}) {
    EXPECT_DOUBLE_EQ(mixed.stage(stage), even.stage(stage)) << stage;
  }
}

}  // namespace
}  // namespace rnic::testbench
