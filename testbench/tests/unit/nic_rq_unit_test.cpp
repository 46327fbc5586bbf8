// SPDX-License-Identifier: Apache-2.0
// A DMA read takes 100 ns. Ring of 8 RECVs of two segments (32 B) at 0x2000, record at 0x3000.
#include <gtest/gtest.h>

#include <vector>

#include "nic/rq_unit.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using Answer = nic::RecvQueueIf::Answer;
using tlm_ext::Purpose;

constexpr std::uint64_t kRing = 0x2000;
constexpr std::uint64_t kRecord = 0x3000;

config::NicConfig rq_config() {
  config::NicConfig config = nic_config();
  config.wqe_prefetch = 4;
  return config;
}

struct Rig : nic::Waiter {
  Rig() : unit("unit", rq_config()) {
    unit.dma.bind(dma);
    unit.completion_queues.bind(cq);
    qp.qpn = 9;
    qp.recv_cqn = 2;
    qp.state = protocol::QpState::kRts;
    qp.own_rq.ring_address = kRing;
    qp.own_rq.doorbell_record = kRecord;
    qp.own_rq.log_entries = 3;
    qp.own_rq.max_sge = 2;
  }

  /// What the driver does: WQE into the ring, then the record. RECV i takes 100 + i bytes.
  void post() {
    const protocol::Sge sge{0x1000, 100 + posted, 1};
    protocol::encode_recv_wqe(&sge, 1, 2, &dma.memory[kRing + (posted & 7U) * 32]);
    ++posted;
    protocol::store_be32(&dma.memory[kRecord], posted & 0xFFFF);
  }

  Answer ask(bool again = false) {
    Time t = sim_now();
    return unit.acquire(qp, t, this, again);
  }

  /// What a waiting frame does.
  void resume(Time now) override {
    resumed.push_back(now);
    answers.push_back(ask(true));
  }

  FakeDma dma;
  FakeCq cq;
  nic::RqUnit unit;
  nic::QpContext qp;
  std::uint32_t posted = 0;
  std::vector<Time> resumed;
  std::vector<Answer> answers;
};

TEST(RqUnit, PrefetchReadsTheRecordAndThenTheWqes) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.post();
  rig.unit.prefetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.dma.reads.size(), 2U);
  EXPECT_EQ(rig.dma.reads[0].purpose, Purpose::kDoorbellRecord);
  EXPECT_EQ(rig.dma.reads[0].address, kRecord);
  EXPECT_EQ(rig.dma.reads[0].bytes, 8U);
  EXPECT_EQ(rig.dma.reads[1].purpose, Purpose::kRqWqe);
  EXPECT_EQ(rig.dma.reads[1].at, nanoseconds(100));
  EXPECT_EQ(rig.dma.reads[1].bytes, 96U);
  EXPECT_EQ(rig.ask(), Answer::kReady);
  EXPECT_EQ(rig.qp.own_rq.wqes.size(), 3U);
  EXPECT_EQ(rig.qp.own_rq.wqes[2].length, 102U);
}

TEST(RqUnit, WithoutAnyRecvTheFrameIsToldSoAfterOneLook) {
  Rig rig;
  EXPECT_EQ(rig.ask(), Answer::kWait);
  sc_core::sc_start();
  EXPECT_EQ(rig.answers, std::vector<Answer>{Answer::kEmpty});
  EXPECT_EQ(rig.resumed, std::vector<Time>{nanoseconds(100)});
  EXPECT_EQ(rig.dma.reads.size(), 1U);
}

TEST(RqUnit, ARecvPostedLaterIsFound) {
  Rig rig;
  EXPECT_EQ(rig.ask(), Answer::kWait);
  sc_core::sc_start();
  EXPECT_EQ(rig.answers, std::vector<Answer>{Answer::kEmpty});
  rig.post();
  EXPECT_EQ(rig.ask(), Answer::kWait);
  sc_core::sc_start();
  EXPECT_EQ(rig.answers.back(), Answer::kReady);
  EXPECT_EQ(rig.resumed.back(), nanoseconds(300));  // record, then WQE
  EXPECT_EQ(rig.qp.recv().length, 100U);
}

TEST(RqUnit, ARecordReadOlderThanTheFrameIsNotTrusted) {
  Rig rig;
  rig.unit.prefetch(rig.qp, kTimeZero);  // samples the record now: nothing posted
  rig.post();
  EXPECT_EQ(rig.ask(), Answer::kWait);  // the frame came after the RECV was posted
  sc_core::sc_start();
  EXPECT_EQ(rig.answers, std::vector<Answer>{Answer::kReady});
  EXPECT_EQ(rig.dma.reads.size(), 3U);  // record, record, WQE
}

TEST(RqUnit, FetchesEndAtTheRingsEnd) {
  Rig rig;
  rig.qp.own_rq.producer = rig.qp.own_rq.fetched = 6;
  rig.posted = 6;
  for (int i = 0; i < 4; ++i) rig.post();
  rig.unit.prefetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.back().address, kRing + 6 * 32);
  EXPECT_EQ(rig.dma.reads.back().bytes, 64U);
  EXPECT_EQ(rig.qp.own_rq.wqes.size(), 2U);
  rig.unit.consume(rig.qp, sim_now());  // one of four is left: fetch the rest
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.back().address, kRing);
  ASSERT_EQ(rig.qp.own_rq.wqes.size(), 3U);
  EXPECT_EQ(rig.qp.own_rq.wqes[0].length, 107U);
  EXPECT_EQ(rig.qp.own_rq.wqes[1].length, 108U);
}

/// A reset while RECVs are being read: those of the old life are dropped when they come, or fail,
/// and what the new one has posted is read then, because it could not be asked for before.
void read_across_a_reset(void (FakeDma::*outcome)()) {
  Rig rig;
  rig.dma.hold = true;
  for (int i = 0; i < 3; ++i) rig.post();
  rig.unit.prefetch(rig.qp, sim_now());
  rig.dma.release();  // the record; now the three WQEs
  ASSERT_EQ(rig.dma.held.size(), 1U);
  rig.qp.state = protocol::QpState::kReset;
  rig.unit.forget(rig.qp, sim_now());
  rig.posted = 0;
  rig.post();
  rig.qp.state = protocol::QpState::kRtr;
  rig.unit.prefetch(rig.qp, sim_now());
  EXPECT_EQ(rig.dma.held.size(), 1U) << "one read at a time";
  (rig.dma.*outcome)();
  EXPECT_TRUE(rig.qp.own_rq.wqes.empty());
  EXPECT_FALSE(rig.qp.own_rq.failed);
  ASSERT_EQ(rig.dma.held.size(), 1U);
  EXPECT_EQ(rig.dma.reads.back().purpose, Purpose::kDoorbellRecord);
  rig.dma.release();
  rig.dma.release();
  ASSERT_EQ(rig.qp.own_rq.wqes.size(), 1U);
  EXPECT_EQ(rig.qp.own_rq.wqes.front().length, 100U);
  EXPECT_EQ(rig.ask(), Answer::kReady);
}

TEST(RqUnit, WhatIsReadAcrossAResetIsDropped) { read_across_a_reset(&FakeDma::release); }
TEST(RqUnit, WhatFailsAcrossAResetConcernsNobody) { read_across_a_reset(&FakeDma::fail); }

/// Nobody waits for the RECV of a life that is over.
TEST(RqUnit, AResetResumesWhoWaits) {
  struct Frame : nic::Waiter {
    void resume(Time /*now*/) override { ++resumed; }
    int resumed = 0;
  } frame;
  Rig rig;
  rig.dma.hold = true;
  Time t = sim_now();
  ASSERT_EQ(rig.unit.acquire(rig.qp, t, &frame, false), Answer::kWait);
  rig.qp.state = protocol::QpState::kReset;
  rig.unit.forget(rig.qp, sim_now());
  EXPECT_EQ(frame.resumed, 1);
  rig.dma.release();
  EXPECT_EQ(frame.resumed, 1);
  EXPECT_TRUE(rig.dma.held.empty()) << "in RESET nothing is to be read";
}

TEST(RqUnit, FlushCompletesAllThatIsPostedInOrder) {
  Rig rig;
  for (int i = 0; i < 6; ++i) rig.post();
  rig.unit.prefetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  rig.qp.state = protocol::QpState::kError;
  rig.unit.flush(rig.qp, sim_now());  // four are on chip, two known from the record
  sc_core::sc_start();
  ASSERT_EQ(rig.cq.posts.size(), 6U);
  for (std::uint16_t i = 0; i < 6; ++i) {
    const auto& post = rig.cq.posts[i];
    EXPECT_EQ(post.cqn, 2U);
    EXPECT_EQ(post.cqe.kind, protocol::Cqe::Kind::kResponderError);
    EXPECT_EQ(post.cqe.status, protocol::WcStatus::kWrFlushError);
    EXPECT_EQ(post.cqe.wqe_counter, i);
  }
}

TEST(RqUnit, FlushLooksForRecvsPostedSinceTheLastRecordRead) {
  Rig rig;
  rig.unit.prefetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  for (int i = 0; i < 3; ++i) rig.post();  // the device has not seen these
  rig.qp.state = protocol::QpState::kError;
  rig.unit.flush(rig.qp, sim_now());
  sc_core::sc_start();
  EXPECT_EQ(rig.cq.posts.size(), 3U);
  EXPECT_EQ(rig.dma.reads.size(), 4U);  // empty record; record, WQEs; nothing further in the record
}

}  // namespace
}  // namespace rnic::testbench
