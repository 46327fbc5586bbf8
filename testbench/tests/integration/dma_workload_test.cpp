// SPDX-License-Identifier: Apache-2.0
// DMA alone (workload.op=dma_*), against figures derived by hand from the parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Gen3 x8 without DLLPs: 8 lanes x 8 GT/s x 128/130 = 63.015 Gb/s, 7.877 B/ns.
constexpr double kBytesPerNs = 8 * 8 * 128.0 / 130 / 8;

/// A DMA engine of 10 cycles at 1 GHz, 100 ns each way, 150 ns to read and 60 ns to write memory.
Settings device(const char* op, const char* pattern, const char* bytes) {
  return {{"workload.op", op},
          {"workload.pattern", pattern},
          {"workload.msg_size", bytes},
          {"workload.iterations", "2000"},
          {"pcie.gen", "3"},
          {"pcie.lanes", "8"},
          {"pcie.dllp_overhead", "0"},
          {"pcie.latency", "100ns"},
          {"memory.read_latency", "150ns"},
          {"memory.write_latency", "60ns"},
          {"nic.clock", "1GHz"},
          {"nic.dma.latency", "10"},
          {"nic.dma.interval", "2"}};
}

TEST(DmaWorkloadTest, ReadLatencyIsTheSumOfItsParts) {
  // Engine 10, request of 24 B, 100 there, memory 150, completion of 64 + 20 B, 100 back.
  const ProgramRun run = run_well(device("dma_read", "latency", "64B"));
  const double expected = 10 + 24 / kBytesPerNs + 100 + 150 + 84 / kBytesPerNs + 100;
  EXPECT_NEAR(run.number("/latency_ns/mean"), expected, 0.1);
  double stages = 0;
  for (const auto& row : run.result["breakdown_ns"]) stages += row["mean"].get<double>();
  EXPECT_NEAR(stages, run.number("/latency_ns/mean"), 0.001 * expected);
}

TEST(DmaWorkloadTest, WriteLatencyEndsInMemory) {
  // Engine 10, 64 + 24 B, 100 there, 60 to be visible; nothing comes back.
  const ProgramRun run = run_well(device("dma_write", "latency", "64B"));
  EXPECT_NEAR(run.number("/latency_ns/mean"), 10 + 88 / kBytesPerNs + 100 + 60, 0.1);
}

TEST(DmaWorkloadTest, WriteThenReadIsBothInTurn) {
  // The read is asked for when the write has left the device, and takes its whole time from then.
  const ProgramRun run = run_well(device("dma_read_write", "latency", "64B"));
  const double write = 10 + 88 / kBytesPerNs;
  const double read = 10 + 24 / kBytesPerNs + 100 + 150 + 84 / kBytesPerNs + 100;
  EXPECT_NEAR(run.number("/latency_ns/mean"), write + read, 0.1);
}

TEST(DmaWorkloadTest, TagsBoundReadBandwidth) {
  // Little's law: 4 tags, each held from the request's first byte to its data. (The engine has
  // prepared the next request meanwhile.)
  Settings settings = device("dma_read", "bandwidth", "64B");
  settings.push_back({"pcie.read_tags", "4"});
  const ProgramRun run = run_well(settings);
  const double held = 24 / kBytesPerNs + 100 + 150 + 84 / kBytesPerNs + 100;
  EXPECT_NEAR(run.number("/message_rate_mops"), 4 / held * 1e3, 0.02 * 4 / held * 1e3);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.dma");
  EXPECT_NE(run.result["bottleneck"]["why"].get<std::string>().find("pcie.read_tags"),
            std::string::npos);
}

TEST(DmaWorkloadTest, DepthBoundsBandwidth) {
  Settings settings = device("dma_read", "bandwidth", "64B");
  settings.push_back({"workload.depth", "3"});
  const ProgramRun run = run_well(settings);
  const double held = 10 + 24 / kBytesPerNs + 100 + 150 + 84 / kBytesPerNs + 100;
  EXPECT_NEAR(run.number("/message_rate_mops"), 3 / held * 1e3, 0.02 * 3 / held * 1e3);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "workload.depth");
}

TEST(DmaWorkloadTest, ReadsAndWritesKeepPace) {
  // Upstream go 64 + 24 B of a write and the 24 B of a read request: 112 B for a pair.
  const ProgramRun run = run_well(device("dma_read_write", "bandwidth", "64B"));
  const double pairs = kBytesPerNs / 112 * 1e3;
  ASSERT_EQ(run.result["flows"].size(), 2U);
  for (const auto& flow : run.result["flows"]) {
    EXPECT_NEAR(flow["message_rate_mops"].get<double>(), pairs, 0.01 * pairs);
  }
  EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.pcie.to_host");
  // What the counters say crossed the link is what was measured.
  const auto& pcie = run.result["pcie"][0];
  EXPECT_EQ(pcie["to_device"]["payload_bytes"].get<double>() / 64,
            pcie["to_device"]["tlps"].get<double>());
}

TEST(DmaWorkloadTest, AccessesAreNaturallyAlignedAndMayBeShifted) {
  // 65 B at a cache line are one completion; at 60 B past it, up to the next boundary and the rest.
  Settings aligned = device("dma_read", "latency", "65B");
  const ProgramRun one = run_well(aligned);
  EXPECT_EQ(one.result["pcie"][0]["to_device"]["tlps"], 2000);
  aligned.push_back({"workload.offset", "60"});
  const ProgramRun two = run_well(aligned);
  EXPECT_EQ(two.result["pcie"][0]["to_device"]["tlps"], 4000);
}

TEST(DmaWorkloadTest, SameSeedSameBytesOut) {
  Settings settings = device("dma_read_write", "bandwidth", "256B");
  settings.push_back({"workload.access", "random"});
  settings.push_back({"workload.window", "1MiB"});
  auto first = run_well(settings).result;
  auto second = run_well(settings).result;
  for (const char* key : {"wall_s", "packets_per_s", "peak_rss_bytes"}) {
    first["sim"].erase(key);
    second["sim"].erase(key);
  }
  first["config"].erase("output.dir");
  second["config"].erase("output.dir");
  EXPECT_EQ(first.dump(), second.dump());
}

TEST(DmaWorkloadTest, RefusesWhatCannotBe) {
  const ProgramRun none = run_program(device("dma_read", "latency", "0"));
  EXPECT_EQ(none.status, 2);
  Settings small = device("dma_write", "latency", "4KiB");
  small.push_back({"workload.window", "2KiB"});
  const ProgramRun window = run_program(small);
  EXPECT_EQ(window.status, 2);
  EXPECT_NE(window.error.find("workload.window"), std::string::npos);
}

double utilization(const ProgramRun& run, const std::string& name) {
  for (const auto& unit : run.result["units"]) {
    if (unit["name"] == name) return unit["utilization"].get<double>();
  }
  ADD_FAILURE() << "no unit " << name;
  return 0;
}

TEST(DmaWorkloadTest, SharesCountWorkWhenItIsDoneNotWhenItIsAskedFor) {
  // More is asked for at the start than is measured, so all of it was reserved during the warm-up;
  // and the link carries nothing else than these writes, one behind the other.
  for (const char* depth : {"64", "512", "2048"}) {
    Settings settings = device("dma_write", "bandwidth", "4KiB");
    settings.insert(settings.end(), {{"workload.depth", depth}, {"workload.iterations", "1000"}});
    const ProgramRun run = run_well(settings);
    SCOPED_TRACE(depth);
    EXPECT_NEAR(utilization(run, "host0.pcie.to_host"), 1, 0.01);
    EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.pcie.to_host");
  }
  // An engine that begins a request every 20 ns: 8 B + 24 B take 4 ns on the link.
  Settings engine = device("dma_write", "bandwidth", "8B");
  engine.insert(engine.end(), {{"workload.depth", "1024"}, {"nic.dma.interval", "20"}});
  const ProgramRun run = run_well(engine);
  EXPECT_NEAR(utilization(run, "host0.dma"), 1, 0.01);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.dma");
}

}  // namespace
}  // namespace rnic::testbench
