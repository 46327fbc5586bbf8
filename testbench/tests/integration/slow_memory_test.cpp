// SPDX-License-Identifier: Apache-2.0
// Memory that takes posted writes more slowly than the wire brings them: the root complex returns
// credits only as it gets rid of writes, so the device's way to memory is held up, its receive
// buffer fills, and the wire waits. The report names the memory.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings stream(const std::string& protocol, const Settings& more) {
  return with({{"transport.protocol", protocol},
               {"workload.op", "write"},
               {"workload.pattern", "bandwidth"},
               {"workload.msg_size", "64KiB"},
               {"workload.iterations", "600"},
               {"workload.depth", "32"},
               {"sim.warmup", "100"},
               {"sim.payload", "none"}},
              more);
}

/// One channel of 40 Gb/s, and nothing is kept in the cache.
const Settings kSlowDram{{"memory.ddio", "false"},
                         {"memory.dram_channels", "1"},
                         {"memory.dram_channel_bandwidth", "40Gbps"}};

double link_figure(const ProgramRun& run, const std::string& port, const char* figure) {
  for (const auto& link : run.result["link"]) {
    if (link["name"] == port) return link[figure].get<double>();
  }
  ADD_FAILURE() << port << " is not reported";
  return 0;
}

double stalled(const ProgramRun& run, const std::string& unit, const char* cause) {
  for (const auto& each : run.result["units"]) {
    if (each["name"] == unit) return each["stalled"].value(cause, 0.0);
  }
  ADD_FAILURE() << unit << " is not reported";
  return 0;
}

TEST(SlowMemory, HoldsTheWireAndIsNamed) {
  for (const std::string& protocol : all_protocols()) {
    for (const char* detail : {"fast", "tlp"}) {
      SCOPED_TRACE(protocol + " " + detail);
      const ProgramRun run = run_well(with(stream(protocol, kSlowDram), {{"pcie.detail", detail}}));
      // 40 Gb/s of lines; nothing else is slower.
      EXPECT_LE(run.number("/throughput_gbps"), 40.0 * 1.001);
      EXPECT_EQ(run.result["bottleneck"]["unit"], "host1.host.root_complex.dram");
      if (protocol == "iwarp") {
        // Nothing stops TCP but what it loses: windows between a half and the whole.
        EXPECT_GT(link_figure(run, "host1.nic.port", "dropped"), 0);
        EXPECT_GE(run.number("/throughput_gbps"), 40.0 * 0.75);
        continue;
      }
      EXPECT_GE(run.number("/throughput_gbps"), 40.0 * 0.999);
      EXPECT_EQ(run.link_sum("dropped"), 0);
      if (protocol == "ib") {
        EXPECT_NEAR(stalled(run, "host0.nic.port", "no_credit"), 0.6, 0.02);  // 40 of 100 Gb/s
        continue;
      }
      // The receive buffer is filled up to where the sender is stopped.
      EXPECT_GT(link_figure(run, "host1.nic.port", "rx_buffer_highest"), 100e3);
      EXPECT_GT(link_figure(run, "host0.nic.port", "paused_ns"), 0);
    }
  }
}

TEST(SlowMemory, AnyPartOfTheWayToItHoldsTheWire) {
  struct Part {
    Settings settings;
    double gbps;
    const char* unit;
  };
  const Part parts[] = {{{{"memory.numa_remote", "true"},
                          {"memory.numa_bandwidth", "50Gbps"},
                          {"workload.op", "write"}},
                         50,
                         ".socket_link"},
                        {{{"memory.bandwidth", "30Gbps"}}, 30, ".memory"},
                        // A TLP of 256 B in 32 ns.
                        {{{"pcie.relaxed_ordering", "false"},
                          {"pcie.ordering_time", "256ns"},
                          {"pcie.ordering_overlap", "8"}},
                         256 * 8 / 32.0,
                         ".strict_order"}};
  for (const Part& part : parts) {
    for (const char* detail : {"fast", "tlp"}) {
      SCOPED_TRACE(std::string(part.unit) + " " + detail);
      const ProgramRun run =
          run_well(with(stream("rocev2", part.settings), {{"pcie.detail", detail}}));
      EXPECT_NEAR(run.number("/throughput_gbps"), part.gbps, 0.01 * part.gbps);
      const auto unit = run.result["bottleneck"]["unit"].get<std::string>();
      EXPECT_NE(unit.find(part.unit), std::string::npos) << unit;
    }
  }
}

TEST(SlowMemory, FastMemoryCostsNothing) {
  // With credits that never run out, nothing is different: latencies to the picosecond.
  const Settings infinite{{"pcie.root_credits.posted_headers", "infinite"},
                          {"pcie.root_credits.posted_data", "infinite"}};
  for (const char* op : {"write", "read", "send"}) {
    for (const char* size : {"8B", "4KiB", "1MiB"}) {
      for (const char* gen : {"3", "5"}) {
        SCOPED_TRACE(std::string(op) + size + gen);
        const Settings settings{{"workload.op", op},
                                {"workload.msg_size", size},
                                {"workload.iterations", "30"},
                                {"pcie.gen", gen},
                                {"sim.payload", "none"}};
        const ProgramRun finite = run_well(settings);
        const ProgramRun without = run_well(with(settings, infinite));
        EXPECT_EQ(finite.result["latency_ns"], without.result["latency_ns"]);
      }
    }
  }
}

TEST(SlowMemory, TheAutomaticBufferIsTwiceTheRoundTrip) {
  const ProgramRun run = run_well({{"pcie.gen", "4"}, {"pcie.lanes", "16"}});
  // 16 GT/s x 16 = 32 B/ns; 2 x 150 ns over the link and 60 ns to memory.
  EXPECT_EQ(run.result["config"]["pcie.root_credits.posted_data"], 2 * 32 * 360 / 16);
  EXPECT_EQ(run.result["config"]["pcie.root_credits.posted_headers"], 2 * 32 * 360 / 64);
  const ProgramRun narrow = run_well({{"pcie.gen", "1"}, {"pcie.lanes", "1"}});
  EXPECT_EQ(narrow.result["config"]["pcie.root_credits.posted_data"], 12288 / 16);
}

}  // namespace
}  // namespace rnic::testbench
