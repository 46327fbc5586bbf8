// SPDX-License-Identifier: Apache-2.0
#include "base/timeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/sc_time.h"

namespace rnic::testbench {
namespace {

using Log = std::vector<std::pair<Time, int>>;

/// Writes down when it fired, and may schedule another probe then.
struct Probe : Timeline::Source {
  Probe(int number, Log& into) : id(number), log(into) {}

  void fire(Time now) override {
    log.emplace_back(now, id);
    if (next != nullptr) Timeline::instance().schedule(*next, now + after);
    if (event != nullptr) Timeline::notify(*event);
  }

  int id;
  Log& log;
  Probe* next = nullptr;
  Time after{0};
  sc_core::sc_event* event = nullptr;
};

constexpr Time ns(std::int64_t n) { return nanoseconds(n); }

TEST(Timeline, FiresInOrderOfTimeThenOfScheduling) {
  Timeline& timeline = Timeline::instance();
  Log log;
  Probe a(1, log);
  Probe b(2, log);
  Probe c(3, log);
  Probe d(4, log);
  timeline.schedule(a, ns(30));
  timeline.schedule(b, ns(10));
  timeline.schedule(c, ns(30));
  timeline.schedule(d, ns(20));
  sc_core::sc_start();
  EXPECT_EQ(log, (Log{{ns(10), 2}, {ns(20), 4}, {ns(30), 1}, {ns(30), 3}}));
  EXPECT_EQ(timeline.fired(), 4U);
  EXPECT_EQ(timeline.kernel_calls(), 3U);  // one for each instant
}

TEST(Timeline, AnEarlierInstantReplacesALaterOneAndGoesBehindItsPeers) {
  Timeline& timeline = Timeline::instance();
  Log log;
  Probe a(1, log);
  Probe b(2, log);
  timeline.schedule(a, ns(30));
  timeline.schedule(b, ns(10));
  timeline.schedule(a, ns(10));  // earlier, but scheduled after b
  timeline.schedule(b, ns(50));  // later: ignored
  sc_core::sc_start();
  EXPECT_EQ(log, (Log{{ns(10), 2}, {ns(10), 1}}));
}

TEST(Timeline, ACancelledSourceDoesNotFireUntilScheduledAgain) {
  Timeline& timeline = Timeline::instance();
  Log log;
  std::deque<Probe> probes;
  for (int i = 0; i < 8; ++i) timeline.schedule(probes.emplace_back(i, log), ns(80 - i * 10));
  for (const std::size_t i : {7U, 3U, 0U, 3U}) timeline.cancel(probes[i]);  // twice: no harm
  timeline.schedule(probes[3], ns(15));
  sc_core::sc_start();
  EXPECT_EQ(log,
            (Log{{ns(15), 3}, {ns(20), 6}, {ns(30), 5}, {ns(40), 4}, {ns(60), 2}, {ns(70), 1}}));
}

TEST(Timeline, PresentIsTheFiringInstantAheadOfTheKernel) {
  Timeline& timeline = Timeline::instance();
  Log log;
  Probe a(1, log);
  Probe b(2, log);
  a.next = &b;
  a.after = ns(5);
  timeline.set_horizon(ns(1000));
  timeline.schedule(a, ns(10));
  sc_core::sc_start(to_sc_time(ns(1000)));
  EXPECT_EQ(log, (Log{{ns(10), 1}, {ns(15), 2}}));
  EXPECT_EQ(timeline.kernel_calls(), 1U);  // b fired without the kernel
  EXPECT_EQ(sim_now(), ns(1000));
}

TEST(Timeline, StopsAtTheHorizon) {
  Timeline& timeline = Timeline::instance();
  Log log;
  Probe a(1, log);
  Probe b(2, log);
  Probe c(3, log);
  timeline.set_horizon(ns(100));
  timeline.schedule(a, ns(10));
  timeline.schedule(b, ns(99));
  timeline.schedule(c, ns(101));
  sc_core::sc_start(to_sc_time(ns(100)));
  EXPECT_EQ(log, (Log{{ns(10), 1}, {ns(99), 2}}));
  timeline.set_horizon(ns(200));
  sc_core::sc_start(to_sc_time(ns(100)));
  EXPECT_EQ(log.back(), (std::pair{ns(101), 3}));
}

TEST(Timeline, NotificationAheadOfTheKernelWakesAThreadAtItsTime) {
  Timeline& timeline = Timeline::instance();
  Log log;
  Probe first(1, log);
  Probe second(2, log);
  Probe third(3, log);
  Probe by_thread(4, log);
  sc_core::sc_event event;
  second.event = &event;
  Time woken{0};
  sc_core::sc_spawn([&] {
    sc_core::wait(event);
    woken = from_sc_time(sc_core::sc_time_stamp());
    timeline.schedule(by_thread, sim_now() + ns(10));
  });
  timeline.set_horizon(ns(1000));
  timeline.schedule(first, ns(10));
  timeline.schedule(second, ns(100));
  timeline.schedule(third, ns(120));
  sc_core::sc_start(to_sc_time(ns(1000)));
  EXPECT_EQ(woken, ns(100));
  // What the thread schedules for 110 comes before what was known for 120.
  EXPECT_EQ(log, (Log{{ns(10), 1}, {ns(100), 2}, {ns(110), 4}, {ns(120), 3}}));
}

/// Forty probes that schedule each other at random, and a thread that meddles at odd picoseconds.
Log random_run(Time base, Time horizon) {
  Timeline& timeline = Timeline::instance();
  timeline.set_horizon(horizon);
  Log log;
  std::deque<Probe> probes;
  Rng rng(7, "probes");
  for (int i = 0; i < 40; ++i) probes.emplace_back(i, log);
  for (Probe& probe : probes) {
    probe.next = &probes[rng.below(40)];
    probe.after = picoseconds(static_cast<std::int64_t>(rng.below(500)) * 100 + 100);
    timeline.schedule(probe, base + ns(static_cast<std::int64_t>(rng.below(200))));
  }
  sc_core::sc_event event;
  probes[5].event = &event;
  sc_core::sc_spawn([&] {
    sc_core::wait(event);
    sc_core::wait(1, sc_core::SC_PS);
    for (int i = 0; i < 20; ++i) {
      log.emplace_back(from_sc_time(sc_core::sc_time_stamp()), 100);
      timeline.schedule(probes[static_cast<std::size_t>(i)], sim_now() + ns(3));
      sc_core::wait(to_sc_time(ns(37)));
    }
  });
  sc_core::sc_start(to_sc_time(ns(2000)));
  for (Probe& probe : probes) timeline.cancel(probe);
  for (auto& [at, id] : log) at -= base;
  return log;
}

TEST(Timeline, LookAheadChangesNothingButTheKernelsWork) {
  Timeline& timeline = Timeline::instance();
  const Log plain = random_run(ns(0), ns(0));
  const std::uint64_t plain_calls = timeline.kernel_calls();
  const Log ahead = random_run(ns(2000), ns(4000));
  EXPECT_GT(plain.size(), 200U);
  EXPECT_EQ(plain, ahead);
  EXPECT_LT(timeline.kernel_calls() - plain_calls, plain_calls / 4);
}

}  // namespace
}  // namespace rnic::testbench
