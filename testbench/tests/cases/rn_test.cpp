// SPDX-License-Identifier: Apache-2.0
// Public cases of theme RN: receivers that are not ready, supply of RECVs, WRITE with immediate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/program.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

// RN-01 --------------------------------------------------------------------------------------

/// 512 SENDs of 2 KiB in flight meet 256 RECVs, whose owner works 3 us on each: more than the 0.17
/// us in which they arrive at 100 Gb/s.
Settings small_receive_queue(const std::string& timer, const std::string& iterations) {
  return {{"workload.op", "send"},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "2048"},
          {"workload.depth", "512"},
          {"workload.signal_every", "1"},
          {"workload.recv_depth", "256"},
          {"workload.recv_cost", "3us"},
          {"transport.rnr_retry", "7"},
          {"transport.min_rnr_timer", timer},
          {"sim.warmup", "0"},
          {"workload.iterations", iterations}};
}

TEST(CaseRN, RN01_RnrTimerCodeZeroIsTheLongest) {
  // Each round of the timer lets through the 256 RECVs that wait, and what the CPU posts again
  // while they fill: between 256 and 512 messages in 655.36 ms.
  const ProgramRun longest = run_well(small_receive_queue("0", "8192"));
  ASSERT_EQ(longest.status, 0);
  const double iops = longest.number("/message_rate_mops") * 1e6;
  EXPECT_GE(iops, 256 / 0.65536);
  EXPECT_LE(iops, 512 / 0.65536);
  EXPECT_EQ(longest.number("/completions/success"), 8192);
  EXPECT_EQ(longest.result["completions"].size(), 1U) << "no error completion";
  EXPECT_GT(longest.counter("rnr_naks_sent"), 0U);
  // A message waits for whole timer periods; what surrounds them is far below one.
  const double worst_ms = longest.number("/latency_ns/max") / 1e6;
  const double periods = std::floor(worst_ms / 655.36);
  EXPECT_GE(periods, 1);
  EXPECT_LT(worst_ms - periods * 655.36, 5);

  for (const std::string timer : {"13", "12", "1"}) {
    const ProgramRun run = run_well(small_receive_queue(timer, "8192"));
    ASSERT_EQ(run.status, 0);
    EXPECT_GT(run.number("/message_rate_mops") * 1e6, 150e3) << timer;
    EXPECT_GT(run.number("/message_rate_mops") * 1e6 / iops, 200) << timer;
    EXPECT_GT(run.counter("rnr_naks_sent"), 0U) << timer;
    EXPECT_EQ(run.result["completions"].size(), 1U);
  }
}

// RN-03 --------------------------------------------------------------------------------------

/// The receiver looks at its CQ every 300 us and posts again what it has consumed, as one that
/// works in bursts: 20 RECVs are used up by 64 KiB each after 107 us, by 1 MiB not before 1.7 ms.
ProgramRun burst_receiver(double size, const char* recvs, const char* iterations) {
  return run_well({{"workload.op", "send"},
                   {"workload.pattern", "bandwidth"},
                   {"link.rate", "100Gbps"},
                   {"workload.msg_size", std::to_string(static_cast<long>(size))},
                   {"workload.depth", "64"},
                   {"workload.signal_every", "1"},
                   {"workload.recv_depth", recvs},
                   {"workload.poll_interval", "300us"},
                   {"memory.memlock_limit", "4GiB"},
                   {"transport.rnr_retry", "7"},
                   {"transport.min_rnr_timer", "12"},
                   {"sim.payload", "none"},
                   {"sim.warmup", "0"},
                   {"workload.iterations", iterations}});
}

TEST(CaseRN, RN03_RecvQueueBelowTheWindow) {
  // A round moves 20 messages and then pays one RNR delay: 0.64 ms nominal, up to 1.4 effective.
  // Two rounds are one when the receiver looks just when the sender comes back.
  constexpr double kRounds = 30;
  for (const double size : {65536.0, 8192.0, 4096.0}) {
    SCOPED_TRACE(size);
    const double bits = 20 * size * 8 * kRounds;
    const double on_wire = bits / 98e9;  // MTU 4096: 98 % of the line is payload
    const ProgramRun few = burst_receiver(size, "20", "600");
    const double found = few.number("/throughput_gbps") * 1e9;
    const auto delays = static_cast<double>(few.counter("rnr_naks_sent"));
    EXPECT_LE(delays, kRounds - 1) << "none behind the last";
    EXPECT_GE(delays, kRounds - 3);
    EXPECT_LE(found, bits / (delays * 0.64e-3 + on_wire));
    EXPECT_GE(found, bits / (delays * 1.4e-3 + on_wire));
    EXPECT_EQ(few.number("/completions/success"), 600);
    // As many RECVs as the window and what comes between two looks: ten times as fast.
    const ProgramRun enough = burst_receiver(size, "128", "600");
    EXPECT_GT(enough.number("/throughput_gbps") * 1e9, 2.5 * found);
  }
  const double few = burst_receiver(65536, "20", "600").number("/throughput_gbps");
  EXPECT_GE(few, 7);
  EXPECT_LE(few, 14.6);  // 14 of the case, and no delay behind the last round
  EXPECT_GT(burst_receiver(65536, "128", "600").number("/throughput_gbps"), 90) << "line bound";
}

// Twenty messages of 1 or 8 MiB last longer than the receiver's burst: there is no difference.
TEST(CaseRN, RN03_BigMessagesAreTheSame) {
  for (const double size : {1048576.0, 8388608.0}) {
    SCOPED_TRACE(size);
    const ProgramRun few = burst_receiver(size, "20", "100");
    const ProgramRun enough = burst_receiver(size, "128", "100");
    EXPECT_EQ(few.counter("rnr_naks_sent"), 0U);
    EXPECT_NEAR(few.number("/throughput_gbps"), enough.number("/throughput_gbps"), 1);
    EXPECT_GT(few.number("/throughput_gbps"), 95);
  }
}

// RN-04 --------------------------------------------------------------------------------------

constexpr Time kRnrTimer = microseconds(640);  // code 12
constexpr Time kAround = microseconds(10);     // a round trip, a post and a completion, all cold

struct LateRecv {
  WcStatus status = WcStatus::kSuccess;
  std::uint64_t naks = 0;
  Time took{0};
};

/// Fresh queue pairs with `rnr_retry` and a timer of 0.64 ms.
void connect_anew(VerbsRig& rig, std::uint32_t rnr_retry) {
  config::TransportConfig transport = rig.config().transport;
  transport.rnr_retry = rnr_retry;
  transport.min_rnr_timer = 12;
  rig.a.create();
  rig.b.create();
  rig.a.connect(rig.b.qp->qpn, path_between(0, 1), transport);
  rig.b.connect(rig.a.qp->qpn, path_between(1, 0), transport);
}

/// A SEND; `post_recv` is done meanwhile.
LateRecv send(VerbsRig& rig, const std::function<void()>& post_recv) {
  const RigBuffer from = rig.a.buffer(4096);
  rig.settle();
  const std::uint64_t before = rig.a.node.nic.transport().counters().rnr_nak_retry_err;
  const Time start = sim_now();
  EXPECT_EQ(rig.a.post(WrOpcode::kSend, from.address, from.region.lkey, 100), Status::kOk);
  post_recv();
  LateRecv result;
  result.status = rig.a.await_send().status;
  result.took = sim_now() - start;
  result.naks = rig.a.node.nic.transport().counters().rnr_nak_retry_err - before;
  rig.settle();
  const bool failed = result.status != WcStatus::kSuccess;
  EXPECT_EQ(rig.a.device_qp().state, failed ? QpState::kError : QpState::kRts);
  EXPECT_EQ(rig.b.device_qp().state, QpState::kRts) << "the responder is not to blame";
  return result;
}

/// A SEND on a fresh connection; its RECV comes `delay` later, or never.
LateRecv send_before_recv(VerbsRig& rig, std::uint32_t rnr_retry, Time delay) {
  connect_anew(rig, rnr_retry);
  const RigBuffer to = rig.b.buffer(4096);
  return send(rig, [&] {
    if (delay == kTimeNever) return;
    rig.settle(delay);
    EXPECT_EQ(rig.b.post_recv(to.address, to.region.lkey, 100), Status::kOk);
  });
}

/// The RECV is posted before.
LateRecv send_behind_recv(VerbsRig& rig) {
  connect_anew(rig, 0);
  const RigBuffer to = rig.b.buffer(4096);
  EXPECT_EQ(rig.b.post_recv(to.address, to.region.lkey, 100), Status::kOk);
  return send(rig, [] {});
}

TEST(CaseRN, RN04_SendBeforeRecv) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    for (const std::uint32_t retries : {0U, 1U, 3U, 6U}) {
      SCOPED_TRACE(retries);
      const Time waits = kRnrTimer * static_cast<std::int64_t>(retries);
      const LateRecv never = send_before_recv(rig, retries, kTimeNever);
      EXPECT_EQ(never.status, WcStatus::kRnrRetryExceededError);
      EXPECT_EQ(never.naks, retries + 1) << "the first try and every retry";
      EXPECT_GE(never.took, waits);
      EXPECT_LT(never.took, waits + kAround * static_cast<std::int64_t>(retries + 1));
      // Success if and only if the RECV is there before the last resend.
      EXPECT_EQ(
          send_before_recv(rig, retries, waits + kAround * static_cast<std::int64_t>(retries + 1))
              .status,
          WcStatus::kRnrRetryExceededError);
      if (retries == 0) continue;
      const LateRecv in_time = send_before_recv(rig, retries, waits - kAround);
      EXPECT_EQ(in_time.status, WcStatus::kSuccess);
      EXPECT_EQ(in_time.naks, retries);
    }
    const LateRecv forever = send_before_recv(rig, 7, kRnrTimer * 20);
    EXPECT_EQ(forever.status, WcStatus::kSuccess);
    EXPECT_GT(forever.naks, 7U) << "7 means without end";
  });
}

// Without retries the RECV must be there when the SEND comes, and then it is enough.
TEST(CaseRN, RN04_WithoutRetriesTheRecvMustBeThere) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    for (int before = 0; before < 2; ++before) {
      const LateRecv result =
          before == 1 ? send_behind_recv(rig) : send_before_recv(rig, 0, kAround);
      EXPECT_EQ(result.status, before == 1 ? WcStatus::kSuccess : WcStatus::kRnrRetryExceededError);
      EXPECT_EQ(result.naks, before == 1 ? 0U : 1U);
    }
  });
}

// RN-06 --------------------------------------------------------------------------------------

class WriteWithImmediate : public ::testing::TestWithParam<std::string> {};

TEST_P(WriteWithImmediate, RN06_WriteImmWithAnEmptyReceiveQueue) {
  VerbsRig rig({{"transport.protocol", GetParam()},
                {"transport.rnr_retry", "2"},
                {"transport.min_rnr_timer", "12"}});
  rig.run([&] {
    constexpr std::uint32_t kBytes = 65536;
    constexpr std::uint32_t kImmediate = 0xC0FF'EE00;
    rig.connect();
    RigBuffer from = rig.a.buffer(kBytes);
    RigBuffer to = rig.b.buffer(kBytes);
    RigBuffer unused = rig.b.buffer(4096);
    Bytes data(kBytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7 + 1);
    rig.a.fill(from.address, data);
    const auto write = [&](WrOpcode opcode) {
      ASSERT_EQ(rig.a.post(opcode, from.address, from.region.lkey, kBytes, to.address,
                           to.region.rkey, kImmediate),
                Status::kOk);
    };
    Wc none;
    // A plain WRITE needs no RECV and tells the peer nothing.
    write(WrOpcode::kRdmaWrite);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.bytes_at(to.address, kBytes), data);
    EXPECT_EQ(rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &none), 0U);

    // With immediate it takes one RECV, whose buffer stays as it is.
    rig.b.fill(unused.address, Bytes(4096, 0x11));
    rig.b.fill(to.address, Bytes(kBytes, 0));
    ASSERT_EQ(rig.b.post_recv(unused.address, unused.region.lkey, 4096), Status::kOk);
    write(WrOpcode::kRdmaWriteWithImm);
    const Wc told = rig.b.await_recv();
    EXPECT_EQ(told.status, WcStatus::kSuccess);
    EXPECT_EQ(told.opcode, WcOpcode::kRecvRdmaWithImm);
    EXPECT_EQ(told.wc_flags & Wc::kWithImm, Wc::kWithImm);
    EXPECT_EQ(told.imm_data, kImmediate);
    EXPECT_EQ(told.byte_len, kBytes);
    EXPECT_EQ(rig.b.bytes_at(to.address, kBytes), data) << "all of it is there with the completion";
    EXPECT_EQ(rig.b.bytes_at(unused.address, 4096), Bytes(4096, 0x11));
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &none), 0U);

    // Without a RECV it waits, and fails when the retries are spent.
    const std::uint64_t naks = rig.a.node.nic.transport().counters().rnr_nak_retry_err;
    write(WrOpcode::kRdmaWriteWithImm);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kRnrRetryExceededError);
    EXPECT_EQ(rig.a.node.nic.transport().counters().rnr_nak_retry_err - naks, 3U);
    rig.settle();
    EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kRts);
    EXPECT_EQ(rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &none), 0U);
  });
}

// 64 KiB are 16 packets. The RECV is taken at the last of them: one that is posted while they come
// is in time, and one that is not there then costs the last packet's repetition only. What came
// before is in memory already.
TEST_P(WriteWithImmediate, RN06_TheRecvIsTakenAtTheLastPacket) {
  VerbsRig rig({{"transport.protocol", GetParam()},
                {"transport.mtu", "4096"},
                {"link.rate", "10Gbps"},
                {"transport.rnr_retry", "7"},
                {"transport.min_rnr_timer", "12"}});
  rig.run([&] {
    constexpr std::uint32_t kBytes = 65536;  // 53 us of a line of 10 Gb/s
    rig.connect();
    RigBuffer from = rig.a.buffer(kBytes);
    RigBuffer to = rig.b.buffer(kBytes);
    const RigBuffer unused = rig.b.buffer(4096);
    const Bytes data(kBytes, 0x5A);
    rig.a.fill(from.address, data);
    const auto write = [&] {
      rig.settle();
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, from.address, from.region.lkey, kBytes,
                           to.address, to.region.rkey, 7),
                Status::kOk);
      rig.settle(microseconds(30));  // half of it has come
      EXPECT_NE(rig.b.bytes_at(to.address, 1), Bytes(1, 0));
      EXPECT_EQ(rig.b.bytes_at(to.address + kBytes - 1, 1), Bytes(1, 0));
    };
    const auto& counters = rig.a.node.nic.transport().counters();
    write();
    ASSERT_EQ(rig.b.post_recv(unused.address, unused.region.lkey, 4096), Status::kOk);
    rig.b.core.sync();
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.await_recv().byte_len, kBytes);
    EXPECT_EQ(counters.rnr_nak_retry_err, 0U);

    rig.b.fill(to.address, Bytes(kBytes, 0));
    write();
    rig.settle(microseconds(60));  // the last packet was refused
    EXPECT_EQ(counters.rnr_nak_retry_err, 1U);
    EXPECT_EQ(rig.b.bytes_at(to.address, 15 * 4096), Bytes(15 * 4096, 0x5A));
    EXPECT_EQ(rig.b.bytes_at(to.address + 15 * 4096, 4096), Bytes(4096, 0));
    ASSERT_EQ(rig.b.post_recv(unused.address, unused.region.lkey, 4096), Status::kOk);
    rig.b.core.sync();
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.await_recv().byte_len, kBytes);
    EXPECT_EQ(counters.rnr_nak_retry_err, 1U);
    EXPECT_EQ(counters.retransmitted_packets, 1U);
    EXPECT_EQ(rig.b.bytes_at(to.address, kBytes), data);
  });
}

// RN-07 --------------------------------------------------------------------------------------

/// iWARP, too: it needs no RNR for this.
class RecvForImmediate : public ::testing::TestWithParam<std::string> {};

TEST_P(RecvForImmediate, RN07_RecvWithoutABuffer) {
  VerbsRig rig({{"transport.protocol", GetParam()}, {"memory.memlock_limit", "64MiB"}});
  rig.run([&] {
    constexpr std::uint32_t kBytes = 1U << 20;
    rig.connect();
    RigBuffer from = rig.a.buffer(kBytes);
    RigBuffer to = rig.b.buffer(kBytes);
    Bytes data(kBytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i >> 3);
    rig.a.fill(from.address, data);
    const host::verbs::RecvWr empty{77, nullptr, 0};
    ASSERT_EQ(rig.b.verbs().post_recv(rig.b.core, *rig.b.qp, &empty, 1), Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, from.address, from.region.lkey, kBytes,
                         to.address, to.region.rkey, 5),
              Status::kOk);
    const Wc told = rig.b.await_recv();
    EXPECT_EQ(told.status, WcStatus::kSuccess);
    EXPECT_EQ(told.wr_id, 77U);
    EXPECT_EQ(told.imm_data, 5U);
    EXPECT_EQ(told.byte_len, kBytes);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.bytes_at(to.address, kBytes), data);
  });
}

INSTANTIATE_TEST_SUITE_P(CaseRN, WriteWithImmediate, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });
TEST(CaseRN, RN07_SomeDevicesRefuseARecvWithoutABuffer) {
  VerbsRig rig(Settings{{"nic.empty_recv", "false"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer to = rig.b.buffer(4096);
    const host::verbs::RecvWr empty{77, nullptr, 0};
    EXPECT_EQ(rig.b.verbs().post_recv(rig.b.core, *rig.b.qp, &empty, 1), Status::kEinval);
    auto* srq = rig.b.verbs().create_srq(rig.b.core, rig.b.pd, {4, 1});
    EXPECT_EQ(rig.b.verbs().post_srq_recv(rig.b.core, *srq, &empty, 1), Status::kEinval);
    // An element of no bytes is an element.
    EXPECT_EQ(rig.b.post_recv(to.address, to.region.lkey, 0), Status::kOk);
  });
}

INSTANTIATE_TEST_SUITE_P(CaseRN, RecvForImmediate, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

// RN-09 --------------------------------------------------------------------------------------

constexpr std::uint32_t kSenders = 191;

/// A gather of one size class: 191 senders, a shared receive queue of `entries` for their messages,
/// whose owner posts it again as a whole, 50 us after it is used up.
class Gather {
 public:
  Gather(VerbsRig& rig, std::uint32_t entries, std::uint32_t bytes)
      : rig_(rig), entries_(entries), bytes_(bytes) {
    RigSide& to = rig.b;
    srq_ = to.verbs().create_srq(to.core, to.pd, {entries, 1});
    send_cq_ = rig.a.verbs().create_cq(rig.a.core, 256);
    recv_cq_ = to.verbs().create_cq(to.core, 256);
    host::verbs::QpInitAttr shared = RigSide::qp_attr();
    shared.srq = srq_;
    for (std::uint32_t i = 0; i < kSenders; ++i) {
      senders_.push_back(rig.a.make_qp(RigSide::qp_attr(), *send_cq_, *rig.a.recv_cq));
      rig.join(*senders_.back(), *to.make_qp(shared, *to.send_cq, *recv_cq_));
    }
    from_ = rig.a.buffer(4096);
    inbox_ = to.buffer(4096);
    post_recvs();
  }

  void send_all() {
    started_ = sim_now();
    for (auto* sender : senders_) {
      EXPECT_EQ(rig_.a.post(*sender, WrOpcode::kSend, from_.address, from_.region.lkey, bytes_),
                Status::kOk);
    }
  }

  /// Takes what has come; false once all 191 have.
  bool look() {
    Wc wc;
    while (rig_.b.verbs().poll_cq(rig_.b.core, *recv_cq_, 1, &wc) > 0) {
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      last_us_ = to_us(sim_now() - started_);
      sum_us_ += last_us_;
      if (++received_ % entries_ == 0) empty_since_ = sim_now();
    }
    if (empty_since_ != kTimeNever && sim_now() - empty_since_ >= microseconds(50)) post_recvs();
    return received_ < kSenders;
  }

  /// Until the last message is there, and of a message in the mean.
  double last_us() const { return last_us_; }
  double mean_us() const { return sum_us_ / kSenders; }

  void expect_all_acknowledged() {
    for (std::uint32_t i = 0; i < kSenders; ++i) {
      EXPECT_EQ(rig_.a.await(*send_cq_).status, WcStatus::kSuccess);
    }
  }

 private:
  void post_recvs() {
    empty_since_ = kTimeNever;
    for (std::uint32_t i = 0; i < entries_; ++i) {
      EXPECT_EQ(rig_.b.post_srq_recv(*srq_, inbox_.address, inbox_.region.lkey, bytes_),
                Status::kOk);
    }
  }

  VerbsRig& rig_;
  std::uint32_t entries_;
  std::uint32_t bytes_;
  host::verbs::SharedReceiveQueue* srq_ = nullptr;
  host::verbs::CompletionQueue* send_cq_ = nullptr;
  host::verbs::CompletionQueue* recv_cq_ = nullptr;
  std::vector<host::verbs::QueuePair*> senders_;
  RigBuffer from_;
  RigBuffer inbox_;
  Time started_{0};
  Time empty_since_ = kTimeNever;
  std::uint32_t received_ = 0;
  double last_us_ = 0;
  double sum_us_ = 0;
};

/// All of them at once, until everybody's message is there.
void gather(VerbsRig& rig, const std::vector<Gather*>& classes) {
  rig.settle();
  for (Gather* each : classes) each->send_all();
  for (bool more = true; more;) {
    more = false;
    for (Gather* each : classes) more |= each->look();
    rig.settle(nanoseconds(500));
  }
  for (Gather* each : classes) each->expect_all_acknowledged();
}

TEST(CaseRN, RN09_GatherIntoASmallSharedReceiveQueue) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.rnr_retry", "7"},
                {"transport.min_rnr_timer", "12"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    const auto& counters = rig.b.node.nic.transport().counters();
    // Both size classes have enough.
    Gather enough(rig, 256, 1);
    Gather other(rig, 256, 128);
    gather(rig, {&enough, &other});
    EXPECT_EQ(counters.rnr_naks_sent, 0U);
    // The small class has 32: so many get through at once, the others in rounds of the timer, of
    // which the last is the floor(191 / 32) = 5th.
    // A gather is over with its last message: that is the time that its program measures, in the
    // mean of several.
    constexpr int kGathers = 4;
    double mean_us = 0;
    for (int i = 0; i < kGathers; ++i) {
      Gather scarce(rig, 32, 1);
      Gather beside(rig, 256, 128);
      gather(rig, {&scarce, &beside});
      mean_us += scarce.last_us() / kGathers;
      EXPECT_GE(scarce.mean_us(), 10 * enough.mean_us());
      // The other class, whose own queue suffices, does not notice.
      EXPECT_LT(beside.mean_us(), 1.2 * other.mean_us());
      EXPECT_LT(beside.last_us(), 1.2 * other.last_us());
    }
    EXPECT_GT(counters.rnr_naks_sent, 0U);
    EXPECT_GE(mean_us, 5 * to_us(kRnrTimer));
    EXPECT_GE(mean_us, 10 * enough.last_us());
  });
}

// RN-10 --------------------------------------------------------------------------------------

TEST(CaseRN, RN10_ASlowClientDrainsTheSharedReceiveQueue) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.rnr_retry", "7"},
                {"transport.min_rnr_timer", "12"}});
  rig.run(
      [&] {
        constexpr std::uint32_t kEntries = 64;
        constexpr Time kSlow = microseconds(1'000'000);
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
        auto* slow = rig.a.make_qp(deep);
        auto* quick = rig.a.make_qp(deep);
        auto* separate = rig.a.make_qp(deep);
        rig.join(*slow, *target.make_qp(shared, *target.send_cq, *recv_cq));
        rig.join(*quick, *target.make_qp(shared, *target.send_cq, *recv_cq));
        auto* own = target.make_qp(RigSide::qp_attr());
        rig.join(*separate, *own);
        const RigBuffer from = rig.a.buffer(4096);
        const RigBuffer inbox = target.buffer(4096);
        for (std::uint32_t i = 0; i < kEntries; ++i) {
          ASSERT_EQ(target.post_srq_recv(*srq, inbox.address, inbox.region.lkey, 64), Status::kOk);
        }
        ASSERT_EQ(target.post_recv(*own, inbox.address, inbox.region.lkey, 64), Status::kOk);
        const auto send = [&](host::verbs::QueuePair& qp, std::uint32_t flags) {
          EXPECT_EQ(
              rig.a.post(qp, WrOpcode::kSend, from.address, from.region.lkey, 1, 0, 0, 0, flags),
              Status::kOk);
        };
        // The slow client takes every RECV; its requests keep them for a second each.
        for (std::uint32_t i = 0; i < kEntries; ++i) {
          send(*slow, i + 1 == kEntries ? host::verbs::SendFlags::kSignaled : 0);
        }
        EXPECT_EQ(rig.a.await_send().qp_num, slow->qpn);
        rig.settle();
        const Time start = sim_now();
        send(*quick, host::verbs::SendFlags::kSignaled);
        // Receive queues of their own are not concerned.
        send(*separate, host::verbs::SendFlags::kSignaled);
        EXPECT_EQ(rig.a.await_send().qp_num, separate->qpn);
        EXPECT_LT(sim_now() - start, microseconds(50));

        rig.settle(kSlow);
        Wc none;
        EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 1, &none), 0U);
        EXPECT_EQ(target.await(*recv_cq).status, WcStatus::kSuccess);
        ASSERT_EQ(target.post_srq_recv(*srq, inbox.address, inbox.region.lkey, 64), Status::kOk);
        const Wc done = rig.a.await_send();
        EXPECT_EQ(done.qp_num, quick->qpn);
        EXPECT_EQ(done.status, WcStatus::kSuccess);
        EXPECT_GE(sim_now() - start, kSlow);
        EXPECT_LE(sim_now() - start, kSlow + 2 * kRnrTimer);
        // The limit was crossed once, and told once.
        host::verbs::AsyncEvent event;
        std::uint32_t told = 0;
        while (target.verbs().poll_async_event(target.core, event)) {
          told += event.type == protocol::EventType::kSrqLimitReached && event.srq == srq ? 1 : 0;
        }
        EXPECT_EQ(told, 1U);
      },
      microseconds(10'000'000));
}

}  // namespace
}  // namespace rnic::testbench
