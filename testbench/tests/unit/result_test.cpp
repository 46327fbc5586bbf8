// SPDX-License-Identifier: Apache-2.0
#include "report/result.h"

#include <gtest/gtest.h>

namespace rnic::testbench {
namespace {

TEST(UnitResult, SharesAreOfTheWindow) {
  // Window 100..300 ns: busy 50 of 200 ns, stalled 20; the queue holds 4 for half of it.
  stats::UnitStats unit("host0.nic.dma");
  unit.add_busy(nanoseconds(70));
  unit.reset(nanoseconds(100));
  unit.add_busy(nanoseconds(50));
  unit.add_stall(stats::StallCause::kNoTag, nanoseconds(20));
  unit.set_occupancy(nanoseconds(200), 4);
  const UnitResult result = unit_result(unit, nanoseconds(100), nanoseconds(300));
  EXPECT_EQ(result.name, "host0.nic.dma");
  EXPECT_DOUBLE_EQ(result.utilization, 0.25);
  EXPECT_DOUBLE_EQ(result.stalled_by(stats::StallCause::kNoTag), 0.1);
  EXPECT_DOUBLE_EQ(result.occupancy_mean, 2.0);
  EXPECT_EQ(result.occupancy_max, 4U);
}

TEST(UnitResult, EmptyWindowIsZero) {
  const UnitResult result = unit_result(stats::UnitStats("unit"), kTimeZero, kTimeZero);
  EXPECT_EQ(result.utilization, 0.0);
  EXPECT_EQ(result.occupancy_mean, 0.0);
}

TEST(UnitResult, SharesAreLimitedAtTheEnd) {
  // 30 ns of work reserved at the end of a window of 20 ns: 150 %, reported as 100 %.
  Result result;
  stats::UnitStats unit("unit");
  unit.add_busy(nanoseconds(30));
  result.units.push_back(unit_result(unit, kTimeZero, nanoseconds(20)));
  result.hosts.push_back({1, 1.2, 1.1, 0, 0, 0});
  EXPECT_DOUBLE_EQ(result.units[0].utilization, 1.5);
  limit_shares(result);
  EXPECT_DOUBLE_EQ(result.units[0].utilization, 1.0);
  EXPECT_DOUBLE_EQ(result.hosts[0].cpu_busy, 1.0);
  EXPECT_DOUBLE_EQ(result.hosts[0].cpu_polling, 1.0);
}

TEST(Rates, FromBytesAndWindow) {
  // 1250 B are 10,000 bits, in 100 ns: 100 Gb/s.
  EXPECT_DOUBLE_EQ(gbps(1250, nanoseconds(100)), 100.0);
  EXPECT_DOUBLE_EQ(line_utilization(1250, 200, nanoseconds(100)), 0.5);
  EXPECT_EQ(line_utilization(1250, 0, nanoseconds(100)), 0.0);
  EXPECT_EQ(gbps(1250, kTimeZero), 0.0);
}

TEST(Scenario, ReadsAreLimitedByTheSmallerOfBothWindows) {
  config::Config config{};
  config.workload.op = config::Op::kRead;
  config.workload.pattern = config::Pattern::kBandwidth;
  config.workload.depth = 64;
  config.transport.max_rd_atomic = 32;
  config.nic.max_rd_atomic = 16;
  config.link.rate = BitRate::gbps(100);
  const Scenario read = scenario_of(config, {{"workload.op", "read"}});
  EXPECT_EQ(read.op, "read");
  EXPECT_EQ(read.protocol, "");
  EXPECT_EQ(read.read_window, 16U);
  EXPECT_EQ(read.depth, 64U);
  EXPECT_FALSE(read.latency_pattern);

  config.workload.op = config::Op::kWrite;
  config.workload.pattern = config::Pattern::kLatency;
  const Scenario write = scenario_of(config, {{"workload.op", "write"}});
  EXPECT_EQ(write.read_window, 0U);
  EXPECT_EQ(write.depth, 1U);
  EXPECT_NE(write.latency_meaning.find("half the ping-pong"), std::string::npos);
}

}  // namespace
}  // namespace rnic::testbench
