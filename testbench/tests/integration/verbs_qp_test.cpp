// SPDX-License-Identifier: Apache-2.0
// Queue pair states with the verbs API: what ibv_modify_qp refuses, what may be posted when, and
// objects that are still in use.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QpAttr;
using host::verbs::QueuePair;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Mask = protocol::QpAttrMask;

constexpr std::uint32_t kRtrMask = Mask::kState | Mask::kAv | Mask::kPathMtu | Mask::kDestQpn |
                                   Mask::kRqPsn | Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer;
constexpr std::uint32_t kRtsMask = Mask::kState | Mask::kSqPsn | Mask::kTimeout | Mask::kRetryCnt |
                                   Mask::kRnrRetry | Mask::kMaxQpRdAtomic;

TEST(QpStates, IllegalTransitionsAndMissingAttributes) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();  // INIT
    const auto modify = [&](QpState to, std::uint32_t mask) {
      QpAttr attr;
      attr.qp_state = to;
      attr.ah_attr = path_between(0, 1);
      attr.path_mtu = 1024;
      return rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, mask);
    };
    EXPECT_EQ(modify(QpState::kRts, kRtsMask), Status::kEinval);
    EXPECT_EQ(modify(QpState::kSqd, Mask::kState), Status::kEinval);
    EXPECT_EQ(modify(QpState::kRtr, kRtrMask & ~Mask::kRqPsn), Status::kEinval);
    EXPECT_EQ(modify(QpState::kRtr, kRtrMask | Mask::kSqPsn), Status::kEinval);
    EXPECT_EQ(rig.a.verbs().query_qp(rig.a.core, *rig.a.qp), QpState::kInit);
    EXPECT_EQ(modify(QpState::kRtr, kRtrMask), Status::kOk);
    EXPECT_EQ(modify(QpState::kInit, Mask::kState), Status::kEinval);
    EXPECT_EQ(modify(QpState::kRts, kRtsMask), Status::kOk);
    EXPECT_EQ(modify(QpState::kSqe, Mask::kState), Status::kEinval);
    EXPECT_EQ(modify(QpState::kSqd, Mask::kState), Status::kOk);
    EXPECT_EQ(modify(QpState::kRts, Mask::kState), Status::kOk);
    EXPECT_EQ(modify(QpState::kError, Mask::kState), Status::kOk);
    EXPECT_EQ(modify(QpState::kRts, Mask::kState), Status::kEinval);
    EXPECT_EQ(modify(QpState::kReset, Mask::kState), Status::kOk);
    EXPECT_EQ(modify(QpState::kError, Mask::kState), Status::kEinval);
  });
}

TEST(QpStates, ValuesOutOfRange) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    const auto refused = [&](QpState to, std::uint32_t mask,
                             const std::function<void(QpAttr&)>& set) {
      QpAttr attr;
      attr.qp_state = to;
      attr.ah_attr = path_between(0, 1);
      attr.path_mtu = 1024;
      set(attr);
      return rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, mask) == Status::kEinval;
    };
    const std::uint32_t cap = rig.config().nic.max_rd_atomic;
    EXPECT_TRUE(
        refused(QpState::kRtr, kRtrMask, [&](QpAttr& a) { a.max_dest_rd_atomic = cap + 1; }));
    EXPECT_TRUE(refused(QpState::kRtr, kRtrMask, [](QpAttr& a) { a.path_mtu = 1000; }));
    EXPECT_TRUE(refused(QpState::kRtr, kRtrMask, [](QpAttr& a) { a.min_rnr_timer = 32; }));
    EXPECT_TRUE(refused(QpState::kRtr, kRtrMask, [](QpAttr& a) { a.dest_qp_num = 1U << 24; }));
    EXPECT_FALSE(refused(QpState::kRtr, kRtrMask, [&](QpAttr& a) { a.max_dest_rd_atomic = cap; }));
    EXPECT_TRUE(refused(QpState::kRts, kRtsMask, [&](QpAttr& a) { a.max_rd_atomic = cap + 1; }));
    EXPECT_TRUE(refused(QpState::kRts, kRtsMask, [](QpAttr& a) { a.retry_cnt = 8; }));
    EXPECT_TRUE(refused(QpState::kRts, kRtsMask, [](QpAttr& a) { a.rnr_retry = 8; }));
    EXPECT_TRUE(refused(QpState::kRts, kRtsMask, [](QpAttr& a) { a.timeout = 32; }));
    EXPECT_FALSE(refused(QpState::kRts, kRtsMask, [&](QpAttr& a) { a.max_rd_atomic = cap; }));
  });
}

TEST(QpStates, AttributesWithoutAState) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();
    QpAttr attr;  // says RESET, which nobody asks for
    attr.min_rnr_timer = 5;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kMinRnrTimer),
              Status::kOk);
    EXPECT_EQ(rig.a.device_qp().min_rnr_timer, 5U);
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, 0), Status::kOk);
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kSqPsn), Status::kEinval);
    EXPECT_EQ(rig.a.state(), QpState::kRts);
    EXPECT_EQ(rig.a.qp->state, QpState::kRts);
  });
}

class QpStatesOver : public ::testing::TestWithParam<protocol::QpType> {};

TEST_P(QpStatesOver, OutOfTheSendQueueErrorState) {
  const bool datagrams = GetParam() == protocol::QpType::kUd;
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.connect(GetParam());
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 200), Status::kOk);
    }
    const auto send = [&](std::uint32_t lkey) {
      const protocol::Sge sge{mine.address, 64, lkey};
      host::verbs::SendWr wr;
      wr.flags = host::verbs::SendFlags::kSignaled;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.ah = datagrams ? rig.a_to_b : nullptr;
      wr.remote_qpn = rig.b.qp->qpn;
      wr.remote_qkey = kRigQkey;
      return rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1);
    };
    ASSERT_EQ(send(mine.region.lkey ^ 1), Status::kOk);
    ASSERT_EQ(send(mine.region.lkey), Status::kOk);
    rig.settle();
    // The driver has polled nothing: only the application can say where the queue pair is.
    QpAttr attr;
    attr.qp_state = QpState::kRts;
    attr.cur_qp_state = QpState::kRts;
    const std::uint32_t mask = Mask::kState | Mask::kCurState;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, mask), Status::kEinval);
    EXPECT_EQ(rig.a.state(), QpState::kSqe);
    EXPECT_EQ(rig.b.state(), QpState::kRts);
    attr.cur_qp_state = QpState::kSqe;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, mask), Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kWrFlushError);
    ASSERT_EQ(send(mine.region.lkey), Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.await_recv().status, WcStatus::kSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Services, QpStatesOver,
                         ::testing::Values(protocol::QpType::kUc, protocol::QpType::kUd),
                         [](const auto& test) {
                           return test.param == protocol::QpType::kUc ? "uc" : "ud";
                         });

TEST(ProtectionDomains, OneThatDoesNotExist) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    host::verbs::Context& verbs = rig.a.verbs();
    const std::uint32_t gone = verbs.alloc_pd();
    EXPECT_EQ(verbs.dealloc_pd(gone), Status::kOk);
    EXPECT_EQ(verbs.dealloc_pd(gone), Status::kEinval);
    const std::uint64_t address = rig.a.space().map(4096);
    for (const std::uint32_t pd : {0U, gone, gone + 1}) {
      EXPECT_EQ(verbs.reg_mr(rig.a.core, pd, address, 4096, kAllAccess).status, Status::kEinval);
      EXPECT_EQ(verbs.create_qp(rig.a.core, pd, *rig.a.send_cq, *rig.a.recv_cq, {}), nullptr);
      EXPECT_EQ(verbs.create_srq(rig.a.core, pd, {}), nullptr);
      EXPECT_EQ(verbs.create_ah(rig.a.core, pd, path_between(0, 1)), nullptr);
      EXPECT_FALSE(verbs.alloc_mw(rig.a.core, pd, host::verbs::MwType::kType2));
      EXPECT_FALSE(verbs.alloc_fast_mr(rig.a.core, pd, 1));
    }
  });
}

TEST(QpStates, WhatMayBePostedWhen) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    const RigBuffer mine = rig.a.buffer(4096);
    // INIT: RECVs, no SENDs.
    EXPECT_EQ(rig.a.post(WrOpcode::kSend, mine.address, mine.region.lkey, 8), Status::kEinval);
    EXPECT_EQ(rig.a.post_recv(mine.address, mine.region.lkey, 8), Status::kOk);
    QpAttr attr;
    attr.qp_state = QpState::kReset;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kState), Status::kOk);
    EXPECT_EQ(rig.a.post_recv(mine.address, mine.region.lkey, 8), Status::kEinval);
    Wc wc;
    EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.recv_cq, 1, &wc), 0U)
        << "a reset drops, it does not flush";
  });
}

/// Two connections on the same completion queues; returns the requester of the second.
QueuePair* connect_two(VerbsRig& rig) {
  rig.connect();
  QueuePair* from = rig.a.make_qp(RigSide::qp_attr());
  rig.join(*from, *rig.b.make_qp(RigSide::qp_attr()));
  return from;
}

/// The ring of one queue pair cannot be read: it ends, its work is flushed, and the one beside it,
/// on the same completion queues, goes on.
TEST(QpStates, WhatCannotBeReadEndsOneOfTwo) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"nic.blueflame", "false"}});
  rig.run([&] {
    QueuePair* other_from = connect_two(rig);
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    rig.settle();
    const auto write = [&](QueuePair& from) {
      ASSERT_EQ(rig.a.post(from, WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 4096,
                           theirs.address, theirs.region.rkey),
                Status::kOk);
    };
    rig.a.node.pcie.faults().poison_next(tlm_ext::Purpose::kWqe);
    for (int i = 0; i < 3; ++i) write(*rig.a.qp);
    rig.settle();
    for (int i = 0; i < 3; ++i) write(*other_from);
    for (int i = 0; i < 3; ++i) {
      const Wc wc = rig.a.await_send();
      EXPECT_EQ(wc.qp_num, rig.a.qp->qpn);
      EXPECT_EQ(wc.status, WcStatus::kWrFlushError);
    }
    for (int i = 0; i < 3; ++i) {
      const Wc wc = rig.a.await_send();
      EXPECT_EQ(wc.qp_num, other_from->qpn);
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
    }
    EXPECT_EQ(rig.a.state(), QpState::kError);
    EXPECT_EQ(rig.a.device_qp(*other_from).state, QpState::kRts);
    host::verbs::AsyncEvent event;
    ASSERT_TRUE(rig.a.verbs().poll_async_event(rig.a.core, event));
    EXPECT_EQ(event.type, protocol::EventType::kQpFatal);
    EXPECT_EQ(event.qp, rig.a.qp);
    EXPECT_FALSE(rig.a.verbs().poll_async_event(rig.a.core, event));
    // Once out of RESET it can be read again: what failed is of its former life.
    QpAttr attr;
    attr.qp_state = QpState::kReset;
    for (RigSide* side : {&rig.a, &rig.b}) {
      ASSERT_EQ(side->verbs().modify_qp(side->core, *side->qp, attr, Mask::kState), Status::kOk);
      side->to_init(*side->qp);
    }
    rig.join(*rig.a.qp, *rig.b.qp);
    write(*rig.a.qp);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  });
}

TEST(QpStates, DestroyedWhileTrafficRuns) {
  VerbsRig rig({{"transport.protocol", "ib"}, {"transport.ack_timeout", "4"}});
  rig.run([&] {
    QueuePair* other_from = connect_two(rig);
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    rig.settle();
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 4096,
                           theirs.address, theirs.region.rkey),
                Status::kOk);
      ASSERT_EQ(rig.a.post(*other_from, WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 4096,
                           theirs.address, theirs.region.rkey),
                Status::kOk);
    }
    EXPECT_EQ(rig.a.verbs().destroy_cq(rig.a.core, rig.a.send_cq), Status::kEbusy);
    EXPECT_EQ(rig.a.verbs().destroy_qp(rig.a.core, rig.a.qp), Status::kOk);
    // Its completions are gone; the other queue pair's are all there.
    for (int i = 0; i < 20; ++i) {
      const Wc wc = rig.a.await_send();
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.qp_num, other_from->qpn);
    }
    rig.settle(microseconds(1000));
    Wc wc;
    EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 1, &wc), 0U);
  });
}

}  // namespace
}  // namespace rnic::testbench
