// SPDX-License-Identifier: Apache-2.0
// Completions that are lost or poisoned on PCIe end as completion errors of the message they belong
// to, or with the queue pair or completion queue that they are about; nothing is lost silently and
// nothing hangs. Bit errors only cost
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

/// Everything small, so that contexts, tables and WQEs are read again and again.
Settings small_caches() {
  Settings settings;
  for (const std::string cache : {"qpc", "mpt", "mtt", "wqe", "rq_wqe"}) {
    settings.push_back({"nic." + cache + "_cache.entries", "4"});
    settings.push_back({"nic." + cache + "_cache.ways", "4"});
  }
  settings.push_back({"nic.cqc_cache.entries", "1"});
  settings.push_back({"nic.cqc_cache.ways", "1"});
  settings.push_back({"nic.blueflame", "false"});
  return settings;
}

/// What the device cannot read of its host's memory ends what it was for, and nothing else; no run
/// ends by it.
class PcieStructureFault : public PcieFaultsTest {
 protected:
  ProgramRun run(const std::string& op, const std::string& purpose, const Settings& fault) const {
    const ProgramRun result =
        run_program(with(with(with(base(op), {{"transport.protocol", GetParam()},
                                              {"workload.qps", "8"},
                                              {"workload.iterations", "400"},
                                              {"pcie.fault.purpose", purpose}}),
                              small_caches()),
                         fault));
    EXPECT_EQ(result.status, 0) << op << " " << purpose << ": " << result.error;
    return result;
  }
};

TEST_P(PcieStructureFault, AWqeOrAContextEndsItsQueuePair) {
  for (const std::string op : {"write", "send", "read"}) {
    for (const std::string purpose : {"wqe", "qpc"}) {
      for (const std::string how : {"lost", "poisoned"}) {
        SCOPED_TRACE(op + " " + purpose + " " + how);
        const ProgramRun run = this->run(op, purpose, {{"pcie.fault." + how, "3"}});
        if (run.status != 0) continue;
        // The requester's, or the responder's, or one at each end.
        EXPECT_GE(run.counter("event_qp_fatal"), 1U);
        EXPECT_LE(run.counter("event_qp_fatal"), 2U);
        EXPECT_GE(run.number("/completions/wr_flush_error"), 1);
        EXPECT_GE(run.number("/completions/success"), 1) << "of the other seven";
      }
    }
  }
}

TEST_P(PcieStructureFault, ATableEntryEndsTheMessageThatNeedsIt) {
  for (const std::string purpose : {"mpt", "mtt"}) {
    SCOPED_TRACE(purpose);
    const ProgramRun run = this->run("write", purpose, {{"pcie.fault.poisoned", "9"}});
    if (run.status != 0) continue;
    // One of the requester's own, and one at the responder, which cannot carry out a WRITE.
    EXPECT_EQ(run.number("/completions/local_protection_error"), 1);
    EXPECT_EQ(run.number("/completions/remote_operation_error"), 1);
    EXPECT_EQ(run.counter("event_qp_fatal"), 1U) << "the responder's";
    EXPECT_GE(run.number("/completions/success"), 1);
  }
}

TEST_P(PcieStructureFault, ACompletionQueueIsLostWithAllItsQueuePairs) {
  // Both threads' contexts take turns in a cache of one entry.
  const ProgramRun run = this->run("send", "cqc", {{"pcie.fault.poisoned", "1"}});
  if (run.status != 0) return;
  EXPECT_EQ(run.counter("event_cq_err"), 1U);
  EXPECT_EQ(run.counter("event_qp_fatal"), 8U);
}

/// Whoever waits for a completion that cannot come any more ends with its program: a ping-pong
/// whose short queue is full, one that sleeps, a READ at a time, a probe beside a stream.
TEST_P(PcieStructureFault, NoProgramWaitsForALostCompletionQueue) {
  const std::vector<Settings> programs = {
      {{"workload.op", "write"}, {"workload.pattern", "latency"}, {"workload.depth", "1"}},
      {{"workload.op", "send"}, {"workload.pattern", "latency"}, {"workload.completion", "event"}},
      {{"workload.op", "read"}, {"workload.pattern", "latency"}, {"workload.completion", "event"}},
      {{"workload.op", "write"}, {"workload.pattern", "latency"}, {"workload.msg_size", "20000"}},
      {{"workload.op", "write"}, {"workload.probe_size", "8"}, {"workload.probe_interval", "1us"}},
      {{"workload.op", "send"}, {"workload.completion", "event"}}};
  int lost = 0;
  for (const Settings& program : programs) {
    for (const char* which : {"1", "2", "3", "5"}) {
      SCOPED_TRACE(text_of(program) + " " + which);
      const Settings fault{{"transport.protocol", GetParam()},
                           {"pcie.fault.purpose", "cqc"},
                           {"pcie.fault.poisoned", which}};
      const ProgramRun run =
          run_program(with(with(with(base("write"), small_caches()), fault), program));
      EXPECT_EQ(run.status, 0) << run.error;
      if (run.status == 0 && run.counter("event_cq_err") > 0) ++lost;
    }
  }
  EXPECT_GE(lost, 8) << "a third of the runs, or this tests nothing";
}

TEST_P(PcieStructureFault, ARecvOrItsRecordIsToldByANak) {
  for (const std::string purpose : {"rq_wqe", "doorbell_record"}) {
    SCOPED_TRACE(purpose);
    const ProgramRun run = run_program(with(base("send"), {{"transport.protocol", GetParam()},
                                                           {"workload.iterations", "64"},
                                                           {"pcie.fault.purpose", purpose},
                                                           {"pcie.fault.lost", "2"}}));
    ASSERT_EQ(run.status, 0) << run.error;
    EXPECT_EQ(run.counter("event_qp_fatal"), 1U);
    EXPECT_EQ(run.number("/completions/remote_operation_error"), 1);
  }
}

TEST_P(PcieStructureFault, ManyFaultsOfAnyKindDoNotEndTheRun) {
  std::uint64_t faults = 0;
  for (const std::string op : {"write", "send", "read", "write_imm", "atomic_fadd"}) {
    for (const std::string seed : {"1", "2", "3", "4", "5"}) {
      SCOPED_TRACE(op + " " + seed);
      const std::string size = op == "atomic_fadd" ? "8" : "256";
      const ProgramRun run = this->run(op, "any",
                                       {{"sim.seed", seed},
                                        {"workload.msg_size", size},
                                        {"pcie.fault.loss_rate", "0.01"},
                                        {"pcie.fault.poison_rate", "0.02"}});
      if (run.status == 0) faults += run.counter("dma_faults");
    }
  }
  EXPECT_GE(faults, 25U) << "one a run in the mean, or this tests nothing";
}

INSTANTIATE_TEST_SUITE_P(Transports, PcieStructureFault, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

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
