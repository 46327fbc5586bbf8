// SPDX-License-Identifier: Apache-2.0
// A flow that shares only a sender's cable with an incast: as much of the cases of victims as hosts
// at one switch can show. SystemC elaborates once a process, so each test has one fabric.
#include <gtest/gtest.h>

#include "base/sc_time.h"
#include "base/timelines.h"
#include "config/loader.h"
#include "simulation/addresses.h"
#include "simulation/system.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Hosts 1 to `senders` stream to host 0, and host 1 also to host 2, to which nobody else sends.
class Victim {
 public:
  /// `priority`: of the victim; the incast has 0.
  Victim(std::uint32_t senders, const Settings& more, std::uint8_t priority = 0)
      : loaded_(config::load_from(with(settings(senders), more))),
        timeline_(Timeline::instance()),
        system_(loaded_.config),
        victim_config_(loaded_.config) {
    // It ends last: what counts is the time in which all flows run.
    victim_config_.workload.iterations *= 4;
    victim_config_.transport.service_level = {priority};
    from_ = std::make_unique<Endpoint>(system_.nodes[1]->host, victim_config_, 1);
    to_ = std::make_unique<Endpoint>(system_.nodes[2]->host, victim_config_, 2);
    victim_ = std::make_unique<Flow>("victim", victim_config_, *from_, *to_, path_between(1, 2),
                                     path_between(2, 1), system_.measurement);
  }

  /// Gb/s of the victim while all flows run.
  double gbps() {
    run();
    const Measurement& m = system_.measurement;
    EXPECT_GT(m.overlap(), microseconds(1000));
    return 8e-3 * static_cast<double>(victim_->measured()[0].common_bytes) / to_us(m.overlap());
  }
  /// Of all flows to host 0 together; behind gbps().
  double incast_gbps() {
    double bytes = 0;
    for (const auto& flow : system_.flows) {
      bytes += static_cast<double>(flow->measured()[0].common_bytes);
    }
    return 8e-3 * bytes / to_us(system_.measurement.overlap());
  }
  /// For which host 0 has paused the switch in all; behind gbps().
  Time paused_by_receiver() { return system_.fabric_switch->port(0).paused(sim_now()); }
  /// Jain's index of the flows to host 0; behind gbps().
  double fairness() {
    double sum = 0;
    double squares = 0;
    for (const auto& flow : system_.flows) {
      const auto bytes = static_cast<double>(flow->measured()[0].common_bytes);
      sum += bytes;
      squares += bytes * bytes;
    }
    return sum * sum / (static_cast<double>(system_.flows.size()) * squares);
  }

 private:
  static Settings settings(std::uint32_t senders) {
    return {{"transport.protocol", "rocev2"},
            {"fabric.topology", "single_switch"},
            {"fabric.hosts", std::to_string(senders + 1)},
            {"workload.traffic", "incast"},
            {"workload.pattern", "bandwidth"},
            {"workload.msg_size", "64KiB"},
            {"workload.depth", "16"},
            {"workload.iterations", "800"},
            {"sim.warmup", "1200"},
            {"link.rate", "40Gbps"},
            {"sim.payload", "none"}};
  }

  void run() {
    const Measurement& m = system_.measurement;
    for (int slices = 0; m.flows_done < m.flows_total && slices < 20'000; ++slices) {
      Timelines::instance().set_horizon(sim_now() + kSlice);
      sc_core::sc_start(to_sc_time(kSlice));
      if (m.failure) std::rethrow_exception(m.failure);
    }
    EXPECT_EQ(m.flows_done, m.flows_total);
  }

  static constexpr Time kSlice = microseconds(200);

  config::LoadedConfig loaded_;
  Timeline& timeline_;
  System system_;
  config::Config victim_config_;
  std::unique_ptr<Endpoint> from_;
  std::unique_ptr<Endpoint> to_;
  std::unique_ptr<Flow> victim_;
};

constexpr double kLine = 40.0 * 4096 / 4178;  // Gb/s of payload

/// What is left of host 1's cable when it gives the incast its share.
double fair_share(int senders) { return kLine - kLine / senders; }

// The switch pauses host 1 for what it sends to host 0, and with it everything else of the same
// priority: the NIC's queue pairs take turns, so that the victim gets no more than the flow that is
// paused, though the way to host 2 is idle.
void expect_victim(int senders) {
  Victim victim(static_cast<std::uint32_t>(senders), {});
  const double gbps = victim.gbps();
  EXPECT_LT(gbps, 0.6 * fair_share(senders));
  EXPECT_NEAR(gbps, kLine / senders, 0.06 * kLine / senders);
  EXPECT_NEAR(victim.incast_gbps(), kLine, 0.01 * kLine);
}

// A receiver whose PCIe (Gen3 x8) takes less than its port: hosts whose queue pairs send at
// `qp_rate` each.
Settings slow_receiver(const char* qp_rate) {
  return {
      {"link.rate", "200Gbps"}, {"pcie.gen", "3"}, {"pcie.lanes", "8"}, {"nic.qp_rate", qp_rate}};
}

// Four senders ask for 100 Gb/s of the 52 to 57.6 that PCIe takes, so that the receiver pauses the
// network, though no wire is full: the victim gets what a paused flow gets, 14.4 at most, of the 25
// that it asks for.
TEST(CaseCC, CC08_AVictimOfASlowReceiver) {
  Victim victim(4, slow_receiver("25Gbps"));
  const double gbps = victim.gbps();
  EXPECT_LT(gbps, 0.7 * 25);
  EXPECT_LE(victim.incast_gbps(), 57.6);
  EXPECT_GE(victim.incast_gbps(), 52);
  EXPECT_GT(victim.paused_by_receiver(), kTimeZero);
}

// They ask for 48 Gb/s: nobody is paused, and the victim has all that it asks for.
TEST(CaseCC, CC08_NoVictimOfCappedSenders) {
  Victim victim(4, slow_receiver("12Gbps"));
  EXPECT_NEAR(victim.gbps(), 12, 0.03 * 12);
  EXPECT_NEAR(victim.incast_gbps(), 48, 0.03 * 48);
  EXPECT_EQ(victim.paused_by_receiver(), kTimeZero);
}

TEST(CaseCC, CC13_VictimOfThreeSenders) { expect_victim(3); }
// Less with more senders, although nothing on its own way is busier.
TEST(CaseCC, CC13_VictimOfSixSenders) { expect_victim(6); }

// A rate for each flow instead of a pause for all of them.
TEST(CaseCC, CC13_NoVictimWithDcqcn) {
  Victim victim(3, {{"transport.congestion_control", "dcqcn"}});
  EXPECT_GE(victim.gbps(), 0.9 * fair_share(3));
  EXPECT_GT(victim.fairness(), 0.95);
  EXPECT_GT(victim.incast_gbps(), 0.95 * kLine);
}

// In a priority of its own, which nobody pauses, it needs no congestion control.
TEST(CaseCC, CC13_NoVictimInAClassOfItsOwn) {
  Victim victim(3, {}, 5);
  EXPECT_GE(victim.gbps(), 0.9 * fair_share(3));
}

}  // namespace
}  // namespace rnic::testbench
