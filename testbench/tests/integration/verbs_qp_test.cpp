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

TEST(QpStates, DestroyedWhileTrafficRuns) {
  VerbsRig rig({{"transport.protocol", "ib"}, {"transport.ack_timeout", "4"}});
  rig.run([&] {
    rig.connect();
    QueuePair* other_from = rig.a.make_qp(RigSide::qp_attr());
    QueuePair* other_to = rig.b.make_qp(RigSide::qp_attr());
    rig.join(*other_from, *other_to);
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
