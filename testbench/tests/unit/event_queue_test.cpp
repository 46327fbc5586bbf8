// SPDX-License-Identifier: Apache-2.0
#include "base/event_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rnic::testbench {
namespace {

constexpr Time ns(std::int64_t n) { return nanoseconds(n); }

struct Owner {
  void arrive(int& item) {
    seen.emplace_back(sim_now(), item);
    if (item == repost) queue.post(sim_now() + repost_after, 99);
  }
  void pass(int& item) {
    seen.emplace_back(sim_now(), item);
    if (item == repost) line.post(sim_now() + repost_after, 99);
  }
  void own(std::unique_ptr<int>& item) { seen.emplace_back(sim_now(), *item); }

  std::vector<std::pair<Time, int>> seen;
  int repost = -1;
  Time repost_after{0};
  EventQueue<Owner, int> queue{"queue", this, &Owner::arrive};
  DelayLine<Owner, int> line{"line", this, &Owner::pass};
  EventQueue<Owner, std::unique_ptr<int>> owners{"owners", this, &Owner::own};
};

using Seen = std::vector<std::pair<Time, int>>;

TEST(EventQueue, EarliestFirstTiesInPostingOrder) {
  Owner owner;
  owner.queue.post(ns(20), 1);
  owner.queue.post(ns(10), 2);
  owner.queue.post(ns(20), 3);
  owner.queue.post(ns(10), 4);
  owner.queue.post(ns(5), 5);
  EXPECT_EQ(owner.queue.size(), 5U);
  sc_core::sc_start();
  EXPECT_EQ(owner.seen, (Seen{{ns(5), 5}, {ns(10), 2}, {ns(10), 4}, {ns(20), 1}, {ns(20), 3}}));
  EXPECT_TRUE(owner.queue.empty());
  EXPECT_EQ(ModelEvents::count(), 3U);  // one for each instant
}

TEST(EventQueue, TheHandlerMayPostForNowOrLater) {
  Owner owner;
  owner.repost = 1;
  owner.queue.post(ns(10), 1);
  owner.queue.post(ns(10), 2);
  sc_core::sc_start();
  EXPECT_EQ(owner.seen, (Seen{{ns(10), 1}, {ns(10), 2}, {ns(10), 99}}));
  owner.seen.clear();
  owner.repost_after = ns(7);
  owner.queue.post(ns(20), 1);
  sc_core::sc_start();
  EXPECT_EQ(owner.seen, (Seen{{ns(20), 1}, {ns(27), 99}}));
}

TEST(EventQueue, CarriesItemsThatCannotBeCopied) {
  Owner owner;
  owner.owners.post(ns(2), std::make_unique<int>(2));
  owner.owners.post(ns(1), std::make_unique<int>(1));
  sc_core::sc_start();
  EXPECT_EQ(owner.seen, (Seen{{ns(1), 1}, {ns(2), 2}}));
}

TEST(DelayLine, DeliversInPostingOrder) {
  Owner owner;
  owner.repost = 2;
  owner.repost_after = ns(3);
  owner.line.post(ns(10), 1);
  owner.line.post(ns(10), 2);
  sc_core::sc_start();
  EXPECT_EQ(owner.seen, (Seen{{ns(10), 1}, {ns(10), 2}, {ns(13), 99}}));
  EXPECT_EQ(owner.line.last(), ns(13));
}

TEST(DelayLine, AnItemBeforeItsPredecessorIsABrokenInvariant) {
  Owner owner;
  owner.line.post(ns(10), 1);
  EXPECT_THROW(owner.line.post(ns(9), 2), SimulationError);
}

}  // namespace
}  // namespace rnic::testbench
