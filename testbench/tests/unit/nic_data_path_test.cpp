// SPDX-License-Identifier: Apache-2.0
// PayloadGather, Packetizer and Responder between fake neighbours.
#include <gtest/gtest.h>

#include <vector>

#include "nic/packetizer.h"
#include "nic/payload_gather.h"
#include "nic/responder.h"
#include "protocol/access.h"
#include "protocol/opcode.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using nic::RxJob;
using nic::TxJob;
using protocol::AccessResult;
using protocol::WcStatus;
using transport::Refusal;
using transport::RxPlan;
using transport::TxPlan;
using Action = transport::RxPlan::Action;

/// Addresses are what they are; an answer takes 10 ns.
struct FakeTranslation : nic::TranslationIf {
  struct Asked {
    std::uint32_t key;
    std::uint32_t access;
    std::uint64_t checked;
  };
  void translate(nic::Translation& request, Time t) override {
    asked.push_back({request.key, request.needed_access, request.check_length});
    request.result = result;
    request.segment_count = request.length > 0 && result == AccessResult::kOk ? 1 : 0;
    request.segments[0] = {request.address, request.length};
    request.client->translated(request, t + nanoseconds(10));
  }
  void invalidate(std::uint32_t /*key*/, std::uint32_t /*first_mtt*/,
                  std::uint32_t /*count*/) override {}
  void resume_faults(const protocol::FaultResumeDoorbell& /*resume*/, Time /*t*/) override {}

  AccessResult result = AccessResult::kOk;
  std::vector<Asked> asked;
};

struct FakePacketize : nic::PacketizeIf {
  void packetize(TxJob* job, Time t) override {
    jobs.push_back(job);
    at.push_back(t);
  }
  std::vector<TxJob*> jobs;
  std::vector<Time> at;
};

struct FakePort : nic::PortIf {
  void send(protocol::Frame* frame, Time ready) override {
    sent.push_back(frame);
    at.push_back(ready);
  }
  void release(const protocol::Frame& /*frame*/, Time /*when*/) override { ++released; }
  std::vector<protocol::Frame*> sent;
  std::vector<Time> at;
  int released = 0;
};

/// Writes down what the NIC tells it.
struct RecordingTransport : FakeTransport {
  void accept(transport::QueuePair& /*qp*/, const RxPlan& plan, Time now,
              stats::MessageTrace* /*trace*/) override {
    accepted.push_back({plan, now});
  }
  void answer_atomic(transport::QueuePair& /*qp*/, const RxPlan& plan, Time now) override {
    answered.push_back({plan, now});
  }
  void refuse(transport::QueuePair& /*qp*/, const RxPlan& /*plan*/, Refusal why,
              Time /*now*/) override {
    refused.push_back(why);
  }
  void refuse_response(transport::QueuePair& /*qp*/, const TxPlan& /*plan*/, Refusal why,
                       Time /*now*/) override {
    refused.push_back(why);
  }
  struct Told {
    RxPlan plan;
    Time at;
  };
  std::vector<Told> accepted;
  std::vector<Told> answered;
  std::vector<Refusal> refused;
};

// PayloadGather ------------------------------------------------------------------------------

struct GatherRig {
  explicit GatherRig(Time sge_time = kTimeZero)
      : unit("unit", transport, frames, jobs, sge_time, true) {
    unit.translation.bind(translation);
    unit.dma.bind(dma);
    unit.packetizer.bind(packetizer);
    unit.scheduler.bind(scheduler);
    unit.completion.bind(completion);
    for (std::size_t i = 0; i < dma.memory.size(); ++i) {
      dma.memory[i] = static_cast<std::uint8_t>(i * 7);
    }
  }

  TxJob* packet(const std::vector<protocol::Sge>& pieces) {
    TxJob* job = jobs.take();
    *job = TxJob{};
    job->qp = &qp;
    job->frame = frames.take();
    job->plan.payload = pieces.empty() ? TxPlan::Payload::kNone : TxPlan::Payload::kLocal;
    for (const protocol::Sge& piece : pieces) {
      job->plan.pieces[job->plan.piece_count++] = piece;
      job->plan.length += piece.length;
    }
    if (qp.tx_tail != nullptr) {
      qp.tx_tail->next = job;
    } else {
      qp.tx_head = job;
    }
    qp.tx_tail = job;
    return job;
  }

  RecordingTransport transport;
  protocol::FramePool frames;
  Pool<TxJob> jobs;
  FakeTranslation translation;
  FakeDma dma;
  FakePacketize packetizer;
  FakeScheduler scheduler;
  FakeCompletion completion;
  nic::QpContext qp;
  nic::PayloadGather unit;
};

TEST(PayloadGather, PiecesBecomeOnePayload) {
  GatherRig rig;
  TxJob* job = rig.packet({{0x100, 3, 9}, {0x200, 2, 8}});
  rig.unit.gather(job, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.packetizer.jobs, std::vector<TxJob*>{job});
  ASSERT_EQ(rig.dma.reads.size(), 2U);
  const std::uint8_t* payload = job->frame->payload.data();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(payload[i], rig.dma.memory[0x100 + i]);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(payload[3 + i], rig.dma.memory[0x200 + i]);
  EXPECT_EQ(rig.translation.asked[0].key, 9U);
  EXPECT_EQ(rig.translation.asked[1].key, 8U);
  // Two translations of 10 ns, then the second read's 100 ns.
  EXPECT_EQ(rig.packetizer.at[0], nanoseconds(120));
}

TEST(PayloadGather, PiecesBehindTheFirstTakeTurns) {
  GatherRig rig(nanoseconds(50));
  TxJob* first = rig.packet({{0x100, 1, 9}, {0x110, 1, 9}, {0x120, 1, 9}});
  TxJob* second = rig.packet({{0x200, 1, 9}, {0x210, 1, 9}});
  rig.unit.gather(first, kTimeZero);
  rig.unit.gather(second, kTimeZero);
  sc_core::sc_start();
  // First pieces are translated by 10 ns. Turns of 50 ns: the first's second piece until 60, the
  // second's until 110, then the first's third, which asks again at 70, until 160; a translation of
  // 10 ns and a read of 100 ns follow each.
  ASSERT_EQ(rig.packetizer.jobs, (std::vector<TxJob*>{first, second}));
  EXPECT_EQ(rig.packetizer.at[0], nanoseconds(160 + 110));
  EXPECT_EQ(rig.packetizer.at[1], nanoseconds(160 + 110));  // behind the first of its queue pair
  EXPECT_EQ(rig.unit.stats().busy(), nanoseconds(3 * 50));
}

TEST(PayloadGather, PacketsOfAQueuePairLeaveInOrder) {
  GatherRig rig;
  rig.dma.hold = true;
  TxJob* slow = rig.packet({{0x100, 4, 9}});
  TxJob* fast = rig.packet({});
  rig.unit.gather(slow, kTimeZero);
  rig.unit.gather(fast, kTimeZero);
  EXPECT_TRUE(rig.packetizer.jobs.empty());
  rig.dma.release();
  EXPECT_EQ(rig.packetizer.jobs, (std::vector<TxJob*>{slow, fast}));
}

TEST(PayloadGather, AWrongLocalKeyFailsTheWorkAndSendsNothing) {
  GatherRig rig;
  rig.translation.result = AccessResult::kBadKey;
  add_entry(rig.qp, 0, true);
  rig.unit.gather(rig.packet({{0x100, 4, 9}}), kTimeZero);
  EXPECT_TRUE(rig.packetizer.jobs.empty());
  EXPECT_EQ(rig.qp.sq[0].status, WcStatus::kLocalProtectionError);
  EXPECT_TRUE(rig.qp.sq[0].finished);
  EXPECT_EQ(rig.completion.retired.size(), 1U);
  EXPECT_EQ(rig.scheduler.freed, 1);
  EXPECT_EQ(rig.frames.in_use(), 0U);
}

TEST(PayloadGather, AResponseWhoseRegionIsGoneIsRefused) {
  GatherRig rig;
  rig.translation.result = AccessResult::kInvalidState;
  TxJob* job = rig.packet({});
  job->plan.payload = TxPlan::Payload::kRemote;
  job->plan.is_response = true;
  job->plan.length = 64;
  rig.unit.gather(job, kTimeZero);
  EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kRemoteAccess});
  EXPECT_EQ(rig.translation.asked[0].access, protocol::kAccessRemoteRead);
}

TEST(PayloadGather, AnswersLeaveInOrderUpToTheOneThatCannotBeGiven) {
  GatherRig rig;
  rig.dma.hold = true;
  const auto answer = [&rig](AccessResult result) {
    TxJob* job = rig.packet({});
    job->plan.payload = TxPlan::Payload::kRemote;
    job->plan.is_response = true;
    job->plan.length = 64;
    rig.translation.result = result;
    rig.unit.gather(job, kTimeZero);
    return job;
  };
  TxJob* first = answer(AccessResult::kOk);
  answer(AccessResult::kInvalidState);
  answer(AccessResult::kOk);
  EXPECT_TRUE(rig.transport.refused.empty());  // the first is still being read
  rig.dma.release();
  rig.dma.release();  // the third's
  EXPECT_EQ(rig.packetizer.jobs, std::vector<TxJob*>{first});
  EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kRemoteAccess});
  EXPECT_EQ(rig.scheduler.freed, 2);
  EXPECT_EQ(rig.frames.in_use(), 1U);  // the first's, in the packetizer's hands
}

// Packetizer ---------------------------------------------------------------------------------

struct PacketizerRig {
  PacketizerRig() : unit("unit", config(), transport, jobs, nullptr) {
    unit.port.bind(port);
    unit.completion.bind(completion);
  }
  static config::NicConfig config() {
    config::NicConfig config = nic_config();
    config.packetizer = {20, 3};
    return config;
  }
  TxJob* packet(protocol::FrameClass frame_class = protocol::FrameClass::kData) {
    TxJob* job = jobs.take();
    *job = TxJob{};
    job->qp = &qp;
    job->frame = frames.take();
    job->frame->trace = nullptr;
    job->plan.frame_class = frame_class;
    return job;
  }

  RecordingTransport transport;
  protocol::FramePool frames;
  Pool<TxJob> jobs;
  FakePort port;
  FakeCompletion completion;
  nic::QpContext qp;
  nic::Packetizer unit;
};

TEST(Packetizer, OnePacketEveryIntervalDataAndAcknowledgementsToldApart) {
  PacketizerRig rig;
  rig.unit.packetize(rig.packet(), kTimeZero);
  rig.unit.packetize(rig.packet(protocol::FrameClass::kAck), kTimeZero);
  EXPECT_EQ(rig.port.at, (std::vector<Time>{nanoseconds(20), nanoseconds(23)}));
  EXPECT_EQ(rig.unit.data_packets(), 1U);
  EXPECT_EQ(rig.port.sent[1]->frame_class, protocol::FrameClass::kAck);
  EXPECT_EQ(rig.jobs.in_use(), 0U);
}

TEST(Packetizer, UnacknowledgedWorkIsOverWithItsLastPacket) {
  PacketizerRig rig;
  stats::MessageTrace trace;
  trace.start(kTimeZero, stats::Journey::kToCompletion);
  add_entry(rig.qp, 0, true);
  TxJob* job = rig.packet();
  job->plan.ends_work = true;
  job->frame->trace = &trace;
  rig.unit.packetize(job, kTimeZero);
  EXPECT_TRUE(rig.qp.sq[0].finished);
  EXPECT_EQ(rig.completion.retired.size(), 1U);
  EXPECT_EQ(rig.port.sent[0]->trace, nullptr);  // what happens to it later is nobody's latency
  EXPECT_EQ(trace.of(stats::Stage::kPacketize), nanoseconds(20));
}

TEST(Packetizer, TheQueuePairFailsWhenItsLastAnswerHasLeft) {
  PacketizerRig rig;
  rig.qp.failed = true;
  rig.qp.responses.push_back({});
  rig.unit.packetize(rig.packet(), kTimeZero);
  EXPECT_TRUE(rig.completion.failed.empty());
  rig.qp.responses.pop_front();
  rig.unit.packetize(rig.packet(), kTimeZero);
  EXPECT_EQ(rig.completion.failed.size(), 1U);
}

// Responder ----------------------------------------------------------------------------------

struct FakeRxPipeline : nic::RxPipelineIf {
  void executed(RxJob* job, Time /*t*/, Time /*next*/) override { done.push_back(job); }
  void retire(RxJob* job) override { retired.push_back(job); }
  void release_buffer(RxJob* /*job*/, Time /*t*/) override {}
  std::vector<RxJob*> done;
  std::vector<RxJob*> retired;
};

struct OneRecv : FakeRecvQueues {
  Answer acquire(nic::QpContext& qp, Time& /*t*/, nic::Waiter* /*waiter*/,
                 bool /*again*/) override {
    return qp.own_rq.wqes.empty() ? Answer::kEmpty : Answer::kReady;
  }
  void consume(nic::QpContext& qp, Time /*t*/) override { qp.own_rq.wqes.pop_front(); }
};

struct FakeAtomics : nic::AtomicIf {
  void execute(nic::QpContext& /*qp*/, const RxPlan& plan, stats::MessageTrace* /*trace*/,
               std::uint64_t address, Time /*t*/) override {
    plans.push_back(plan);
    addresses.push_back(address);
  }
  std::vector<RxPlan> plans;
  std::vector<std::uint64_t> addresses;
};

struct ResponderRig {
  ResponderRig() : unit("unit", config(), transport, true) {
    unit.pipeline.bind(pipeline);
    unit.translation.bind(translation);
    unit.recv_queues.bind(recvs);
    unit.completion_queues.bind(cq);
    unit.completion.bind(completion);
    unit.atomics.bind(atomics);
    unit.scheduler.bind(scheduler);
    unit.dma.bind(dma);
    qp.qpn = 4;
    qp.state = protocol::QpState::kRts;
    qp.access = protocol::kAccessRemoteMask;
  }
  static config::NicConfig config() {
    config::NicConfig config = nic_config();
    config.responder = {6, 2};
    return config;
  }

  RxJob& frame(Action action, std::uint64_t address, std::uint32_t length) {
    frames_.push_back(std::make_unique<protocol::Frame>());
    protocol::Frame& made = *frames_.back();
    made.trace = nullptr;
    made.has_payload_data = true;
    made.payload.reserve(length);
    for (std::uint32_t i = 0; i < length; ++i) {
      made.payload.writable()[i] = static_cast<std::uint8_t>(i + 1);
    }
    jobs_.push_back(std::make_unique<RxJob>());
    RxJob& job = *jobs_.back();
    job.qp = &qp;
    job.frame = &made;
    job.plan.action = action;
    job.plan.first = job.plan.last = true;
    job.plan.rkey = 77;
    job.plan.address = address;
    job.plan.length = job.plan.message_length = length;
    return job;
  }
  void post_recv(std::uint64_t address, std::uint32_t length) {
    protocol::RecvWqe recv;
    recv.sge_count = 1;
    recv.length = length;
    recv.sge[0] = {address, length, 5};
    qp.own_rq.wqes.push_back(recv);
  }

  RecordingTransport transport;
  FakeRxPipeline pipeline;
  FakeTranslation translation;
  OneRecv recvs;
  FakeCq cq;
  FakeCompletion completion;
  FakeAtomics atomics;
  FakeScheduler scheduler;
  FakeDma dma;
  FakePort port;
  nic::QpContext qp;
  nic::Responder unit;

 private:
  std::vector<std::unique_ptr<protocol::Frame>> frames_;
  std::vector<std::unique_ptr<RxJob>> jobs_;
};

TEST(Responder, AWriteIsCheckedWholeAndWritten) {
  ResponderRig rig;
  RxJob& job = rig.frame(Action::kWrite, 0x400, 64);
  job.plan.last = false;
  job.plan.message_length = 5000;  // more packets follow
  rig.unit.execute(&job, kTimeZero);
  ASSERT_EQ(rig.translation.asked.size(), 1U);
  EXPECT_EQ(rig.translation.asked[0].access, protocol::kAccessRemoteWrite);
  EXPECT_EQ(rig.translation.asked[0].checked, 5000U);
  ASSERT_EQ(rig.transport.accepted.size(), 1U);
  EXPECT_EQ(rig.transport.accepted[0].at, nanoseconds(16));  // 6 of the stage, 10 of translation
  EXPECT_EQ(rig.pipeline.done.size(), 1U);
  EXPECT_TRUE(rig.pipeline.retired.empty());  // its bytes are still needed
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.memory[0x400], 1);
  EXPECT_EQ(rig.dma.memory[0x43F], 64);
  EXPECT_EQ(rig.pipeline.retired.size(), 1U);
  EXPECT_TRUE(rig.cq.posts.empty());
}

TEST(Responder, RightsOfTheQueuePairComeFirst) {
  const std::vector<std::pair<Action, std::uint32_t>> needs = {
      {Action::kWrite, protocol::kAccessRemoteWrite},
      {Action::kReadRequest, protocol::kAccessRemoteRead},
      {Action::kAtomicRequest, protocol::kAccessRemoteAtomic}};
  for (const auto& [action, right] : needs) {
    ResponderRig rig;
    rig.qp.access = protocol::kAccessRemoteMask & ~right;
    rig.unit.execute(&rig.frame(action, 0x400, 8), kTimeZero);
    EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kInvalidRequest});
    EXPECT_TRUE(rig.translation.asked.empty());
  }
}

TEST(Responder, AWrongRemoteKeyIsAnAccessError) {
  ResponderRig rig;
  rig.translation.result = AccessResult::kOutOfBounds;
  rig.unit.execute(&rig.frame(Action::kWrite, 0x400, 8), kTimeZero);
  EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kRemoteAccess});
  EXPECT_TRUE(rig.dma.writes.empty());
}

TEST(Responder, ASendTakesARecvAndReportsIt) {
  ResponderRig rig;
  rig.post_recv(0x800, 100);
  rig.unit.execute(&rig.frame(Action::kSend, 0, 40), kTimeZero);
  ASSERT_EQ(rig.cq.posts.size(), 1U);
  EXPECT_EQ(rig.cq.posts[0].cqe.kind, protocol::Cqe::Kind::kRespSend);
  EXPECT_EQ(rig.cq.posts[0].cqe.byte_count, 40U);
  EXPECT_TRUE(rig.qp.own_rq.wqes.empty());
  EXPECT_EQ(rig.dma.memory[0x800 + 39], 40);
}

TEST(Responder, ASendWithoutRecvOrLongerThanItIsRefused) {
  ResponderRig rig;
  rig.unit.execute(&rig.frame(Action::kSend, 0, 40), kTimeZero);
  EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kReceiverNotReady});
  EXPECT_TRUE(rig.cq.posts.empty());
  rig.post_recv(0x800, 39);
  rig.unit.execute(&rig.frame(Action::kSend, 0, 40), kTimeZero);
  EXPECT_EQ(rig.transport.refused.back(), Refusal::kInvalidRequest);
  ASSERT_EQ(rig.cq.posts.size(), 1U);
  EXPECT_EQ(rig.cq.posts[0].cqe.status, WcStatus::kLocalLengthError);
  EXPECT_TRUE(rig.dma.writes.empty());
}

TEST(Responder, AnImmediateTakesARecvBehindTheData) {
  ResponderRig rig;
  RxJob& job = rig.frame(Action::kWrite, 0x400, 16);
  job.plan.has_imm = true;
  job.plan.imm = 3;
  rig.unit.execute(&job, kTimeZero);
  EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kReceiverNotReady});
  rig.post_recv(0x800, 0);  // no room is needed
  rig.unit.execute(&job, kTimeZero);
  ASSERT_EQ(rig.cq.posts.size(), 1U);
  EXPECT_EQ(rig.cq.posts[0].cqe.kind, protocol::Cqe::Kind::kRespWriteImm);
  EXPECT_EQ(rig.dma.writes[0].address, 0x400U);
}

TEST(Responder, AtomicsOverlapAndOthersWaitForThem) {
  ResponderRig rig;
  rig.unit.execute(&rig.frame(Action::kAtomicRequest, 0x404, 0), kTimeZero);
  EXPECT_EQ(rig.transport.refused, std::vector<Refusal>{Refusal::kInvalidRequest});  // misaligned
  rig.unit.execute(&rig.frame(Action::kAtomicRequest, 0x400, 0), kTimeZero);
  rig.unit.execute(&rig.frame(Action::kAtomicRequest, 0x408, 0), kTimeZero);
  EXPECT_EQ(rig.atomics.addresses, (std::vector<std::uint64_t>{0x400, 0x408}));
  EXPECT_TRUE(rig.transport.accepted[0].plan.deferred);
  EXPECT_EQ(rig.pipeline.done.size(), 3U);
  rig.unit.execute(&rig.frame(Action::kWrite, 0x500, 8), kTimeZero);
  EXPECT_EQ(rig.pipeline.done.size(), 3U);
  rig.unit.atomic_done(rig.qp, rig.atomics.plans[0], nullptr, nanoseconds(50));
  EXPECT_TRUE(rig.dma.writes.empty());
  rig.unit.atomic_done(rig.qp, rig.atomics.plans[1], nullptr, nanoseconds(60));
  EXPECT_EQ(rig.transport.answered.size(), 2U);
  EXPECT_EQ(rig.scheduler.activated.size(), 2U);
  ASSERT_EQ(rig.dma.writes.size(), 1U);
  EXPECT_GE(rig.dma.writes[0].at, nanoseconds(60));
  EXPECT_EQ(rig.pipeline.done.size(), 4U);
}

}  // namespace
}  // namespace rnic::testbench
