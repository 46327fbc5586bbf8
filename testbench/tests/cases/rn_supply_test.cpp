// SPDX-License-Identifier: Apache-2.0
// Public cases RN-04, RN-06, RN-07 and RN-10 to the last packet: when exactly a RECV comes in time,
// which packet takes it, and what a limit of RNR retries does to the client that a slow one
// starves.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QueuePair;
using host::verbs::RecvWr;
using host::verbs::SendFlags;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;

// RN-04 --------------------------------------------------------------------------------------

struct Met {
  WcStatus status = WcStatus::kGeneralError;
  Time took{0};
};

/// A SEND on a fresh connection with `retries`, whose RECV is posted `delay` later, or never.
Met met_after(VerbsRig& rig, std::uint32_t retries, Time delay) {
  config::TransportConfig transport = rig.config().transport;
  transport.rnr_retry = retries;
  QueuePair* from = rig.a.make_qp(RigSide::qp_attr());
  QueuePair* to = rig.b.make_qp(RigSide::qp_attr());
  rig.a.connect(*from, to->qpn, path_between(0, 1), transport);
  rig.b.connect(*to, from->qpn, path_between(1, 0), transport);
  const RigBuffer mine = rig.a.buffer(kPage);
  const RigBuffer theirs = rig.b.buffer(kPage);
  rig.settle();
  const Time start = sim_now();
  EXPECT_EQ(rig.a.post(*from, WrOpcode::kSend, mine.address, mine.region.lkey, 100), Status::kOk);
  if (delay != kTimeNever) {
    rig.settle(delay);
    EXPECT_EQ(rig.b.post_recv(*to, theirs.address, theirs.region.lkey, 100), Status::kOk);
  }
  Met met;
  met.status = rig.a.await_send().status;
  met.took = sim_now() - start;
  EXPECT_EQ(rig.b.device_qp(*to).state, QpState::kRts);
  return met;
}

/// The RECV is there before the last retransmission, or it is not: 2 us to either side of it.
TEST(CaseRN, RN04_TheLastRetransmissionDecides) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"transport.min_rnr_timer", "12"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    for (const std::uint32_t retries : {1U, 3U, 6U}) {
      SCOPED_TRACE(retries);
      // The last NAK ends it: the packet that it answers came a few hundred ns before.
      const Met never = met_after(rig, retries, kTimeNever);
      EXPECT_EQ(never.status, WcStatus::kRnrRetryExceededError);
      const Time margin = microseconds(2);
      EXPECT_EQ(met_after(rig, retries, never.took - margin).status, WcStatus::kSuccess);
      EXPECT_EQ(met_after(rig, retries, never.took + margin).status,
                WcStatus::kRnrRetryExceededError);
    }
  });
}

// RN-06 --------------------------------------------------------------------------------------

/// 64 KiB are 16 packets: a RECV that is posted when half of them have arrived is in time for the
/// last one, and nobody is asked to wait.
TEST(CaseRN, RN06_TheLastPacketTakesTheRecv) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"link.rate", "10Gbps"},  // 3.3 us a packet
                {"transport.rnr_retry", "0"}});
  rig.run([&] {
    constexpr std::uint32_t kBytes = 65536;
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(kBytes);
    rig.a.fill(mine.address, Bytes(kBytes, 0x71));
    rig.settle();
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, kBytes,
                         theirs.address, theirs.region.rkey, 9),
              Status::kOk);
    rig.a.core.sync();
    while (rig.b.bytes_at(theirs.address + kBytes / 2, 1) == Bytes(1, 0)) {
      rig.settle(nanoseconds(100));
    }
    EXPECT_EQ(rig.b.bytes_at(theirs.address + kBytes - 1, 1), Bytes(1, 0)) << "half is here";
    ASSERT_EQ(rig.b.post_recv(0, 0, 0), Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    const Wc wc = rig.b.await_recv();
    EXPECT_EQ(wc.opcode, WcOpcode::kRecvRdmaWithImm);
    EXPECT_EQ(wc.byte_len, kBytes);
    EXPECT_EQ(rig.b.node.nic.transport().counters().rnr_naks_sent, 0U);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kBytes), Bytes(kBytes, 0x71));
  });
}

// RN-07 --------------------------------------------------------------------------------------

/// A RECV with a buffer of no bytes, and one with a buffer that is not needed.
TEST(CaseRN, RN07_TheRecvsBufferStaysAsItIs) {
  VerbsRig rig({{"transport.protocol", "ib"}, {"memory.memlock_limit", "64MiB"}});
  rig.run([&] {
    constexpr std::uint32_t kBytes = 1U << 20;
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(kBytes);
    const RigBuffer inbox = rig.b.buffer(kPage);
    rig.a.fill(mine.address, Bytes(kBytes, 0x72));
    rig.b.fill(inbox.address, Bytes(kPage, 0x11));
    for (const std::uint32_t room : {0U, 4096U}) {
      ASSERT_EQ(rig.b.post_recv(inbox.address, inbox.region.lkey, room), Status::kOk);
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, kBytes,
                           theirs.address, theirs.region.rkey, room),
                Status::kOk);
      const Wc wc = rig.b.await_recv();
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.imm_data, room);
      EXPECT_EQ(wc.byte_len, kBytes);
      EXPECT_EQ(rig.b.bytes_at(inbox.address, kPage), Bytes(kPage, 0x11));
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kBytes), Bytes(kBytes, 0x72));
  });
}

// RN-10 --------------------------------------------------------------------------------------

/// The second client may repeat twice only: 1.28 ms, and the RECVs are held for a second.
TEST(CaseRN, RN10_AClientWithALimitOfRetriesIsRefused) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.rnr_retry", "2"},
                {"transport.min_rnr_timer", "12"}});
  rig.run([&] {
    constexpr std::uint32_t kEntries = 64;
    rig.a.create();
    rig.b.create();
    RigSide& target = rig.b;
    auto* srq = target.verbs().create_srq(target.core, target.pd, {kEntries, 1});
    ASSERT_EQ(target.verbs().modify_srq(target.core, *srq, 16), Status::kOk);
    auto* recv_cq = target.verbs().create_cq(target.core, 256);
    host::verbs::QpInitAttr shared = RigSide::qp_attr();
    shared.srq = srq;
    host::verbs::QpInitAttr deep = RigSide::qp_attr();
    deep.max_send_wr = kEntries;
    QueuePair* slow = rig.a.make_qp(deep);
    QueuePair* quick = rig.a.make_qp(deep);
    QueuePair* slow_end = target.make_qp(shared, *target.send_cq, *recv_cq);
    QueuePair* quick_end = target.make_qp(shared, *target.send_cq, *recv_cq);
    rig.join(*slow, *slow_end);
    rig.join(*quick, *quick_end);
    const RigBuffer from = rig.a.buffer(kPage);
    const RigBuffer inbox = target.buffer(kPage);
    for (std::uint32_t i = 0; i < kEntries; ++i) {
      ASSERT_EQ(target.post_srq_recv(*srq, inbox.address, inbox.region.lkey, 64), Status::kOk);
    }
    for (std::uint32_t i = 0; i < kEntries; ++i) {
      ASSERT_EQ(rig.a.post(*slow, WrOpcode::kSend, from.address, from.region.lkey, 1, 0, 0, 0,
                           i + 1 == kEntries ? SendFlags::kSignaled : 0),
                Status::kOk);
    }
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle();
    const std::uint64_t naks = rig.a.node.nic.transport().counters().rnr_nak_retry_err;
    const Time start = sim_now();
    ASSERT_EQ(rig.a.post(*quick, WrOpcode::kSend, from.address, from.region.lkey, 1), Status::kOk);
    const Wc wc = rig.a.await_send();
    EXPECT_EQ(wc.qp_num, quick->qpn);
    EXPECT_EQ(wc.status, WcStatus::kRnrRetryExceededError);
    EXPECT_EQ(rig.a.node.nic.transport().counters().rnr_nak_retry_err - naks, 3U);
    EXPECT_GE(sim_now() - start, 2 * microseconds(640));
    rig.settle();
    // Its own connection is over at this end; the responder and the slow client are not concerned.
    EXPECT_EQ(rig.a.device_qp(*quick).state, QpState::kError);
    EXPECT_EQ(rig.b.device_qp(*quick_end).state, QpState::kRts);
    EXPECT_EQ(rig.a.device_qp(*slow).state, QpState::kRts);
    EXPECT_EQ(target.await(*recv_cq).status, WcStatus::kSuccess);  // its slot is free
    ASSERT_EQ(target.post_srq_recv(*srq, inbox.address, inbox.region.lkey, 64), Status::kOk);
    ASSERT_EQ(rig.a.post(*slow, WrOpcode::kSend, from.address, from.region.lkey, 1), Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    // The limit was crossed once, and told once.
    host::verbs::AsyncEvent event;
    std::uint32_t told = 0;
    while (target.verbs().poll_async_event(target.core, event)) {
      told += event.type == protocol::EventType::kSrqLimitReached && event.srq == srq ? 1 : 0;
    }
    EXPECT_EQ(told, 1U);
  });
}

}  // namespace
}  // namespace rnic::testbench
