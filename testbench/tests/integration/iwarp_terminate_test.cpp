// SPDX-License-Identifier: Apache-2.0
// A request that is refused takes nothing away from those before it, on every wire: NAK and
// terminate message come behind the answers that are owed.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;

constexpr std::uint32_t kReads = 9;
constexpr std::uint32_t kBytes = 65536;

/// Nine READs of 64 KiB, which take 47 us of the line, and a tenth request that comes long before
/// they are answered; one more behind it.
void nine_reads_and(const std::string& protocol, WrOpcode tenth, std::uint64_t offset,
                    std::uint32_t rkey_change) {
  VerbsRig rig(Settings{{"transport.protocol", protocol}});
  rig.run([&] {
    rig.connect();
    constexpr auto kAccess = kAllAccess | protocol::kAccessRemoteAtomic;
    RigBuffer here = rig.a.buffer(std::uint64_t{kReads} * kBytes, kAccess);
    RigBuffer there = rig.b.buffer(std::uint64_t{kReads} * kBytes, kAccess);
    std::vector<std::uint8_t> data(kReads * kBytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7 / 3);
    rig.b.fill(there.address, data);
    for (std::uint32_t i = 0; i < kReads; ++i) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaRead, here.address + i * kBytes, here.region.lkey, kBytes,
                           there.address + i * kBytes, there.region.rkey),
                host::Status::kOk);
    }
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.a.post(tenth, here.address, here.region.lkey, 4096, there.address + offset,
                           there.region.rkey ^ rkey_change),
                host::Status::kOk);
    }
    for (std::uint64_t i = 1; i <= kReads + 2; ++i) {
      const host::verbs::Wc wc = rig.a.await_send();
      EXPECT_EQ(wc.status, i <= kReads       ? WcStatus::kSuccess
                           : i == kReads + 1 ? WcStatus::kRemoteAccessError
                                             : WcStatus::kWrFlushError)
          << protocol << " request " << i;
    }
    EXPECT_EQ(rig.a.bytes_at(here.address, data.size()), data) << protocol;
    rig.settle();
    EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kError);
  });
}

class Refused : public ::testing::TestWithParam<std::string> {};

TEST_P(Refused, AReadWithAWrongKeyComesBehindNineAnswers) {
  nine_reads_and(GetParam(), WrOpcode::kRdmaRead, 0, 0x100);
}
TEST_P(Refused, AReadOutOfBoundsComesBehindNineAnswers) {
  nine_reads_and(GetParam(), WrOpcode::kRdmaRead, std::uint64_t{kReads} * kBytes - 100, 0);
}
TEST_P(Refused, AWriteWithAWrongKeyComesBehindNineAnswers) {
  nine_reads_and(GetParam(), WrOpcode::kRdmaWrite, 0, 0x100);
}

INSTANTIATE_TEST_SUITE_P(Wires, Refused, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

// Also where TCP's window holds the answers back, so that they need acknowledgements to go on.
TEST(RefusedOverTcp, BehindAnswersThatWaitForTheWindow) {
  const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                   {"workload.op", "read"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.msg_size", "64KiB"},
                                   {"workload.depth", "16"},
                                   {"workload.iterations", "20"},
                                   {"sim.warmup", "0"},
                                   {"workload.signal_every", "1"},
                                   {"tcp.window", "20000"},
                                   {"workload.mistake", "remote_bounds"},
                                   {"workload.mistake_at", "10"}});
  EXPECT_EQ(run.number("/completions/success"), 9);
  EXPECT_EQ(run.number("/completions/remote_access_error"), 1);
  EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U);
}

// A loss among the answers is repaired before the end.
TEST(RefusedOverTcp, BehindAnswersThatAreLost) {
  for (const char* target : {"response:3", "response:20,response:21", "ack:4"}) {
    const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                     {"workload.op", "read"},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.msg_size", "64KiB"},
                                     {"workload.depth", "16"},
                                     {"workload.iterations", "20"},
                                     {"sim.warmup", "0"},
                                     {"workload.signal_every", "1"},
                                     {"tcp.window", "64KiB"},
                                     {"workload.mistake", "remote_key"},
                                     {"workload.mistake_at", "10"},
                                     {"link.drop_list", target}});
    EXPECT_EQ(run.number("/completions/success"), 9) << target;
    EXPECT_EQ(run.number("/completions/remote_access_error"), 1) << target;
  }
}

}  // namespace
}  // namespace rnic::testbench
