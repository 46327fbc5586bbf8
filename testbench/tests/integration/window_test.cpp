// SPDX-License-Identifier: Apache-2.0
// The measured window: whatever the length of a run, no throughput is above what the wire carries
// in it, and the figures of flows add up to the headline.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Payload of 100 Gb/s of packets with as much payload as the MTU allows: no message does better.
double ceiling(const std::string& protocol, double size) {
  if (protocol == "iwarp") return 100.0 * 8960 / (8960 + 12 + 78);  // TCP, IP and Ethernet alone
  const double header = protocol == "ib" ? 26 : 82;
  const double packets = std::ceil(size / 4096);
  return 100 * size / (size + packets * header);
}

TEST(MeasuredWindow, NoRunIsFasterThanTheWire) {
  for (const std::string protocol : {"ib", "rocev2", "iwarp"}) {
    for (const char* op : {"send", "write", "read"}) {
      for (const char* size : {"2048", "4096", "5000", "65536"}) {
        for (const char* iterations : {"20", "100", "1000"}) {
          for (const char* preset : {"8", "100"}) {
            SCOPED_TRACE(protocol + " " + op + " " + size + " x " + iterations + " after " +
                         preset);
            const ProgramRun run = run_well({{"transport.protocol", protocol},
                                             {"link.rate", "100Gbps"},
                                             {"workload.op", op},
                                             {"workload.pattern", "bandwidth"},
                                             {"workload.msg_size", size},
                                             {"workload.iterations", iterations},
                                             {"sim.warmup", preset},
                                             {"sim.payload", "none"}});
            EXPECT_LE(run.number("/throughput_gbps"), 1.0002 * ceiling(protocol, std::stod(size)));
          }
        }
      }
    }
  }
}

TEST(MeasuredWindow, WhatHasQueuedUpBeforeItIsNotCountedAsCarriedInIt) {
  // The receiver's memory is slow until the cache holds what is written again and again: frames
  // wait in its buffer when the window begins.
  const ProgramRun run = run_well({{"transport.protocol", "ib"},
                                   {"workload.op", "write"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.msg_size", "4096"},
                                   {"workload.mr_size", "1MiB"},
                                   {"workload.iterations", "300"},
                                   {"sim.warmup", "200"},
                                   {"nic.mtt_cache.line", "1"},
                                   {"nic.mtt_cache.entries", "512"},
                                   {"sim.payload", "none"}});
  EXPECT_LE(run.number("/throughput_gbps"), 100 * 4096.0 / 4122 * 1.0002);
  // Half of the 128 KiB that an InfiniBand lane has at most: without a queue this tests nothing.
  EXPECT_GT(run.number("/link/1/rx_buffer_highest"), 65536);
}

double sum_of_flows(const ProgramRun& run, const char* figure) {
  double sum = 0;
  for (const auto& flow : run.result["flows"]) sum += flow[figure].get<double>();
  return sum;
}

TEST(MeasuredWindow, FlowsAddUpHoweverUnevenTheyAre) {
  const Settings uneven[] = {// Each begins when the one before has nearly ended.
                             {{"workload.start_gap", "150us"}},
                             {{"workload.start_gap", "400us"}},
                             // Two of three to the same host, one of them late.
                             {{"workload.traffic", "incast"}, {"workload.start_gap", "60us"}},
                             {{"workload.traffic", "all_to_all"}, {"workload.start_gap", "30us"}}};
  for (const Settings& more : uneven) {
    SCOPED_TRACE(text_of(more));
    const ProgramRun run = run_well(with({{"fabric.hosts", "4"},
                                          {"fabric.topology", "single_switch"},
                                          {"workload.op", "write"},
                                          {"workload.pattern", "bandwidth"},
                                          {"workload.msg_size", "64KiB"},
                                          {"workload.iterations", "40"},
                                          {"workload.depth", "8"},
                                          {"sim.warmup", "8"},
                                          {"sim.payload", "none"}},
                                         more));
    const double headline = run.number("/throughput_gbps");
    EXPECT_NEAR(sum_of_flows(run, "throughput_gbps"), headline, 1e-3 * headline);
    EXPECT_LE(headline, 4 * 100);
  }
}

}  // namespace
}  // namespace rnic::testbench
