// SPDX-License-Identifier: Apache-2.0
// Shared receive queues end to end, with the verbs API.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AsyncEvent;
using host::verbs::QueuePair;
using host::verbs::SharedReceiveQueue;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::EventType;
using protocol::QpState;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kPiece = 5000;  // more than one packet

/// Two queue pairs of each side; those of host 1 take RECVs from one shared queue.
struct SrqRig {
  explicit SrqRig(const std::string& protocol, std::uint32_t max_wr = 4)
      : rig({{"transport.protocol", protocol}}), max_wr_(max_wr) {}

  void connect() {
    rig.a.create();
    rig.b.create();
    srq = rig.b.verbs().create_srq(rig.b.core, rig.b.pd, {max_wr_, 1});
    ASSERT_NE(srq, nullptr);
    host::verbs::QpInitAttr sharing = RigSide::qp_attr();
    sharing.srq = srq;
    for (int i = 0; i < 2; ++i) {
      from.push_back(rig.a.make_qp(RigSide::qp_attr()));
      to.push_back(rig.b.make_qp(sharing));
      rig.join(*from.back(), *to.back());
    }
    source = rig.a.buffer(std::uint64_t{kPiece} * 16);
    sink = rig.b.buffer(std::uint64_t{kPiece} * 16);
    rig.settle();
  }

  /// RECV `i` takes piece `i` of the sink.
  Status post_recv(std::uint32_t i) {
    return rig.b.post_srq_recv(*srq, sink.address + std::uint64_t{i} * kPiece, sink.region.lkey,
                               kPiece);
  }
  void send(std::size_t pair, std::uint8_t value, std::uint32_t bytes = kPiece) {
    rig.a.fill(source.address + value * std::uint64_t{kPiece}, Bytes(bytes, value));
    ASSERT_EQ(rig.a.post(*from[pair], WrOpcode::kSend,
                         source.address + value * std::uint64_t{kPiece}, source.region.lkey, bytes),
              Status::kOk);
  }
  Bytes piece(std::uint32_t i) {
    return rig.b.bytes_at(sink.address + std::uint64_t{i} * kPiece, kPiece);
  }

  VerbsRig rig;
  SharedReceiveQueue* srq = nullptr;
  std::vector<QueuePair*> from;
  std::vector<QueuePair*> to;
  RigBuffer source;
  RigBuffer sink;

 private:
  std::uint32_t max_wr_;
};

class SrqTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SrqTest, MessagesTakeRecvsInTheOrderInWhichTheyBegin) {
  SrqRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const std::uint64_t first = t.rig.b.wr_ids + 1;
    for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(t.post_recv(i), Status::kOk);
    EXPECT_EQ(t.post_recv(4), Status::kEnomem) << "the queue holds four";
    --t.rig.b.wr_ids;  // the one that was refused
    for (std::uint8_t round = 0; round < 12; ++round) {
      const std::size_t pair = round % 3 == 0 ? 1 : 0;
      t.send(pair, round);
      const Wc wc = t.rig.b.await_recv();
      ASSERT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.qp_num, t.to[pair]->qpn);
      EXPECT_EQ(wc.byte_len, kPiece);
      // The RECVs were posted in order, so the n-th message takes the n-th.
      EXPECT_EQ(wc.wr_id, first + round);
      EXPECT_EQ(t.piece(round % 4), Bytes(kPiece, round));
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      ASSERT_EQ(t.post_recv(round % 4), Status::kOk);
    }
  });
}

// A WRITE with immediate takes its RECV when its key is known to be good: a refused one leaves it
// in the queue, for the other queue pair. (Over iWARP the immediate data are a message of their
// own, which a refused WRITE does not bring.)
TEST_P(SrqTest, ARefusedWriteTakesNoRecv) {
  SrqRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const std::uint64_t only = t.rig.b.wr_ids + 1;
    ASSERT_EQ(t.post_recv(0), Status::kOk);
    ASSERT_EQ(t.rig.a.post(*t.from[0], WrOpcode::kRdmaWriteWithImm, t.source.address,
                           t.source.region.lkey, 64, t.sink.address, t.sink.region.rkey ^ 1U, 7),
              Status::kOk);
    EXPECT_NE(t.rig.a.await_send().status, WcStatus::kSuccess);
    t.rig.settle();
    t.send(1, 3);
    const Wc wc = t.rig.b.await_recv();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.wr_id, only);
    EXPECT_EQ(wc.qp_num, t.to[1]->qpn);
  });
}

TEST_P(SrqTest, GrowsWhileRecvsWait) {
  SrqRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    const std::uint64_t first = t.rig.b.wr_ids + 1;
    // The list has wrapped and its slots were freed: four of them wait.
    for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(t.post_recv(i), Status::kOk);
    for (std::uint8_t round = 0; round < 7; ++round) {
      t.send(0, round);
      EXPECT_EQ(t.rig.b.await_recv().wr_id, first + round);
      ASSERT_EQ(t.post_recv((round + 4U) % 12), Status::kOk);
    }
    EXPECT_EQ(verbs.resize_srq(t.rig.b.core, *t.srq, 3), Status::kEinval) << "four are posted";
    EXPECT_EQ(verbs.resize_srq(t.rig.b.core, *t.srq, 0), Status::kEinval);
    ASSERT_EQ(verbs.resize_srq(t.rig.b.core, *t.srq, 12), Status::kOk);
    for (std::uint32_t i = 11; i < 19; ++i) ASSERT_EQ(t.post_recv(i % 12), Status::kOk);
    EXPECT_EQ(t.post_recv(0), Status::kEnomem) << "twelve now";
    --t.rig.b.wr_ids;
    for (std::uint8_t round = 7; round < 19; ++round) {
      t.send(round % 2, round % 12);
      const Wc wc = t.rig.b.await_recv();
      ASSERT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.wr_id, first + round);
      EXPECT_EQ(t.piece(round % 12U), Bytes(kPiece, round % 12));
    }
    // Less room again, once there is no more in it.
    EXPECT_EQ(verbs.resize_srq(t.rig.b.core, *t.srq, 2), Status::kOk);
    EXPECT_EQ(t.post_recv(0), Status::kOk);
    EXPECT_EQ(t.post_recv(1), Status::kOk);
    EXPECT_EQ(t.post_recv(2), Status::kEnomem);
  });
}

TEST_P(SrqTest, BothQueuePairsSendAtOnce) {
  SrqRig t(GetParam(), 8);
  t.rig.run([&] {
    t.connect();
    for (std::uint32_t i = 0; i < 8; ++i) ASSERT_EQ(t.post_recv(i), Status::kOk);
    const std::uint64_t first = t.rig.b.wr_ids - 7;
    // Eight messages whose packets interleave on the wire: each keeps its RECV to its end.
    for (std::uint8_t i = 0; i < 8; ++i) t.send(i % 2, i);
    std::uint32_t next[2] = {0, 1};
    for (int i = 0; i < 8; ++i) {
      const Wc wc = t.rig.b.await_recv();
      ASSERT_EQ(wc.status, WcStatus::kSuccess);
      const std::uint32_t pair = wc.qp_num == t.to[0]->qpn ? 0 : 1;
      const auto piece = static_cast<std::uint32_t>(wc.wr_id - first);
      ASSERT_LT(piece, 8U);
      // In each queue pair's own order, whatever the place.
      EXPECT_EQ(t.piece(piece), Bytes(kPiece, static_cast<std::uint8_t>(next[pair])));
      next[pair] += 2;
    }
    for (int i = 0; i < 8; ++i) EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    // Slots were freed in the order of completion and can all be used again.
    for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(t.post_recv(i), Status::kOk);
    EXPECT_EQ(t.post_recv(0), Status::kEnomem);
  });
}

TEST_P(SrqTest, TheLimitRaisesOneEvent) {
  SrqRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(t.post_recv(i), Status::kOk);
    EXPECT_EQ(verbs.modify_srq(t.rig.b.core, *t.srq, 5), Status::kEinval);
    ASSERT_EQ(verbs.modify_srq(t.rig.b.core, *t.srq, 3), Status::kOk);
    AsyncEvent event;
    const auto message = [&](std::uint8_t value) {
      t.send(0, value);
      EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
      t.rig.settle();
    };
    message(0);  // three left: not fewer than the limit
    EXPECT_FALSE(verbs.poll_async_event(t.rig.b.core, event));
    message(1);  // two left
    ASSERT_TRUE(verbs.poll_async_event(t.rig.b.core, event));
    EXPECT_EQ(event.type, EventType::kSrqLimitReached);
    EXPECT_EQ(event.srq, t.srq);
    message(2);
    EXPECT_FALSE(verbs.poll_async_event(t.rig.b.core, event)) << "one event for one arming";
    // Armed below what is there: at once.
    ASSERT_EQ(verbs.modify_srq(t.rig.b.core, *t.srq, 2), Status::kOk);
    t.rig.settle();
    EXPECT_TRUE(verbs.poll_async_event(t.rig.b.core, event));
  });
}

TEST_P(SrqTest, AFailedQueuePairLeavesTheSharedRecvsAlone) {
  SrqRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(t.post_recv(i), Status::kOk);
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kError;
    ASSERT_EQ(verbs.modify_qp(t.rig.b.core, *t.to[0], attr, protocol::QpAttrMask::kState),
              Status::kOk);
    t.rig.settle();
    AsyncEvent event;
    ASSERT_TRUE(verbs.poll_async_event(t.rig.b.core, event));
    EXPECT_EQ(event.type, EventType::kQpLastWqeReached);
    EXPECT_EQ(event.qp, t.to[0]);
    Wc wc;
    EXPECT_EQ(verbs.poll_cq(t.rig.b.core, *t.rig.b.recv_cq, 1, &wc), 0U) << "nothing is flushed";
    t.send(1, 9);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
    EXPECT_EQ(t.piece(0), Bytes(kPiece, 9));
  });
}

TEST_P(SrqTest, WrongUse) {
  SrqRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    host::Core& core = t.rig.b.core;
    const protocol::Sge two[2] = {{t.sink.address, 10, t.sink.region.lkey},
                                  {t.sink.address, 10, t.sink.region.lkey}};
    const host::verbs::RecvWr wrs[3] = {{1, two, 1}, {2, two, 2}, {3, two, 1}};
    std::uint32_t bad = 9;
    EXPECT_EQ(verbs.post_srq_recv(core, *t.srq, wrs, 3, &bad), Status::kEinval);
    EXPECT_EQ(bad, 1U) << "the first is posted, the others not";
    EXPECT_EQ(t.srq->outstanding, 1U);
    // A RECV for the queue pair itself has no ring to go to.
    EXPECT_EQ(verbs.post_recv(core, *t.to[0], wrs, 1), Status::kEinval);
    EXPECT_EQ(verbs.destroy_srq(core, t.srq), Status::kEbusy);
    EXPECT_EQ(verbs.dealloc_pd(t.rig.b.pd), Status::kEbusy);
    EXPECT_EQ(verbs.destroy_qp(core, t.to[0]), Status::kOk);
    EXPECT_EQ(verbs.destroy_srq(core, t.srq), Status::kEbusy);
    EXPECT_EQ(verbs.destroy_qp(core, t.to[1]), Status::kOk);
    EXPECT_EQ(verbs.destroy_srq(core, t.srq), Status::kOk);
    EXPECT_EQ(verbs.create_srq(core, t.rig.b.pd, {0, 1}), nullptr);
    EXPECT_EQ(verbs.create_srq(core, t.rig.b.pd, {4, 1000}), nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, SrqTest, ::testing::Values("ib", "rocev2", "iwarp"),
                         [](const auto& test) { return test.param; });

TEST(Srq, ItsBuffersBelongToItsOwnDomain) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    host::verbs::Context& verbs = rig.b.verbs();
    const std::uint32_t of_srq = verbs.alloc_pd();
    SharedReceiveQueue* srq = verbs.create_srq(rig.b.core, of_srq, {4, 1});
    host::verbs::QpInitAttr sharing = RigSide::qp_attr();
    sharing.srq = srq;
    QueuePair* from = rig.a.make_qp(RigSide::qp_attr());
    QueuePair* to = rig.b.make_qp(sharing);  // of another domain
    rig.join(*from, *to);
    const RigBuffer source = rig.a.buffer(4096);
    const RigBuffer of_qp = rig.b.buffer(4096);
    const std::uint64_t sink = rig.b.space().map(4096);
    const auto region = verbs.reg_mr(rig.b.core, of_srq, sink, 4096, kAllAccess).region;
    rig.a.fill(source.address, Bytes(64, 0x42));
    ASSERT_EQ(rig.b.post_srq_recv(*srq, sink, region.lkey, 64), Status::kOk);
    ASSERT_EQ(rig.b.post_srq_recv(*srq, of_qp.address, of_qp.region.lkey, 64), Status::kOk);
    rig.settle();
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.a.post(*from, WrOpcode::kSend, source.address, source.region.lkey, 64),
                Status::kOk);
    }
    EXPECT_EQ(rig.b.await_recv().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.bytes_at(sink, 64), Bytes(64, 0x42));
    EXPECT_EQ(rig.b.await_recv().status, WcStatus::kLocalProtectionError);
  });
}

TEST(Srq, AnEmptyQueueAsksToWait) {
  SrqRig t("ib");
  t.rig.run([&] {
    t.connect();
    t.send(0, 7);
    t.rig.settle();
    EXPECT_EQ(t.rig.b.node.nic.transport().counters().rnr_naks_sent, 1U);
    ASSERT_EQ(t.post_recv(0), Status::kOk);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
    EXPECT_EQ(t.piece(0), Bytes(kPiece, 7));
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
  });
}

}  // namespace
}  // namespace rnic::testbench
