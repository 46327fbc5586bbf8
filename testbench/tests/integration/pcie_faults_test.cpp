// SPDX-License-Identifier: Apache-2.0
// Completions that are lost or poisoned on PCIe end as completion errors of the message they belong
// to, or as a fatal device error; nothing is lost silently and nothing hangs. Bit errors only cost
// time.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// Four messages of 256 B whose payload is fetched, a WQE each.
Settings base(const std::string& op) {
  return {{"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "256"},
          {"workload.depth", "4"},
          {"workload.iterations", "8"},
          {"workload.inline_max", "0"},
          {"workload.signal_every", "1"},
          {"sim.warmup", "0"},
          {"pcie.completion_timeout", "100us"}};
}

class PcieFaultsTest : public ::testing::TestWithParam<std::string> {
 protected:
  Settings settings(const std::string& op) const {
    return with(base(op), {{"transport.protocol", GetParam()}, {"pcie.fault.purpose", "payload"}});
  }
};

TEST_P(PcieFaultsTest, ALostPayloadCompletionFailsTheMessage) {
  const ProgramRun run = run_program(with(settings("write"), {{"pcie.fault.lost", "3"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  // The third message fails, what follows is flushed.
  EXPECT_EQ(run.number("/completions/success"), 2);
  EXPECT_EQ(run.number("/completions/local_protection_error"), 1);
  EXPECT_GE(run.number("/completions/wr_flush_error"), 1);
  EXPECT_EQ(run.counter("dma_faults"), 1U);
  EXPECT_GE(run.number("/sim/simulated_ns"), 100'000);
}

TEST_P(PcieFaultsTest, PoisonedPayloadFailsTheMessageAtOnce) {
  const ProgramRun run = run_program(
      with(settings("write"), {{"pcie.fault.poisoned", "1"}, {"pcie.completion_timeout", "10ms"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_EQ(run.number("/completions/success"), 0);
  EXPECT_EQ(run.number("/completions/local_protection_error"), 1);
  EXPECT_LT(run.number("/sim/simulated_ns"), 1'000'000);  // nothing waits for a time-out
}

TEST_P(PcieFaultsTest, ARespondersReadErrorIsRemoteOperational) {
  // The payload of a READ is fetched at the responder.
  const ProgramRun run = run_program(with(settings("read"), {{"pcie.fault.lost", "1"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_EQ(run.number("/completions/remote_operation_error"), 1);
  EXPECT_EQ(run.number("/completions/success"), 0);
}

TEST_P(PcieFaultsTest, AReadThatCannotBeAnsweredIsToldInItsTurn) {
  // IBTA vol 1, 9.7.5.1: answers in the order of their requests. The two READs before the third get
  // their data, the third its NAK at once, and nothing is sent again.
  const ProgramRun run = run_program(
      with(settings("read"), {{"pcie.fault.poisoned", "3"}, {"workload.iterations", "64"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_EQ(run.number("/completions/success"), 2);
  EXPECT_EQ(run.number("/completions/remote_operation_error"), 1);
  EXPECT_EQ(run.counter("retransmitted_packets"), 0U);
  EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U);
  EXPECT_LT(run.number("/sim/simulated_ns"), 1'000'000);
}

INSTANTIATE_TEST_SUITE_P(Transports, PcieFaultsTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

TEST(PcieFatalTest, AContextThatCannotBeReadIsAFatalDeviceError) {
  for (const std::string purpose : {"qpc", "mpt", "mtt", "wqe"}) {
    Settings settings = with(
        base("write"),
        {{"pcie.fault.purpose", purpose}, {"pcie.fault.lost", "1"}, {"nic.blueflame", "false"}});
    const ProgramRun run = run_program(settings);
    EXPECT_EQ(run.status, 3) << purpose;
    EXPECT_NE(run.error.find("fatal device error: DMA read of " + purpose), std::string::npos)
        << run.error;
    EXPECT_NE(run.error.find("completion time-out"), std::string::npos) << run.error;
  }
}

TEST(PcieBitErrorTest, ReplaysCostTimeAndNothingElse) {
  // 100 Gb/s behind Gen3 x8, so that PCIe limits: elsewhere the messages in flight hide a replay.
  const Settings settings = with(base("write"), {{"workload.msg_size", "65536"},
                                                 {"workload.iterations", "200"},
                                                 {"pcie.gen", "3"},
                                                 {"pcie.lanes", "8"}});
  const ProgramRun clean = run_well(settings);
  const ProgramRun dirty = run_well(with(settings, {{"pcie.bit_error_rate", "1e-6"}}));
  EXPECT_EQ(dirty.number("/completions/success"), clean.number("/completions/success"));
  // 13.1 MB and their headers are read by the sender and written at the receiver: some 110 errors
  // each.
  const double sender = dirty.number("/pcie/0/to_device/replays");
  const double receiver = dirty.number("/pcie/1/to_host/replays");
  EXPECT_GT(sender, 80);
  EXPECT_GT(receiver, 80);
  EXPECT_EQ(clean.number("/pcie/0/to_device/replays"), 0);
  // A replay costs the way over, the Nak's way back (150 ns each) and the packet again (280 B at
  // 7.4 B/ns). The receiver's link, whose packets have the longer headers, pays for all of its own;
  // the sender's link pays while the other one waits, or hides some.
  const auto duration = [&](const ProgramRun& run) {
    return 200.0 * 65536 * 8 / run.number("/throughput_gbps");
  };
  constexpr double kReplay = 2 * 150 + 280 / 7.4;
  const double longer = duration(dirty) - duration(clean);
  EXPECT_GT(longer, 0.9 * receiver * kReplay);
  EXPECT_LT(longer, 1.02 * (sender + receiver) * kReplay);
}

}  // namespace
}  // namespace rnic::testbench
