// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "report/json_writer.h"
#include "report/output_file.h"
#include "tests/support/sample_result.h"

namespace rnic::testbench {
namespace {

namespace fs = std::filesystem;

class ResultFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("rnicsim_result_files_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

TEST_F(ResultFiles, JsonHasEveryPromisedKey) {
  const auto json = to_json(test::sample_result());
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("version"), "1.2.3");
  EXPECT_EQ(json.at("config").at("link.rate"), 100.0);
  EXPECT_EQ(json.at("throughput_gbps"), 0.1024);
  EXPECT_EQ(json.at("message_rate_mops"), 0.2);
  for (const char* key : {"min", "mean", "p50", "p90", "p99", "p99.9", "max"}) {
    EXPECT_TRUE(json.at("latency_ns").at(key).is_number()) << key;
    EXPECT_TRUE(json.at("flows").at(0).at("latency_ns").at(key).is_number()) << key;
  }
  EXPECT_EQ(json.at("latency_ns").at("mean"), 1200.0);
  EXPECT_EQ(json.at("completions").at("success"), 2);
  EXPECT_EQ(json.at("flows").at(0).at("src"), 0);
  EXPECT_EQ(json.at("flows").at(0).at("dst"), 1);
  const auto& unit = json.at("units").at(0);
  EXPECT_EQ(unit.at("name"), "host0.nic.dma");
  EXPECT_EQ(unit.at("utilization"), 0.25);
  EXPECT_EQ(unit.at("stalled").at("no_tag"), 0.125);
  EXPECT_EQ(unit.at("occupancy").at("mean"), 1.5);
  EXPECT_EQ(unit.at("occupancy").at("max"), 4);
  for (const char* key : {"unit", "utilization", "why"}) {
    EXPECT_TRUE(json.at("bottleneck").contains(key)) << key;
  }
  EXPECT_EQ(json.at("caches").at(0).at("misses"), 1);
  const auto& to_device = json.at("pcie").at(0).at("to_device");
  EXPECT_EQ(to_device.at("tlps"), 4);
  EXPECT_EQ(to_device.at("payload_bytes"), 128);
  EXPECT_EQ(to_device.at("by_purpose").at("doorbell").at("wire_bytes"), 40);
  EXPECT_EQ(json.at("pcie").at(0).at("to_host").at("tlps"), 0);
  EXPECT_EQ(json.at("link").at(0).at("paused_ns"), 7.0);
  EXPECT_EQ(json.at("link").at(0).at("control_frames"), 5);
  EXPECT_EQ(json.at("counters").at("host1").at("rx_write_requests"), 2);
  EXPECT_EQ(json.at("host").at(0).at("cpu_busy"), 1.0);
  EXPECT_EQ(json.at("registration").at("ns"), 3000.0);
  EXPECT_EQ(json.at("sim").at("packets_per_s"), 4.0);  // 2 packets in 0.5 s
  EXPECT_EQ(json.at("sim").at("simulated_ns"), 20000.0);
}

TEST_F(ResultFiles, MeansOfStagesSumToTheMeanLatency) {
  const auto json = to_json(test::sample_result());
  double sum = 0;
  for (const auto& stage : json.at("breakdown_ns")) sum += stage.at("mean").get<double>();
  EXPECT_NEAR(sum, json.at("latency_ns").at("mean").get<double>(), 1.2);
}

TEST_F(ResultFiles, WritesBothFilesAndNothingElse) {
  const fs::path nested = directory_ / "a" / "b";
  write_result_files(test::sample_result(), nested);
  const std::string text = content(nested / "result.json");
  EXPECT_EQ(nlohmann::ordered_json::parse(text), to_json(test::sample_result()));
  write_result_files(test::sample_result(), nested);
  EXPECT_EQ(content(nested / "result.json"), text);
  EXPECT_EQ(std::distance(fs::directory_iterator(nested), fs::directory_iterator()), 2);
}

TEST_F(ResultFiles, LatencyCsvHasEachMessageOnce) {
  // 1,000,000 ps: leading bit 19, so buckets of 2^10 ps: 976 * 1024 = 999,424.
  // 1,400,000 ps: leading bit 20, buckets of 2^11 ps: 683 * 2048 = 1,398,784.
  EXPECT_EQ(latency_csv(test::sample_result().latency),
            "low_ns,high_ns,count,cumulative\n"
            "999.424,1000.447,1,1\n"
            "1398.784,1400.831,1,2\n");
}

TEST_F(ResultFiles, DirectoryThatCannotBeIsAnOutputError) {
  fs::create_directories(directory_);
  std::ofstream(directory_ / "file") << "in the way";
  EXPECT_THROW(write_result_files(test::sample_result(), directory_ / "file"), OutputError);
  EXPECT_THROW(write_result_files(test::sample_result(), "/proc/rnicsim_no_such"), OutputError);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(ResultFiles, TargetThatCannotBeReplacedLeavesNoDraft) {
  fs::create_directories(directory_ / "result.json" / "occupied");
  EXPECT_THROW(write_file_atomically(directory_ / "result.json", "text"), OutputError);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(ResultFiles, FullDiskKeepsTheOldFileWhole) {
  // A limit on file size fails in the middle of a write, as a full disk does.
  const fs::path path = directory_ / "result.json";
  write_file_atomically(path, "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_file_atomically(path, std::string(5000, 'x')), OutputError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(ResultFiles, ErrorSaysWhichFileAndWhy) {
  try {
    write_file_atomically("/proc/rnicsim_no_such/x", "text");
    FAIL() << "no exception";
  } catch (const OutputError& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/rnicsim_no_such/x"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(": "), std::string::npos);
  }
}

}  // namespace
}  // namespace rnic::testbench
