// SPDX-License-Identifier: Apache-2.0
// Compare-and-swap and fetch-and-add from end to end: values, replays, who waits for whom.
#include "protocol/atomic.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;

constexpr protocol::AccessFlags kAtomicAccess = kAllAccess | protocol::kAccessRemoteAtomic;

class AtomicTest : public ::testing::TestWithParam<std::string> {
 protected:
  Settings settings(const Settings& more = {}) const {
    return with({{"transport.protocol", GetParam()}}, more);
  }
  Settings workload(const std::string& op, const std::string& pattern) const {
    return settings({{"workload.op", op},
                     {"workload.pattern", pattern},
                     {"workload.iterations", "200"},
                     {"sim.warmup", "20"}});
  }
};

SendWr fetch_add(const RigBuffer& result, const RigBuffer& target, std::uint64_t offset,
                 std::uint64_t add, protocol::Sge& sge) {
  sge = {result.address, protocol::kAtomicBytes, result.region.lkey};
  SendWr wr;
  wr.opcode = WrOpcode::kAtomicFetchAndAdd;
  wr.flags = SendFlags::kSignaled;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.remote_addr = target.address + offset;
  wr.rkey = target.region.rkey;
  wr.compare_add = add;
  return wr;
}

std::uint64_t word_at(RigSide& side, std::uint64_t address) {
  return protocol::load_operand(side.bytes_at(address, protocol::kAtomicBytes).data());
}

TEST_P(AtomicTest, TheOriginalComesBackAndTheSumStays) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    RigBuffer result = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096, kAtomicAccess);
    rig.b.fill(target.address + 64, {0x10, 0, 0, 0, 0, 0, 0, 1});
    constexpr std::uint64_t kBefore = 0x0100'0000'0000'0010;
    protocol::Sge sge;
    SendWr wr = fetch_add(result, target, 64, 5, sge);
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    const auto added = rig.a.await_send();
    EXPECT_EQ(added.status, protocol::WcStatus::kSuccess);
    EXPECT_EQ(added.opcode, protocol::WcOpcode::kFetchAdd);
    EXPECT_EQ(added.byte_len, 8U);
    EXPECT_EQ(word_at(rig.a, result.address), kBefore);
    wr.opcode = WrOpcode::kAtomicCmpAndSwp;
    wr.compare_add = kBefore;  // no longer there
    wr.swap = 99;
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().opcode, protocol::WcOpcode::kCompSwap);
    EXPECT_EQ(word_at(rig.a, result.address), kBefore + 5);
    EXPECT_EQ(word_at(rig.b, target.address + 64), kBefore + 5);
    wr.compare_add = kBefore + 5;
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    rig.settle(microseconds(2));
    EXPECT_EQ(word_at(rig.a, result.address), kBefore + 5);
    EXPECT_EQ(word_at(rig.b, target.address + 64), 99U);
  });
}

TEST_P(AtomicTest, WhatFollowsAnAtomicIsExecutedAfterIt) {
  // The WRITE replaces what the fetch-and-add left, the READ sees the WRITE.
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096, kAtomicAccess);
    rig.a.fill(mine.address + 128, {7, 0, 0, 0, 0, 0, 0, 0});
    std::vector<protocol::Sge> sges(3);
    std::vector<SendWr> wrs(3);
    wrs[0] = fetch_add(mine, target, 0, 1, sges[0]);
    wrs[1] = wrs[2] = wrs[0];
    sges[1] = {mine.address + 128, 8, mine.region.lkey};
    sges[2] = {mine.address + 256, 8, mine.region.lkey};
    wrs[1].opcode = WrOpcode::kRdmaWrite;
    wrs[1].sg_list = &sges[1];
    wrs[2].opcode = WrOpcode::kRdmaRead;
    wrs[2].sg_list = &sges[2];
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, wrs.data(), 3), host::Status::kOk);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    EXPECT_EQ(word_at(rig.a, mine.address), 0U);
    EXPECT_EQ(word_at(rig.a, mine.address + 256), 7U);
    EXPECT_EQ(word_at(rig.b, target.address), 7U);
  });
}

TEST_P(AtomicTest, StagesSumToTheLatency) {
  for (const std::string op : {"atomic_cas", "atomic_fadd"}) {
    for (const std::string pattern : {"latency", "bandwidth"}) {
      const ProgramRun run = run_well(workload(op, pattern));
      ASSERT_EQ(run.status, 0);
      double sum = 0;
      for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
      const double mean = run.number("/latency_ns/mean");
      EXPECT_NEAR(sum, mean, mean / 1000);
      for (const char* stage : {"remote_translation", "responder_read", "placement"}) {
        EXPECT_GT(run.stage(stage), 0) << stage;
      }
      EXPECT_EQ(run.stage("payload_fetch"), 0);
    }
  }
}

TEST_P(AtomicTest, EveryOperationOnceWhateverIsLost) {
  // The program compares every word with the number of operations on it, and fails otherwise.
  for (const std::string op : {"atomic_cas", "atomic_fadd"}) {
    const ProgramRun run =
        run_well(with(workload(op, "bandwidth"), {{"workload.qps", "4"},
                                                  {"workload.depth", "16"},
                                                  {"workload.access", "random"},
                                                  {"workload.iterations", "1000"},
                                                  {"link.loss_rate", "0.01"}}));
    ASSERT_EQ(run.status, 0);
    EXPECT_GT(run.counter("retransmitted_packets"), 0U);
  }
}

TEST_P(AtomicTest, AnotherSizeThanEightBytesIsRefused) {
  const ProgramRun run =
      run_program(settings({{"workload.op", "atomic_fadd"}, {"workload.msg_size", "16"}}));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("workload.msg_size=16"), std::string::npos) << run.error;
}

INSTANTIATE_TEST_SUITE_P(Transports, AtomicTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
