// SPDX-License-Identifier: Apache-2.0
// What applications do while work is under way: end a region or a handle that it uses, pause a send
// queue, take a right away, let a completion queue fill up; and the ends of numbers.
#include <gtest/gtest.h>

#include "protocol/atomic.h"
#include "support/corner_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AsyncEvent;
using host::verbs::CqInitAttr;
using host::verbs::QpAttr;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::EventType;
using protocol::QpState;
using protocol::Sge;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;
using Mask = protocol::QpAttrMask;

constexpr std::uint64_t kPage = CornerRig::kPage;
constexpr std::uint32_t kLong = 1 << 20;  ///< 85 us at 100 Gb/s

/// Where a READ puts its bytes, and takes them from.
struct ReadBuffers {
  RigBuffer sink;
  RigBuffer source;
};

/// Posts a READ of kLong bytes and returns when an eighth of them has arrived.
ReadBuffers read_under_way(CornerRig& t) {
  ReadBuffers buffers{t.rig.a.buffer(kLong, CornerRig::kEverything), t.rig.b.buffer(kLong)};
  const auto& [sink, source] = buffers;
  t.rig.b.fill(source.address, Bytes(kLong, 0x5A));
  t.rig.settle();
  EXPECT_EQ(t.rig.a.post(WrOpcode::kRdmaRead, sink.address, sink.region.lkey, kLong, source.address,
                         source.region.rkey),
            Status::kOk);
  t.rig.a.core.sync();
  while (t.rig.a.bytes_at(sink.address + kLong / 8, 1) == Bytes(1, 0)) {
    t.rig.settle(nanoseconds(500));
  }
  return buffers;
}

class UnderWay : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wires, UnderWay, ::testing::Values("ib", "rocev2", "iwarp"),
                         [](const auto& test) { return test.param; });

// Regions and handles ------------------------------------------------------------------------

TEST_P(UnderWay, TheSinkOfAReadIsDeregistered) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const auto [sink, source] = read_under_way(t);
    ASSERT_EQ(t.rig.a.verbs().dereg_mr(t.rig.a.core, sink.region), Status::kOk);
    // iWARP's sink is named by its STag on the wire: its own end refuses the segment.
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(t.rig.a.state(), QpState::kError);
    // What is behind the end of the region's life stays as it was.
    const Bytes then = t.rig.a.bytes_at(sink.address, kLong);
    EXPECT_EQ(then.back(), 0);
    t.rig.settle(microseconds(200));
    EXPECT_EQ(t.rig.a.bytes_at(sink.address, kLong), then);
    if (GetParam() != "iwarp") {
      EXPECT_EQ(t.rig.b.state(), QpState::kRts);
    }
  });
}

TEST_P(UnderWay, TheSourceOfAReadIsDeregistered) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const auto [sink, source] = read_under_way(t);
    ASSERT_EQ(t.rig.b.verbs().dereg_mr(t.rig.b.core, source.region), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kRemoteAccessError);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.state(), QpState::kError);
    EXPECT_EQ(t.rig.b.state(), QpState::kError);
    EXPECT_EQ(t.rig.a.bytes_at(sink.address + kLong - 1, 1), Bytes(1, 0));
  });
}

TEST(UnderWayDatagrams, TheirHandleIsDestroyed) {
  CornerRig t("rocev2");
  t.rig.run([&] {
    t.connect(protocol::QpType::kUd);
    constexpr int kCount = 8;
    const Sge room{t.theirs.address, 200, t.theirs.region.lkey};
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(t.post_recv(&room, 1), Status::kOk);
    t.rig.settle();
    auto* handle = t.rig.a.verbs().create_ah(t.rig.a.core, t.rig.a.pd, path_between(0, 1));
    const Sge sge{t.mine.address, 64, t.mine.region.lkey};
    for (int i = 0; i < kCount; ++i) {
      SendWr wr = t.request(WrOpcode::kSend, &sge, 1);
      wr.ah = handle;
      ASSERT_EQ(t.post(wr), Status::kOk);
    }
    // Each work request holds what the handle said when it was posted.
    ASSERT_EQ(t.rig.a.verbs().destroy_ah(t.rig.a.core, handle), Status::kOk);
    for (int i = 0; i < kCount; ++i) {
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
    }
  });
}

TEST_P(UnderWay, ABoundWindowIsDeallocated) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    constexpr protocol::AccessFlags kBindable = CornerRig::kEverything | protocol::kAccessMwBind;
    const RigBuffer region = t.rig.b.buffer(kPage, kBindable);
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, host::verbs::MwType::kType2);
    ASSERT_TRUE(window);
    SendWr bind;
    bind.wr_id = 1;
    bind.opcode = WrOpcode::kBindMw;
    bind.flags = SendFlags::kSignaled;
    const std::uint32_t key = host::verbs::next_key(window->rkey);
    bind.bind = {&*window,       key,   region.region.lkey,
                 region.address, kPage, protocol::kAccessRemoteWrite};
    ASSERT_EQ(t.rig.b.verbs().post_send(t.rig.b.core, *t.rig.b.qp, &bind, 1), Status::kOk);
    EXPECT_EQ(t.rig.b.await_send().status, WcStatus::kSuccess);
    const auto write = [&] {
      EXPECT_EQ(t.rig.a.post(WrOpcode::kRdmaWrite, t.mine.address, t.mine.region.lkey, 8,
                             region.address, key),
                Status::kOk);
      return t.rig.a.await_send().status;
    };
    EXPECT_EQ(write(), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.verbs().dereg_mr(t.rig.b.core, region.region), Status::kEbusy);
    host::verbs::MemoryWindow bound = *window;
    bound.rkey = key;
    EXPECT_EQ(t.rig.b.verbs().dealloc_mw(t.rig.b.core, bound), Status::kOk);
    EXPECT_EQ(write(), WcStatus::kRemoteAccessError);
    EXPECT_EQ(t.rig.b.verbs().dereg_mr(t.rig.b.core, region.region), Status::kOk);
  });
}

// Queues -------------------------------------------------------------------------------------

TEST_P(UnderWay, AFullCompletionQueueGrowsBeforeItRunsOver) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.a.verbs();
    auto* cq = verbs.create_cq(t.rig.a.core, 16);
    t.rig.a.qp = t.rig.a.make_qp(RigSide::qp_attr(), *cq, *t.rig.a.recv_cq);
    t.rig.b.qp = t.rig.b.make_qp(RigSide::qp_attr());
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    const std::uint64_t first = t.rig.a.wr_ids + 1;
    const auto write = [&](int count) {
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, sge), Status::kOk);
      }
      t.rig.settle();
    };
    write(16);
    EXPECT_EQ(verbs.resize_cq(t.rig.a.core, *cq, 15), Status::kEinval) << "16 wait";
    EXPECT_EQ(verbs.resize_cq(t.rig.a.core, *cq, 16), Status::kOk);
    EXPECT_EQ(verbs.resize_cq(t.rig.a.core, *cq, 32), Status::kOk);
    write(16);
    AsyncEvent event;
    EXPECT_FALSE(verbs.poll_async_event(t.rig.a.core, event)) << "it has not run over";
    for (std::uint64_t i = 0; i < 32; ++i) {
      const Wc wc = t.rig.a.await(*cq);
      EXPECT_EQ(wc.wr_id, first + i);
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
    }
    EXPECT_EQ(verbs.resize_cq(t.rig.a.core, *cq, 1), Status::kOk) << "nothing waits";
    write(1);
    EXPECT_EQ(t.rig.a.await(*cq).status, WcStatus::kSuccess);
    Wc none;
    EXPECT_EQ(verbs.poll_cq(t.rig.a.core, *cq, 0, &none), 0U) << "as many as were asked for";
  });
}

TEST_P(UnderWay, APausedSendQueueTakesWorkAndServesItsPeer) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.to_state(QpState::kSqd), Status::kOk);
    t.rig.a.fill(t.mine.address, Bytes(8, 0x42));
    ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, {t.mine.address, 8, t.mine.region.lkey}), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 8), Bytes(8, 0)) << "nothing leaves";
    // The other half of the queue pair goes on: the peer READs here.
    ASSERT_EQ(t.rig.b.post(WrOpcode::kRdmaRead, t.theirs.address + kPage, t.theirs.region.lkey, 8,
                           t.mine.address, t.mine.region.rkey),
              Status::kOk);
    EXPECT_EQ(t.rig.b.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + kPage, 8), Bytes(8, 0x42));
    EXPECT_EQ(t.completions(*t.rig.a.send_cq, t.rig.a), 0U);
    ASSERT_EQ(t.to_state(QpState::kRts), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 8), Bytes(8, 0x42));
  });
}

TEST_P(UnderWay, ARightIsTakenAwayFromAConnectedQueuePair) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaWrite, sge), WcStatus::kSuccess);
    QpAttr attr;
    attr.access_flags = protocol::kAccessRemoteRead;
    ASSERT_EQ(t.rig.b.verbs().modify_qp(t.rig.b.core, *t.rig.b.qp, attr, Mask::kAccessFlags),
              Status::kOk);
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaRead, sge), WcStatus::kSuccess);
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaWrite, sge), GetParam() == "iwarp"
                                                        ? WcStatus::kRemoteAccessError
                                                        : WcStatus::kRemoteInvalidRequestError);
  });
}

/// What is posted before the queue pair may receive is there when it does.
TEST_P(UnderWay, ARecvOfAQueuePairInInitIsUsedLater) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.rig.a.create();
    t.rig.b.create();
    t.prepare();
    const Sge room{t.theirs.address, 64, t.theirs.region.lkey};
    ASSERT_EQ(t.post_recv(&room, 1), Status::kOk);
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    t.rig.a.fill(t.mine.address, Bytes(64, 0x19));
    EXPECT_EQ(t.outcome(WrOpcode::kSend, {t.mine.address, 64, t.mine.region.lkey}),
              WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.await_recv().wr_id, t.rig.b.wr_ids);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 64), Bytes(64, 0x19));
  });
}

/// Failures count as solicited (ibv_req_notify_cq(3)), those of the sender as those of the
/// receiver.
TEST(UnderWayEvents, AFailureIsSolicited) {
  CornerRig t("rocev2");
  t.rig.run([&] {
    t.connect();
    auto* channel = t.rig.a.verbs().create_comp_channel();
    auto* cq = t.rig.a.verbs().create_cq(t.rig.a.core, CqInitAttr{64, channel, false});
    t.rig.a.qp = t.rig.a.make_qp(RigSide::qp_attr(), *cq, *cq);
    t.rig.b.qp = t.rig.b.make_qp(RigSide::qp_attr());
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    ASSERT_EQ(t.rig.a.post_recv(t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    const auto arm = [&] {
      ASSERT_EQ(t.rig.a.verbs().req_notify_cq(t.rig.a.core, *cq, true), Status::kOk);
      t.rig.settle();
    };
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    arm();
    ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, sge), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(channel->events.size(), 0U) << "a success of the sender is not solicited";
    SendWr wr = t.request(WrOpcode::kRdmaWrite, &sge, 1);
    wr.rkey ^= 1;
    ASSERT_EQ(t.post(wr), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(channel->events.size(), 1U);
    // The flushed RECV is there, too; from now on each flush is news.
    arm();
    EXPECT_EQ(t.completions(*cq, t.rig.a), 3U) << "success, failure, flushed RECV";
    ASSERT_EQ(t.rig.a.post_recv(t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(channel->events.size(), 2U);
  });
}

TEST(UnderWayEvents, TheLimitOfASharedQueueIsArmedAgain) {
  CornerRig t("rocev2");
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    auto* srq = verbs.create_srq(t.rig.b.core, t.rig.b.pd, {8, 1});
    host::verbs::QpInitAttr shared = RigSide::qp_attr();
    shared.srq = srq;
    t.rig.a.qp = t.rig.a.make_qp(RigSide::qp_attr());
    t.rig.b.qp = t.rig.b.make_qp(shared);
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    const auto fill = [&](int count) {
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(t.rig.b.post_srq_recv(*srq, t.theirs.address, t.theirs.region.lkey, 8),
                  Status::kOk);
      }
    };
    const auto events = [&] {
      t.rig.settle();
      AsyncEvent event;
      int count = 0;
      while (verbs.poll_async_event(t.rig.b.core, event)) {
        EXPECT_EQ(event.type, EventType::kSrqLimitReached);
        ++count;
      }
      return count;
    };
    const auto send = [&](int count) {
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(t.outcome(WrOpcode::kSend, {t.mine.address, 8, t.mine.region.lkey}),
                  WcStatus::kSuccess);
        EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
      }
    };
    fill(4);
    ASSERT_EQ(verbs.modify_srq(t.rig.b.core, *srq, 3), Status::kOk);
    send(3);
    EXPECT_EQ(events(), 1);
    // Filled up without arming: falling below once more is not told.
    fill(4);
    send(4);
    EXPECT_EQ(events(), 0);
    fill(4);
    ASSERT_EQ(verbs.modify_srq(t.rig.b.core, *srq, 3), Status::kOk);
    EXPECT_EQ(events(), 0) << "five are there";
    send(3);
    EXPECT_EQ(events(), 1);
  });
}

// The ends of numbers ------------------------------------------------------------------------

TEST_P(UnderWay, AnAddWrapsAndAComparisonThatFailsChangesNothing) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    Bytes word(8, 0xFF);
    t.rig.b.fill(t.theirs.address, word);
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    SendWr wr = t.request(WrOpcode::kAtomicFetchAndAdd, &sge, 1);
    const auto run = [&] {
      EXPECT_EQ(t.post(wr), Status::kOk);
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      t.rig.settle();
      return std::make_pair(protocol::load_operand(t.rig.a.bytes_at(t.mine.address, 8).data()),
                            protocol::load_operand(t.rig.b.bytes_at(t.theirs.address, 8).data()));
    };
    wr.compare_add = 3;
    EXPECT_EQ(run(), std::make_pair(~std::uint64_t{0}, std::uint64_t{2})) << "-1 + 3";
    wr.opcode = WrOpcode::kAtomicCmpAndSwp;
    wr.compare_add = 1;
    wr.swap = 9;
    EXPECT_EQ(run(), std::make_pair(std::uint64_t{2}, std::uint64_t{2})) << "not 1";
    wr.compare_add = 2;
    EXPECT_EQ(run(), std::make_pair(std::uint64_t{2}, std::uint64_t{9}));
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + 8, 8), Bytes(8, 0));
  });
}

/// A fenced atomic behind a READ of its word: the READ brings what was there before.
TEST_P(UnderWay, AFenceBetweenAReadAndAnAtomic) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    t.rig.b.fill(t.theirs.address, Bytes(8, 0x01));
    const Sge sink{t.mine.address, 8, t.mine.region.lkey};
    const Sge old{t.mine.address + 8, 8, t.mine.region.lkey};
    SendWr list[3] = {t.request(WrOpcode::kRdmaRead, &sink, 1),
                      t.request(WrOpcode::kAtomicCmpAndSwp, &old, 1),
                      t.request(WrOpcode::kRdmaWrite, &sink, 1)};
    list[1].flags |= SendFlags::kFence;
    list[1].compare_add = 0x0101'0101'0101'0101;
    list[1].swap = 7;
    list[2].flags |= SendFlags::kFence;  // its source is the READ's sink
    list[2].remote_addr += kPage;
    ASSERT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.rig.a.qp, list, 3), Status::kOk);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.bytes_at(t.mine.address, 16), Bytes(16, 0x01));
    EXPECT_EQ(protocol::load_operand(t.rig.b.bytes_at(t.theirs.address, 8).data()), 7U);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + kPage, 8), Bytes(8, 0x01));
  });
}

/// 2^31 bytes are a message, one more is none (IBTA vol 1, 9.7.6); the region is smaller than
/// either. What an element of a WQE cannot hold is refused when posted.
TEST(NumbersEnd, OfTheLongestMessage) {
  CornerRig t("rocev2");
  t.rig.run([&] {
    t.connect();
    host::verbs::QpInitAttr attr = RigSide::qp_attr();
    attr.max_send_sge = 3;
    const auto post = [&](std::uint32_t first, std::uint32_t second, std::uint32_t third) {
      t.rig.a.qp = t.rig.a.make_qp(attr);
      t.rig.b.qp = t.rig.b.make_qp(attr);
      t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
      const Sge list[3] = {{t.mine.address, first, t.mine.region.lkey},
                           {t.mine.address, second, t.mine.region.lkey},
                           {t.mine.address, third, t.mine.region.lkey}};
      return t.post(t.request(WrOpcode::kRdmaWrite, list, 3));
    };
    const auto outcome = [&](std::uint32_t first, std::uint32_t second, std::uint32_t third) {
      EXPECT_EQ(post(first, second, third), Status::kOk);
      return t.rig.a.await_send().status;
    };
    constexpr std::uint32_t kHalf = 1U << 30;
    constexpr std::uint32_t kLongest = 2 * kHalf - 1;  // of an element
    EXPECT_EQ(outcome(kHalf, kHalf, 0), WcStatus::kLocalProtectionError);
    EXPECT_EQ(outcome(kLongest, 0, 1), WcStatus::kLocalProtectionError);
    EXPECT_EQ(outcome(kHalf, kHalf, 1), WcStatus::kLocalLengthError);
    EXPECT_EQ(outcome(kLongest, kLongest, 2), WcStatus::kLocalLengthError) << "2^32, not 0";
    EXPECT_EQ(post(kLongest + 1, 0, 0), Status::kEinval);
    EXPECT_STRNE(t.rig.a.verbs().refusal(), "");
    EXPECT_EQ(post(0, ~0U, 0), Status::kEinval);
  });
}

/// A queue pair that may have no READ under way can send none: it fails, and does not wait for
/// ever.
TEST_P(UnderWay, WithoutInitiatorDepthThereAreNoReads) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.rig.a.create();
    t.rig.b.create();
    config::TransportConfig none = t.rig.config().transport;
    none.max_rd_atomic = 0;
    t.rig.a.connect(*t.rig.a.qp, t.rig.b.qp->qpn, path_between(0, 1), none);
    t.rig.b.connect(*t.rig.b.qp, t.rig.a.qp->qpn, path_between(1, 0), t.rig.config().transport);
    t.prepare();
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaWrite, sge), WcStatus::kSuccess);
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaRead, sge), WcStatus::kLocalQpOperationError);
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaWrite, sge), WcStatus::kWrFlushError);
  });
}

}  // namespace
}  // namespace rnic::testbench
