// SPDX-License-Identifier: Apache-2.0
// When a requester resends and when it gives up. A time-out code T stands for t = 4.096 us x 2^T.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <vector>

#include "protocol/cm_timeout.h"
#include "support/program.h"
#include "support/temporary_file.h"
#include "support/tshark.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;

double nominal(std::uint32_t code) { return 4.096e-6 * std::pow(2, code); }

const Settings kVendor = {{"transport.min_ack_timeout", "16"},
                          {"transport.ack_timeout_factor", "2"},
                          {"transport.adaptive_retransmission", "true"},
                          {"transport.adaptive_start", "2ms"}};

struct Outcome {
  WcStatus status = WcStatus::kSuccess;
  std::uint32_t vendor_error = 0;
  double seconds = 0;
  std::uint64_t expiries = 0;
};

void move_to_error(RigSide& side) {
  host::verbs::QpAttr attr;
  attr.qp_state = QpState::kError;
  ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, protocol::QpAttrMask::kState),
            host::Status::kOk);
}

/// One rig for many peers that do not answer: each has queue pairs of its own.
class DeadPeer {
 public:
  explicit DeadPeer(const Settings& settings)
      : rig_(with({{"transport.protocol", "rocev2"}}, settings)) {}

  void run(const std::function<void()>& program) {
    rig_.run(
        [&] {
          rig_.a.create();
          rig_.b.create();
          from_ = rig_.a.buffer(4096);
          to_ = rig_.b.buffer(4096);
          program();
        },
        microseconds(2'000'000'000));
  }

  /// A WRITE to a queue pair in the error state.
  Outcome write(std::uint32_t code, std::uint32_t retries) {
    config::TransportConfig transport = rig_.config().transport;
    transport.ack_timeout = code;
    transport.retry_count = retries;
    rig_.a.qp = rig_.a.make_qp(RigSide::qp_attr());
    rig_.b.qp = rig_.b.make_qp(RigSide::qp_attr());
    rig_.a.connect(rig_.b.qp->qpn, path_between(0, 1), transport);
    rig_.b.connect(rig_.a.qp->qpn, path_between(1, 0), transport);
    move_to_error(rig_.b);
    rig_.settle();
    const auto& counters = rig_.a.node.nic.transport().counters();
    Outcome outcome;
    outcome.expiries = counters.local_ack_timeout_err;
    const Time posted = rig_.a.core.now();
    EXPECT_EQ(rig_.a.post(WrOpcode::kRdmaWrite, from_.address, from_.region.lkey, 64, to_.address,
                          to_.region.rkey),
              host::Status::kOk);
    const host::verbs::Wc wc = rig_.a.await_send();
    outcome.status = wc.status;
    outcome.vendor_error = wc.vendor_err;
    outcome.seconds = to_seconds(rig_.a.core.now() - posted);
    outcome.expiries = counters.local_ack_timeout_err - outcome.expiries;
    EXPECT_EQ(rig_.a.state(), QpState::kError);
    EXPECT_EQ(rig_.a.verbs().destroy_qp(rig_.a.core, rig_.a.qp), host::Status::kOk);
    EXPECT_EQ(rig_.b.verbs().destroy_qp(rig_.b.core, rig_.b.qp), host::Status::kOk);
    return outcome;
  }

 private:
  VerbsRig rig_;
  RigBuffer from_;
  RigBuffer to_;
};

/// What surrounds the timers: posting, the first packet's way out, the completion.
constexpr double kSurroundings = 20e-6;

// The specification allows (R + 1) t to 4 (R + 1) t; without a factor it is the least.
TEST(CaseTO, TO01_EveryCodeAndRetryCountOfTheSpecification) {
  DeadPeer peer(Settings{});
  peer.run([&peer] {
    for (const std::uint32_t retries : {1U, 3U, 7U}) {
      for (std::uint32_t code = 8; code <= 20; ++code) {
        SCOPED_TRACE("R " + std::to_string(retries) + ", T " + std::to_string(code));
        const Outcome outcome = peer.write(code, retries);
        EXPECT_EQ(outcome.status, WcStatus::kRetryExceededError);
        EXPECT_EQ(outcome.expiries, retries + 1);
        EXPECT_GE(outcome.seconds, (retries + 1) * nominal(code));
        EXPECT_LE(outcome.seconds, (retries + 1) * nominal(code) + kSurroundings);
      }
    }
  });
}

TEST(CaseTO, TO01_TheLatestThatTheSpecificationAllows) {
  DeadPeer peer(Settings{{"transport.ack_timeout_factor", "4"}});
  peer.run([&peer] {
    const Outcome outcome = peer.write(10, 3);
    EXPECT_GE(outcome.seconds, 4 * 4 * nominal(10));
    EXPECT_LE(outcome.seconds, 4 * 4 * nominal(10) + kSurroundings);
  });
}

// The vendor's: quick resends after 2, 4, 8 ... ms while that is not more than the nominal time of
// max(T, 16), which cost one retry together, then R - 1 times twice the nominal time. For 16 the
// quick ones are 2 to 256 ms, eight that last 510 ms; each further code has one more, of twice the
// time: 1,022, 2,046, 4,094 and 8,190 ms.
TEST(CaseTO, TO01_EveryCodeAndRetryCountOfTheVendor) {
  DeadPeer peer(kVendor);
  peer.run([&peer] {
    for (const std::uint32_t retries : {1U, 3U, 7U}) {
      for (std::uint32_t code = 8; code <= 20; ++code) {
        SCOPED_TRACE("R " + std::to_string(retries) + ", T " + std::to_string(code));
        const Outcome outcome = peer.write(code, retries);
        const std::uint32_t clamped = std::max(code, 16U);
        const std::uint32_t quick = clamped - 8;
        const double adaptive = 2e-3 * (std::pow(2, quick) - 1);
        const double expected = (retries - 1) * 2 * nominal(clamped) + adaptive;
        EXPECT_EQ(outcome.status, WcStatus::kRetryExceededError);
        EXPECT_EQ(outcome.expiries, quick + retries - 1);
        EXPECT_GE(outcome.seconds, expected);
        EXPECT_LE(outcome.seconds, expected + kSurroundings);
        if (code <= 16) {
          EXPECT_GE(adaptive, 0.25);
          EXPECT_LE(adaptive, 0.6);
        }
      }
    }
  });
}

// A round trip of 40 ms with the vendor's timers: each READ goes out five times, 2, 4, 8 and 16 ms
// apart (the next would be 62 ms behind the first; the answer is there after 40).
TEST(CaseTO, TO03_TheGapsBetweenTheResends) {
  const TemporaryFile place("gaps");
  std::filesystem::remove(place.path());
  run_well({{"transport.protocol", "rocev2"},
            {"transport.ack_timeout", "18"},
            {"transport.adaptive_retransmission", "true"},
            {"transport.adaptive_start", "2ms"},
            {"link.delay", "20ms"},
            {"link.flow_control", "none"},
            {"workload.op", "read"},
            {"workload.pattern", "latency"},
            {"workload.msg_size", "256KiB"},
            {"workload.iterations", "3"},
            {"sim.warmup", "0"},
            {"output.traces", "pcap"},
            {"output.dir", place.path()}});
  const auto requests =
      dissect(place.path() + "/host0.nic.port.pcapng", "infiniband.bth.opcode == 0x0c",
              {"frame.time_epoch", "infiniband.bth.psn"});
  std::map<std::uint64_t, std::vector<double>> sent;  // by PSN, ms
  for (const Dissection& p : requests) {
    sent[p.number("infiniband.bth.psn")].push_back(std::stod(p.text("frame.time_epoch")) * 1e3);
  }
  ASSERT_EQ(sent.size(), 3U);
  for (const auto& [psn, times] : sent) {
    ASSERT_EQ(times.size(), 5U) << psn;
    for (std::size_t i = 1; i < times.size(); ++i) {
      EXPECT_NEAR(times[i] - times[i - 1], std::pow(2, i), 1e-3) << psn;
    }
  }
}

// What the table of the connection manager gives is what a requester waits: at least eight times
// the code's time with seven retries.
TEST(CaseTO, TO05_TheComputedCodeIsWaited) {
  DeadPeer peer(Settings{});
  peer.run([&peer] {
    for (const std::uint32_t asked : {1U, 14U, 15U, 16U, 17U, 18U}) {
      const std::uint32_t code = protocol::cm_ack_timeout(asked - 1, 16);
      EXPECT_EQ(code, asked <= 14 ? 16U : (asked <= 16 ? 17U : 18U)) << asked;
      const Outcome outcome = peer.write(code, 7);
      EXPECT_EQ(outcome.status, WcStatus::kRetryExceededError) << asked;
      EXPECT_GE(outcome.seconds, 8 * nominal(code)) << asked;
      EXPECT_LE(outcome.seconds, 8 * nominal(code) + kSurroundings) << asked;
    }
  });
}

/// Two hosts with `pairs` queue pairs each, one message of 4 KiB at a time on each: so many packets
/// wait at the port of the third, 0.34 us each. Nothing is lost: the switch pauses them.
ProgramRun queue_of(int pairs, const char* code, const char* retries) {
  return run_well({{"transport.protocol", "rocev2"},
                   {"fabric.topology", "single_switch"},
                   {"fabric.hosts", "3"},
                   {"workload.traffic", "incast"},
                   {"workload.pattern", "bandwidth"},
                   {"workload.qps", std::to_string(pairs)},
                   {"workload.msg_size", "4KiB"},
                   {"workload.depth", "1"},
                   {"workload.iterations", "3200"},
                   {"sim.warmup", "0"},
                   {"transport.ack_timeout", code},
                   {"transport.retry_count", retries}});
}

// The time from the packet to its ACK lies between the latency of its message, from post to
// completion, and that less what is not timed, which is no more than an idle message takes, 3.2 us.
// Without congestion nothing fails, with ever more ever more of it does, though nothing is lost.
TEST(CaseTO, TO06_FailsIfAndOnlyIfTheQueueIsLongerThanTheTimer) {
  constexpr double kTimerUs = 8.192;
  double idle_us = 0;
  double failed_share = 0;
  int surely = 0;
  int surely_not = 0;
  for (const int pairs : {1, 2, 4, 8, 12, 16, 24, 32}) {
    SCOPED_TRACE(pairs);
    const ProgramRun patient = queue_of(pairs, "14", "7");
    EXPECT_EQ(patient.counter("local_ack_timeout_err"), 0U);
    EXPECT_EQ(patient.number("/completions/success"), 6400);
    const double longest_us = patient.number("/latency_ns/max") / 1e3;
    if (pairs == 1) idle_us = patient.number("/latency_ns/min") / 1e3;
    const ProgramRun hasty = queue_of(pairs, "1", "0");
    for (const ProgramRun* run : {&patient, &hasty}) {
      EXPECT_EQ(run->counter("out_of_sequence"), 0U);
      EXPECT_EQ(run->link_sum("dropped"), 0);
    }
    const double failed = hasty.result.at("completions").value("retry_exceeded_error", 0.0);
    if (longest_us < kTimerUs) {
      EXPECT_EQ(failed, 0);
      ++surely_not;
    }
    if (longest_us - idle_us > kTimerUs) {
      EXPECT_GT(failed, 0);
      ++surely;
    }
    EXPECT_GE(failed / (2 * pairs), failed_share);
    failed_share = failed / (2 * pairs);
  }
  EXPECT_GE(surely_not, 2);
  EXPECT_GE(surely, 3);
  EXPECT_EQ(failed_share, 1);
}

// A black hole behind a connection that was set up by other means: status 12 with the vendor's code
// 129 at the time of TO-01, what was posted behind it flushed, and the responder saw nothing.
TEST(CaseTO, TO07_ABlackHole) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.ack_timeout", "14"},
                {"transport.retry_count", "7"},
                {"link.loss_rate", "1"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer from = rig.a.buffer(4096);
    const RigBuffer to = rig.b.buffer(4096);
    const Time posted = rig.a.core.now();
    for (int i = 0; i < 3; ++i) {
      rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 64, to.address,
                 to.region.rkey);
    }
    const host::verbs::Wc first = rig.a.await_send();
    EXPECT_EQ(static_cast<int>(first.status), 12);
    EXPECT_EQ(first.vendor_err, 129U);
    const double seconds = to_seconds(rig.a.core.now() - posted);
    EXPECT_GE(seconds, 8 * nominal(14));
    EXPECT_LE(seconds, 8 * nominal(14) + kSurroundings);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(static_cast<int>(rig.a.await_send().status), 5);
    EXPECT_EQ(rig.b.port().received().data_packets, 0U);
    EXPECT_EQ(rig.b.device_qp().expected_psn, rig.a.device_qp().una_psn);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kRts);
    // Posted later: flushed, too.
    rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 64, to.address,
               to.region.rkey);
    EXPECT_EQ(static_cast<int>(rig.a.await_send().status), 5);
  });
}

/// A stream of WRITEs, one after the other. `undo` takes something away at the responder while the
/// `at`-th is under way.
struct Stream {
  WcStatus status = WcStatus::kSuccess;
  Time until_failure{0};  ///< from what was taken away
  Time round_trip{0};     ///< of a WRITE before
};

template <typename Undo>
Stream stream_until_failure(VerbsRig& rig, const Undo& undo) {
  Stream stream;
  rig.run(
      [&] {
        rig.connect();
        const RigBuffer from = rig.a.buffer(4096);
        RigBuffer to = rig.b.buffer(4096);
        const auto write = [&] {
          ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 64, to.address,
                               to.region.rkey),
                    host::Status::kOk);
        };
        constexpr int kBefore = 10;
        Time gone = kTimeNever;
        for (int i = 0; stream.status == WcStatus::kSuccess && i < 1000; ++i) {
          const Time posted = rig.a.core.now();
          write();
          if (i == kBefore) {
            undo(rig, to);
            rig.b.core.sync();
            gone = sim_now();
          }
          stream.status = rig.a.await_send().status;
          if (i == kBefore - 1) stream.round_trip = rig.a.core.now() - posted;
        }
        stream.until_failure = rig.a.core.now() - gone;
        rig.settle();
      },
      microseconds(10'000'000));
  return stream;
}

// The queue pair goes first: the time of TO-01, 3.5 to 3.8 s with the vendor's timers.
TEST(CaseTO, TO10_TheQueuePairIsDestroyed) {
  VerbsRig rig(with({{"transport.protocol", "rocev2"},
                     {"transport.ack_timeout", "14"},
                     {"transport.retry_count", "7"}},
                    kVendor));
  const Stream stream = stream_until_failure(rig, [](VerbsRig& r, RigBuffer&) {
    ASSERT_EQ(r.b.verbs().destroy_qp(r.b.core, r.b.qp), host::Status::kOk);
  });
  EXPECT_EQ(stream.status, WcStatus::kRetryExceededError);
  EXPECT_GE(to_seconds(stream.until_failure), 3.5);
  EXPECT_LE(to_seconds(stream.until_failure), 3.8);
}

// The region goes first: the next WRITE is refused within a round trip, and both ends are in error.
TEST(CaseTO, TO10_TheRegionIsDeregistered) {
  VerbsRig rig(with({{"transport.protocol", "rocev2"}}, kVendor));
  const Stream stream = stream_until_failure(rig, [](VerbsRig& r, RigBuffer& to) {
    ASSERT_EQ(r.b.verbs().dereg_mr(r.b.core, to.region), host::Status::kOk);
  });
  EXPECT_EQ(stream.status, WcStatus::kRemoteAccessError);
  EXPECT_GT(stream.round_trip, kTimeZero);
  // One may have been executed just before, so that the next is refused: two round trips, of which
  // the second is a NAK's, which needs no look at memory.
  EXPECT_LE(stream.until_failure, 2 * stream.round_trip);
  EXPECT_EQ(rig.a.state(), QpState::kError);
  EXPECT_EQ(rig.b.state(), QpState::kError);
}

}  // namespace
}  // namespace rnic::testbench
