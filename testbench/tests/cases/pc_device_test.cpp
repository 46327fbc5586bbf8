// SPDX-License-Identifier: Apache-2.0
// Cases of theme PC about what else hangs on PCIe: another device's memory (peer to peer), a second
// port or a second function of the adapter, and a port that talks to itself.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings stream(const std::string& op) {
  return {{"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},
          {"workload.iterations", "400"},
          {"workload.depth", "32"},
          {"sim.warmup", "50"},
          {"sim.payload", "none"}};
}

/// An Ack and an UpdateFC each Ack latency limit, in symbol times of all lanes: 1 % of x16.
constexpr const char* kDllps = "symbols";

double gbps_of(const ProgramRun& run) { return run.number("/throughput_gbps"); }

std::string limiter(const ProgramRun& run) {
  return run.result["bottleneck"]["unit"].get<std::string>();
}

// --- PC-08: 200 Gb/s into host memory, a GPU behind a switch, a GPU behind the root complex ---

ProgramRun into(const std::string& op, const std::string& path) {
  Settings settings = with(stream(op), {{"link.rate", "200Gbps"}, {"pcie.gen", "4"}});
  if (path != "host") {
    settings = with(settings, {{"workload.remote_memory", "peer"}, {"peer.path", path}});
  }
  return run_well(settings);
}

TEST(CasePC, PC08_TheWayToThePeerOrdersTheThroughput) {
  const ProgramRun host = into("write", "host");
  const ProgramRun through_switch = into("write", "switch");
  const ProgramRun through_root = into("write", "root");
  // 200 Gb/s of wire carry 198.7; the peer takes 192, the root complex forwards 92.
  EXPECT_GE(gbps_of(through_switch), 0.9 * gbps_of(host));
  EXPECT_NEAR(gbps_of(through_root), 92, 0.02 * 92);
  EXPECT_GE(gbps_of(through_root) / gbps_of(host), 0.40);
  EXPECT_LE(gbps_of(through_root) / gbps_of(host), 0.55);
  EXPECT_EQ(limiter(through_root), "host1.host.peer.write");
  for (const char* path : {"switch", "root"}) {
    EXPECT_LT(gbps_of(into("read", path)), gbps_of(into("write", path))) << path;
  }
}

TEST(CasePC, PC08_LatencyGrowsWithTheWay) {
  const auto latency = [](const Settings& more) {
    return run_well(with({{"workload.op", "read"},
                          {"workload.pattern", "latency"},
                          {"workload.msg_size", "64"},
                          {"workload.iterations", "50"}},
                         more))
        .number("/latency_ns/mean");
  };
  const double host = latency({});
  const double near = latency({{"workload.remote_memory", "peer"}});
  const double far = latency({{"workload.remote_memory", "peer"}, {"peer.path", "root"}});
  // A read of the peer takes 500 ns instead of the host memory's 150; the root complex adds 250
  // each way.
  EXPECT_NEAR(near - host, 500 - 150, 2);
  EXPECT_NEAR(far - near, 2 * 250, 2);
}

TEST(CasePC, PC08_BytesArrive) {
  for (const char* op : {"write", "read", "send"}) {
    run_well(with(stream(op), {{"sim.payload", "bytes"},
                               {"workload.iterations", "40"},
                               {"workload.local_memory", "peer"},
                               {"workload.remote_memory", "peer"}}));
  }
}

// --- PC-09: platforms that forward writes between devices, but no reads ---

ProgramRun writes_only(const std::string& op, const std::string& side) {
  return run_program({{"workload.op", op},
                      {"workload.pattern", "bandwidth"},
                      {"workload.msg_size", "4KiB"},
                      {"workload.iterations", "8"},
                      {"workload.depth", "4"},
                      {"workload.inline_max", "0"},
                      {"workload.signal_every", "1"},
                      {"sim.warmup", "0"},
                      {"workload." + side + "_memory", "peer"},
                      {"peer.reads", "false"}});
}

TEST(CasePC, PC09_OnlyWritesReachThePeer) {
  // What must be read from the device's memory ends with its owner's error ...
  const ProgramRun source = writes_only("write", "local");
  ASSERT_EQ(source.status, 0) << source.error;
  EXPECT_EQ(source.number("/completions/local_protection_error"), 1);
  EXPECT_EQ(source.number("/completions/success"), 0);
  EXPECT_GE(source.number("/completions/wr_flush_error"), 1);  // the queue pair is in ERR
  const ProgramRun target = writes_only("read", "remote");
  ASSERT_EQ(target.status, 0) << target.error;
  EXPECT_EQ(target.number("/completions/remote_operation_error"), 1);
  EXPECT_EQ(target.number("/completions/success"), 0);
  EXPECT_GE(target.number("/completions/wr_flush_error"), 1);
  // ... and what is only written gets there.
  EXPECT_EQ(writes_only("write", "remote").number("/completions/success"), 8);
  EXPECT_EQ(writes_only("read", "local").number("/completions/success"), 8);
}

// --- PC-11: two 200 Gb/s ports in one slot ---

ProgramRun two_ports(const char* gen, const char* ports) {
  return run_well(with(stream("write"), {{"link.rate", "200Gbps"},
                                         {"pcie.gen", gen},
                                         {"nic.ports", ports},
                                         {"pcie.dllp_overhead", kDllps}}));
}

TEST(CasePC, PC11_TwoPortsShareASlot) {
  for (const char* gen : {"3", "4"}) {
    SCOPED_TRACE(gen);
    const ProgramRun both = two_ports(gen, "2");
    // 8 or 16 GT/s x 16 x 128/130 x 256/280.
    const double bound = (gen[0] == '3' ? 8.0 : 16.0) * 16 * 128 / 130 * 256 / 280;
    EXPECT_LE(gbps_of(both), bound);
    EXPECT_GE(gbps_of(both), 0.97 * bound);
    ASSERT_EQ(both.result["flows"].size(), 2U);
    const double first = both.number("/flows/0/throughput_gbps");
    EXPECT_NEAR(first / gbps_of(both), 0.5, 0.015);
    EXPECT_NE(limiter(both).find(".pcie.to_"), std::string::npos) << limiter(both);
  }
  // One port alone is bounded by its wire, or by the same slot.
  EXPECT_NEAR(gbps_of(two_ports("4", "1")), 198, 3);
  EXPECT_NEAR(gbps_of(two_ports("3", "1")) / gbps_of(two_ports("3", "2")), 1.0, 0.03);
}

TEST(CasePC, PC11_IdBasedOrderingLetsPortsPassEachOther) {
  // A strictly ordered TLP of 256 B takes 25 ns of the one order that both ports share: 81.9 Gb/s.
  // With ID-based ordering each port has an order of its own.
  const auto both = [](const char* ido) {
    return run_well(with(stream("write"), {{"link.rate", "200Gbps"},
                                           {"pcie.gen", "5"},
                                           {"nic.ports", "2"},
                                           {"pcie.relaxed_ordering", "false"},
                                           {"pcie.ordering_time", "200ns"},
                                           {"pcie.ordering_overlap", "8"},
                                           {"pcie.root_credits.posted_headers", "2047"},
                                           {"pcie.root_credits.posted_data", "32767"},
                                           {"pcie.id_based_ordering", ido}}));
  };
  EXPECT_NEAR(gbps_of(both("false")), 256 * 8 / 25.0, 0.02 * 82);
  EXPECT_NEAR(gbps_of(both("true")), 2 * 256 * 8 / 25.0, 0.04 * 164);
}

// --- PC-12: a port that sends to itself ---

ProgramRun loopback(const char* mps, const Settings& more = {}) {
  return run_well(with(with(stream("send"), {{"workload.traffic", "loopback"},
                                             {"transport.protocol", "rocev2"},
                                             {"transport.mtu", "1024"},
                                             {"link.rate", "100Gbps"},
                                             {"pcie.gen", "3"},
                                             {"pcie.lanes", "16"},
                                             {"pcie.mps", mps},
                                             {"pcie.mrrs", "1024"},
                                             {"pcie.dllp_overhead", kDllps}}),
                       more));
}

TEST(CasePC, PC12_LoopbackIsBoundedByPcieAndNotByTheWire) {
  for (const char* mps : {"128", "256"}) {
    SCOPED_TRACE(mps);
    const ProgramRun run = loopback(mps);
    // Both hosts do it; each byte is read and written over one link, in its two directions.
    const double of_one = gbps_of(run) / 2;
    const double payload = std::stod(mps);
    const double bound = 8.0 * 16 * 128 / 130 * payload / (payload + 24);
    // Writes share their direction with the read requests, one of 24 B for each packet's 1,024 B.
    const double requests = payload / 1024 * 24;
    // The limit of x16 is 144 or 168 symbol times, of 16 B each.
    const double dllps = 16 / ((payload > 200 ? 168.0 : 144.0) * 16) + 4.0 / 1538;
    const double shared = bound * (1 - dllps) * (payload + 24) / (payload + 24 + requests);
    EXPECT_LE(of_one, bound);
    EXPECT_NEAR(of_one, shared, 0.005 * shared);
    EXPECT_GT(of_one, 92.6);  // what 100 Gb/s of wire carry with this MTU
    EXPECT_NE(limiter(run).find(".pcie.to_host"), std::string::npos) << limiter(run);
    EXPECT_EQ(run.number("/link/0/wire_bytes"), 0);
  }
  // The case's 106.1 Gb/s count the TLP headers of writes only; the requests of the reads, which
  // share their direction, leave 104.1, and DLLPs 103.1 of them.
  const ProgramRun pure = loopback("128", {{"pcie.dllp_overhead", "0"}});
  const double requested = 8.0 * 16 * 128 / 130 * 128 / (128 + 24 + 3);
  EXPECT_NEAR(gbps_of(pure) / 2, requested, 0.005 * requested);
  EXPECT_LE(gbps_of(pure) / 2, 107);
  const ProgramRun wide = loopback("256", {{"pcie.dllp_overhead", "0"}});
  EXPECT_NEAR(gbps_of(wide) / 2, 115, 0.03 * 115);  // 112.5: 6 B of requests for each 280 B
  // Or by the way inside the adapter, if that is narrower: 1,024 of 1,084 B a frame (BTH, UDP, IP,
  // Ethernet, ICRC and FCS: 12 + 8 + 20 + 14 + 4 + 4, and no preamble or gap).
  const ProgramRun narrow = loopback("256", {{"nic.loopback_rate", "50Gbps"}});
  EXPECT_NEAR(gbps_of(narrow) / 2, 50.0 * 1024 / (1024 + 62), 1);
  EXPECT_NE(limiter(narrow).find("loopback"), std::string::npos) << limiter(narrow);
}

TEST(CasePC, PC12_EveryWireTurnsAround) {
  for (const std::string& protocol : all_protocols()) {
    SCOPED_TRACE(protocol);
    run_well({{"transport.protocol", protocol},
              {"workload.traffic", "loopback"},
              {"workload.op", "write"},
              {"workload.pattern", "bandwidth"},
              {"workload.iterations", "50"},
              {"workload.msg_size", "8KiB"}});
  }
}

// --- PC-17: one 200 Gb/s port behind two PCIe links ---

ProgramRun two_functions(const Settings& more) {
  return run_well(with(with(stream("write"), {{"link.rate", "200Gbps"},
                                              {"transport.protocol", "rocev2"},
                                              {"pcie.gen", "5"},
                                              {"pcie.lanes", "4"},
                                              {"pcie.mps", "256"},
                                              {"pcie.dllp_overhead", kDllps}}),
                       more));
}

TEST(CasePC, PC17_EachFunctionIsBoundedByItsLanes) {
  const double one = gbps_of(two_functions({}));
  const double both = gbps_of(two_functions({{"nic.functions", "2"}}));
  const double narrow =
      gbps_of(two_functions({{"nic.functions", "2"}, {"nic.second_function_lanes", "2"}}));
  // 32 GT/s x 4 x 128/130 x 256/280 = 115.2 Gb/s; the wire carries 196.
  EXPECT_LE(one, 115.3);
  EXPECT_GE(one, 100);
  EXPECT_LE(both, 196.2);
  EXPECT_GE(both / one, 1.6);
  EXPECT_LE(both / one, 1.9);
  EXPECT_GT(narrow / one, 1.3);
  EXPECT_LE(narrow, 1.5 * 115.3);  // six lanes instead of four
}

TEST(CasePC, PC17_TheSlowerFunctionHoldsTheOtherUpOnlyByPauses) {
  // For long: two lanes read payload with 20 B of header a packet and write it with 24 B, so that
  // the narrow function receives 1.5 % more than it can write. What it cannot take fills its buffer
  // and pauses the port that both functions share. Nothing pauses: each has what its lanes carry.
  const auto long_run = [](const Settings& more) {
    return gbps_of(two_functions(with({{"nic.functions", "2"},
                                       {"nic.second_function_lanes", "2"},
                                       {"workload.iterations", "2000"}},
                                      more)));
  };
  const double one = gbps_of(two_functions({}));
  const double sum = 1.5 * one;
  EXPECT_NEAR(long_run({{"link.flow_control", "none"}}), sum, 0.01 * sum);
  // Read requests of 128 B slow the reading side down to what the writing side takes: no pauses
  // either (completions of 128 B with 20 B, against writes of 256 B with 24 B).
  // Ack latency limits of 214 and 313 symbol times, of four and of two bytes: 2.1 and 2.8 % DLLPs.
  const double left = (4 * (1 - 16.0 / (214 * 4)) + 2 * (1 - 16.0 / (313 * 2))) / 6 - 4.0 / 1538;
  const double read_bound = 32 * 6 * 128.0 / 130 * left * 128 / 148;
  EXPECT_NEAR(long_run({{"pcie.mrrs", "128"}}), read_bound, 0.01 * read_bound);
  const double paused = long_run({});
  EXPECT_GT(paused, one);
  EXPECT_LT(paused, sum);
}

}  // namespace
}  // namespace rnic::testbench
