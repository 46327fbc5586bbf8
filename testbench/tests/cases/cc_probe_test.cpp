// SPDX-License-Identifier: Apache-2.0
// A small message beside bulk data through one port.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::WcStatus;

enum class Probe { kAlone, kSameQueuePair, kSameClass, kOwnClass };

/// 64 B WRITEs, one each 10 us, beside four queue pairs that keep two WRITEs of 1 MB each in flight
/// (not with kAlone). One program polls for both.
class BulkAndProbe {
 public:
  explicit BulkAndProbe(Probe kind, const Settings& more = {})
      : kind_(kind),
        rig_(with({{"transport.protocol", "rocev2"},
                   {"link.ets", "0:10,5:strict"},
                   {"sim.payload", "none"}},
                  more)) {}

  /// 99th percentile of the probes' time from post to completion, ns.
  double p99() {
    rig_.run(
        [this] {
          set_up();
          run();
        },
        microseconds(300'000));
    std::sort(times_.begin(), times_.end());
    return times_.empty() ? 0 : times_[times_.size() * 99 / 100 - 1];
  }

 private:
  static constexpr std::uint32_t kBulkBytes = 1U << 20;
  static constexpr std::uint32_t kProbeBytes = 64;
  static constexpr std::size_t kProbes = 200;
  static constexpr std::size_t kBulkPairs = 4;

  host::verbs::QueuePair* pair(std::uint8_t level) {
    host::verbs::QueuePair* a = rig_.a.make_qp(RigSide::qp_attr());
    host::verbs::QueuePair* b = rig_.b.make_qp(RigSide::qp_attr());
    const config::Config& config = rig_.config();
    rig_.a.connect(*a, b->qpn, path_of_qp(config, path_between(0, 1), level, a->qpn, b->qpn),
                   config.transport);
    rig_.b.connect(*b, a->qpn, path_of_qp(config, path_between(1, 0), level, b->qpn, a->qpn),
                   config.transport);
    return a;
  }

  void set_up() {
    rig_.connect();  // for its protection domains and queues
    from_ = rig_.a.buffer(kBulkBytes);
    to_ = rig_.b.buffer(kBulkBytes);
    for (std::size_t i = 0; i < kBulkPairs; ++i) bulk_.push_back(pair(0));
    probe_ =
        kind_ == Probe::kSameQueuePair ? bulk_.front() : pair(kind_ == Probe::kOwnClass ? 5 : 0);
    rig_.settle();
  }

  std::uint64_t post(host::verbs::QueuePair& qp, std::uint32_t bytes) {
    EXPECT_EQ(rig_.a.post(qp, WrOpcode::kRdmaWrite, from_.address, from_.region.lkey, bytes,
                          to_.address, to_.region.rkey),
              host::Status::kOk);
    return rig_.a.wr_ids;
  }

  void run() {
    host::Core& core = rig_.a.core;
    for (int i = 0; kind_ != Probe::kAlone && i < 2; ++i) {
      for (host::verbs::QueuePair* qp : bulk_) post(*qp, kBulkBytes);
    }
    Time next = core.now() + microseconds(500);  // bulk is in full swing
    std::uint64_t waiting = 0;                   // work request of the probe
    Time posted{0};
    host::verbs::Wc wc;
    while (times_.size() < kProbes) {
      if (waiting == 0 && core.now() >= next) {
        posted = core.now();
        next = posted + microseconds(10);
        waiting = post(*probe_, kProbeBytes);
      }
      if (rig_.a.verbs().poll_cq(core, *rig_.a.send_cq, 1, &wc) == 0) {
        core.spend(nanoseconds(20));
        core.sync();
        continue;
      }
      core.sync();
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      if (wc.wr_id == waiting) {
        times_.push_back(to_ns(core.now() - posted));
        waiting = 0;
        continue;
      }
      for (host::verbs::QueuePair* qp : bulk_) {
        if (qp->qpn == wc.qp_num) post(*qp, kBulkBytes);
      }
    }
  }

  Probe kind_;
  VerbsRig rig_;
  RigBuffer from_;
  RigBuffer to_;
  std::vector<host::verbs::QueuePair*> bulk_;
  host::verbs::QueuePair* probe_ = nullptr;
  std::vector<double> times_;
};

/// SystemC elaborates once a process: the time without bulk data is that of its own test.
constexpr double kIdleNs = 1'671;
constexpr double kFrameNs = 336;  ///< 4,178 B at 100 Gb/s

TEST(CaseCC, CC16_ProbeAlone) {
  BulkAndProbe alone(Probe::kAlone);
  EXPECT_NEAR(alone.p99(), kIdleNs, 25);
}

// Behind what waits in the port's queue of the class, nic.tx_buffer = 32 packets of 4 KiB, and a
// turn of each of the four others: depth by rate. Ten times as long and more behind twice the depth
// (or in a switch, see ProbeBesideBulk).
TEST(CaseCC, CC16_SameClass) {
  BulkAndProbe same(Probe::kSameClass);
  EXPECT_NEAR(same.p99(), kIdleNs + (32 + 4) * kFrameNs, 2 * kFrameNs);
}
TEST(CaseCC, CC16_SameClassBehindADeeperQueue) {
  BulkAndProbe same(Probe::kSameClass, {{"nic.tx_buffer", "256KiB"}});
  const double ns = same.p99();
  EXPECT_NEAR(ns, kIdleNs + (64 + 4) * kFrameNs, 2 * kFrameNs);
  EXPECT_GE(ns, 10 * kIdleNs);
}

// Behind two or three WRITEs of 1 MB that share the line with those of the others: 84 us each, up
// to 12 of them.
TEST(CaseCC, CC16_SameQueuePair) {
  BulkAndProbe same(Probe::kSameQueuePair);
  const double ns = same.p99();
  EXPECT_GE(ns, 84e3);
  EXPECT_LE(ns, 13 * 84e3);
}

// One hop: behind the frame that is being sent, and behind what the port has committed itself to
// before (link.commit_ahead, 200 ns) and the scheduler's turns of five queue pairs.
TEST(CaseCC, CC16_OwnClass) {
  BulkAndProbe own(Probe::kOwnClass);
  EXPECT_LE(own.p99(), kIdleNs + kFrameNs + 200 + 5 * 20);
}

}  // namespace
}  // namespace rnic::testbench
