// SPDX-License-Identifier: Apache-2.0
// Completion channels, moderation, resizing and overrun of completion queues, asynchronous events.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AsyncEvent;
using host::verbs::CompletionChannel;
using host::verbs::CompletionQueue;
using host::verbs::CqInitAttr;
using host::verbs::QueuePair;
using host::verbs::SendFlags;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::EventType;
using protocol::QpState;
using protocol::WcStatus;

/// Host 0 sends to host 1, whose receive queue notifies a channel.
struct EventRig {
  explicit EventRig(const Settings& more = {}) : rig(with({{"transport.protocol", "ib"}}, more)) {}

  void connect(std::uint32_t entries = 64) {
    rig.a.create();
    rig.b.create();
    channel = rig.b.verbs().create_comp_channel();
    cq = rig.b.verbs().create_cq(rig.b.core, CqInitAttr{entries, channel, false});
    ASSERT_NE(cq, nullptr);
    from = rig.a.make_qp(RigSide::qp_attr());
    to = rig.b.make_qp(RigSide::qp_attr(), *rig.b.send_cq, *cq);
    rig.join(*from, *to);
    source = rig.a.buffer(4096);
    sink = rig.b.buffer(4096);
    for (int i = 0; i < 32; ++i) {
      ASSERT_EQ(rig.b.post_recv(*to, sink.address, sink.region.lkey, 64), Status::kOk);
    }
    rig.settle();
  }

  void send(std::uint32_t flags = 0) {
    ASSERT_EQ(rig.a.post(*from, WrOpcode::kSend, source.address, source.region.lkey, 8, 0, 0, 0,
                         flags | SendFlags::kSignaled),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle();
  }
  void arm(bool solicited_only = false) {
    ASSERT_EQ(rig.b.verbs().req_notify_cq(rig.b.core, *cq, solicited_only), Status::kOk);
    rig.settle();
  }
  std::uint32_t drain() {
    Wc wcs[64];
    return rig.b.verbs().poll_cq(rig.b.core, *cq, 64, wcs);
  }
  std::size_t events() const { return channel->events.size(); }
  std::uint64_t interrupts() { return rig.b.verbs().stats().interrupts; }
  void fetch_event() {
    EXPECT_EQ(rig.b.verbs().get_cq_event(rig.b.core, *channel), cq);
    rig.b.verbs().ack_cq_events(*cq, 1);
  }

  VerbsRig rig;
  CompletionChannel* channel = nullptr;
  CompletionQueue* cq = nullptr;
  QueuePair* from = nullptr;
  QueuePair* to = nullptr;
  RigBuffer source;
  RigBuffer sink;
};

TEST(CompletionEvent, OneForOneArming) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    t.send();
    EXPECT_EQ(t.events(), 0U) << "not armed";
    EXPECT_EQ(t.drain(), 1U);
    t.arm();
    t.send();
    t.send();
    EXPECT_EQ(t.events(), 1U);
    EXPECT_EQ(t.interrupts(), 1U);
    t.fetch_event();
    EXPECT_EQ(t.drain(), 2U);
    t.send();
    EXPECT_EQ(t.events(), 0U);
  });
}

TEST(CompletionEvent, NoneForWhatWasThereWhenArmed) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    t.send();
    t.arm();  // the completion is in the queue and was not polled
    EXPECT_EQ(t.events(), 0U);
    t.send();
    EXPECT_EQ(t.events(), 1U);
  });
}

TEST(CompletionEvent, OneForWhatCameWhileTheDoorbellWasOnItsWay) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    const auto post = [&] {
      ASSERT_EQ(t.rig.a.post(*t.from, WrOpcode::kSend, t.source.address, t.source.region.lkey, 8),
                Status::kOk);
      t.rig.a.core.sync();
    };
    t.send();  // fills the caches
    EXPECT_EQ(t.drain(), 1U);
    // Find out when the device writes the completion, then let the arming call come just before.
    post();
    const Time start = sim_now();
    t.rig.b.verbs().wait_cq(t.rig.b.core, *t.cq);
    const Time visible = t.cq->written.last_write() - start;
    EXPECT_EQ(t.drain(), 1U);
    t.rig.settle();
    post();
    // The call takes cpu.doorbell_cost; 20 ns later the completion is visible.
    sc_core::wait(to_sc_time(visible - t.rig.config().cpu.doorbell_cost - nanoseconds(20)));
    const std::uint64_t writes = t.cq->written.writes();
    ASSERT_EQ(t.rig.b.verbs().req_notify_cq(t.rig.b.core, *t.cq, false), Status::kOk);
    ASSERT_EQ(t.cq->written.writes(), writes) << "the call came too late for the test";
    t.rig.settle();
    EXPECT_EQ(t.cq->written.writes(), writes + 1);
    EXPECT_EQ(t.events(), 1U);
  });
}

TEST(CompletionEvent, SolicitedOnly) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    t.arm(true);
    t.send();
    EXPECT_EQ(t.events(), 0U);
    t.send(SendFlags::kSolicited);
    EXPECT_EQ(t.events(), 1U);
    t.fetch_event();
    // An error counts as solicited.
    EXPECT_EQ(t.drain(), 2U);
    t.arm(true);
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kError;
    ASSERT_EQ(t.rig.b.verbs().modify_qp(t.rig.b.core, *t.to, attr, protocol::QpAttrMask::kState),
              Status::kOk);
    t.rig.settle();
    EXPECT_EQ(t.events(), 1U);
  });
}

TEST(CompletionEvent, TheWaitingThreadSleepsAndWakes) {
  EventRig t({{"cpu.interrupt_latency", "2us"}, {"cpu.wakeup_latency", "7us"}});
  t.rig.run([&] {
    t.connect();
    t.arm();
    t.rig.b.core.reset_statistics();
    ASSERT_EQ(t.rig.a.post(*t.from, WrOpcode::kSend, t.source.address, t.source.region.lkey, 8),
              Status::kOk);
    t.rig.a.core.sync();
    t.fetch_event();
    // Event queue entry and interrupt follow the completion through PCIe: some tens of ns.
    const Time after = sim_now() - t.cq->written.last_write();
    EXPECT_GE(after, microseconds(9));
    EXPECT_LT(after, microseconds(9) + nanoseconds(200));
    // It did not spin: one system call is all.
    EXPECT_EQ(t.rig.b.core.busy(), t.rig.config().cpu.syscall_cost);
    EXPECT_EQ(t.drain(), 1U);
  });
}

TEST(CompletionEvent, TwoQueuesShareAChannel) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    CompletionQueue* other =
        t.rig.b.verbs().create_cq(t.rig.b.core, CqInitAttr{16, t.channel, false});
    QueuePair* from = t.rig.a.make_qp(RigSide::qp_attr());
    QueuePair* to = t.rig.b.make_qp(RigSide::qp_attr(), *t.rig.b.send_cq, *other);
    t.rig.join(*from, *to);
    ASSERT_EQ(t.rig.b.post_recv(*to, t.sink.address, t.sink.region.lkey, 64), Status::kOk);
    t.arm();
    ASSERT_EQ(t.rig.b.verbs().req_notify_cq(t.rig.b.core, *other, false), Status::kOk);
    ASSERT_EQ(t.rig.a.post(*from, WrOpcode::kSend, t.source.address, t.source.region.lkey, 8),
              Status::kOk);
    t.rig.settle();
    t.send();
    EXPECT_EQ(t.events(), 2U);
    host::verbs::Context& verbs = t.rig.b.verbs();
    EXPECT_EQ(verbs.get_cq_event(t.rig.b.core, *t.channel), other);
    EXPECT_EQ(verbs.get_cq_event(t.rig.b.core, *t.channel), t.cq);
    EXPECT_EQ(verbs.destroy_comp_channel(t.channel), Status::kEbusy);
    EXPECT_EQ(verbs.destroy_qp(t.rig.b.core, to), Status::kOk);
    EXPECT_EQ(verbs.destroy_cq(t.rig.b.core, other), Status::kEbusy) << "an event is not acked";
    verbs.ack_cq_events(*other, 1);
    EXPECT_EQ(verbs.destroy_cq(t.rig.b.core, other), Status::kOk);
    EXPECT_EQ(verbs.destroy_cq(t.rig.b.core, t.cq), Status::kEbusy) << "a queue pair uses it";
  });
}

TEST(CompletionEvent, AQueueWithoutAChannelCannotBeArmed) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.rig.b.verbs().req_notify_cq(t.rig.b.core, *t.rig.b.send_cq, false),
              Status::kEinval);
  });
}

TEST(CompletionEvent, ModerationByCount) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.rig.b.verbs().modify_cq(t.rig.b.core, *t.cq, {3, 0}), Status::kOk);
    t.arm();
    t.send();
    t.send();
    EXPECT_EQ(t.events(), 0U);
    t.send();
    EXPECT_EQ(t.events(), 1U);
  });
}

TEST(CompletionEvent, ModerationByTime) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.rig.b.verbs().modify_cq(t.rig.b.core, *t.cq, {10, 50}), Status::kOk);
    t.arm();
    t.send();
    EXPECT_EQ(t.events(), 0U);
    const Time written = t.cq->written.last_write();
    t.fetch_event();
    const Time after = sim_now() - written;
    const auto& cpu = t.rig.config().cpu;
    // The period starts when the device writes the completion, before it is visible.
    const Time handling = cpu.interrupt_latency + cpu.wakeup_latency;
    EXPECT_GT(after, microseconds(49) + handling);
    EXPECT_LT(after, microseconds(51) + handling);
  });
}

TEST(CompletionEvent, AnErrorIsNotModerated) {
  EventRig t;
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.rig.b.verbs().modify_cq(t.rig.b.core, *t.cq, {10, 1000}), Status::kOk);
    t.arm();
    t.send();
    EXPECT_EQ(t.events(), 0U);
    // The second message is too long for its RECV.
    ASSERT_EQ(t.rig.a.post(*t.from, WrOpcode::kSend, t.source.address, t.source.region.lkey, 65),
              Status::kOk);
    t.rig.settle();
    EXPECT_EQ(t.events(), 1U);
  });
}

TEST(CompletionEvent, InterruptsKeepTheirDistance) {
  EventRig t(Settings{{"nic.interrupt_moderation", "100us"}});
  t.rig.run([&] {
    t.connect();
    for (int i = 0; i < 2; ++i) {
      t.arm();
      t.send();
    }
    EXPECT_EQ(t.events(), 1U);
    EXPECT_EQ(t.interrupts(), 1U);
    t.rig.settle(microseconds(100));
    EXPECT_EQ(t.interrupts(), 2U);
    EXPECT_EQ(t.events(), 2U);
  });
}

TEST(CompletionQueues, ResizedWhileInUse) {
  EventRig t;
  t.rig.run([&] {
    t.connect(8);
    for (int i = 0; i < 6; ++i) t.send();
    EXPECT_EQ(t.rig.b.verbs().resize_cq(t.rig.b.core, *t.cq, 5), Status::kEinval);
    Wc wcs[64];
    ASSERT_EQ(t.rig.b.verbs().poll_cq(t.rig.b.core, *t.cq, 2, wcs), 2U);
    const std::uint64_t next = wcs[1].wr_id + 1;
    // Messages arrive before, while and after the ring changes: none is lost, none comes twice.
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(t.rig.a.post(*t.from, WrOpcode::kSend, t.source.address, t.source.region.lkey, 8),
                Status::kOk);
    }
    ASSERT_EQ(t.rig.b.verbs().resize_cq(t.rig.b.core, *t.cq, 32), Status::kOk);
    for (int i = 0; i < 10; ++i) t.send();
    t.rig.settle();
    std::uint64_t expected = next;
    while (t.rig.b.verbs().poll_cq(t.rig.b.core, *t.cq, 1, wcs) == 1) {
      EXPECT_EQ(wcs[0].status, WcStatus::kSuccess);
      EXPECT_EQ(wcs[0].wr_id, expected++);
    }
    EXPECT_EQ(expected - next, 17U);  // 4 + 3 + 10
    // Smaller again.
    ASSERT_EQ(t.rig.b.verbs().resize_cq(t.rig.b.core, *t.cq, 4), Status::kOk);
    for (int i = 0; i < 4; ++i) t.send();
    EXPECT_EQ(t.drain(), 4U);
  });
}

TEST(CompletionQueues, PolledInTimeNeverRunOver) {
  EventRig t;
  t.rig.run([&] {
    t.connect(2);
    for (int i = 0; i < 20; ++i) {
      t.send();
      EXPECT_EQ(t.drain(), 1U);
      ASSERT_EQ(t.rig.b.post_recv(*t.to, t.sink.address, t.sink.region.lkey, 64), Status::kOk);
    }
    EXPECT_EQ(t.rig.b.node.nic.cq.overruns(), 0U);
  });
}

TEST(AsyncEvents, CommunicationEstablished) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    using Mask = protocol::QpAttrMask;
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kRtr;
    attr.ah_attr = path_between(1, 0);
    attr.dest_qp_num = rig.a.qp->qpn;
    attr.path_mtu = rig.config().transport.mtu;
    attr.rq_psn = 0xFF'FFF0;
    ASSERT_EQ(
        rig.b.verbs().modify_qp(rig.b.core, *rig.b.qp, attr,
                                Mask::kState | Mask::kAv | Mask::kPathMtu | Mask::kDestQpn |
                                    Mask::kRqPsn | Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer),
        Status::kOk);
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 8, theirs.address,
                           theirs.region.rkey),
                Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    rig.settle();
    AsyncEvent event;
    ASSERT_TRUE(rig.b.verbs().poll_async_event(rig.b.core, event));
    EXPECT_EQ(event.type, EventType::kCommEstablished);
    EXPECT_EQ(event.qp, rig.b.qp);
    EXPECT_FALSE(rig.b.verbs().poll_async_event(rig.b.core, event)) << "once";
  });
}

TEST(AsyncEvents, SendQueueDrained) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(1U << 20);
    const RigBuffer theirs = rig.b.buffer(1U << 20);
    rig.settle();  // registration takes longer than the message
    const auto write = [&](std::uint32_t bytes) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, bytes,
                           theirs.address, theirs.region.rkey),
                Status::kOk);
    };
    write(1U << 20);  // 84 us at 100 Gb/s: longer than the command
    for (int i = 0; i < 3; ++i) write(64);
    rig.settle(microseconds(5));
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kSqd;
    attr.en_sqd_async_notify = true;
    using Mask = protocol::QpAttrMask;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr,
                                      Mask::kState | Mask::kEnSqdAsyncNotify),
              Status::kOk);
    AsyncEvent event;
    EXPECT_FALSE(rig.a.verbs().poll_async_event(rig.a.core, event));
    event = rig.a.verbs().get_async_event(rig.a.core);
    EXPECT_EQ(event.type, EventType::kSqDrained);
    // The message under way was finished, those behind it were not begun.
    Wc wcs[8];
    EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 8, wcs), 1U);
    write(64);
    rig.settle();
    EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 8, wcs), 0U);
    attr.qp_state = QpState::kRts;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kState), Status::kOk);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  });
}

TEST(AsyncEvents, ARefusalIsTheRespondersOnlySign) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 8, 0x1000, 0x777),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kRemoteAccessError);
    rig.settle();
    AsyncEvent event;
    ASSERT_TRUE(rig.b.verbs().poll_async_event(rig.b.core, event));
    EXPECT_EQ(event.type, EventType::kQpAccessError);
    EXPECT_EQ(event.qp, rig.b.qp);
    EXPECT_EQ(rig.b.qp->state, QpState::kError);
  });
}

}  // namespace
}  // namespace rnic::testbench
