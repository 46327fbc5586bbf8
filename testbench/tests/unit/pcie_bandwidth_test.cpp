// SPDX-License-Identifier: Apache-2.0
// Effective bandwidth of the simulated DMA path against the published figures of pcie-model, for
// reads, writes and both at once, at 47 sizes from 64 B to 4 KiB with their saw-tooth. That model
// has no latency, tags, credits or memory: here they are made too good to limit anything.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/dma_loop.h"
#include "tests/support/pcie_rig.h"
#include "tests/support/program.h"

namespace rnic::testbench {
namespace {

struct Published {
  std::uint32_t gen, lanes, mps, mrrs, completion, size;
  double write, read, both;
};

std::vector<Published> published(std::size_t set) {
  constexpr std::size_t kSizes = 47;
  std::ifstream file(std::filesystem::path(data_path()) / "pcie" / "effective_bandwidth.csv");
  std::vector<Published> rows;
  std::size_t row_number = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] < '0' || line[0] > '9') continue;
    if (row_number++ / kSizes != set) continue;
    std::istringstream fields(line);
    Published row{};
    char comma = 0;
    fields >> row.gen >> comma >> row.lanes >> comma >> row.mps >> comma >> row.mrrs >> comma >>
        row.completion >> comma >> row.size >> comma >> row.write >> comma >> row.read >> comma >>
        row.both;
    EXPECT_FALSE(fields.fail()) << line;
    rows.push_back(row);
  }
  return rows;
}

PcieRigConfig config_of(const Published& row, config::PcieDetail detail) {
  PcieRigConfig config;
  config.pcie.detail = detail;
  config.pcie.gen = row.gen;
  config.pcie.lanes = row.lanes;
  config.pcie.mps = row.mps;
  config.pcie.mrrs = row.mrrs;
  config.pcie.completion_size = row.completion;
  config.pcie.read_tags = 4096;
  config.pcie.latency = nanoseconds(10);
  config.pcie.dllp_overhead = -1;
  config.memory.read_latency = nanoseconds(10);
  config.memory.write_latency = nanoseconds(10);
  config.memory.bandwidth = BitRate::gbps(1'000'000);
  config.dma_latency = picoseconds(0);
  config.dma_interval = picoseconds(0);
  return config;
}

class PcieBandwidth : public ::testing::TestWithParam<std::tuple<std::size_t, config::PcieDetail>> {
};

TEST_P(PcieBandwidth, IsThePublishedOneWithinOnePercent) {
  const auto [set, detail] = GetParam();
  const std::vector<Published> rows = published(set);
  ASSERT_EQ(rows.size(), 47U);
  std::deque<PcieParts> parts;
  for (const Published& row : rows) {
    parts.emplace_back(config_of(row, detail), 8192, std::to_string(parts.size()));
  }
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Published& row = rows[i];
    const auto gbps = [&](const DmaPattern& pattern) {
      DmaLoop loop(parts[i].dma, pattern);
      loop.start(96, row.size < 1024 ? 1600 : 600);
      sc_core::sc_start();
      return loop.gbps();
    };
    const std::string where = "gen " + std::to_string(row.gen) + " x" + std::to_string(row.lanes) +
                              " mps " + std::to_string(row.mps) + " size " +
                              std::to_string(row.size);
    EXPECT_NEAR(gbps(writes_of(row.size)), row.write, row.write * 0.01) << where;
    EXPECT_NEAR(gbps(reads_of(row.size)), row.read, row.read * 0.01) << where;
    EXPECT_NEAR(gbps(both_of(row.size)), row.both, row.both * 0.01) << where;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, PcieBandwidth,
                         ::testing::Combine(::testing::Range(std::size_t{0}, std::size_t{8}),
                                            ::testing::Values(config::PcieDetail::kFast,
                                                              config::PcieDetail::kTlp)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) == config::PcieDetail::kFast ? "Fast"
                                                                                        : "Tlp");
                         });

}  // namespace
}  // namespace rnic::testbench
