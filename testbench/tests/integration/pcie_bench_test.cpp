// SPDX-License-Identifier: Apache-2.0
// What pcie-bench measured on real hosts (data/pcie/pcie_bench.csv), row by row against runs of the
// presets for its card and its hosts: within 10 %.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "config/loader.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

struct Row {
  std::string id;
  std::string host;
  std::string op;
  std::string bytes;
  std::string window;
  std::string cache;
  std::string metric;
  double value = 0;
};

std::vector<Row> rows_of(const std::string& host, const std::string& op) {
  std::ifstream file(data_path() + "/pcie/pcie_bench.csv");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line.compare(0, 3, "id,") == 0) continue;
    std::istringstream fields(line);
    Row row;
    for (std::string* field :
         {&row.id, &row.host, &row.op, &row.bytes, &row.window, &row.cache, &row.metric}) {
      std::getline(fields, *field, ',');
    }
    fields >> row.value;
    if (row.host == host && row.op == op) rows.push_back(row);
  }
  return rows;
}

/// The preset of a host and what pcie-bench changed on it.
Settings host_settings(const std::string& host) {
  static const std::map<std::string, std::pair<std::string, Settings>> hosts = {
      {"e5_2637v3", {"xeon_e5_2637v3", {}}},
      {"e5_2630v4", {"xeon_e5_2630v4", {}}},
      {"e5_2630v4_remote", {"xeon_e5_2630v4", {{"memory.numa_remote", "true"}}}},
      {"e5_2630v4_iommu",
       {"xeon_e5_2630v4", {{"iommu.enabled", "true"}, {"iommu.page_size", "4KiB"}}}},
      {"e5_2620v3_iommu",
       {"xeon_e5_2620v3", {{"iommu.enabled", "true"}, {"iommu.page_size", "4KiB"}}}},
      {"e5_2620v3_iommu_2m",
       {"xeon_e5_2620v3", {{"iommu.enabled", "true"}, {"iommu.page_size", "2MiB"}}}},
      {"e5_2630", {"xeon_e5_2630", {}}},
      {"e5_2630_iommu", {"xeon_e5_2630", {{"iommu.enabled", "true"}}}},
      {"e3_1226v3", {"xeon_e3_1226v3", {}}}};
  const auto& [preset, changes] = hosts.at(host);
  Settings settings;
  for (const std::string& name : {std::string("nfp6000"), preset}) {
    for (const auto& setting : config::read_file(config::find_file(name))) {
      settings.push_back({setting.key, setting.text});
    }
  }
  return with(settings, changes);
}

Settings row_settings(const Row& row) {
  Settings settings = host_settings(row.host);
  std::string op = row.op;
  if (op.compare(0, 8, "command_") == 0) {
    // A command reads or writes without the DMA engine's descriptors and its data path.
    op = op.substr(8);
    settings = with(settings, {{"dma_device.setup_time", "0ns"},
                               {"dma_device.read_request_time", "0ns"},
                               {"dma_device.read_unit_time", "0ns"},
                               {"dma_device.write_request_time", "0ns"},
                               {"dma_device.write_unit_time", "0ns"},
                               {"dma_device.memory_request_time", "0ns"},
                               {"dma_device.memory_unit_time", "0ns"}});
  }
  const bool latency = row.metric == "latency";
  return with(settings, {{"workload.op", op == "write_then_read" ? "dma_read_write" : "dma_" + op},
                         {"workload.pattern", latency ? "latency" : "bandwidth"},
                         {"workload.msg_size", row.bytes},
                         {"workload.window", row.window},
                         {"workload.host_cache", row.cache},
                         {"workload.access", "random"},
                         {"workload.iterations", latency ? "2000" : "6000"},
                         {"sim.payload", "none"},
                         {"sim.warmup", "1000"}});
}

double measured(const Row& row, const ProgramRun& run) {
  if (row.metric == "latency") return run.number("/latency_ns/p50") / 1000;
  return run.number("/throughput_gbps") / (row.op == "read_write" ? 2 : 1);
}

void compare(const std::string& host, const std::string& op) {
  const std::vector<Row> rows = rows_of(host, op);
  ASSERT_FALSE(rows.empty());
  for (const Row& row : rows) {
    const ProgramRun run = run_well(row_settings(row));
    if (run.status != 0) return;
    const double value = measured(row, run);
    const double error = value / row.value - 1;
    std::printf("%s %s %s %s B in %s %s: %.3f measured, %.3f here, %+.1f %%\n", row.id.c_str(),
                host.c_str(), op.c_str(), row.bytes.c_str(), row.window.c_str(), row.cache.c_str(),
                row.value, value, 100 * error);
    EXPECT_LE(std::fabs(error), 0.10) << row.id;
  }
}

TEST(PcieBenchTest, HaswellReads) { compare("e5_2637v3", "read"); }
TEST(PcieBenchTest, HaswellWrites) { compare("e5_2637v3", "write"); }
TEST(PcieBenchTest, HaswellReadsAndWrites) { compare("e5_2637v3", "read_write"); }
TEST(PcieBenchTest, HaswellWriteThenRead) { compare("e5_2637v3", "write_then_read"); }
TEST(PcieBenchTest, HaswellCommands) {
  compare("e5_2637v3", "command_read");
  compare("e5_2637v3", "command_write_then_read");
}
TEST(PcieBenchTest, BroadwellLocal) {
  compare("e5_2630v4", "read");
  compare("e5_2630v4", "read_write");
  compare("e5_2630v4", "write_then_read");
}
TEST(PcieBenchTest, BroadwellRemote) {
  compare("e5_2630v4_remote", "read");
  compare("e5_2630v4_remote", "write");
  compare("e5_2630v4_remote", "read_write");
}
TEST(PcieBenchTest, BroadwellIommuReads) { compare("e5_2630v4_iommu", "read"); }
TEST(PcieBenchTest, BroadwellIommuWrites) { compare("e5_2630v4_iommu", "write"); }
TEST(PcieBenchTest, HaswellIommu) { compare("e5_2620v3_iommu", "read"); }
TEST(PcieBenchTest, HaswellIommuSuperPages) { compare("e5_2620v3_iommu_2m", "read"); }
TEST(PcieBenchTest, SandyBridge) {
  compare("e5_2630", "write_then_read");
  compare("e5_2630_iommu", "read");
}
TEST(PcieBenchTest, WorkstationHaswell) { compare("e3_1226v3", "read"); }

/// Bandwidth falls from a multiple of 64 B to a byte more, where packets, units and lines are cut
/// anew.
void expect_tooth(const char* op, const char* full, const char* more, double measured_ratio) {
  const auto bandwidth = [op](const char* bytes) {
    Row row{"", "e5_2637v3", op, bytes, "8KiB", "warm", "bandwidth", 0};
    return measured(row, run_well(row_settings(row)));
  };
  const double ratio = bandwidth(more) / bandwidth(full);
  EXPECT_LT(ratio, 0.9) << op << " " << more << " against " << full;
  EXPECT_NEAR(ratio / measured_ratio, 1.0, 0.10) << op << " " << more << " against " << full;
}

TEST(PcieBenchTest, SawTooth) {
  expect_tooth("read", "64", "65", 21.537 / 28.650);
  expect_tooth("read", "128", "129", 34.113 / 42.962);
  expect_tooth("read", "256", "257", 39.094 / 46.892);
  expect_tooth("write", "128", "129", 27.157 / 42.402);
  expect_tooth("write", "256", "257", 37.381 / 50.545);
}

TEST(PcieBenchTest, TheIotlbKneeIsWhereItsReachEndsAndSuperPagesRemoveIt) {
  const auto bandwidth = [](const char* host, const char* window) {
    Row row{"", host, "read", "64", window, "warm", "bandwidth", 0};
    return measured(row, run_well(row_settings(row)));
  };
  // 64 entries x 4 KiB = 256 KiB.
  const double within = bandwidth("e5_2620v3_iommu", "256KiB");
  EXPECT_GT(within, 0.98 * bandwidth("e5_2620v3_iommu", "64KiB"));
  EXPECT_LT(bandwidth("e5_2620v3_iommu", "512KiB"), 0.85 * within);
  EXPECT_GT(bandwidth("e5_2620v3_iommu_2m", "4MiB"), 0.98 * within);
}

}  // namespace
}  // namespace rnic::testbench
