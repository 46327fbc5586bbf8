// SPDX-License-Identifier: Apache-2.0
// What must be slower than what, over sizes, operations and wires.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

double latency_ns(const std::string& protocol, const std::string& op, std::uint64_t size,
                  const Settings& more = {}) {
  const ProgramRun run = run_well(with({{"transport.protocol", protocol},
                                        {"workload.op", op},
                                        {"workload.pattern", "latency"},
                                        {"workload.msg_size", std::to_string(size)},
                                        {"workload.iterations", "20"},
                                        {"sim.warmup", "4"}},
                                       more));
  return run.status == 0 ? run.number("/latency_ns/mean") : 0;
}

/// Two clock-domain crossings a way on a 2 ns clock, and as many back.
constexpr double kClockNoiseNs = 4;

TEST(LatencyOrderTest, SmallWritesByTransport) {
  // One core, other headers: RoCEv2 has 54 bytes more than IB, RoCEv1 12 more than that, and iWARP
  // a TCP engine besides. 12 bytes are 1 ns at 100 Gb/s, less than a clock period: at 10 Gb/s the
  // order of the RoCEs shows.
  const Settings slow = {{"link.rate", "10Gbps"}};
  for (const std::uint64_t size : {2U, 16U, 64U, 128U, 220U}) {
    const double ib = latency_ns("ib", "write", size, slow);
    const double v2 = latency_ns("rocev2", "write", size, slow);
    const double v1 = latency_ns("rocev1", "write", size, slow);
    const double iwarp = latency_ns("iwarp", "write", size, slow);
    EXPECT_LT(ib, v2) << size;
    EXPECT_LE(v2, v1) << size;
    EXPECT_LT(v1, iwarp) << size;
  }
}

TEST(LatencyOrderTest, SmallWritesByTransportAtFullRate) {
  for (const std::uint64_t size : {2U, 64U, 220U}) {
    const double ib = latency_ns("ib", "write", size);
    const double v2 = latency_ns("rocev2", "write", size);
    EXPECT_LT(ib, v2) << size;
    EXPECT_LT(v2, latency_ns("rocev1", "write", size) + kClockNoiseNs) << size;
    EXPECT_LT(v2, latency_ns("iwarp", "write", size)) << size;
  }
}

TEST(LatencyOrderTest, TakingItsOwnCompletionCostsAPingPongNothing) {
  // perftest takes it while the peer's answer is on its way. A READ is over with it: 100 ns later.
  const Settings slow = {{"cpu.cqe_cost", "120ns"}};
  for (const std::string protocol : {"ib", "rocev1", "rocev2"}) {
    const double write = latency_ns(protocol, "write", 64);
    EXPECT_DOUBLE_EQ(latency_ns(protocol, "write", 64, slow), write) << protocol;
    const double read = latency_ns(protocol, "read", 64);
    EXPECT_DOUBLE_EQ(latency_ns(protocol, "read", 64, slow), read + 100) << protocol;
  }
}

class LatencyBySizeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LatencyBySizeTest, NeverFallsWithTheSize) {
  for (const std::string op : {"write", "read", "send"}) {
    double last = 0;
    std::uint64_t last_size = 0;
    for (std::uint64_t size = 2; size <= 1U << 20; size *= 8) {
      // Without inlining, which makes small messages faster by a DMA read: one path for all sizes.
      const double now = latency_ns(GetParam(), op, size, {{"workload.inline_max", "0"}});
      EXPECT_GE(now, last - kClockNoiseNs) << op << " of " << size << " B and " << last_size;
      last = now;
      last_size = size;
    }
    // The largest takes at least its bytes' time on the line, 0.08 ns each.
    EXPECT_GT(last, static_cast<double>(last_size) * 0.08) << op;
  }
}

TEST_P(LatencyBySizeTest, InliningSavesTheDmaReadOfThePayload) {
  // 64 B that are not in the WQE: translation 10 + DMA engine 10 cycles, 300 ns of PCIe both ways
  // and 150 ns of memory; that is 490 ns, and a few for the TLPs. Inline they make the WQE a block
  // longer: some 15 ns for the core to copy and push it and for the doorbell unit to take it. And
  // the program's change of the payload moves a line out of the core and back, 20 ns each.
  const double inlined = latency_ns(GetParam(), "write", 64);
  const double fetched = latency_ns(GetParam(), "write", 64, {{"workload.inline_max", "0"}});
  EXPECT_NEAR(fetched - inlined, 490 + 40 - 15, 15);
}

TEST_P(LatencyBySizeTest, ReadTakesARoundTripAndADmaReadMoreThanAWrite) {
  // Both with the WQE pushed by BlueFlame; the WRITE is inline, the READ's data are fetched at the
  // peer. In common: the request's way over. What the READ has more, in ns:
  //   DMA read at the peer   10 cycles, 2 x 150 PCIe, 150 memory, TLPs 3.7      473.7
  //   pick, context, translation of the response, 25 cycles                       50
  //   the response's way: packetizer 20 cycles, 2 x 50 PHY, 10 cable, 8 line,
  //     edge 1, parse 20 and context 5 cycles                                    209
  //   iWARP: both TCP engines again, 120 cycles                                  240
  //   sink's responder and translation: like the WRITE's at the target             0
  //     but the rights check at the peer before, 20 cycles                        40
  //   CQE: formed 10 cycles, DMA engine 10, TLP 3                                 43
  //   poll that takes the CQE                                                     45
  // and what the WRITE has more: inlining and a second block in the WQE 4 + 6 + 4, its payload on
  // the line 5; iWARP: its own completion, which comes behind the answer, CQE 43 and two polls 70.
  const double extra = 473.7 + 50 + 209 + (GetParam() == "iwarp" ? 240 : 0) + 40 + 43 + 45;
  const double expected = extra - 14 - 5 - (GetParam() == "iwarp" ? 43 + 70 : 0);
  const double read = latency_ns(GetParam(), "read", 64);
  const double write = latency_ns(GetParam(), "write", 64);
  EXPECT_NEAR(read - write, expected, 0.1 * expected);
}

INSTANTIATE_TEST_SUITE_P(Transports, LatencyBySizeTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
