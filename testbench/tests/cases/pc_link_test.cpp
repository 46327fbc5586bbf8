// SPDX-License-Identifier: Apache-2.0
// Cases of theme PC that concern the link: generation, lanes, MPS, relaxed ordering.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings stream(const std::string& op) {
  return {{"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "65536"},
          {"workload.iterations", "300"},
          {"workload.depth", "16"},
          {"sim.warmup", "30"}};
}

/// Utilisation of one direction of a host's PCIe link, by bytes on it.
double utilization(const ProgramRun& run, std::size_t host, const std::string& direction) {
  const std::string name = "host" + std::to_string(host) + ".pcie." + direction;
  for (const auto& unit : run.result["units"]) {
    if (unit["name"] == name) return unit["utilization"].get<double>();
  }
  ADD_FAILURE() << name << " is not reported";
  return 0;
}

struct PayloadSize {
  std::uint32_t mps;
  double limit;  ///< Ack latency limit of x8 at 8 GT/s, symbol times
};

// (MPS + 28) x AckFactor / 8 + 19, rounded down, + 96; AckFactor 2.5, 2.5, 1.0.
constexpr PayloadSize kSizes[] = {{128, 67 + 96}, {256, 107 + 96}, {512, 86 + 96}};

TEST(CasePC, PC01_100GPortOnGen3x8) {
  for (const PayloadSize& size : kSizes) {
    for (const std::string op : {"write", "read"}) {
      SCOPED_TRACE(op + " MPS " + std::to_string(size.mps));
      const ProgramRun run = run_well(with(stream(op), {{"link.rate", "100Gbps"},
                                                        {"pcie.gen", "3"},
                                                        {"pcie.lanes", "8"},
                                                        {"pcie.mps", std::to_string(size.mps)},
                                                        {"pcie.mrrs", "512"}}));
      // 8 GT/s x 8 x 128/130 x MPS/(MPS + 24): 53, 57.6, 60 Gb/s; then DLLPs and SKP sets.
      const double bound = 8.0 * 8 * 128 / 130 * size.mps / (size.mps + 24);
      const double dllp = 2 * 8 / size.limit + 4.0 / 1538;
      EXPECT_LE(run.number("/throughput_gbps"), bound);
      EXPECT_NEAR(run.number("/throughput_gbps"), bound * (1 - dllp), bound * 0.02);
      // Data are written at host 1 (WRITE) or host 0 (READ) and read at the other.
      const std::size_t writer = op == "write" ? 1 : 0;
      EXPECT_EQ(run.result["bottleneck"]["unit"],
                "host" + std::to_string(writer) + ".pcie.to_host");
      EXPECT_GT(utilization(run, writer, "to_host"), 0.97);
      // Completions have 4 B less of overhead: the reading side has a little to spare.
      const double reading = utilization(run, 1 - writer, "to_device");
      EXPECT_LT(reading, utilization(run, writer, "to_host"));
      EXPECT_GT(reading, 0.9);
      EXPECT_NEAR(run.number("/link/0/rate_gbps"), 100, 1e-9);
      // With DLLPs by symbol times of all lanes little is missing.
      const ProgramRun by_symbols =
          run_well(with(stream(op), {{"link.rate", "100Gbps"},
                                     {"pcie.gen", "3"},
                                     {"pcie.lanes", "8"},
                                     {"pcie.mps", std::to_string(size.mps)},
                                     {"pcie.mrrs", "512"},
                                     {"pcie.dllp_overhead", "symbols"}}));
      const double share = 16 / (size.limit * 8) + 4.0 / 1538;
      EXPECT_LE(by_symbols.number("/throughput_gbps"), bound);
      EXPECT_NEAR(by_symbols.number("/throughput_gbps"), bound * (1 - share), 0.005 * bound);
    }
  }
}

TEST(CasePC, PC03_RelaxedOrderingGainsOnAStrictRootComplex) {
  // A strictly ordered TLP takes 109 ns, eight at once: one of 256 B in 13.65 ns, 150 Gb/s.
  const Settings epyc = with(stream("write"), {{"link.rate", "200Gbps"},
                                               {"pcie.gen", "4"},
                                               {"pcie.lanes", "16"},
                                               {"pcie.ordering_time", "109.2ns"},
                                               {"pcie.ordering_overlap", "8"},
                                               {"pcie.root_credits.posted_headers", "128"}});
  const ProgramRun strict = run_well(with(epyc, {{"pcie.relaxed_ordering", "false"}}));
  const ProgramRun relaxed = run_well(with(epyc, {{"pcie.relaxed_ordering", "true"}}));
  const double ratio = strict.number("/throughput_gbps") / relaxed.number("/throughput_gbps");
  EXPECT_NEAR(ratio, 0.75, 0.05);
  EXPECT_NEAR(strict.number("/throughput_gbps"), 150, 5);
  // The receiver's writes wait, not the sender's reads.
  const std::string why = strict.result["bottleneck"]["why"].get<std::string>();
  EXPECT_EQ(strict.result["bottleneck"]["unit"], "host1.host.root_complex.strict_order") << why;
  EXPECT_NE(why.find("pcie.ordering_time"), std::string::npos) << why;
}

TEST(CasePC, PC03_OneTlpAfterAnotherIsAsFast) {
  // As configs/host/epyc.ini has it: the same interval, without the latency of a queue.
  const auto epyc = [](const char* relaxed) {
    return run_well(with(stream("write"), {{"link.rate", "200Gbps"},
                                           {"pcie.latency", "210ns"},
                                           {"pcie.ordering_time", "13.65ns"},
                                           {"pcie.ordering_overlap", "1"},
                                           {"pcie.relaxed_ordering", relaxed}}));
  };
  const ProgramRun strict = epyc("false");
  const ProgramRun relaxed = epyc("true");
  EXPECT_NEAR(strict.number("/throughput_gbps"), 256 * 8 / 13.65, 1.5);
  EXPECT_NEAR(relaxed.number("/throughput_gbps"), 198, 2);
  EXPECT_EQ(strict.result["bottleneck"]["unit"], "host1.host.root_complex.strict_order");
  EXPECT_EQ(relaxed.result["bottleneck"]["unit"], "host0.nic.port");
}

/// Utilisation of a unit.
double busy(const ProgramRun& run, const std::string& name) {
  for (const auto& unit : run.result["units"]) {
    if (unit["name"] == name) return unit["utilization"].get<double>();
  }
  ADD_FAILURE() << name << " is not reported";
  return 0;
}

TEST(CasePC, PC03_OnlyTheReceivingSideOrders) {
  // The sender reads its payload; all that it writes are CQEs. SENDs, whose bytes are compared when
  // the program sees their CQEs: they are there in both modes.
  for (const char* relaxed : {"true", "false"}) {
    SCOPED_TRACE(relaxed);
    for (const std::string op : {"write", "send"}) {
      const ProgramRun run = run_well(with(stream(op), {{"link.rate", "200Gbps"},
                                                        {"pcie.gen", "4"},
                                                        {"pcie.lanes", "16"},
                                                        {"pcie.ordering_time", "13.65ns"},
                                                        {"pcie.ordering_overlap", "1"},
                                                        {"sim.payload", "bytes"},
                                                        {"pcie.relaxed_ordering", relaxed}}));
      EXPECT_LT(busy(run, "host0.host.root_complex.strict_order"), 0.02);
      EXPECT_NEAR(run.number("/throughput_gbps"), relaxed[0] == 't' ? 198 : 150, 2.5);
    }
  }
}

TEST(CasePC, PC05_RelaxedOrderingLosesOnAnotherPlatform) {
  // Relaxed writes lose write combining: 16 ns a TLP of 256 B, 128 Gb/s.
  const Settings platform = with(stream("write"), {{"link.rate", "200Gbps"},
                                                   {"pcie.gen", "4"},
                                                   {"pcie.lanes", "16"},
                                                   {"pcie.relaxed_time", "16ns"},
                                                   {"pcie.root_credits.posted_headers", "128"}});
  const ProgramRun strict = run_well(with(platform, {{"pcie.relaxed_ordering", "false"}}));
  const ProgramRun relaxed = run_well(with(platform, {{"pcie.relaxed_ordering", "true"}}));
  EXPECT_NEAR(relaxed.number("/throughput_gbps"), 128, 4);
  EXPECT_EQ(relaxed.result["bottleneck"]["unit"], "host1.host.root_complex.relaxed_order");
  EXPECT_GT(strict.number("/throughput_gbps"), relaxed.number("/throughput_gbps") * 1.3);
}

}  // namespace
}  // namespace rnic::testbench
