// SPDX-License-Identifier: Apache-2.0
// What of PCIe bounds a run, by formula, and that the report names it.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

constexpr double kLatency = 150;  ///< ns, pcie.latency
constexpr double kMemoryRead = 150;
constexpr double kMemoryWrite = 60;

/// WRITEs of 64 KiB over a line that is no limit, Gen4 x16 with MPS 256 and no DLLPs: 252.06 Gb/s.
Settings big_writes() {
  return {{"workload.op", "write"},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "65536"},
          {"workload.iterations", "200"},
          {"workload.depth", "16"},
          {"sim.warmup", "20"},
          {"link.rate", "400Gbps"},
          {"pcie.gen", "4"},
          {"pcie.lanes", "16"},
          {"pcie.mps", "256"},
          {"pcie.mrrs", "512"},
          {"pcie.dllp_overhead", "0"},
          {"pcie.latency", "150ns"},
          {"memory.read_latency", "150ns"},
          {"memory.write_latency", "60ns"},
          {"memory.bandwidth", "1600Gbps"}};
}

double wire_ns(double bytes) { return bytes * 8 / (16 * 16 * 128 / 130.0); }

std::string why(const ProgramRun& run) {
  return run.result["bottleneck"]["unit"].get<std::string>() + ": " +
         run.result["bottleneck"]["why"].get<std::string>();
}

class PcieLimitsTest : public ::testing::TestWithParam<std::string> {
 protected:
  ProgramRun run(const Settings& more) const {
    return run_well(with(with(big_writes(), more), {{"pcie.detail", GetParam()}}));
  }
};

TEST_P(PcieLimitsTest, TagsTimesMrrsOverLatency) {
  const ProgramRun r = run({{"pcie.read_tags", "8"}});
  // Request 24 B, over, memory, two completions of 276 B, back.
  const double round_trip = wire_ns(24) + 2 * kLatency + kMemoryRead + wire_ns(552);
  const double expected = 8 * 512 * 8 / round_trip;
  EXPECT_NEAR(r.number("/throughput_gbps"), expected, expected * 0.03);
  EXPECT_NE(why(r).find("host0.nic.dma"), std::string::npos) << why(r);
  EXPECT_NE(why(r).find("read tags"), std::string::npos) << why(r);
}

TEST_P(PcieLimitsTest, LargerReadRequestsNeedFewerTags) {
  const ProgramRun r = run({{"pcie.read_tags", "8"}, {"pcie.mrrs", "1024"}});
  const double round_trip = wire_ns(24) + 2 * kLatency + kMemoryRead + wire_ns(1104);
  const double expected = 8 * 1024 * 8 / round_trip;
  EXPECT_NEAR(r.number("/throughput_gbps"), expected, expected * 0.03);
}

TEST_P(PcieLimitsTest, PostedCreditsOfTheReceiversHost) {
  const ProgramRun r = run({{"pcie.root_credits.posted_headers", "16"}});
  // A write TLP of 280 B, over, written, UpdateFC back.
  const double round_trip = wire_ns(280) + 2 * kLatency + kMemoryWrite;
  const double expected = 16 * 256 * 8 / round_trip;
  EXPECT_NEAR(r.number("/throughput_gbps"), expected, expected * 0.03);
  EXPECT_NE(why(r).find("host1.pcie.to_host"), std::string::npos) << why(r);
  EXPECT_NE(why(r).find("credits"), std::string::npos) << why(r);
}

TEST_P(PcieLimitsTest, NonPostedCreditsOfTheSendersHost) {
  const ProgramRun r = run({{"pcie.root_credits.nonposted_headers", "8"}});
  const double round_trip = wire_ns(24) + 2 * kLatency + kMemoryRead;
  const double expected = 8 * 512 * 8 / round_trip;
  EXPECT_NEAR(r.number("/throughput_gbps"), expected, expected * 0.03);
  EXPECT_NE(why(r).find("host0.pcie.to_host"), std::string::npos) << why(r);
  EXPECT_NE(why(r).find("credits"), std::string::npos) << why(r);
}

TEST_P(PcieLimitsTest, TheLinkItself) {
  const ProgramRun r = run({{"pcie.lanes", "4"}});
  const double expected = 252.06 / 4 * 256 / 280;  // posted writes at the receiver
  EXPECT_NEAR(r.number("/throughput_gbps"), expected, expected * 0.02);
  EXPECT_NE(why(r).find("host1.pcie.to_host"), std::string::npos) << why(r);
}

INSTANTIATE_TEST_SUITE_P(Detail, PcieLimitsTest, ::testing::Values("fast", "tlp"),
                         [](const auto& test) { return test.param; });

/// Counters of one purpose, one host and direction.
nlohmann::json purpose(const ProgramRun& run, std::size_t host, const char* direction,
                       const char* name) {
  const auto& all = run.result["pcie"][host][direction]["by_purpose"];
  return all.contains(name) ? all[name] : nlohmann::json{};
}

nlohmann::json counted(std::uint64_t tlps, std::uint64_t payload, std::uint64_t wire) {
  return {{"tlps", tlps}, {"payload_bytes", payload}, {"wire_bytes", wire}};
}

TEST(PcieCountersTest, ByPurposeAsCountedByHand) {
  for (const char* detail : {"fast", "tlp"}) {
    SCOPED_TRACE(detail);
    const ProgramRun run = run_well({{"workload.op", "write"},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.msg_size", "4096"},
                                     {"workload.iterations", "100"},
                                     {"workload.depth", "1"},
                                     {"workload.signal_every", "1"},
                                     {"nic.blueflame", "false"},
                                     {"sim.warmup", "0"},
                                     {"pcie.detail", detail}});
    // 4 KiB: eight requests of 512 B (24 B each), sixteen completions of 256 + 20 B.
    EXPECT_EQ(purpose(run, 0, "to_host", "payload"), counted(800, 0, 800 * 24));
    EXPECT_EQ(purpose(run, 0, "to_device", "payload"), counted(1600, 409'600, 1600 * 276));
    // At the receiver sixteen writes of 256 + 24 B, and nothing comes back.
    EXPECT_EQ(purpose(run, 1, "to_host", "payload"), counted(1600, 409'600, 1600 * 280));
    EXPECT_TRUE(purpose(run, 1, "to_device", "payload").is_null());
    // Each message: a doorbell of 8 + 24 B, a WQE of one block, a CQE of 64 + 24 B.
    EXPECT_EQ(purpose(run, 0, "to_device", "doorbell"), counted(100, 800, 100 * 32));
    EXPECT_EQ(purpose(run, 0, "to_host", "wqe"), counted(100, 0, 100 * 24));
    EXPECT_EQ(purpose(run, 0, "to_device", "wqe"), counted(100, 6400, 100 * 84));
    EXPECT_EQ(purpose(run, 0, "to_host", "cqe"), counted(100, 6400, 100 * 88));
    for (const char* direction : {"to_host", "to_device"}) {
      std::uint64_t wire = 0;
      for (const auto& one : run.result["pcie"][0][direction]["by_purpose"]) {
        wire += one["wire_bytes"].get<std::uint64_t>();
      }
      EXPECT_EQ(run.result["pcie"][0][direction]["wire_bytes"], wire);
    }
  }
}

// What is under way at either edge of the measured window counts in the part that lies in it: a
// link that is busy all the time carries its rate, however far ahead it is reserved (128 requests
// of 4 KiB, 20 us of 158).
TEST(PcieCountersTest, ALinkThatIsBusyAllTheTimeCarriesItsRate) {
  for (const bool writes : {true, false}) {
    SCOPED_TRACE(writes);
    const char* const direction = writes ? "to_host" : "to_device";
    for (const char* detail : {"fast", "tlp"}) {
      SCOPED_TRACE(detail);
      const ProgramRun run = run_well({{"workload.op", writes ? "dma_write" : "dma_read"},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", "4096"},
                                       {"pcie.detail", detail}});
      const double window = run.number("/window_ns");
      const auto& pcie = run.result["pcie"][0];
      const double carried = pcie[direction]["wire_bytes"].get<double>() * 8 / window;
      double busy = 0;
      for (const auto& unit : run.result["units"]) {
        if (unit["name"] == std::string("host0.pcie.") + direction) {
          busy = unit["utilization"].get<double>();
        }
      }
      EXPECT_GT(busy, 0.9);
      EXPECT_NEAR(carried, busy * pcie["rate_gbps"].get<double>(), 0.01 * carried);
    }
  }
}

}  // namespace
}  // namespace rnic::testbench
