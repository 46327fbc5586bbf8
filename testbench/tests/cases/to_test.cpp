// SPDX-License-Identifier: Apache-2.0
// Time-outs and loss recovery. A time-out code n stands for t = 4.096 us x 2^n.
#include <gtest/gtest.h>

#include <cmath>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;

constexpr double kCodeSeconds = 4.096e-6;
const Settings kVendor = {{"transport.min_ack_timeout", "16"},
                          {"transport.ack_timeout_factor", "2"},
                          {"transport.adaptive_retransmission", "true"},
                          {"transport.adaptive_start", "2ms"}};

Settings timers(int code, int retries) {
  return {{"transport.protocol", "rocev2"},
          {"transport.ack_timeout", std::to_string(code)},
          {"transport.retry_count", std::to_string(retries)}};
}

void move_to(RigSide& side, QpState state) {
  host::verbs::QpAttr attr;
  attr.qp_state = state;
  ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, protocol::QpAttrMask::kState),
            host::Status::kOk);
}

struct Outcome {
  WcStatus status = WcStatus::kSuccess;
  double seconds = 0;
};

/// One WRITE to a peer whose queue pair was moved to `state` before.
Outcome write_to_peer_in(QpState state, const Settings& settings) {
  Outcome outcome;
  VerbsRig rig(settings);
  rig.run(
      [&] {
        rig.connect();
        const RigBuffer from = rig.a.buffer(4096);
        const RigBuffer to = rig.b.buffer(4096);
        if (state != QpState::kRts) move_to(rig.b, state);
        rig.settle();
        const Time posted = rig.a.core.now();
        ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 4096, to.address,
                             to.region.rkey),
                  host::Status::kOk);
        outcome.status = rig.a.await_send().status;
        outcome.seconds = to_seconds(rig.a.core.now() - posted);
        if (outcome.status != WcStatus::kSuccess) {
          EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
        }
      },
      microseconds(200'000'000));
  return outcome;
}

void expect_specified_time(int code, int retries) {
  const Outcome outcome = write_to_peer_in(QpState::kError, timers(code, retries));
  const double t = kCodeSeconds * std::pow(2, code);
  EXPECT_EQ(outcome.status, WcStatus::kRetryExceededError);
  EXPECT_GE(outcome.seconds, (retries + 1) * t);
  EXPECT_LE(outcome.seconds, 4 * (retries + 1) * t);
}

TEST(CaseTO, TO01_SpecificationT14R7) { expect_specified_time(14, 7); }
// Observed: 3.5 to 3.8 s for every code up to 16, 58.5 to 59.8 s for 20.
void expect_vendor_time(int code, double least, double most) {
  const Outcome outcome = write_to_peer_in(QpState::kError, with(timers(code, 7), kVendor));
  EXPECT_EQ(outcome.status, WcStatus::kRetryExceededError);
  EXPECT_GE(outcome.seconds, least);
  EXPECT_LE(outcome.seconds, most);
}

TEST(CaseTO, TO01_VendorT8) { expect_vendor_time(8, 3.5, 3.8); }
TEST(CaseTO, TO01_VendorT14) { expect_vendor_time(14, 3.5, 3.8); }
TEST(CaseTO, TO01_VendorT16) { expect_vendor_time(16, 3.5, 3.8); }
TEST(CaseTO, TO01_VendorT20) { expect_vendor_time(20, 58.5, 59.8); }

// A round trip of 40 ms and a time-out of 1.07 s: resends after 2, 6, 14 and 30 ms (the next would
// be at 62), each of which the responder sees as a duplicate.
TEST(CaseTO, TO03_AdaptiveRetransmissionOverALongPath) {
  const Settings path = {{"transport.protocol", "rocev2"},
                         {"transport.ack_timeout", "18"},
                         {"link.delay", "20ms"},
                         {"link.flow_control", "none"},
                         {"workload.op", "read"},
                         {"workload.pattern", "latency"},
                         {"workload.msg_size", "256KiB"},
                         {"workload.iterations", "3"},
                         {"sim.warmup", "0"}};
  const ProgramRun plain = run_well(path);
  EXPECT_EQ(plain.counter("retransmitted_packets"), 0U);
  const ProgramRun adaptive = run_well(with(
      path, {{"transport.adaptive_retransmission", "true"}, {"transport.adaptive_start", "2ms"}}));
  EXPECT_EQ(adaptive.number("/completions/success"), 3);
  EXPECT_EQ(adaptive.counter("local_ack_timeout_err"), 4 * 3U);
  // The program is over before the last duplicate arrives, 30 + 20 ms after its request.
  EXPECT_EQ(adaptive.counter("duplicate_request"), 4 * 3U - 1);
}

void expect_status_for_peer(QpState state, WcStatus status) {
  EXPECT_EQ(write_to_peer_in(state, timers(10, 3)).status, status);
}

TEST(CaseTO, TO09_ResponderReset) {
  expect_status_for_peer(QpState::kReset, WcStatus::kRetryExceededError);
}
TEST(CaseTO, TO09_ResponderError) {
  expect_status_for_peer(QpState::kError, WcStatus::kRetryExceededError);
}
TEST(CaseTO, TO09_ResponderRts) { expect_status_for_peer(QpState::kRts, WcStatus::kSuccess); }

/// The responder's queue pair goes only as far as `state`.
WcStatus write_to_peer_brought_up_to(QpState state) {
  using Mask = protocol::QpAttrMask;
  WcStatus status = WcStatus::kGeneralError;
  VerbsRig rig(timers(10, 3));
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
    if (state == QpState::kRtr) {
      host::verbs::QpAttr attr;
      attr.qp_state = QpState::kRtr;
      attr.ah_attr = path_between(1, 0);
      attr.path_mtu = rig.config().transport.mtu;
      attr.dest_qp_num = rig.a.qp->qpn;
      attr.rq_psn = 0xFF'FFF0;  // as the rig's own
      attr.max_dest_rd_atomic = rig.config().transport.max_dest_rd_atomic;
      ASSERT_EQ(
          rig.b.verbs().modify_qp(rig.b.core, *rig.b.qp, attr,
                                  Mask::kState | Mask::kAv | Mask::kPathMtu | Mask::kDestQpn |
                                      Mask::kRqPsn | Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer),
          host::Status::kOk);
    }
    rig.settle();
    const RigBuffer from = rig.a.buffer(4096);
    const RigBuffer to = rig.b.buffer(4096);
    rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 64, to.address,
               to.region.rkey);
    status = rig.a.await_send().status;
  });
  return status;
}

TEST(CaseTO, TO09_ResponderInit) {
  EXPECT_EQ(write_to_peer_brought_up_to(QpState::kInit), WcStatus::kRetryExceededError);
}
TEST(CaseTO, TO09_ResponderRtr) {
  EXPECT_EQ(write_to_peer_brought_up_to(QpState::kRtr), WcStatus::kSuccess);
}

// The program of the passive side runs no instruction after posting its RECV.
TEST(CaseTO, TO09_ProcessStopped) {
  VerbsRig rig(timers(10, 3));
  rig.run([&] {
    rig.connect();
    const RigBuffer from = rig.a.buffer(4096);
    const RigBuffer to = rig.b.buffer(4096);
    rig.b.post_recv(to.address, to.region.lkey, 4096);
    rig.settle();
    const Time spent = rig.b.core.busy();
    rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 64, to.address,
               to.region.rkey);
    rig.a.post(WrOpcode::kSend, from.address, from.region.lkey, 64);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.core.busy(), spent);  // not one instruction
  });
}

/// Goodput of a stream over 100 Gb/s with the given one-way delay, Gb/s; `more`: other than WRITEs
/// of 64 KiB.
double goodput(const std::string& recovery, const std::string& loss, const std::string& delay,
               const std::string& mtu = "4096", const Settings& more = {}) {
  const ProgramRun run = run_well(with({{"transport.protocol", "rocev2"},
                                        {"transport.recovery", recovery},
                                        {"transport.mtu", mtu},
                                        {"transport.ack_timeout", "6"},
                                        {"workload.pattern", "bandwidth"},
                                        {"workload.msg_size", "64KiB"},
                                        {"workload.depth", "64"},
                                        {"workload.iterations", "6000"},
                                        {"link.flow_control", "none"},
                                        {"link.delay", delay},
                                        {"link.loss_rate", loss},
                                        {"sim.payload", "none"}},
                                       more));
  return run.number("/throughput_gbps");
}

// W is what the pipe holds: a round trip of 2 x 40 us and about 2 us of NICs at 100 Gb/s and 4178 B
// a packet are 245 packets. A loss is noticed by the packet behind it and costs a round trip.
TEST(CaseTO, TO13_GoBackNLosesARoundTripALoss) {
  constexpr double kWindow = 245;
  const double lossless = goodput("go_back_n", "0", "40us");
  // 10 losses in 96,000 packets at 1e-4, one at 1e-5: what they cost is 1 / (1 + p W), or nearly
  // nothing.
  EXPECT_NEAR(goodput("go_back_n", "1e-5", "40us") / lossless, 1 / (1 + 1e-5 * kWindow), 0.01);
  EXPECT_NEAR(goodput("go_back_n", "1e-4", "40us") / lossless, 1 / (1 + 1e-4 * kWindow), 0.02);
  const double one_in_1000 = goodput("go_back_n", "1e-3", "40us") / lossless;
  EXPECT_NEAR(one_in_1000, 1 / (1 + 1e-3 * kWindow), 0.06);
  const double one_in_100 = goodput("go_back_n", "1e-2", "40us") / lossless;
  EXPECT_NEAR(one_in_100, 1 / (1 + 1e-2 * kWindow), 0.06);
}

TEST(CaseTO, TO13_SelectiveRepeatLosesWhatIsLost) {
  const double lossless = goodput("selective_repeat", "0", "40us");
  EXPECT_GT(lossless, 0.99 * goodput("go_back_n", "0", "40us") * (4178.0 / 4194));
  EXPECT_NEAR(goodput("selective_repeat", "1e-5", "40us") / lossless, 1 - 1e-5, 0.01);
  EXPECT_NEAR(goodput("selective_repeat", "1e-4", "40us") / lossless, 1 - 1e-4, 0.01);
  EXPECT_NEAR(goodput("selective_repeat", "1e-3", "40us") / lossless, 1 - 1e-3, 0.02);
  EXPECT_NEAR(goodput("selective_repeat", "1e-2", "40us") / lossless, 1 - 1e-2, 0.06);
}

// READs of 256 KiB, of which 16 may be under way: four times what the pipe holds, so that one which
// waits for a repetition leaves room for others.
TEST(CaseTO, TO13_SelectiveRepeatOfReadsLosesWhatIsLost) {
  const auto reads = [](const char* loss) {
    return goodput("selective_repeat", loss, "40us", "4096",
                   {{"workload.op", "read"},
                    {"workload.msg_size", "256KiB"},
                    {"workload.iterations", "1500"}});
  };
  const double lossless = reads("0");
  EXPECT_NEAR(reads("1e-5") / lossless, 1 - 1e-5, 0.01);
  EXPECT_NEAR(reads("1e-4") / lossless, 1 - 1e-4, 0.01);
  EXPECT_NEAR(reads("1e-3") / lossless, 1 - 1e-3, 0.02);
  EXPECT_NEAR(reads("1e-2") / lossless, 1 - 1e-2, 0.06);
}

// The same loss rate of packets costs more when there are four times as many in the pipe.
TEST(CaseTO, TO13_SmallPacketsSufferMore) {
  EXPECT_LT(goodput("go_back_n", "1e-3", "40us", "1024"),
            0.75 * goodput("go_back_n", "1e-3", "40us", "4096"));
}

// 64 packets of a message: an ACK every k, the last of which is that of the message. The first
// message meets cold caches, behind which ACKs wait and are merged: what ten messages more add.
TEST(CaseTO, TO15_AcknowledgementEveryKPackets) {
  const auto acks = [](std::uint64_t k, const char* messages) {
    const ProgramRun run = run_well({{"transport.protocol", "rocev2"},
                                     {"transport.mtu", "1024"},
                                     {"transport.ack_every", std::to_string(k)},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.msg_size", "64KiB"},
                                     {"workload.depth", "1"},
                                     {"workload.iterations", messages},
                                     {"sim.warmup", "0"}});
    EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U);
    return run.counter("acks_sent");
  };
  for (const std::uint64_t k : {1U, 4U, 16U}) {
    EXPECT_EQ(acks(k, "20") - acks(k, "10"), 10 * 64 / k) << k;
  }
}

TEST(CaseTO, TO15_NoStallWhenTheWindowHoldsThem) {
  const auto run = [](const std::string& window) {
    return run_well({{"transport.protocol", "rocev2"},
                     {"transport.ack_every", "16"},
                     {"transport.window", window},
                     {"workload.pattern", "bandwidth"},
                     {"workload.msg_size", "1MiB"},
                     {"workload.iterations", "20"}});
  };
  for (const char* window : {"16", "64"}) {
    EXPECT_EQ(run(window).counter("local_ack_timeout_err"), 0U) << window;
  }
  // A smaller one asks when it closes, so that it does not stall either.
  EXPECT_EQ(run("8").counter("local_ack_timeout_err"), 0U);
}

// UC WRITEs one at a time, each of one packet; a gap costs the receiver 20 us once. Of 4,000
// packets each 1,000th is lost: the ping-pong would wait for ever, so that the stream is one way
// and the receiver's time is seen in its CQEs' distances.
TEST(CaseTO, TO12_UnreliableWritesPassOverGaps) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.type", "uc"},
                {"nic.uc_gap_time", "20us"},
                {"link.drop_list", "10,20"}});
  std::vector<std::uint32_t> seen;
  std::vector<double> spacing;
  rig.run([&] {
    rig.connect(protocol::QpType::kUc);
    const RigBuffer from = rig.a.buffer(4096);
    const RigBuffer to = rig.b.buffer(4096);
    Time before = kTimeZero;
    rig.b.post_recv(to.address, to.region.lkey, 0);  // one ahead, that none has to be looked for
    for (std::uint32_t i = 1; i <= 30; ++i) {
      rig.b.post_recv(to.address, to.region.lkey, 0);
      rig.settle(microseconds(40));
      const Time posted = rig.a.core.now();
      rig.a.post(WrOpcode::kRdmaWriteWithImm, from.address, from.region.lkey, 64, to.address,
                 to.region.rkey, i);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);  // lost or not
      if (i == 10 || i == 20) continue;
      const host::verbs::Wc wc = rig.b.await_recv();
      seen.push_back(wc.imm_data);
      spacing.push_back(to_seconds(rig.b.core.now() - posted) * 1e6);
      before = posted;
    }
    EXPECT_GT(before, kTimeZero);
    EXPECT_EQ(rig.a.node.nic.transport().counters().retransmitted_packets, 0U);
  });
  ASSERT_EQ(seen.size(), 28U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const bool behind_gap = seen[i] == 11 || seen[i] == 21;
    const double usual = spacing[4];  // caches are warm
    if (i < 4) continue;
    EXPECT_NEAR(spacing[i], usual + (behind_gap ? 20 : 0), 0.5) << seen[i];
  }
}

}  // namespace
}  // namespace rnic::testbench
