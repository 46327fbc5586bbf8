// SPDX-License-Identifier: Apache-2.0
// What experts of verbs ask: inline data, empty messages and elements, unsignalled work that fails,
// partition keys, refusals of post_recv, events of solicited work, the ends of regions.
#include <gtest/gtest.h>

#include "support/corner_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AsyncEvent;
using host::verbs::CqInitAttr;
using host::verbs::QpAttr;
using host::verbs::QpInitAttr;
using host::verbs::RecvWr;
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
constexpr protocol::AccessFlags kEverything = CornerRig::kEverything;

class Corner : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wires, Corner, ::testing::Values("ib", "rocev1", "rocev2", "iwarp"),
                         [](const auto& test) { return test.param; });

// Inline -------------------------------------------------------------------------------------

TEST_P(Corner, InlineDataNeedNoKeyAndTheBufferIsFreeAtOnce) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const std::uint64_t unregistered = t.rig.a.space().map(kPage);
    t.rig.a.fill(unregistered, Bytes(32, 0x51));
    ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, {unregistered, 32, 0xDEAD'BEEF}, SendFlags::kInline),
              Status::kOk);
    t.rig.a.fill(unregistered, Bytes(32, 0x52));  // in the same instant
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 33)[31], 0x51);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 33)[32], 0);
  });
}

TEST_P(Corner, InlineDataOfSeveralElementsAreJoined) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    QpInitAttr attr = RigSide::qp_attr();
    attr.max_send_sge = 3;
    auto* from = t.rig.a.make_qp(attr);
    auto* to = t.rig.b.make_qp(attr);
    t.rig.join(*from, *to);
    t.rig.a.fill(t.mine.address, {1, 2, 3, 4, 5, 6, 7});
    const Sge list[3] = {
        {t.mine.address + 4, 3, 0}, {t.mine.address, 0, 0}, {t.mine.address, 2, 0}};
    SendWr wr = t.request(WrOpcode::kRdmaWrite, list, 3);
    wr.flags |= SendFlags::kInline;
    ASSERT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *from, &wr, 1), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 6), (Bytes{5, 6, 7, 1, 2, 0}));
  });
}

TEST_P(Corner, MoreInlineDataThanAskedForIsRefused) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();  // 64 bytes
    EXPECT_EQ(t.post(WrOpcode::kRdmaWrite, {t.mine.address, 64, 0}, SendFlags::kInline),
              Status::kOk);
    EXPECT_EQ(t.post(WrOpcode::kRdmaWrite, {t.mine.address, 65, 0}, SendFlags::kInline),
              Status::kEinval);
    EXPECT_EQ(
        t.post(WrOpcode::kRdmaRead, {t.mine.address, 8, t.mine.region.lkey}, SendFlags::kInline),
        Status::kEinval);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
  });
}

// Empty --------------------------------------------------------------------------------------

TEST_P(Corner, EmptyMessages) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.post_recv(nullptr, 0), Status::kOk);
    SendWr wr = t.request(WrOpcode::kSend, nullptr, 0);
    ASSERT_EQ(t.post(wr), Status::kOk);
    const Wc received = t.rig.b.await_recv();
    EXPECT_EQ(received.status, WcStatus::kSuccess);
    EXPECT_EQ(received.byte_len, 0U);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kRdmaRead}) {
      wr = t.request(opcode, nullptr, 0);
      ASSERT_EQ(t.post(wr), Status::kOk);
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      // Nothing is accessed, so nothing is checked (IBTA vol 1, 9.4.3 and 9.4.4; RFC 5040, 4.3).
      wr.rkey ^= 0x100;
      wr.remote_addr = 0;
      ASSERT_EQ(t.post(wr), Status::kOk);
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    }
    EXPECT_EQ(t.rig.b.state(), QpState::kRts);
  });
}

TEST_P(Corner, ElementsOfNoBytesAreSkipped) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    QpInitAttr attr = RigSide::qp_attr();
    attr.max_send_sge = attr.max_recv_sge = t.rig.config().nic.max_sge;
    t.rig.a.qp = t.rig.a.make_qp(attr);
    t.rig.b.qp = t.rig.b.make_qp(attr);
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    Bytes data(64);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i + 1);
    t.rig.a.fill(t.mine.address, data);
    // As many elements as the device has, every second one empty and with a key that is none.
    const std::uint32_t count = attr.max_recv_sge;
    std::vector<Sge> gather;
    std::vector<Sge> scatter;
    std::uint32_t total = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t bytes = i % 2 == 0 ? 3 : 0;
      gather.push_back({t.mine.address + total, bytes, bytes == 0 ? 1 : t.mine.region.lkey});
      scatter.push_back({t.theirs.address + std::uint64_t{100} * i, bytes,
                         bytes == 0 ? 1 : t.theirs.region.lkey});
      total += bytes;
    }
    ASSERT_LE(total, data.size());
    ASSERT_EQ(t.post_recv(scatter.data(), count), Status::kOk);
    ASSERT_EQ(t.post(t.request(WrOpcode::kSend, gather.data(), count)), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    const Wc wc = t.rig.b.await_recv();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, total);
    for (std::uint32_t i = 0; i < count; i += 2) {
      const auto at = static_cast<std::uint8_t>(3 * (i / 2) + 1);
      EXPECT_EQ(
          t.rig.b.bytes_at(t.theirs.address + std::uint64_t{100} * i, 4),
          (Bytes{at, static_cast<std::uint8_t>(at + 1), static_cast<std::uint8_t>(at + 2), 0}))
          << i;
    }
  });
}

// Unsignalled --------------------------------------------------------------------------------

TEST_P(Corner, UnsignalledWorkThatFailsAndWhatIsFlushedBehindItComplete) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    std::vector<SendWr> list;
    const Sge good{t.mine.address, 8, t.mine.region.lkey};
    const Sge bad{t.mine.address, 8, t.mine.region.lkey ^ 1};
    for (int i = 0; i < 5; ++i) {
      list.push_back(t.request(WrOpcode::kRdmaWrite, i == 2 ? &bad : &good, 1));
      list.back().flags = 0;
    }
    const std::uint64_t first = list.front().wr_id;
    ASSERT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.rig.a.qp, list.data(), 5), Status::kOk);
    Wc wc = t.rig.a.await_send();
    EXPECT_EQ(wc.wr_id, first + 2) << "the two before it say nothing";
    EXPECT_EQ(wc.status, WcStatus::kLocalProtectionError);
    for (const std::uint64_t behind : {3U, 4U}) {
      wc = t.rig.a.await_send();
      EXPECT_EQ(wc.wr_id, first + behind);
      EXPECT_EQ(wc.status, WcStatus::kWrFlushError);
    }
    t.rig.settle();
    EXPECT_EQ(t.completions(*t.rig.a.send_cq, t.rig.a), 0U);
  });
}

// Posting ------------------------------------------------------------------------------------

TEST_P(Corner, PostRecvNamesTheFirstThatItRefuses) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    QpInitAttr attr = RigSide::qp_attr();
    attr.max_recv_wr = 4;
    attr.max_recv_sge = 2;
    auto* qp = t.rig.b.make_qp(attr);
    const Sge three[3] = {{t.theirs.address, 8, t.theirs.region.lkey},
                          {t.theirs.address, 8, t.theirs.region.lkey},
                          {t.theirs.address, 8, t.theirs.region.lkey}};
    RecvWr list[6];
    for (std::uint64_t i = 0; i < 6; ++i) list[i] = {i, three, i == 1 ? 3U : 2U};
    std::uint32_t bad = 99;
    EXPECT_EQ(t.rig.b.verbs().post_recv(t.rig.b.core, *qp, list, 6, &bad), Status::kEinval);
    EXPECT_EQ(bad, 1U);
    list[1].num_sge = 1;
    EXPECT_EQ(t.rig.b.verbs().post_recv(t.rig.b.core, *qp, list + 1, 5, &bad), Status::kEnomem);
    EXPECT_EQ(bad, 3U) << "one was there, three more fit";
  });
}

TEST_P(Corner, ReadyToReceiveIsNotReadyToSend) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.rig.a.create();
    t.mine = t.rig.a.buffer(kPage);
    QpAttr attr;
    attr.qp_state = QpState::kRtr;
    attr.ah_attr = path_between(0, 1);
    attr.path_mtu = t.rig.config().transport.mtu;
    attr.dest_qp_num = 0x10;
    ASSERT_EQ(
        t.rig.a.verbs().modify_qp(t.rig.a.core, *t.rig.a.qp, attr,
                                  Mask::kState | Mask::kAv | Mask::kPathMtu | Mask::kDestQpn |
                                      Mask::kRqPsn | Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer),
        Status::kOk);
    EXPECT_EQ(t.rig.a.post(WrOpcode::kSend, t.mine.address, t.mine.region.lkey, 8),
              Status::kEinval);
    EXPECT_STRNE(t.rig.a.verbs().refusal(), "");
    EXPECT_EQ(t.rig.a.post_recv(t.mine.address, t.mine.region.lkey, 8), Status::kOk);
  });
}

TEST_P(Corner, WhatIsPostedInErrIsAcceptedAndFlushedAndAResetForgetsIt) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.to_state(QpState::kError), Status::kOk);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, {t.mine.address, 8, t.mine.region.lkey}), Status::kOk);
      ASSERT_EQ(t.rig.a.post_recv(t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    }
    t.rig.settle();
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kWrFlushError);
    EXPECT_EQ(t.rig.a.await_recv().status, WcStatus::kWrFlushError);
    // Two completions of each queue were not polled: a reset takes them out of the queues.
    ASSERT_EQ(t.to_state(QpState::kReset), Status::kOk);
    EXPECT_EQ(t.completions(*t.rig.a.send_cq, t.rig.a), 0U);
    EXPECT_EQ(t.completions(*t.rig.a.recv_cq, t.rig.a), 0U);
  });
}

TEST_P(Corner, AFullSendQueueInErrFreesItsPlacesAsItIsFlushed) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    ASSERT_EQ(t.to_state(QpState::kError), Status::kOk);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 32; ++i) {
        ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, {t.mine.address, 8, t.mine.region.lkey}),
                  Status::kOk);
      }
      EXPECT_EQ(t.post(WrOpcode::kRdmaWrite, {t.mine.address, 8, t.mine.region.lkey}),
                Status::kEnomem);
      for (int i = 0; i < 32; ++i) EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kWrFlushError);
    }
  });
}

// Solicited ----------------------------------------------------------------------------------

TEST(Solicited, AWriteWithImmediateMayAskForAnEventAPlainOneCannot) {
  CornerRig t("rocev2");
  t.rig.run([&] {
    t.connect();
    auto* channel = t.rig.b.verbs().create_comp_channel();
    auto* cq = t.rig.b.verbs().create_cq(t.rig.b.core, CqInitAttr{16, channel, false});
    t.rig.a.qp = t.rig.a.make_qp(RigSide::qp_attr());
    t.rig.b.qp = t.rig.b.make_qp(RigSide::qp_attr(), *t.rig.b.send_cq, *cq);
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(t.post_recv(nullptr, 0), Status::kOk);
    ASSERT_EQ(t.rig.b.verbs().req_notify_cq(t.rig.b.core, *cq, true), Status::kOk);
    t.rig.settle();
    const Sge sge{t.mine.address, 2 * kPage, t.mine.region.lkey};  // several packets
    const auto write = [&](WrOpcode opcode, std::uint32_t flags) {
      ASSERT_EQ(t.post(opcode, sge, flags), Status::kOk);
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      t.rig.settle();
    };
    write(WrOpcode::kRdmaWrite, SendFlags::kSolicited);
    write(WrOpcode::kRdmaWriteWithImm, 0);
    EXPECT_EQ(channel->events.size(), 0U);
    write(WrOpcode::kRdmaWriteWithImm, SendFlags::kSolicited);
    EXPECT_EQ(channel->events.size(), 1U);
  });
}

TEST(Drained, AnIdleSendQueueIsDrainedAtOnceAndWithoutAskingNobodyIsTold) {
  CornerRig t("ib");
  t.rig.run([&] {
    t.connect();
    QpAttr attr;
    const auto go = [&](QpState state, std::uint32_t more) {
      attr.qp_state = state;
      ASSERT_EQ(t.rig.a.verbs().modify_qp(t.rig.a.core, *t.rig.a.qp, attr, Mask::kState | more),
                Status::kOk);
      t.rig.settle();
    };
    AsyncEvent event;
    attr.en_sqd_async_notify = true;
    go(QpState::kSqd, Mask::kEnSqdAsyncNotify);
    ASSERT_TRUE(t.rig.a.verbs().poll_async_event(t.rig.a.core, event));
    EXPECT_EQ(event.type, EventType::kSqDrained);
    EXPECT_EQ(event.qp, t.rig.a.qp);
    go(QpState::kRts, 0);
    go(QpState::kSqd, 0);
    EXPECT_FALSE(t.rig.a.verbs().poll_async_event(t.rig.a.core, event));
  });
}

// Partition keys -----------------------------------------------------------------------------

/// What becomes of a WRITE between queue pairs of these partition keys.
WcStatus across_partitions(std::uint16_t of_a, std::uint16_t of_b) {
  WcStatus status = WcStatus::kGeneralError;
  CornerRig t("ib", {{"transport.ack_timeout", "4"}, {"transport.retry_count", "1"}});
  t.rig.run([&] {
    t.rig.a.create();
    t.rig.b.create();
    protocol::AddressVector to_b = path_between(0, 1);
    protocol::AddressVector to_a = path_between(1, 0);
    to_b.pkey = of_a;
    to_a.pkey = of_b;
    t.rig.a.connect(t.rig.b.qp->qpn, to_b, t.rig.config().transport);
    t.rig.b.connect(t.rig.a.qp->qpn, to_a, t.rig.config().transport);
    t.prepare();
    status = t.outcome(WrOpcode::kRdmaWrite, {t.mine.address, 8, t.mine.region.lkey});
    EXPECT_EQ(t.rig.b.state(), QpState::kRts);
  });
  return status;
}

TEST(PartitionKeys, TwoFullMembers) {
  EXPECT_EQ(across_partitions(0x8123, 0x8123), WcStatus::kSuccess);
}
TEST(PartitionKeys, AFullAndALimitedMember) {
  EXPECT_EQ(across_partitions(0x8123, 0x0123), WcStatus::kSuccess);
}
TEST(PartitionKeys, TwoLimitedMembersMayNotTalk) {
  EXPECT_EQ(across_partitions(0x0123, 0x0123), WcStatus::kRetryExceededError);
}
TEST(PartitionKeys, OfAnotherPartitionNobodyAnswers) {
  EXPECT_EQ(across_partitions(0x8123, 0x8124), WcStatus::kRetryExceededError);
}

TEST_P(Corner, TheEndsOfARegion) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    // A failure ends a connection: each attempt has one of its own.
    const auto outcome = [&](std::int64_t offset, std::uint32_t bytes, WrOpcode opcode) {
      t.rig.a.qp = t.rig.a.make_qp(RigSide::qp_attr());
      t.rig.b.qp = t.rig.b.make_qp(RigSide::qp_attr());
      t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
      const Sge sge{t.mine.address, bytes, t.mine.region.lkey};
      SendWr wr = t.request(opcode, &sge, 1);
      wr.remote_addr = t.theirs.address + static_cast<std::uint64_t>(offset);
      EXPECT_EQ(t.post(wr), Status::kOk);
      return t.rig.a.await_send().status;
    };
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kRdmaRead}) {
      EXPECT_EQ(outcome(4 * kPage - 1, 1, opcode), WcStatus::kSuccess) << "the last byte";
      EXPECT_EQ(outcome(0, 4 * kPage, opcode), WcStatus::kSuccess) << "all of it";
      EXPECT_EQ(outcome(4 * kPage - 1, 2, opcode), WcStatus::kRemoteAccessError);
      EXPECT_EQ(outcome(-1, 1, opcode), WcStatus::kRemoteAccessError);
      EXPECT_EQ(outcome(1, 4 * kPage, opcode), WcStatus::kRemoteAccessError);
    }
  });
}

TEST_P(Corner, AnAddressThatWrapsIsOutOfEveryRegion) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const Sge sge{t.mine.address, 16, t.mine.region.lkey};
    SendWr wr = t.request(WrOpcode::kRdmaWrite, &sge, 1);
    wr.remote_addr = ~std::uint64_t{0} - 7;
    ASSERT_EQ(t.post(wr), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kRemoteAccessError);
  });
}

TEST_P(Corner, RegistrationsThatReregCannotMakeChangeNothing) {
  CornerRig t(GetParam(), {{"memory.memlock_limit", "64KiB"}});
  t.rig.run([&] {
    t.connect();  // four pages of sixteen are pinned
    host::verbs::Context& verbs = t.rig.b.verbs();
    const std::uint64_t large = t.rig.b.space().map(20 * kPage);
    EXPECT_EQ(verbs.rereg_mr_translation(t.rig.b.core, t.theirs.region, large, 20 * kPage),
              Status::kEnomem);
    EXPECT_EQ(verbs.rereg_mr(t.rig.b.core, t.theirs.region, 0x77, kEverything), Status::kEinval);
    EXPECT_EQ(
        verbs.rereg_mr(t.rig.b.core, t.theirs.region, t.rig.b.pd, protocol::kAccessRemoteWrite),
        Status::kEinval)
        << "REMOTE_WRITE needs LOCAL_WRITE";
    EXPECT_EQ(t.outcome(WrOpcode::kRdmaWrite, {t.mine.address, 64, t.mine.region.lkey}),
              WcStatus::kSuccess);
    EXPECT_EQ(verbs.dereg_mr(t.rig.b.core, t.theirs.region), Status::kOk);
    EXPECT_EQ(t.rig.b.space().pinned_bytes(), 0U);
  });
}

TEST_P(Corner, WhatIsBusyCannotBeDestroyed) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.a.verbs();
    EXPECT_EQ(verbs.dealloc_pd(t.rig.a.pd), Status::kEbusy);
    EXPECT_EQ(verbs.destroy_cq(t.rig.a.core, t.rig.a.send_cq), Status::kEbusy);
    EXPECT_EQ(verbs.destroy_qp(t.rig.a.core, t.rig.a.qp), Status::kOk);
    EXPECT_EQ(verbs.destroy_cq(t.rig.a.core, t.rig.a.send_cq), Status::kOk);
    EXPECT_EQ(verbs.destroy_cq(t.rig.a.core, t.rig.a.recv_cq), Status::kOk);
    EXPECT_EQ(verbs.dealloc_pd(t.rig.a.pd), Status::kEbusy) << "the region";
    EXPECT_EQ(verbs.dereg_mr(t.rig.a.core, t.mine.region), Status::kOk);
    EXPECT_EQ(verbs.dereg_mr(t.rig.a.core, t.mine.region), Status::kEinval) << "twice";
    EXPECT_EQ(verbs.dealloc_pd(t.rig.a.pd), Status::kOk);
  });
}

TEST_P(Corner, ALocalElementThatIsWrongStopsOnlyTheRequester) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    // The second of two elements lies outside: nothing of it may arrive.
    QpInitAttr attr = RigSide::qp_attr();
    attr.max_send_sge = 2;
    t.rig.a.qp = t.rig.a.make_qp(attr);
    t.rig.b.qp = t.rig.b.make_qp(attr);
    t.rig.join(*t.rig.a.qp, *t.rig.b.qp);
    const Sge list[2] = {{t.mine.address, 8, t.mine.region.lkey},
                         {t.mine.address + 4 * kPage - 4, 8, t.mine.region.lkey}};
    ASSERT_EQ(t.post(t.request(WrOpcode::kRdmaWrite, list, 2)), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kLocalProtectionError);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.state(), QpState::kError);
    if (GetParam() != "iwarp") {
      EXPECT_EQ(t.rig.b.state(), QpState::kRts);
    }
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 8), Bytes(8, 0));
  });
}

}  // namespace
}  // namespace rnic::testbench
