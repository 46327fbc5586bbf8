// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/sc_time.h"
#include "base/timelines.h"

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
  EXPECT_EQ(Timelines::instance().fired(), 4U);
  EXPECT_EQ(Timelines::instance().kernel_calls(), 3U);  // one for each instant
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
  Timelines::instance().set_horizon(ns(1000));
  timeline.schedule(a, ns(10));
  sc_core::sc_start(to_sc_time(ns(1000)));
  EXPECT_EQ(log, (Log{{ns(10), 1}, {ns(15), 2}}));
  EXPECT_EQ(Timelines::instance().kernel_calls(), 1U);  // b fired without the kernel
  EXPECT_EQ(sim_now(), ns(1000));
}

TEST(Timeline, StopsAtTheHorizon) {
  Timeline& timeline = Timeline::instance();
  Log log;
  Probe a(1, log);
  Probe b(2, log);
  Probe c(3, log);
  Timelines::instance().set_horizon(ns(100));
  timeline.schedule(a, ns(10));
  timeline.schedule(b, ns(99));
  timeline.schedule(c, ns(101));
  sc_core::sc_start(to_sc_time(ns(100)));
  EXPECT_EQ(log, (Log{{ns(10), 1}, {ns(99), 2}}));
  Timelines::instance().set_horizon(ns(200));
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
  Timelines::instance().set_horizon(ns(1000));
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
  Timelines::instance().set_horizon(horizon);
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
  const Log plain = random_run(ns(0), ns(0));
  const std::uint64_t plain_calls = Timelines::instance().kernel_calls();
  const Log ahead = random_run(ns(2000), ns(4000));
  EXPECT_GT(plain.size(), 200U);
  EXPECT_EQ(plain, ahead);
  EXPECT_LT(Timelines::instance().kernel_calls() - plain_calls, plain_calls / 4);
}

/// A group of units on a timeline of its own: probes that schedule each other, and a program that
/// sleeps, waits for one of them, and schedules another.
struct Group {
  Group(Timeline& on, std::uint64_t seed, Log& all) : timeline(on), everybody(all) {
    Rng rng(seed, "group");
    for (int i = 0; i < 10; ++i) probes.emplace_back(i, log);
    for (Member& probe : probes) {
      probe.group = this;
      probe.next = &probes[rng.below(10)];
      probe.after = ns(static_cast<std::int64_t>(rng.below(50)) + 1);
    }
    probes[3].event = &event;
    for (Member& probe : probes) {
      timeline.schedule(probe, ns(static_cast<std::int64_t>(rng.below(100)) + 1));
    }
    sc_core::sc_spawn([this] { program(); });
  }

  void program() {
    for (int i = 0; i < 30; ++i) {
      sc_core::wait(event);
      log.emplace_back(sim_now(), 100);
      timeline.sleep(ns(7));
      log.emplace_back(sim_now(), 101);
      timeline.schedule(probes[static_cast<std::size_t>(i % 10)], sim_now() + ns(2));
    }
  }

  struct Member : Timeline::Source {
    Member(int number, Log& into) : id(number), log(into) {}
    void fire(Time now) override {
      log.emplace_back(now, id);
      group->everybody.emplace_back(now, id);
      group->timeline.schedule(*next, now + after);
      if (event != nullptr) Timeline::notify(*event);
    }
    int id;
    Log& log;
    Group* group = nullptr;
    Member* next = nullptr;
    Time after{0};
    sc_core::sc_event* event = nullptr;
  };

  Timeline& timeline;
  Log& everybody;
  Log log;
  std::deque<Member> probes;
  sc_core::sc_event event;
};

/// What each of three groups did within two microseconds, and all of them in the order in which it
/// was done.
std::vector<Log> run_groups(const std::function<Time(Time)>& apart) {
  Timelines& timelines = Timelines::instance();
  std::vector<Log> logs(1);
  std::deque<Group> groups;
  groups.emplace_back(Timeline::instance(), 1, logs[0]);
  groups.emplace_back(timelines.add(), 2, logs[0]);
  groups.emplace_back(timelines.add(), 3, logs[0]);
  timelines.set_apart(apart);
  timelines.set_horizon(ns(2000));
  sc_core::sc_start(to_sc_time(ns(2000)));
  EXPECT_EQ(sim_now(), ns(2000));
  for (const Group& group : groups) logs.push_back(group.log);
  return logs;
}

/// In order, each group on its own; the expectation of the tests below. In a process of its own:
/// threads cannot be taken out of a simulation.
std::vector<Log> expected_logs() {
  std::vector<Log> logs = run_groups(nullptr);
  EXPECT_TRUE(std::is_sorted(logs[0].begin(), logs[0].end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; }));
  return logs;
}

/// A digest of what groups did, to be compared between processes.
std::uint64_t digest(const Log& log) {
  std::uint64_t hash = 1469598103934665603U;
  for (const auto& [at, id] : log) {
    for (const auto value : {at.count(), static_cast<std::int64_t>(id)}) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U;
    }
  }
  return hash;
}

/// Runs `groups` in a child process and returns the digests of what each did.
std::vector<std::uint64_t> digests_of(const std::function<std::vector<Log>()>& run) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<Log> logs = run();
    for (std::size_t i = 1; i < logs.size(); ++i) {
      const std::array<std::uint64_t, 2> about = {logs[i].size(), digest(logs[i])};
      if (write(ends[1], about.data(), sizeof about) < 0) _exit(1);
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  std::vector<std::uint64_t> all;
  std::uint64_t one = 0;
  while (read(ends[0], &one, sizeof one) == static_cast<ssize_t>(sizeof one)) all.push_back(one);
  close(ends[0]);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return all;
}

TEST(Timelines, GroupsDoTheSameApartAndTogether) {
  const std::vector<std::uint64_t> together = digests_of(expected_logs);
  ASSERT_EQ(together.size(), 6U);
  EXPECT_GT(together[0], 100U);  // events of the first
  // Blocks of 300 ns; then blocks with pauses in which events happen in order.
  EXPECT_EQ(digests_of([] { return run_groups([](Time present) { return present + ns(300); }); }),
            together);
  EXPECT_EQ(digests_of([] {
              return run_groups([](Time present) {
                return present.count() / 1'000'000 % 2 == 0 ? present + ns(150) : present;
              });
            }),
            together);
}

TEST(Timelines, GroupsAreReallyRunApart) {
  const std::vector<Log> logs = run_groups([](Time present) { return present + ns(500); });
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  EXPECT_FALSE(std::is_sorted(logs[0].begin(), logs[0].end(), earlier));
  // Each one's own events are in order, and none is left behind by a whole block.
  for (std::size_t i = 1; i < logs.size(); ++i) {
    EXPECT_TRUE(std::is_sorted(logs[i].begin(), logs[i].end(), earlier));
    EXPECT_GT(logs[i].back().first, ns(1500));
  }
}

TEST(Timelines, AUnitMustNotActOnAnotherGroup) {
  Log log;
  Probe there(2, log);
  struct : Timeline::Source {
    void fire(Time now) override { other->schedule(*what, now + ns(1)); }
    Timeline* other = nullptr;
    Timeline::Source* what = nullptr;
  } here;
  here.other = &Timelines::instance().add();
  here.what = &there;
  Timeline::instance().schedule(here, ns(1));
  EXPECT_THROW(sc_core::sc_start(), std::exception);
}

}  // namespace
}  // namespace rnic::testbench
