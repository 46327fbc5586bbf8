// SPDX-License-Identifier: Apache-2.0
// Time-outs and loss recovery. A time-out code n stands for t = 4.096 us x 2^n.
#include <gtest/gtest.h>

#include <algorithm>
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

/// The vendor's timers: what is not answered fails after 3.5 to 3.8 s, the rest does not wait.
void expect_status_for_peer(QpState state, WcStatus status) {
  const Outcome outcome = write_to_peer_in(state, with(timers(14, 7), kVendor));
  EXPECT_EQ(outcome.status, status);
  if (status == WcStatus::kSuccess) {
    EXPECT_LT(outcome.seconds, 20e-6);
    return;
  }
  EXPECT_GE(outcome.seconds, 3.5);
  EXPECT_LE(outcome.seconds, 3.8);
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

/// Messages of `packets` packets of 1 KiB, one at a time, with an ACK every k packets.
ProgramRun acknowledged_every(std::uint64_t k, std::uint64_t packets, const char* messages) {
  ProgramRun run = run_well({{"transport.protocol", "rocev2"},
                             {"transport.mtu", "1024"},
                             {"transport.ack_every", std::to_string(k)},
                             {"workload.pattern", "bandwidth"},
                             {"workload.msg_size", std::to_string(1024 * packets)},
                             {"workload.depth", "1"},
                             {"workload.iterations", messages},
                             {"sim.warmup", "0"}});
  EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U);
  return run;
}

// An ACK every k packets of a message, and one at its end: ceil(N / k). The first message meets
// cold caches, behind which ACKs wait and are merged: what ten messages more add.
TEST(CaseTO, TO15_AcknowledgementEveryKPackets) {
  for (const std::uint64_t packets : {1U, 3U, 15U, 16U, 17U, 61U, 64U}) {
    for (const std::uint64_t k : {1U, 4U, 16U}) {
      const std::uint64_t acks = acknowledged_every(k, packets, "20").counter("acks_sent") -
                                 acknowledged_every(k, packets, "10").counter("acks_sent");
      EXPECT_EQ(acks, 10 * ((packets + k - 1) / k)) << packets << " packets, k " << k;
    }
  }
}

// A message completes with the ACK of its last packet, whatever others there were. Of one packet to
// the nanosecond; of 61 the others take their turns in the pipelines.
TEST(CaseTO, TO15_ASingleMessageCompletesAsSoon) {
  for (const std::uint64_t packets : {1U, 61U}) {
    const double each = acknowledged_every(1, packets, "20").number("/latency_ns/p50");
    for (const std::uint64_t k : {4U, 16U}) {
      const double latency = acknowledged_every(k, packets, "20").number("/latency_ns/p50");
      EXPECT_NEAR(latency, each, packets == 1 ? 0 : 0.01 * each) << packets << " packets, k " << k;
    }
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

// 4,000 UC WRITEs of one packet, one at a time, of which each 1,000th is lost; a gap costs the
// receiver 20 us once. The sender knows nothing of it, so that the stream is one way and the
// receiver's time is seen in its CQEs.
class UnreliableStream {
 public:
  static constexpr std::uint32_t kMessages = 4000;
  static bool lost(std::uint32_t message) { return message % 1000 == 500; }

  UnreliableStream()
      : rig_({{"transport.protocol", "rocev2"},
              {"transport.type", "uc"},
              {"nic.uc_gap_time", "20us"},
              {"link.drop_list", "500,1500,2500,3500"}}) {
    rig_.run(
        [this] {
          rig_.connect(protocol::QpType::kUc);
          from_ = rig_.a.buffer(4096);
          to_ = rig_.b.buffer(4096);
          rig_.b.post_recv(to_.address, to_.region.lkey,
                           0);  // one ahead: none has to be looked for
          for (std::uint32_t i = 1; i <= kMessages; ++i) write(i);
        },
        microseconds(1'000'000));
  }

  std::vector<std::uint32_t> seen;  ///< immediates, in the order of arrival
  std::vector<double> times_us;     ///< from post to the receiver's completion
  const transport::TransportCounters& sender() { return rig_.a.node.nic.transport().counters(); }
  const transport::TransportCounters& receiver() { return rig_.b.node.nic.transport().counters(); }

 private:
  void write(std::uint32_t i) {
    rig_.b.post_recv(to_.address, to_.region.lkey, 0);
    rig_.settle(microseconds(40));
    const Time posted = rig_.a.core.now();
    rig_.a.post(WrOpcode::kRdmaWriteWithImm, from_.address, from_.region.lkey, 64, to_.address,
                to_.region.rkey, i);
    EXPECT_EQ(rig_.a.await_send().status, WcStatus::kSuccess);  // lost or not
    if (lost(i)) return;
    seen.push_back(rig_.b.await_recv().imm_data);
    times_us.push_back(to_seconds(rig_.b.core.now() - posted) * 1e6);
  }

  VerbsRig rig_;
  RigBuffer from_;
  RigBuffer to_;
};

TEST(CaseTO, TO12_UnreliableWritesPassOverGaps) {
  UnreliableStream stream;
  ASSERT_EQ(stream.seen.size(), stream.kMessages - 4);
  EXPECT_EQ(stream.sender().retransmitted_packets, 0U);
  EXPECT_EQ(stream.sender().acks_received, 0U);
  EXPECT_EQ(stream.sender().packet_seq_err, 0U);  // no NAK
  EXPECT_EQ(stream.sender().local_ack_timeout_err, 0U);
  // All but the lost ones, in order; each one behind a gap takes 20 us longer, no other does.
  std::vector<double> sorted(stream.times_us.begin() + 10, stream.times_us.end());  // caches warm
  std::sort(sorted.begin(), sorted.end());
  const double usual = sorted[sorted.size() / 2];
  std::uint32_t expected = 0;
  double sum = 0;
  for (std::size_t i = 0; i < stream.seen.size(); ++i) {
    const bool behind_gap = stream.lost(++expected);
    if (behind_gap) ++expected;
    EXPECT_EQ(stream.seen[i], expected);
    if (i < 10) continue;
    EXPECT_NEAR(stream.times_us[i], usual + (behind_gap ? 20 : 0), 0.5) << stream.seen[i];
    sum += stream.times_us[i];
  }
  // Four of 3,986 are the slowest thousandth; 80 us more are 20 ns of the mean.
  EXPECT_NEAR(sorted[sorted.size() * 999 / 1000], usual + 20, 0.5);
  EXPECT_NEAR(sum / static_cast<double>(sorted.size()), usual, 0.1);
}

}  // namespace
}  // namespace rnic::testbench
