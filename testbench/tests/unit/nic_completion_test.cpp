// SPDX-License-Identifier: Apache-2.0
// CompletionUnit (a completion takes 8 ns, one every 3), CqUnit, RetransmissionTimer.
#include <gtest/gtest.h>

#include <vector>

#include "nic/completion_unit.h"
#include "nic/cq_unit.h"
#include "nic/retransmission_timer.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using protocol::Cqe;
using protocol::WcStatus;

config::NicConfig completion_config() {
  config::NicConfig config = nic_config();
  config.completion = {8, 3};
  return config;
}

struct CompletionRig {
  CompletionRig() : unit("unit", completion_config(), transport) {
    unit.completion_queues.bind(cq);
    unit.recv_queues.bind(recv_queues);
    unit.wqes.bind(wqes);
    unit.scheduler.bind(scheduler);
    qp.qpn = 6;
    qp.send_cqn = 1;
    qp.state = protocol::QpState::kRts;
  }

  std::vector<int> indices() const {
    std::vector<int> all;
    for (const auto& post : cq.posts) all.push_back(post.cqe.wqe_counter);
    return all;
  }

  FakeCq cq;
  FakeRecvQueues recv_queues;
  FakeWqeFetch wqes;
  FakeScheduler scheduler;
  FakeTransport transport;
  nic::CompletionUnit unit;
  nic::QpContext qp;
};

TEST(CompletionUnit, RetiresInOrderUpToTheFirstUnfinished) {
  CompletionRig rig;
  add_entry(rig.qp, 0, true, true);
  add_entry(rig.qp, 1, true, false);
  add_entry(rig.qp, 2, true, true);
  rig.unit.retire(rig.qp, nanoseconds(10));
  EXPECT_EQ(rig.indices(), std::vector<int>{0});
  EXPECT_EQ(rig.cq.posts[0].at, nanoseconds(18));
  rig.qp.sq[0].finished = true;
  rig.unit.retire(rig.qp, nanoseconds(20));
  EXPECT_EQ(rig.indices(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(rig.cq.posts[1].at, nanoseconds(28));
  EXPECT_EQ(rig.cq.posts[2].at, nanoseconds(31));  // initiation interval
  EXPECT_EQ(rig.qp.sq_base, 3U);
  EXPECT_TRUE(rig.qp.sq.empty());
}

TEST(CompletionUnit, UnsignaledWorkRetiresSilently) {
  CompletionRig rig;
  add_entry(rig.qp, 0, false, true);
  add_entry(rig.qp, 1, false, true);
  add_entry(rig.qp, 2, true, true);
  rig.unit.retire(rig.qp, kTimeZero);
  EXPECT_EQ(rig.indices(), std::vector<int>{2});
}

TEST(CompletionUnit, AReadWhoseDataIsStillOnTheWayWaits) {
  CompletionRig rig;
  add_entry(rig.qp, 0, true, true).placing = true;
  rig.unit.retire(rig.qp, kTimeZero);
  EXPECT_TRUE(rig.cq.posts.empty());
  rig.qp.sq[0].placing = false;
  rig.unit.retire(rig.qp, kTimeZero);
  EXPECT_EQ(rig.indices(), std::vector<int>{0});
}

TEST(CompletionUnit, AfterAnErrorTheRestIsFlushed) {
  // IBTA vol 1, 10.3.1.5: the failing request with its own status, even unsignaled; then the
  // others, signaled or not, as flushed.
  CompletionRig rig;
  add_entry(rig.qp, 0, false, true).status = WcStatus::kRemoteAccessError;
  add_entry(rig.qp, 1, false, false);
  add_entry(rig.qp, 2, true, false).placing = true;
  rig.qp.retry_deadline = nanoseconds(500);
  rig.unit.retire(rig.qp, kTimeZero);
  ASSERT_EQ(rig.indices(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(rig.cq.posts[0].cqe.status, WcStatus::kRemoteAccessError);
  EXPECT_EQ(rig.cq.posts[1].cqe.status, WcStatus::kWrFlushError);
  EXPECT_EQ(rig.cq.posts[2].cqe.status, WcStatus::kWrFlushError);
  EXPECT_EQ(rig.cq.posts[0].cqe.kind, Cqe::Kind::kRequesterError);
  EXPECT_EQ(rig.qp.state, protocol::QpState::kError);
  EXPECT_EQ(rig.qp.retry_deadline, kTimeNever);
  EXPECT_EQ(rig.recv_queues.flushed.size(), 1U);
  EXPECT_FALSE(rig.wqes.fetches.empty());  // what is posted but not decoded is flushed, too
}

TEST(CompletionUnit, FailingTwiceIsFailingOnce) {
  CompletionRig rig;
  add_entry(rig.qp, 0, true, false);
  rig.unit.fail(rig.qp, kTimeZero);
  rig.unit.fail(rig.qp, kTimeZero);
  EXPECT_EQ(rig.cq.posts.size(), 1U);
  EXPECT_EQ(rig.recv_queues.flushed.size(), 1U);
}

TEST(CqUnit, TheOwnerBitFlipsWithEveryPassOfTheRing) {
  FakeDma dma;
  nic::CqUnit unit("unit");
  unit.dma.bind(dma);
  unit.create({3, 2, 0x4000, 0, 0, true});  // four entries
  for (std::uint32_t i = 0; i < 10; ++i) {
    Cqe cqe;
    cqe.kind = Cqe::Kind::kRespSend;
    cqe.byte_count = i;
    unit.post(3, cqe, nullptr, sim_now());
    const std::uint64_t slot = 0x4000 + std::uint64_t{i % 4} * protocol::kCqeBytes;
    EXPECT_EQ(dma.writes.back().address, slot);
    EXPECT_EQ(dma.writes.back().bytes, 64U);
    const Cqe written = protocol::decode_cqe(&dma.memory[slot]);
    EXPECT_EQ(written.byte_count, i);
    EXPECT_EQ(written.owner, (i / 4) % 2 == 1) << i;
  }
  sc_core::sc_start();
  EXPECT_EQ(unit.written(), 10U);
}

TEST(CqUnit, AnUnknownQueueIsABrokenInvariant) {
  FakeDma dma;
  nic::CqUnit unit("unit");
  unit.dma.bind(dma);
  EXPECT_THROW(unit.post(1, Cqe{}, nullptr, kTimeZero), SimulationError);
}

struct TimerRig {
  TimerRig() : unit("unit", transport) {
    unit.scheduler.bind(scheduler);
    unit.completion.bind(completion);
    qp.qpn = 8;
  }

  void deadline(std::int64_t ns) {
    qp.retry_deadline = nanoseconds(ns);
    unit.update(qp);
  }

  FakeTransport transport;
  FakeScheduler scheduler;
  FakeCompletion completion;
  nic::RetransmissionTimer unit;
  nic::QpContext qp;
};

using Calls = std::vector<QpCall>;

TEST(RetransmissionTimer, FiresAtItsDeadline) {
  TimerRig rig;
  rig.deadline(100);
  sc_core::sc_start();
  EXPECT_EQ(rig.transport.timeouts, (Calls{{8, nanoseconds(100)}}));
  EXPECT_EQ(rig.completion.retired, (Calls{{8, nanoseconds(100)}}));
  EXPECT_EQ(rig.scheduler.activated, (Calls{{8, nanoseconds(100)}}));
}

TEST(RetransmissionTimer, AMovedDeadlineIsLookedAtAgain) {
  TimerRig rig;
  rig.deadline(100);
  rig.deadline(250);  // progress: the event of 100 finds nothing due
  sc_core::sc_start();
  EXPECT_EQ(rig.transport.timeouts, (Calls{{8, nanoseconds(250)}}));
}

TEST(RetransmissionTimer, AnEarlierDeadlineWinsAndItsRivalIsStale) {
  TimerRig rig;
  rig.deadline(300);
  rig.deadline(120);
  sc_core::sc_start();
  EXPECT_EQ(rig.transport.timeouts, (Calls{{8, nanoseconds(120)}}));
}

TEST(RetransmissionTimer, AStoppedTimerDoesNotFire) {
  TimerRig rig;
  rig.deadline(100);
  rig.qp.retry_deadline = kTimeNever;
  rig.unit.update(rig.qp);
  sc_core::sc_start();
  EXPECT_TRUE(rig.transport.timeouts.empty());
}

TEST(RetransmissionTimer, ATimeoutThatSetsANewDeadlineRunsAgain) {
  TimerRig rig;
  rig.transport.next_deadline = nanoseconds(400);
  rig.deadline(100);
  sc_core::sc_start(to_sc_time(nanoseconds(399)));
  EXPECT_EQ(rig.transport.timeouts.size(), 1U);
  rig.transport.next_deadline = kTimeNever;
  sc_core::sc_start();
  EXPECT_EQ(rig.transport.timeouts, (Calls{{8, nanoseconds(100)}, {8, nanoseconds(400)}}));
}

TEST(RetransmissionTimer, TheEndOfAnRnrWaitActivatesWithoutATimeout) {
  TimerRig rig;
  rig.qp.rnr_until = nanoseconds(60);
  rig.deadline(500);
  sc_core::sc_start(to_sc_time(nanoseconds(100)));
  EXPECT_EQ(rig.scheduler.activated, (Calls{{8, nanoseconds(60)}}));
  EXPECT_TRUE(rig.transport.timeouts.empty());
  sc_core::sc_start();
  EXPECT_EQ(rig.transport.timeouts, (Calls{{8, nanoseconds(500)}}));
}

}  // namespace
}  // namespace rnic::testbench
