// SPDX-License-Identifier: Apache-2.0
// The whole program under random faults of every kind: loss, damage on the cable and in a switch,
// duplicates, reordering, bursts, outages, a peer that falls silent. The program compares every
// byte. RNICSIM_SEEDS=N makes it N runs a protocol.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/rng.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

class FaultCampaign : public ::testing::TestWithParam<std::string> {};

/// Draws settings by lot.
class Lot {
 public:
  Lot(std::uint64_t seed, std::string protocol)
      : protocol_(std::move(protocol)), rng_(seed, "faults of " + protocol_) {
    s = {{"transport.protocol", protocol_},
         {"sim.seed", std::to_string(seed)},
         {"sim.warmup", "0"},
         {"transport.retry_count", "7"},
         {"transport.ack_timeout", "7"},  // 524 us
         {"tcp.min_rto", "200us"},
         {"tcp.syn_timeout", "100us"},
         {"transport.vlan", "true"},
         {"nic.rx_buffer", "2MiB"}};
    service();
    work();
    transport();
    network();
    faults();
  }
  bool reliable() const { return type_ == "rc"; }
  bool silent() const { return silent_; }

  Settings s;

 private:
  bool iwarp() const { return protocol_ == "iwarp"; }
  bool chance(std::uint64_t percent) { return rng_.below(100) < percent; }
  std::string pick(const std::vector<std::string>& from) { return from[rng_.below(from.size())]; }
  void set(const char* key, std::string value) { s.emplace_back(key, std::move(value)); }
  void sometimes(std::uint64_t percent, const char* key, const std::vector<std::string>& from) {
    const std::string value = pick(from);
    if (chance(percent)) set(key, value);
  }

  void service() {
    if (!iwarp() && chance(25)) type_ = pick({"uc", "ud"});
    set("transport.type", type_);
    std::vector<std::string> ops = operations_of(protocol_);
    if (type_ == "rc") ops.insert(ops.end(), {"atomic_cas", "atomic_fadd"});
    if (type_ == "uc") ops = {"write", "write_imm", "send", "send_imm"};
    if (type_ == "ud") ops = {"send", "send_imm"};
    op_ = pick(ops);
    set("workload.op", op_);
  }
  void work() {
    const bool atomic = op_.rfind("atomic", 0) == 0;
    const std::string size = pick({"1", "3", "64", "256", "1000", "5001", "20000", "70000"});
    const bool single = type_ == "ud" && std::stoi(size) > 1000;
    if (!atomic) set("workload.msg_size", single ? "1000" : size);
    const bool latency = type_ == "rc" && chance(30);
    set("workload.pattern", latency ? "latency" : "bandwidth");
    set("workload.qps", pick({"1", "1", "2", "5"}));
    const std::string depth = pick({"1", "2", "7", "32"});
    set("workload.depth", depth);
    set("workload.iterations", pick({"20", "60", "150"}));
    if (!latency) sometimes(30, "workload.bidirectional", {"true"});
    if (iwarp()) {
      set("workload.recv_depth", "512");  // nothing waits for a RECV there
    } else {
      sometimes(20, "workload.recv_depth", {depth});
      set("transport.min_rnr_timer", pick({"1", "2", "5"}));
    }
  }
  void transport() {
    if (iwarp()) {
      set("transport.mtu", pick({"576", "1500", "1513", "9000"}));
      set("tcp.sack", pick({"true", "true", "false"}));
      set("tcp.congestion_control", pick({"newreno", "cubic", "none"}));
      set("tcp.timestamps", pick({"true", "false"}));
      set("tcp.mpa_markers", pick({"true", "false"}));
      set("tcp.window", pick({"32KiB", "128KiB", "1MiB"}));
      set("tcp.delayed_ack", pick({"1", "2", "4"}));
      set("tcp.mpa_revision", "2");
      sometimes(50, "tcp.mpa_rtr", {"send", "write", "read", "any"});
      return;
    }
    set("transport.mtu", type_ == "ud" ? "1024" : pick({"256", "1024", "4096"}));
    if (reliable() && chance(45)) {
      set("transport.recovery", "selective_repeat");
      sometimes(50, "transport.window", {"1", "2", "5", "16", "64"});
    }
    set("transport.ack_every", pick({"1", "2", "16", "64"}));
    sometimes(30, "transport.ack_coalesce_time", {"3us"});
    sometimes(20, "transport.end_to_end_credits", {"true"});
    set("transport.max_rd_atomic", pick({"1", "2", "16"}));
    sometimes(30, "transport.service_level", {"1", "0,3"});
    if (protocol_ == "ib") sometimes(30, "transport.grh", {"true"});
    if (protocol_ == "rocev2") {
      sometimes(30, "transport.ip_version", {"6"});
      sometimes(20, "transport.congestion_control", {"dcqcn"});
    }
  }
  void network() {
    set("link.delay", pick({"10ns", "10ns", "1us", "5us"}));
    set("link.rate", pick({"25Gbps", "100Gbps", "200Gbps"}));
    sometimes(30, "link.flow_control", {"none"});
    if (!chance(50)) return;
    set("fabric.topology", "single_switch");
    set("switch.buffer", "256MiB");
    sometimes(20, "switch.corrupt_rate", {"0.002", "0.01"});
    if (!chance(50)) return;
    set("fabric.hosts", pick({"3", "4"}));
    set("workload.traffic", pick({"incast", "all_to_all", "permutation", "ring"}));
  }
  void faults() {
    sometimes(50, "link.loss_rate", {"0.0005", "0.005", "0.02"});
    sometimes(40, "link.corrupt_rate", {"0.0005", "0.005", "0.02"});
    sometimes(40, "link.duplicate_rate", {"0.005", "0.05", "0.3"});
    if (chance(40)) {
      set("link.reorder_rate", pick({"0.005", "0.05"}));
      set("link.reorder_delay", pick({"200ns", "1us", "5us", "30us"}));
    }
    if (chance(25)) {
      set("link.burst_rate", pick({"0.0005", "0.003"}));
      // A burst is counted in packets, and a lonely one's retries are all there is: a longer one
      // would often outlast eight of them.
      set("link.burst_length", pick({"1.5", "2"}));
    }
    if (chance(20)) {
      set("link.down_at", std::to_string(60 + rng_.below(340)) + "us");
      set("link.down_time", pick({"5us", "40us", "150us"}));
    }
    silent_ = reliable() && chance(6);
    if (!silent_) return;
    set("fabric.silent_host", "1");
    // Behind the set-up, whose passive side would wait for ever.
    set("fabric.silent_from", std::to_string(1000 + rng_.below(1000)) + "us");
  }

  std::string protocol_;
  Rng rng_;
  std::string type_ = "rc";
  std::string op_;
  bool silent_ = false;
};

TEST_P(FaultCampaign, EverythingArrivesOrTheRightErrorCompletes) {
  const char* more = std::getenv("RNICSIM_SEEDS");
  const std::uint64_t last = more == nullptr ? 40 : std::strtoull(more, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    const Lot lot(seed, GetParam());
    SCOPED_TRACE(text_of(lot.s));
    const ProgramRun run = run_well(lot.s);
    if (run.status != 0) continue;
    for (const auto& [status, count] : run.result.at("completions").items()) {
      if (count == 0 || status == "success") continue;
      EXPECT_TRUE(lot.silent() && (status == "retry_exceeded_error" || status == "wr_flush_error"))
          << status;
    }
    if (!lot.reliable()) {
      EXPECT_EQ(run.counter("retransmitted_packets"), 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, FaultCampaign, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
