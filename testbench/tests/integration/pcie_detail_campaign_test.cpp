// SPDX-License-Identifier: Apache-2.0
// pcie.detail=auto against tlp over random hosts, slots and workloads: the same throughput within
// 1 %, the same latency within 2 %.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Draws that are the same everywhere: the standard's distributions are not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::string one_of(const std::vector<std::string>& values) {
    return values[engine_() % values.size()];
  }
  bool percent(std::uint64_t share) { return engine_() % 100 < share; }

 private:
  std::mt19937_64 engine_;
};

struct Scenario {
  Settings settings;
  bool latency = false;
};

void draw_slot(Dice& dice, Settings& out) {
  const auto set = [&](const char* key, const std::string& value) { out.push_back({key, value}); };
  const auto sometimes = [&](std::uint64_t share, const char* key,
                             const std::vector<std::string>& values) {
    if (dice.percent(share)) set(key, dice.one_of(values));
  };
  set("pcie.gen", dice.one_of({"1", "2", "3", "3", "4", "4", "5", "5", "6"}));
  set("pcie.lanes", dice.one_of({"1", "4", "8", "8", "16", "16", "16"}));
  set("pcie.mps", dice.one_of({"128", "256", "256", "512", "1024", "4096"}));
  set("pcie.mrrs", dice.one_of({"128", "256", "512", "512", "1024", "4096"}));
  const std::string rcb = dice.one_of({"64", "64", "128"});
  set("pcie.rcb", rcb);
  sometimes(15, "pcie.completion_size", {rcb, "128"});
  sometimes(30, "pcie.read_tags", {"1", "4", "8", "16", "32", "64", "256"});
  sometimes(15, "pcie.root_credits.posted_headers", {"4", "16", "32", "64", "128", "512"});
  sometimes(15, "pcie.root_credits.posted_data", {"256", "372", "700", "1024", "4096"});
  sometimes(5, "pcie.device_credits.completion_headers", {"16", "64", "256"});
  sometimes(20, "pcie.latency", {"50ns", "300ns", "600ns", "1000ns"});
  sometimes(8, "pcie.update_fc_interval", {"500ns"});
  sometimes(10, "pcie.switches", {"1", "2"});
  sometimes(15, "pcie.relaxed_ordering", {"false"});
  sometimes(12, "pcie.ordering_time", {"5ns", "20ns", "109ns"});
  sometimes(8, "pcie.relaxed_time", {"2ns", "16ns"});
}

void draw_host(Dice& dice, Settings& out) {
  const auto set = [&](const char* key, const std::string& value) { out.push_back({key, value}); };
  const auto sometimes = [&](std::uint64_t share, const char* key,
                             const std::vector<std::string>& values) {
    if (dice.percent(share)) set(key, dice.one_of(values));
  };
  sometimes(20, "memory.bandwidth", {"30Gbps", "60Gbps", "100Gbps", "200Gbps"});
  sometimes(10, "memory.partial_line_time", {"10ns", "50ns"});
  sometimes(15, "memory.ddio", {"false"});
  sometimes(10, "memory.llc_size", {"8MiB"});
  sometimes(15, "memory.dram_channels", {"1", "2", "6"});
  sometimes(15, "memory.cpu_traffic", {"0.3", "0.6", "0.9"});
  if (dice.percent(15)) {
    set("memory.numa_remote", "true");
    set("memory.numa_bandwidth", dice.one_of({"50Gbps", "150Gbps", "300Gbps"}));
  }
  sometimes(6, "memory.read_line_latency", {"2ns"});
  sometimes(8, "memory.reads_wait_for_writes", {"true"});
  if (!dice.percent(25)) return;
  set("iommu.enabled", "true");
  set("iommu.walkers", dice.one_of({"1", "4", "16"}));
  if (!dice.percent(40)) return;
  set("pcie.ats", "true");
  set("pcie.atc.entries", dice.one_of({"64", "256"}));
}

Scenario draw(std::uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  Settings& out = scenario.settings;
  const auto set = [&](const char* key, const std::string& value) { out.push_back({key, value}); };
  const std::string protocol = dice.one_of({"ib", "rocev2", "iwarp"});
  std::string op = dice.one_of({"write", "write", "read", "read", "send", "write_imm",
                                "atomic_fadd", "dma_read", "dma_write"});
  if (protocol == "iwarp" && (op == "atomic_fadd" || op == "write_imm")) op = "write";
  const bool dma = op == "dma_read" || op == "dma_write";
  scenario.latency = dice.percent(35);
  set("workload.op", op);
  set("transport.protocol", protocol);
  set("workload.pattern", scenario.latency ? "latency" : "bandwidth");
  set("link.rate", dice.one_of({"25Gbps", "100Gbps", "200Gbps", "400Gbps"}));
  std::vector<std::string> sizes{"1", "8", "64", "65", "200", "256", "777", "1024", "1500", "4096"};
  if (!dma) sizes.insert(sizes.end(), {"5000", "16384", "65536"});
  const std::string size = dice.one_of(sizes);
  if (op != "atomic_fadd") set("workload.msg_size", size);
  draw_slot(dice, out);
  draw_host(dice, out);
  const long bytes = std::stol(size);
  const long messages = std::clamp(2'000'000L / bytes, 400L, 2000L);
  set("workload.iterations", std::to_string(scenario.latency ? 200 : messages));
  if (dma) {
    set("workload.host_cache", dice.one_of({"cold", "warm"}));
    set("workload.window", dice.one_of({"8192", "65536", "4194304"}));
    return scenario;
  }
  set("sim.payload", "none");
  if (!scenario.latency) {
    const std::string queues = dice.one_of({"1", "1", "4", "8"});
    set("workload.threads", queues);
    set("workload.qps", queues);
    set("workload.post_batch", dice.one_of({"1", "8", "16"}));
    set("workload.bidirectional", dice.one_of({"false", "false", "true"}));
  }
  if (op == "atomic_fadd") return scenario;
  set("workload.access", dice.one_of({"sequential", "random", "zipf"}));
  set("workload.mr_size", dice.one_of({"1MiB", "8MiB", "64MiB"}));
  if (dice.percent(20)) set("workload.alignment", dice.one_of({"1", "64"}));
  return scenario;
}

class PcieDetailCampaign : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PcieDetailCampaign, AutoIsAsGoodAsTlp) {
  const Scenario scenario = draw(GetParam());
  SCOPED_TRACE(text_of(scenario.settings));
  const ProgramRun automatic = run_well(scenario.settings);
  if (automatic.result["config"]["pcie.detail"] == "tlp") return;  // the same run
  const ProgramRun tlp = run_well(with(scenario.settings, {{"pcie.detail", "tlp"}}));
  const char* figure = scenario.latency ? "/latency_ns/mean" : "/throughput_gbps";
  const double expected = tlp.number(figure);
  EXPECT_NEAR(automatic.number(figure), expected, (scenario.latency ? 0.02 : 0.01) * expected);
}

INSTANTIATE_TEST_SUITE_P(Seed, PcieDetailCampaign, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace rnic::testbench
