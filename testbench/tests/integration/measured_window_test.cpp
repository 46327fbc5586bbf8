// SPDX-License-Identifier: Apache-2.0
// One window for throughput, message rate and shares of units, whatever is lost and whoever dies.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

double share(const ProgramRun& run, const std::string& unit) {
  for (const auto& each : run.result["units"]) {
    if (each["name"] == unit) return each["utilization"].get<double>();
  }
  ADD_FAILURE() << "no unit " << unit;
  return 0;
}

Settings stream(const std::string& type) {
  return {{"transport.protocol", "rocev2"}, {"transport.type", type},
          {"workload.op", "send"},          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "4096"},    {"workload.iterations", "2000"},
          {"sim.payload", "none"}};
}

/// Bytes on the wire of a SEND of 4,096 B over RoCEv2: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
/// FCS 4, preamble and gap 20; a datagram's DETH has 8 more.
double line_gbps(const std::string& type) {
  return 100 * 4096 / (4096 + 82.0 + (type == "ud" ? 8 : 0));
}

class MeasuredWindow : public ::testing::TestWithParam<std::string> {};

// The receiver falls silent at a tenth of the run: the sender, which does not know, sends all that
// it has at line rate. Payload of a tenth in the time of all is a tenth of the rate, the sender's
// line is busy all the time and the receiver's PCIe for a tenth of the time that it is without a
// fault.
TEST_P(MeasuredWindow, GoesOnWhileTheSenderSendsInVain) {
  const ProgramRun whole = run_well(stream(GetParam()));
  const double start = whole.number("/sim/simulated_ns") - whole.number("/window_ns");
  const double silent = start + whole.number("/window_ns") / 10;
  const ProgramRun run =
      run_well(with(stream(GetParam()), {{"fabric.silent_host", "1"},
                                         {"fabric.silent_from", std::to_string(silent) + "ns"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  const double line = line_gbps(GetParam());
  EXPECT_NEAR(whole.number("/throughput_gbps"), line, 0.002 * line);
  EXPECT_NEAR(run.number("/window_ns"), whole.number("/window_ns"),
              0.03 * whole.number("/window_ns"));
  const double part = run.number("/throughput_gbps") / whole.number("/throughput_gbps");
  EXPECT_NEAR(part, 0.1, 0.05);
  EXPECT_GT(share(run, "host0.nic.port"), 0.97);
  EXPECT_NEAR(share(run, "host1.pcie.to_host"), part * share(whole, "host1.pcie.to_host"), 0.02);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.nic.port");
}

// The wait for what may still come is in no share: a short stream's are those of a long one. Over a
// long cable the sender ends before the last delivery, and begins before the first: that is no
// wait.
TEST_P(MeasuredWindow, EndsWithTheLastDelivery) {
  for (const char* delay : {"10ns", "20us"}) {
    const Settings all = with(stream(GetParam()), {{"link.delay", delay}});
    const ProgramRun longer = run_well(all);
    const ProgramRun shorter = run_well(with(all, {{"workload.iterations", "500"}}));
    EXPECT_GT(share(shorter, "host1.pcie.to_host"), 0.97 * share(longer, "host1.pcie.to_host"))
        << delay;
    if (delay == std::string("20us")) continue;
    EXPECT_GT(share(shorter, "host0.nic.port"), 0.97 * share(longer, "host0.nic.port"));
  }
}

// Three senders at line rate to one port, no flow control, a small buffer: two of three packets are
// lost, and whose they are is chance: some flow may never deliver as much as its warm-up. The port
// is busy all the time, and the senders are but for the end: 1 MiB takes 84 us, 2,000 x 3 packets
// of 335 ns a third of 2 ms.
TEST_P(MeasuredWindow, BeginsWhenTheWarmUpHasBeenSent) {
  for (const char* buffer : {"128KiB", "1MiB"}) {
    for (const char* warmup : {"0", "100", "1000"}) {
      const ProgramRun run =
          run_well(with(stream(GetParam()), {{"link.flow_control", "none"},
                                             {"fabric.hosts", "4"},
                                             {"fabric.topology", "single_switch"},
                                             {"workload.traffic", "incast"},
                                             {"switch.buffer", buffer},
                                             {"sim.warmup", warmup}}));
      SCOPED_TRACE(std::string(buffer) + " " + warmup);
      ASSERT_EQ(run.status, 0) << run.error;
      const double line = line_gbps(GetParam());
      EXPECT_NEAR(run.number("/throughput_gbps"), line, 0.02 * line);
      for (const char* host : {"host1", "host2", "host3"}) {
        EXPECT_GT(share(run, std::string(host) + ".nic.port"), 0.87) << host;
      }
      EXPECT_GT(run.number("/bottleneck/utilization"), 0.97);
      EXPECT_EQ(run.result["bottleneck"]["unit"], "switch.port0");
      const std::string why = run.result["bottleneck"]["why"];
      EXPECT_NE(why.find("frames were dropped"), std::string::npos) << why;
      EXPECT_NE(why.find("switch.buffer"), std::string::npos) << why;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MeasuredWindow, ::testing::Values("uc", "ud"),
                         [](const auto& test) { return test.param; });

// 7 retries of 2^14 x 4.096 us follow on the death of the peer: rates and shares are of all that
// time, as the report says.
TEST(MeasuredWindowOfFailures, IncludesTheTimeInWhichTheErrorIsFound) {
  const Settings all = with(stream("rc"), {{"workload.iterations", "20000"}});
  const ProgramRun whole = run_well(all);
  const double middle = whole.number("/sim/simulated_ns") - whole.number("/window_ns") / 2;
  const ProgramRun run = run_well(
      with(all, {{"fabric.fatal_host", "1"}, {"fabric.fatal_at", std::to_string(middle) + "ns"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  constexpr double kTimeOut = 4096.0 * (1 << 14);
  EXPECT_GT(run.number("/window_ns"), 8 * kTimeOut);
  const double bytes = run.number("/throughput_gbps") * run.number("/window_ns") / 8;
  const double all_bytes = whole.number("/throughput_gbps") * whole.number("/window_ns") / 8;
  EXPECT_NEAR(bytes, all_bytes / 2, 0.01 * all_bytes);
  // Half of a run of 6.7 ms in 0.5 s.
  EXPECT_LT(share(run, "host0.nic.port"), 0.02);
}

// A sender whose queue pair fails in the warm-up or behind it: what was sent before is counted.
TEST(MeasuredWindowOfFailures, MessagesBeforeAnErrorAreAccountedFor) {
  for (const char* mistake : {"too_long", "handle_pd", "local_key"}) {
    for (const int at : {1, 5, 90, 300}) {
      const ProgramRun run =
          run_well(with(stream("ud"), {{"workload.mistake", mistake},
                                       {"workload.mistake_at", std::to_string(at)},
                                       {"workload.signal_every", "32"}}));
      SCOPED_TRACE(std::string(mistake) + " " + std::to_string(at));
      ASSERT_EQ(run.status, 0) << run.error;
      EXPECT_EQ(run.number("/messages/sent"), at - 1);
      EXPECT_EQ(run.number("/messages/delivered"), at - 1);
    }
  }
}

}  // namespace
}  // namespace rnic::testbench
