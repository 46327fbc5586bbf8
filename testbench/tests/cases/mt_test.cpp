// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/program.h"

// MTU, framing, link efficiency.
namespace rnic::testbench {
namespace {

const nlohmann::json& link_named(const ProgramRun& run, const std::string& name) {
  for (const auto& link : run.result.at("link")) {
    if (link.at("name") == name) return link;
  }
  ADD_FAILURE() << "no link " << name;
  return run.result;
}

Settings stream(const std::string& protocol, const std::string& op) {
  return {{"transport.protocol", protocol},
          {"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},
          {"workload.iterations", "600"},
          {"workload.depth", "32"},
          {"sim.payload", "none"}};
}

TEST(CaseMT, MT01_FramingAt25GAndMtu1024) {
  const ProgramRun run = run_well(
      with(stream("rocev2", "write"), {{"link.rate", "25Gbps"}, {"transport.mtu", "1024"}}));
  EXPECT_NEAR(run.number("/throughput_gbps"), 23.15, 0.2);  // 25 x 1024 / 1106
  const auto& out = link_named(run, "host0.nic.port");
  const auto& back = link_named(run, "host1.nic.port");
  const double out_bytes = out.at("wire_bytes").get<double>();
  EXPECT_LT(back.at("wire_bytes").get<double>() / out_bytes, 0.01);  // ACKs
  // 64 packets of 82 B around 1,024, and RETH's 16 B on the first.
  const double expected = (65536 + 64 * 82 + 16) / 65536.0;
  EXPECT_NEAR(out_bytes / out.at("payload_bytes").get<double>(), expected, 0.0005);
  EXPECT_EQ(run.result.at("bottleneck").at("unit"), "host0.nic.port");
}

TEST(CaseMT, MT02_InfinibandEdrAboveRoceV2) {
  for (const char* op : {"write", "read"}) {
    const ProgramRun ib = run_well(stream("ib", op));
    const ProgramRun roce = run_well(stream("rocev2", op));
    const double gbps = ib.number("/throughput_gbps");
    EXPECT_GE(gbps, 97.5) << op;
    EXPECT_LE(gbps, 99.4) << op;  // 4096 / 4122
    EXPECT_NEAR(roce.number("/throughput_gbps"), 98.0, 0.4) << op;
    EXPECT_GT(gbps, roce.number("/throughput_gbps")) << op;
    EXPECT_GE(gbps / 8 / 4096 * 1e3, 2.97) << op;  // packets: million a second
    EXPECT_LE(gbps / 8 / 4096 * 1e3, 3.04) << op;
  }
}

TEST(CaseMT, MT04_PathMtuAboveTheNetworks) {
  const Settings network{{"transport.protocol", "rocev2"},
                         {"transport.mtu", "4096"},
                         {"link.mtu", "1500"},
                         {"fabric.topology", "single_switch"},
                         {"transport.retry_count", "7"},
                         {"transport.ack_timeout", "6"},
                         {"workload.pattern", "bandwidth"},
                         {"workload.depth", "1"},
                         {"workload.iterations", "10"},
                         {"sim.warmup", "0"}};
  const ProgramRun small = run_well(with(network, {{"workload.msg_size", "64"}}));
  EXPECT_EQ(small.result.at("completions").at("success"), 10);
  const ProgramRun large = run_well(with(network, {{"workload.msg_size", "64KiB"}}));
  EXPECT_EQ(large.result.at("completions").at("retry_exceeded_error"), 1);
  EXPECT_EQ(large.counter("packet_seq_err"), 0U);         // no NAK: nothing ever arrives
  EXPECT_EQ(large.counter("local_ack_timeout_err"), 8U);  // the first and seven retries
  // Dropped where they arrive first: at the switch.
  EXPECT_GT(link_named(large, "switch.port0").at("dropped_oversize").get<int>(), 0);
  EXPECT_EQ(link_named(small, "switch.port0").at("dropped_oversize"), 0);
}

}  // namespace
}  // namespace rnic::testbench
