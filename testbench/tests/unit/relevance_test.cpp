// SPDX-License-Identifier: Apache-2.0
#include "config/relevance.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rnic::testbench {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

std::vector<config::Setting> as_settings(const Options& options, const std::string& origin) {
  std::vector<config::Setting> settings;
  for (const auto& [key, text] : options) settings.push_back({key, text, origin});
  return settings;
}

std::vector<std::string> found(const Options& options) {
  return config::load(as_settings(options, "--")).without_effect;
}

TEST(Relevance, AnOptionThatChangesNothingIsNamedWithWhatItNeeds) {
  EXPECT_EQ(found({{"tcp.window", "1MiB"}}),
            std::vector<std::string>{"tcp.window (needs transport.protocol=iwarp)"});
  EXPECT_TRUE(found({{"tcp.window", "1MiB"}, {"transport.protocol", "iwarp"}}).empty());
  EXPECT_EQ(found({{"workload.op", "dma_read"}, {"workload.mr_size", "1MiB"}}).size(), 1U);
  EXPECT_EQ(found({{"workload.depth", "4"}}),
            std::vector<std::string>{"workload.depth (needs workload.pattern=bandwidth)"});
  EXPECT_EQ(found({{"workload.gap", "1us"}, {"workload.pattern", "bandwidth"}}),
            std::vector<std::string>{"workload.gap (needs workload.pattern=latency)"});
  for (const char* op : {"read", "atomic_cas"}) {
    EXPECT_EQ(found({{"workload.inline_max", "8"}, {"workload.op", op}}).size(), 1U);
    EXPECT_TRUE(found({{"workload.inline_max", "0"}, {"workload.op", op}}).empty());
  }
  EXPECT_TRUE(found({{"workload.inline_max", "8"}, {"workload.op", "send"}}).empty());
  EXPECT_EQ(found({{"workload.mistake_at", "3"}}),
            std::vector<std::string>{"workload.mistake_at (needs workload.mistake)"});
  EXPECT_EQ(found({{"iommu.passthrough", "true"}}),
            std::vector<std::string>{"iommu.passthrough (needs iommu.enabled=true)"});
  EXPECT_EQ(found({{"nic.second_function_lanes", "2"}}),
            std::vector<std::string>{"nic.second_function_lanes (needs nic.functions=2)"});
  EXPECT_EQ(found({{"transport.vlan_id", "7"}, {"transport.protocol", "rocev2"}}),
            std::vector<std::string>{"transport.vlan_id (needs transport.vlan=true)"});
}

TEST(Relevance, EveryConditionCanBeMet) {
  const std::vector<std::pair<Options, Options>> key_and_remedy = {
      {{{"switch.latency", "1us"}}, {{"fabric.topology", "single_switch"}}},
      {{{"iommu.walkers", "2"}}, {{"iommu.enabled", "true"}}},
      {{{"pcie.atc.entries", "64"}}, {{"pcie.ats", "true"}, {"iommu.enabled", "true"}}},
      {{{"memory.numa_latency", "50ns"}}, {{"memory.numa_remote", "true"}}},
      {{{"peer.path", "root"}}, {{"workload.remote_memory", "peer"}}},
      {{{"link.down_at", "1us"}}, {{"link.down_time", "1us"}}},
      {{{"memory.cpu_traffic", "0.5"}}, {{"memory.ddio", "false"}}},
      {{{"memory.dram_channels", "1"}}, {{"memory.llc_size", "8MiB"}}},
      {{{"memory.llc_ways", "4"}}, {{"memory.llc_size", "8MiB"}}},
      {{{"pcie.switch_latency", "100ns"}}, {{"pcie.switches", "1"}}},
      {{{"pcie.retimer_latency", "50ns"}}, {{"pcie.retimers", "1"}}},
      {{{"pcie.ordering_overlap", "2"}}, {{"pcie.ordering_time", "10ns"}}},
      {{{"cpu.wc_buffers", "1"}}, {{"cpu.wc_line_interval", "6ns"}}},
      {{{"workload.window", "1MiB"}}, {{"workload.op", "dma_read"}}},
      {{{"workload.srq", "true"}}, {{"workload.op", "send"}}},
      {{{"workload.recv_depth", "64"}}, {{"workload.op", "write_imm"}}},
      {{{"workload.recv_cost", "1us"}}, {{"workload.op", "send_imm"}}},
      {{{"workload.recv_batch", "2"}},
       {{"workload.op", "send"}, {"workload.pattern", "bandwidth"}}},
      {{{"link.pfc_headroom", "64KiB"}}, {{"transport.protocol", "rocev2"}}},
      {{{"dcqcn.gain", "0.1"}},
       {{"transport.protocol", "rocev2"}, {"transport.congestion_control", "dcqcn"}}},
      {{{"nic.sq_weights", "4,1"}}, {{"nic.sq_scheduler", "strict"}}},
      {{{"workload.depth", "4"}, {"workload.signal_every", "1"}},
       {{"workload.pattern", "bandwidth"}}},
  };
  for (const auto& [key, remedy] : key_and_remedy) {
    SCOPED_TRACE(key.front().first);
    EXPECT_EQ(found(key).size(), key.size());
    Options both = key;
    both.insert(both.end(), remedy.begin(), remedy.end());
    EXPECT_TRUE(found(both).empty());
  }
}

// Only packets of RC WRITEs without immediate data are free to take any path.
TEST(Relevance, AdaptivePathsAreOfPlainWritesOnly) {
  const Options paths = {
      {"link.paths", "2"}, {"link.flow_control", "none"}, {"link.path_choice", "adaptive"}};
  struct Case {
    Options more;
    std::size_t told;
  };
  const std::vector<Case> cases = {{{}, 0},
                                   {{{"workload.op", "write_imm"}}, 1},
                                   {{{"workload.op", "read"}}, 1},
                                   {{{"workload.op", "send"}}, 1},
                                   {{{"workload.op", "atomic_cas"}}, 1},
                                   {{{"transport.type", "uc"}}, 1},
                                   {{{"transport.protocol", "iwarp"}}, 1},
                                   {{{"workload.op", "read"}, {"link.path_choice", "spray"}}, 0},
                                   {{{"workload.program", "kv_store"}}, 0}};
  for (const Case& each : cases) {
    Options options = paths;
    options.insert(options.end(), each.more.begin(), each.more.end());
    const auto texts = found(options);
    EXPECT_EQ(texts.size(), each.told) << options.back().first << "=" << options.back().second;
    for (const std::string& text : texts) {
      EXPECT_EQ(text.rfind("link.path_choice (needs ", 0), 0U) << text;
    }
  }
}

// Groups have datagrams only, so another transport.type is no remedy for any of the faults.
TEST(Relevance, FaultsOfAMulticastAreRefusedWithARemedyThatHelps) {
  for (const Options& fault : std::vector<Options>{{{"link.loss_rate", "0.01"}},
                                                   {{"link.drop_list", "3"}},
                                                   {{"link.corrupt_list", "3"}},
                                                   {{"link.duplicate_rate", "0.1"}},
                                                   {{"link.reorder_rate", "0.1"}},
                                                   {{"link.down_time", "1us"}},
                                                   {{"fabric.silent_host", "1"}},
                                                   {{"switch.corrupt_rate", "0.1"}}}) {
    Options options = {{"workload.program", "multicast"},
                       {"transport.type", "ud"},
                       {"fabric.topology", "single_switch"},
                       {"fabric.hosts", "4"}};
    EXPECT_NO_THROW(config::load(as_settings(options, "--")));
    options.insert(options.end(), fault.begin(), fault.end());
    try {
      config::load(as_settings(options, "--"));
      ADD_FAILURE() << fault.front().first << " is passed over";
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("transport.type=rc"), std::string::npos) << text;
      EXPECT_NE(text.find("remedy: leave the faults out"), std::string::npos) << text;
    }
  }
}

/// Each is refused as it stands, names its key and what it needs, and passes with that.
TEST(Relevance, AFaultOfNobodyIsRefused) {
  struct Case {
    Options asked;
    const char* needs;
    Options with;
  };
  const std::vector<Case> cases = {
      {{{"fabric.silent_from", "1us"}}, "fabric.silent_host", {{"fabric.silent_host", "1"}}},
      {{{"fabric.fatal_at", "1us"}}, "fabric.fatal_host", {{"fabric.fatal_host", "1"}}}};
  for (const Case& each : cases) {
    const std::string& key = each.asked.front().first;
    SCOPED_TRACE(key);
    try {
      config::load(as_settings(each.asked, "--"));
      ADD_FAILURE() << "passed over";
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("--" + key), std::string::npos) << text;
      EXPECT_NE(text.find(each.needs), std::string::npos) << text;
      EXPECT_NE(text.find("remedy"), std::string::npos) << text;
    }
    Options both = each.asked;
    both.insert(both.end(), each.with.begin(), each.with.end());
    EXPECT_NO_THROW(config::load(as_settings(both, "--")));
    EXPECT_NO_THROW(config::load(as_settings(each.asked, "some.ini:3: "))) << "a preset may";
  }
}

/// What asks for nothing is no experiment.
TEST(Relevance, AnOptionThatSaysWhatIsSoAnywayPasses) {
  for (const Options& plain :
       std::vector<Options>{{{"workload.srq", "false"}}, {{"fabric.silent_from", "0"}}}) {
    EXPECT_NO_THROW(config::load(as_settings(plain, "--")));
  }
}

TEST(Relevance, FilesMaySayMoreThanARunUses) {
  const auto settings = as_settings({{"tcp.window", "1MiB"}}, "some.ini:3: ");
  EXPECT_TRUE(config::load(settings).without_effect.empty());
}

}  // namespace
}  // namespace rnic::testbench
