// SPDX-License-Identifier: Apache-2.0
// Where pcie.detail=fast becomes tlp: packets of both directions contend for something scarce.
#include "config/pcie_contention.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "config/loader.h"

namespace rnic::config {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

bool by_packets(Settings settings) {
  settings.emplace_back("workload.pattern", "bandwidth");
  return load_from(settings).config.pcie.detail == PcieDetail::kTlp;
}

Settings both_ways(const Settings& more) {
  Settings settings{{"workload.bidirectional", "true"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(PcieContention, PlentyForBothDirectionsStaysFast) {
  EXPECT_FALSE(by_packets({}));
  EXPECT_FALSE(by_packets(both_ways({})));
  EXPECT_FALSE(by_packets(both_ways({{"link.rate", "400Gbps"}, {"pcie.gen", "5"}})));
  EXPECT_FALSE(by_packets(both_ways({{"iommu.enabled", "true"}, {"iommu.passthrough", "true"}})));
}

TEST(PcieContention, CreditsThatComeInSteps) {
  EXPECT_TRUE(by_packets({{"pcie.update_fc_interval", "500ns"}}));
  EXPECT_FALSE(by_packets({{"pcie.update_fc_latency", "500ns"}})) << "later, but one by one";
}

// MPS 256: up to 1 KiB.
TEST(PcieContention, RecvsAmongFewPackets) {
  for (const char* op : {"send", "send_imm", "write_imm"}) {
    EXPECT_TRUE(by_packets({{"workload.op", op}, {"workload.msg_size", "1KiB"}})) << op;
    EXPECT_FALSE(by_packets({{"workload.op", op}, {"workload.msg_size", "1025"}})) << op;
  }
  EXPECT_FALSE(by_packets({{"workload.op", "write"}, {"workload.msg_size", "64"}}));
  EXPECT_EQ(load_from(Settings{{"workload.op", "send"}}).config.pcie.detail, PcieDetail::kFast)
      << "one at a time";
}

TEST(PcieContention, WhatBothDirectionsContendFor) {
  const std::vector<std::pair<const char*, Settings>> kinds{
      // 150 Gb/s would be enough for 100 Gb/s of wire.
      {"memory", {{"memory.bandwidth", "149Gbps"}}},
      {"other socket", {{"memory.numa_remote", "true"}, {"memory.numa_bandwidth", "149Gbps"}}},
      // 2 x 136 Gb/s, of which the CPU leaves half.
      {"DRAM",
       {{"memory.ddio", "false"}, {"memory.dram_channels", "2"}, {"memory.cpu_traffic", "0.5"}}},
      // 8 GT/s x 8 x 128/130 and DLLPs: 58 Gb/s.
      {"slot", {{"pcie.gen", "3"}, {"pcie.lanes", "8"}}},
      // 100 Gb/s x 450 ns = 5,625 B in flight; 16 x 512 B are less than half more.
      {"tags", {{"pcie.read_tags", "16"}}},
      {"ordering", {{"pcie.relaxed_ordering", "false"}, {"pcie.ordering_time", "160ns"}}},
      {"relaxed", {{"pcie.relaxed_time", "20ns"}}},
      {"walks", {{"iommu.enabled", "true"}}},
      {"errors", {{"pcie.bit_error_rate", "1e-9"}}}};
  for (const auto& [name, settings] : kinds) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(by_packets(settings)) << "one direction alone";
    EXPECT_TRUE(by_packets(both_ways(settings)));
    Settings turns_around = settings;
    turns_around.emplace_back("workload.traffic", "loopback");
    EXPECT_TRUE(by_packets(turns_around));
  }
  EXPECT_FALSE(by_packets(both_ways({{"memory.bandwidth", "151Gbps"}})));
  EXPECT_FALSE(by_packets(
      both_ways({{"memory.numa_remote", "true"}, {"memory.numa_bandwidth", "151Gbps"}})));
  // The last-level cache takes the writes.
  EXPECT_FALSE(
      by_packets(both_ways({{"memory.dram_channels", "2"}, {"memory.cpu_traffic", "0.5"}})));
  EXPECT_FALSE(by_packets(both_ways({{"pcie.read_tags", "17"}})));
}

TEST(PcieContention, CreditsForLessThanARoundTrip) {
  // 32 B/ns x (2 x 150 + 60) ns = 11,520 B: 720 units of 16 B, 180 headers of a line each.
  EXPECT_TRUE(by_packets({{"pcie.root_credits.posted_data", "719"}}));
  EXPECT_FALSE(by_packets({{"pcie.root_credits.posted_data", "768"}}));
  EXPECT_TRUE(by_packets({{"pcie.root_credits.posted_headers", "93"}}));
  EXPECT_FALSE(by_packets({{"pcie.root_credits.posted_headers", "192"}}));
}

TEST(PcieContention, ASlotInWhichAPacketTakesAsLongAsARoundTrip) {
  // 8 GT/s x 2 x 128/130 = 15.8 Gb/s, and DLLPs; 5 GT/s x 4 x 8/10 = 16 Gb/s.
  EXPECT_TRUE(by_packets({{"pcie.gen", "3"}, {"pcie.lanes", "2"}}));
  EXPECT_TRUE(by_packets({{"pcie.gen", "2"}, {"pcie.lanes", "4"}}));
  EXPECT_FALSE(by_packets({{"pcie.gen", "3"}, {"pcie.lanes", "4"}}));
}

bool in_order(const Settings& settings) { return requests_queue(load_from(settings).config); }

TEST(PcieContention, SlotsWithQueues) {
  EXPECT_FALSE(in_order({})) << "223 Gb/s for a wire of 100";
  EXPECT_TRUE(in_order({{"link.rate", "400Gbps"}})) << "more than the slot carries";
  EXPECT_TRUE(in_order({{"pcie.gen", "3"}, {"pcie.lanes", "8"}, {"link.rate", "25Gbps"}}))
      << "58 Gb/s";
}

TEST(PcieContention, TheResolvedKeyTells) {
  for (const auto& [key, value] :
       load_from({{"pcie.root_credits.posted_headers", "16"}}).resolved) {
    if (key == "pcie.detail") {
      EXPECT_EQ(std::get<std::string>(value), "tlp");
    }
  }
}

}  // namespace
}  // namespace rnic::config
