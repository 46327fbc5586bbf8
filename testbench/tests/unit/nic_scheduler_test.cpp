// SPDX-License-Identifier: Apache-2.0
// A pick takes 7 ns, one every 2 ns; up to four picks are made ahead of the pace.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "nic/sq_scheduler.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

config::NicConfig scheduler_config(std::uint32_t slots) {
  config::NicConfig config = nic_config();
  config.scheduler = {7, 2};
  config.tx_slots = slots;
  return config;
}

struct Rig {
  explicit Rig(std::uint32_t slots = 64)
      : unit("unit", scheduler_config(slots), transport, frames, jobs) {
    unit.contexts.bind(contexts);
    unit.wqes.bind(wqes);
    unit.transmit.bind(transmit);
    unit.timer.bind(timer);
    unit.completion.bind(completion);
    for (std::uint32_t i = 0; i < qps.size(); ++i) {
      qps[i].qpn = i + 1;
      qps[i].state = protocol::QpState::kRts;
    }
  }

  void add_work(std::size_t qp, int requests, int responses = 0) {
    for (int i = 0; i < requests; ++i) add_entry(qps[qp], 0, true);
    for (int i = 0; i < responses; ++i) qps[qp].responses.push_back({});
  }

  std::vector<int> order() const {
    std::vector<int> all;
    for (const nic::TxJob* job : transmit.jobs) {
      const int qpn = static_cast<int>(job->qp->qpn);
      all.push_back(job->plan.is_response ? -qpn : qpn);
    }
    return all;
  }

  FakeTransport transport;
  protocol::FramePool frames;
  Pool<nic::TxJob> jobs;
  FakeContexts contexts;
  FakeWqeFetch wqes;
  FakeTransmit transmit;
  FakeTimer timer;
  FakeCompletion completion;
  nic::SqScheduler unit;
  std::array<nic::QpContext, 3> qps;
};

TEST(SqScheduler, ServesAllWork) {
  Rig rig;
  for (std::size_t i = 0; i < 3; ++i) rig.add_work(i, 3);
  for (auto& qp : rig.qps) rig.unit.activate(qp, kTimeZero);
  sc_core::sc_start();
  std::array<int, 3> served{};
  for (const int qpn : rig.order()) ++served.at(static_cast<std::size_t>(qpn - 1));
  EXPECT_EQ(served, (std::array<int, 3>{3, 3, 3}));
}

TEST(SqScheduler, RoundRobinAmongQueuePairsAtItsPace) {
  Rig rig;
  for (std::size_t i = 0; i < 3; ++i) rig.add_work(i, 20);
  for (auto& qp : rig.qps) rig.unit.activate(qp, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.transmit.sent.size(), 60U);
  // The first is alone for the five picks of the look-ahead; from then on turns are strict.
  const std::vector<int> order = rig.order();
  for (std::size_t i = 6; i < 40; ++i) {
    EXPECT_NE(order[i], order[i + 1]) << i;
    EXPECT_NE(order[i], order[i + 2]) << i;
  }
  // One pick every 2 ns, 7 ns through the unit.
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(rig.transmit.sent[i].at, nanoseconds(7 + 2 * static_cast<std::int64_t>(i))) << i;
  }
}

TEST(SqScheduler, ResponsesAndRequestsTakeTurns) {
  Rig rig(1);  // one slot: every pick waits for the last packet to leave
  rig.add_work(0, 3);
  rig.add_work(1, 0, 3);
  rig.unit.activate(rig.qps[0], kTimeZero);
  rig.unit.activate(rig.qps[1], kTimeZero);
  for (int i = 0; i < 6; ++i) {
    rig.unit.slot_freed(sim_now(), 0);
    sc_core::sc_start(to_sc_time(nanoseconds(20)));
  }
  EXPECT_EQ(rig.order(), (std::vector<int>{1, -2, 1, -2, 1, -2}));
}

TEST(SqScheduler, AFullTransmitPathStopsThePicksAndCountsTheStall) {
  Rig rig(2);
  rig.add_work(0, 5);
  rig.unit.activate(rig.qps[0], kTimeZero);
  sc_core::sc_start(to_sc_time(nanoseconds(100)));
  EXPECT_EQ(rig.transmit.jobs.size(), 2U);
  EXPECT_EQ(rig.unit.slots_in_use(), 2U);
  rig.unit.slot_freed(sim_now(), 0);
  EXPECT_EQ(rig.transmit.jobs.size(), 3U);
  // Nothing but the transmit path was in the way from the second pick at 0 (ahead) to 100.
  EXPECT_EQ(rig.unit.stats().stalled(stats::StallCause::kDownstreamFull), nanoseconds(100));
}

TEST(SqScheduler, AFullLaneDoesNotKeepAnotherFromSending) {
  Rig rig(2);
  rig.qps[1].av.lane = 3;
  rig.add_work(0, 5);
  rig.add_work(1, 5);
  rig.unit.activate(rig.qps[0], kTimeZero);
  rig.unit.activate(rig.qps[1], kTimeZero);
  sc_core::sc_start(to_sc_time(nanoseconds(100)));
  EXPECT_EQ(rig.transmit.jobs.size(), 4U);  // two places each
  rig.unit.slot_freed(sim_now(), 3);
  sc_core::sc_start(to_sc_time(nanoseconds(100)));
  ASSERT_EQ(rig.transmit.jobs.size(), 5U);
  EXPECT_EQ(rig.order().back(), 2);
  rig.unit.slot_freed(sim_now(), 0);
  sc_core::sc_start(to_sc_time(nanoseconds(100)));
  ASSERT_EQ(rig.transmit.jobs.size(), 6U);
  EXPECT_EQ(rig.order().back(), 1);
}

TEST(SqScheduler, AResponseThatIsNotReadyYetIsPostponed) {
  Rig rig;
  rig.add_work(0, 0, 1);
  rig.qps[0].responses.front().ready = nanoseconds(500);
  rig.add_work(1, 1);
  rig.unit.activate(rig.qps[0], kTimeZero);
  rig.unit.activate(rig.qps[1], kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.order(), (std::vector<int>{2, -1}));
  EXPECT_EQ(rig.transmit.sent[1].at, nanoseconds(507));
}

TEST(SqScheduler, AMissedContextKeepsItsSlotAndOthersGoOn) {
  Rig rig(2);
  rig.add_work(0, 1);
  rig.add_work(1, 4);
  rig.contexts.miss = true;
  rig.unit.activate(rig.qps[0], kTimeZero);
  rig.contexts.miss = false;
  rig.unit.activate(rig.qps[1], kTimeZero);
  sc_core::sc_start(to_sc_time(nanoseconds(50)));
  EXPECT_EQ(rig.order(), std::vector<int>{2});  // the other slot is kept
  rig.contexts.waiting.front()->resume(sim_now());
  EXPECT_EQ(rig.order(), (std::vector<int>{2, 1}));
  EXPECT_EQ(rig.unit.slots_in_use(), 2U);
}

TEST(SqScheduler, WithoutDecodedWorkItFetchesOnlyWhenSomethingIsPosted) {
  Rig rig;
  rig.unit.activate(rig.qps[0], kTimeZero);
  EXPECT_TRUE(rig.wqes.fetches.empty());
  EXPECT_TRUE(rig.contexts.asked.empty());
  rig.qps[1].sq_producer = 1;
  rig.unit.activate(rig.qps[1], kTimeZero);
  EXPECT_EQ(rig.wqes.fetches, (std::vector<QpCall>{{2, nanoseconds(7)}}));
}

TEST(SqScheduler, OutsideRtsNoRequestsAreSent) {
  Rig rig;
  rig.add_work(0, 1, 1);
  rig.qps[0].state = protocol::QpState::kRtr;  // responses only
  rig.unit.activate(rig.qps[0], kTimeZero);
  sc_core::sc_start();
  EXPECT_EQ(rig.order(), std::vector<int>{-1});
}

}  // namespace
}  // namespace rnic::testbench
