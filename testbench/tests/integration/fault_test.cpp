// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/program.h"

// Faults of the network, end to end: the program compares every payload byte at the end and exits
// with 3 when one differs, so a run that succeeds has delivered everything intact.
namespace rnic::testbench {
namespace {

Settings stream(const std::string& protocol, const std::string& op) {
  return {{"transport.protocol", protocol},  {"workload.op", op},
          {"workload.pattern", "bandwidth"}, {"workload.msg_size", "20000"},
          {"workload.iterations", "60"},     {"workload.depth", "8"},
          {"transport.ack_timeout", "6"},    {"tcp.min_rto", "100us"},
          {"tcp.syn_timeout", "100us"},      {"sim.warmup", "0"}};
}

void expect_repaired(const Settings& fault, const char* counter) {
  for (const std::string& protocol : all_protocols()) {
    for (const char* op : {"write", "read", "send"}) {
      const Settings settings = with(stream(protocol, op), fault);
      const ProgramRun run = run_well(settings);
      if (run.status != 0) continue;
      EXPECT_GT(run.link_sum(counter), 0) << text_of(settings);
      for (const auto& [status, count] : run.result.at("completions").items()) {
        if (status != "success") {
          EXPECT_EQ(count, 0) << text_of(settings) << status;
        }
      }
    }
  }
}

TEST(FaultTest, Duplicates) {
  expect_repaired({{"link.duplicate_rate", "0.2"}}, "cable_duplicated");
}
TEST(FaultTest, Reordering) {
  expect_repaired({{"link.reorder_rate", "0.05"}, {"link.reorder_delay", "3us"}},
                  "cable_reordered");
}
TEST(FaultTest, Bursts) {
  expect_repaired({{"link.burst_rate", "0.01"}, {"link.burst_length", "3"}}, "cable_lost");
}
TEST(FaultTest, Outage) {
  // Set-up takes about 130 us; the outage is in the middle of the traffic.
  expect_repaired({{"link.down_at", "140us"}, {"link.down_time", "100us"}},
                  "cable_lost_while_down");
}
// A stream of 4 KiB packets in full swing loses what a line of 100 Gb/s sends in 100 us: 12.5e5 B
// over the packet's line bytes (26 + 2 symbols, 98, 82 around 4,096 B), whatever flow control it
// has.
TEST(FaultTest, AnOutageLosesTheSameOnEveryWire) {
  for (const auto& [protocol, packet] :
       {std::pair{"ib", 4'124.0}, {"rocev1", 4'190.0}, {"rocev2", 4'178.0}}) {
    const ProgramRun run = run_well({{"transport.protocol", protocol},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.msg_size", "64KiB"},
                                     {"workload.iterations", "500"},
                                     {"link.down_at", "1ms"},
                                     {"link.down_time", "100us"},
                                     {"sim.payload", "none"}});
    // A packet at either edge may count or not. Besides, at most as many ACKs as are due, one a
    // message of 16 packets, and on InfiniBand a flow-control packet each 21 us, each way.
    const double data = 1.25e6 / packet;
    const double others = data / 16 + (std::string(protocol) == "ib" ? 2 * 100 / 21.0 : 0);
    const double lost = run.link_sum("cable_lost_while_down");
    EXPECT_GE(lost, data - 2) << protocol;
    EXPECT_LE(lost, data + 2 + others) << protocol;
    EXPECT_EQ(run.number("/completions/success"), run.counter("cqes")) << protocol;
  }
}
TEST(FaultTest, Lists) {
  expect_repaired({{"link.drop_list", "3,9"},
                   {"link.corrupt_list", "5"},
                   {"link.duplicate_list", "7"},
                   {"link.reorder_list", "12"}},
                  "cable_lost");
}

// A frame damaged in a switch's memory leaves it with a fitting link CRC; the layer above finds it.
TEST(FaultTest, DamageInASwitchIsFoundEndToEnd) {
  for (const std::string& protocol : all_protocols()) {
    const ProgramRun run =
        run_well(with(stream(protocol, "write"),
                      {{"fabric.topology", "single_switch"}, {"switch.corrupt_rate", "0.03"}}));
    const std::uint64_t found =
        run.counter("rx_icrc_errors") + run.counter("rx_tcp_checksum_errors") +
        run.counter("rx_mpa_crc_errors") + run.counter("rx_ip_checksum_errors");
    EXPECT_GT(found, 0U) << protocol;
    EXPECT_EQ(run.counter("rx_link_crc_errors"), 0U) << protocol;
    EXPECT_EQ(protocol == "iwarp", run.counter("rx_tcp_checksum_errors") > 0) << protocol;
  }
}

TEST(FaultTest, DamageOnACableIsFoundByTheLinkCrc) {
  for (const std::string& protocol : all_protocols()) {
    const ProgramRun run =
        run_well(with(stream(protocol, "write"), {{"link.corrupt_list", "5,9"}}));
    EXPECT_EQ(run.counter("rx_link_crc_errors"), 2U) << protocol;
    EXPECT_EQ(run.counter("rx_bad_checksum"), 2U) << protocol;
  }
}

TEST(FaultTest, APeerThatStopsAnsweringEndsInRetryExceeded) {
  for (const std::string& protocol : all_protocols()) {
    const ProgramRun run =
        run_well(with(stream(protocol, "write"), {{"fabric.silent_host", "1"},
                                                  {"fabric.silent_from", "150us"},
                                                  {"workload.iterations", "1000"},
                                                  {"transport.retry_count", "2"}}));
    if (run.status != 0) continue;
    EXPECT_EQ(run.result.at("completions").at("retry_exceeded_error"), 1) << protocol;
    EXPECT_GT(run.counter("rx_ignored_silent"), 0U) << protocol;
  }
}

TEST(FaultTest, TheSameSeedGivesTheSameFaults) {
  const Settings faults{{"link.loss_rate", "0.01"},     {"link.duplicate_rate", "0.02"},
                        {"link.reorder_rate", "0.02"},  {"link.burst_rate", "0.002"},
                        {"link.corrupt_rate", "0.005"}, {"sim.seed", "7"}};
  const auto counts = [](const ProgramRun& run) { return run.result.at("link").dump(); };
  const Settings settings = with(stream("rocev2", "write"), faults);
  const std::string once = counts(run_well(settings));
  EXPECT_EQ(once, counts(run_well(settings)));
  EXPECT_NE(once, counts(run_well(with(settings, {{"sim.seed", "8"}}))));
}

}  // namespace
}  // namespace rnic::testbench
