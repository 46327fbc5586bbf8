// SPDX-License-Identifier: Apache-2.0
#include "report/text_report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/bottleneck.h"
#include "report/format.h"
#include "tests/support/sample_result.h"

namespace rnic::testbench {
namespace {

std::string report_of(Result result) {
  result.bottleneck = find_bottleneck(result);
  return text_report(result);
}

/// The line that begins with `start` after its indentation; empty when there is none.
std::string line_of(const std::string& text, const std::string& start) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && line.compare(first, start.size(), start) == 0) return line;
  }
  return {};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextReport, BreakdownEndsWithTheSumAndHidesZeroStages) {
  const std::string text = report_of(test::sample_result());
  EXPECT_TRUE(holds(line_of(text, "sum"), "1,200.0")) << text;
  EXPECT_TRUE(holds(line_of(text, "sum"), "100.0 %"));
  // 800 of 1200 ns; 40 characters of bar for the whole: 26.7, rounded 27.
  EXPECT_TRUE(holds(line_of(text, "payload_fetch"), "800.0"));
  EXPECT_TRUE(holds(line_of(text, "payload_fetch"), "66.7 %"));
  EXPECT_TRUE(holds(line_of(text, "payload_fetch"), " " + std::string(27, '#')));
  EXPECT_FALSE(holds(text, "wqe_fetch"));
  EXPECT_FALSE(holds(text, "Caution"));
}

TEST(TextReport, WarnsWhenStagesDoNotSumToTheLatency) {
  Result result = test::sample_result();
  result.latency.add(nanoseconds(9000));
  EXPECT_TRUE(holds(report_of(result), "Caution: the stages sum to"));
}

TEST(TextReport, SaysWhatLatencyMeans) {
  const std::string text = report_of(test::sample_result());
  EXPECT_TRUE(holds(text, "Over 2 messages, from posting to completion.")) << text;
}

TEST(TextReport, HasEverySection) {
  const std::string text = report_of(test::sample_result());
  EXPECT_TRUE(holds(text, "rnicsim 1.2.3: 64 B write"));
  EXPECT_TRUE(holds(text, "What limits"));
  EXPECT_TRUE(holds(line_of(text, "host0.nic.dma"), "no_tag 12 %"));
  EXPECT_TRUE(holds(line_of(text, "host0.nic.mtt_cache"), "75.0 %"));
  EXPECT_TRUE(holds(line_of(text, "host0.pcie to device"), "208"));
  EXPECT_TRUE(holds(line_of(text, "doorbell"), "40"));
  EXPECT_TRUE(holds(line_of(text, "host0.port "), "292"));
  EXPECT_TRUE(holds(text, "control_frames 5"));
  EXPECT_TRUE(holds(text, "host1: rx_write_requests 2"));
  EXPECT_FALSE(holds(text, "out_of_sequence"));
  // 100 model events, 60 kernel events and 2 packets in 0.5 s.
  EXPECT_TRUE(holds(text, "4 packets/s, 50.0 model events and 30.0 kernel")) << text;
}

TEST(TextReport, OfManyHostsThoseThatMatterAreShown) {
  Result result = test::sample_result();
  result.hosts.assign(64, result.hosts.at(0));
  result.counters.assign(64, {{"naks", 1}});
  result.flows.assign(32, FlowResult{});
  for (std::uint32_t i = 0; i < 32; ++i) {
    result.flows[i].source = 2 * i;
    result.flows[i].destination = 2 * i + 1;
    result.flows[i].throughput_gbps = 50;
  }
  result.flows[7].throughput_gbps = 20;   // host14 to host15
  result.flows[11].throughput_gbps = 60;  // host22 to host23
  result.bottleneck.unit = "switch.port40";
  result.bottleneck.next_unit = "host40.pcie.to_host";
  LinkResult port = result.links.at(0);
  port.name = "switch.port40";
  result.links.push_back(port);
  port.name = "switch.port41";
  result.links.push_back(port);
  const std::string text = text_report(result);
  EXPECT_TRUE(holds(text, "Of 64 hosts"));
  for (const char* shown : {"host14: naks 1", "host15: naks 1", "host22: naks 1", "host23: naks 1",
                            "host40: naks 1", "switch.port40"}) {
    EXPECT_TRUE(holds(text, shown)) << shown;
  }
  for (const char* left_out : {"host0: naks", "host16: naks", "host41: naks", "switch.port41"}) {
    EXPECT_FALSE(holds(text, left_out)) << left_out;
  }
}

TEST(TextReport, FitsIntoAHundredColumns) {
  Result result = test::sample_result();
  for (int i = 0; i < 40; ++i) {
    result.counters[0].emplace_back("some_longer_counter_" + std::to_string(i), 123'456'789);
  }
  result.pcie[0].to_device.total = {123'456'789, 123'456'789'012, 223'456'789'012};
  std::istringstream lines(report_of(result));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(TextReport, EmptyResultIsNoReasonToFail) {
  EXPECT_TRUE(holds(report_of(Result()), "Simulation"));
}

TEST(Format, Numbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'234'567), "1,234,567");
  EXPECT_EQ(fixed(-1234.56, 1), "-1,234.6");
  EXPECT_EQ(fixed(-123.0, 0), "-123");
  EXPECT_EQ(readable(0.01234), "0.0123");
  EXPECT_EQ(readable(57.81), "57.8");
  EXPECT_EQ(readable(9.999), "10.0");
  EXPECT_EQ(readable(1234.0), "1,234");
  EXPECT_EQ(percent(0.973), "97 %");
  EXPECT_EQ(percent(0.0123), "1.2 %");
  EXPECT_EQ(duration(830), "830 ns");
  EXPECT_EQ(duration(12'410), "12.4 us");
  EXPECT_EQ(size(64), "64 B");
  EXPECT_EQ(size(4096), "4 KiB");
  EXPECT_EQ(size(1'500'000), "1.43 MiB");
  EXPECT_EQ(counted(1, "QP"), "1 QP");
  EXPECT_EQ(counted(2, "QP"), "2 QPs");
}

TEST(Format, WrapsAtBlanks) {
  EXPECT_EQ(wrapped("aa bb cc", 2, 7), "  aa bb\n  cc\n");
  EXPECT_EQ(wrapped("overlong x", 0, 4), "overlong\nx\n");
  EXPECT_EQ(wrapped("is busy 25 % now", 0, 10), "is busy\n25 % now\n");
  EXPECT_EQ(wrapped("", 2, 10), "");
}

}  // namespace
}  // namespace rnic::testbench
