// SPDX-License-Identifier: Apache-2.0
// Large messages get what headers leave of a line, and what TLP headers leave of PCIe.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

constexpr double kMessage = 1 << 20;

ProgramRun stream(const std::string& protocol, const std::string& op, const Settings& more) {
  return run_well(with({{"transport.protocol", protocol},
                        {"workload.op", op},
                        {"workload.pattern", "bandwidth"},
                        {"workload.msg_size", "1MiB"},
                        {"workload.iterations", "12"},
                        {"workload.depth", "4"},
                        {"workload.signal_every", "1"},
                        {"sim.warmup", "4"},
                        {"sim.payload", "none"},
                        // The last segment may be one whose acknowledgement waits; the default of
                        // 100 us would be a tenth of this short run.
                        {"tcp.delayed_ack_time", "1us"}},
                       more));
}

/// Gb/s of a message of `packets` packets with `overhead` bytes each and `once` for the message.
double goodput(double packets, double overhead, double once) {
  return 100 * kMessage / (kMessage + packets * overhead + once);
}

class GoodputTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoodputTest, IsWhatHeadersLeave) {
  // IB: LRH 8, BTH 12, ICRC 4, VCRC 2, two framing symbols. RoCE: preamble and gap 20, Ethernet and
  // FCS 18, GRH 40 or IPv4 and UDP 28, BTH 12, ICRC 4. RETH (16) once a WRITE, AETH (4) in the
  // first and the last packet of a READ response.
  const double overhead = GetParam() == "ib" ? 28 : (GetParam() == "rocev1" ? 94 : 82);
  for (const int mtu : {256, 1024, 4096}) {
    for (const std::string op : {"write", "read"}) {
      const ProgramRun run = stream(GetParam(), op, {{"transport.mtu", std::to_string(mtu)}});
      ASSERT_EQ(run.status, 0);
      const double expected = goodput(kMessage / mtu, overhead, op == "write" ? 16 : 8);
      EXPECT_NEAR(run.number("/throughput_gbps"), expected, expected / 100) << mtu << " " << op;
      const std::string bottleneck = op == "write" ? "host0.nic.port" : "host1.nic.port";
      EXPECT_EQ(run.result["bottleneck"]["unit"], bottleneck) << mtu << " " << op;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, GoodputTest, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

TEST(GoodputTest, OfIwarp) {
  for (const int mtu : {1500, 9000}) {
    for (const std::string op : {"write", "read"}) {
      const ProgramRun run = stream("iwarp", op, {{"transport.mtu", std::to_string(mtu)}});
      ASSERT_EQ(run.status, 0);
      // In an IP packet: IPv4 20, TCP 20, length 2, DDP and RDMAP 14, CRC 4. Around it: preamble
      // and gap 20, Ethernet and FCS 18.
      const double expected = 100.0 * (mtu - 60) / (mtu + 38);
      EXPECT_NEAR(run.number("/throughput_gbps"), expected, expected / 100) << mtu << " " << op;
    }
  }
}

TEST(GoodputTest, OfPcieGen3x8) {
  // 8 GT/s x 8 lanes, 128b/130b, less 8.1 % for DLLPs and SKP sets: 57.9 Gb/s of TLPs. WRITE and
  // SEND go to the target's memory in TLPs of 256 B (MPS) with 24 B around, READs likewise at the
  // requester. Completions, on the way in, have 20 B and are not the limit.
  const double tlps = 8 * 8 * 128.0 / 130 * (1 - 0.081);
  const double expected = tlps * 256 / (256 + 24);
  for (const std::string op : {"write", "send", "read"}) {
    const ProgramRun run = stream("ib", op, {{"pcie.gen", "3"}, {"pcie.lanes", "8"}});
    ASSERT_EQ(run.status, 0);
    EXPECT_NEAR(run.number("/throughput_gbps"), expected, expected / 100) << op;
    const std::string bottleneck = op == "read" ? "host0.pcie.to_host" : "host1.pcie.to_host";
    EXPECT_EQ(run.result["bottleneck"]["unit"], bottleneck) << op;
  }
}

}  // namespace
}  // namespace rnic::testbench
