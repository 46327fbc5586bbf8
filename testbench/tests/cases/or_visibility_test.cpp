// SPDX-License-Identifier: Apache-2.0
// Public cases OR-03 and OR-06: what a flag says of the data before it, and which read pushes
// writes into the memory of a device beside the NIC.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;

// OR-03 --------------------------------------------------------------------------------------

/// One packet whose halves lie in two pages, and a WRITE of a flag behind it. The root complex
/// looks the first page up for a microsecond; it knows the second one and the flag's.
class FlagBehindData : public ::testing::TestWithParam<std::tuple<std::uint32_t, bool>> {};

TEST_P(FlagBehindData, OR03_AFlagIsNeverSeenBeforeTheDataWhereOrderIsStrict) {
  const auto& [bytes, relaxed] = GetParam();
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"pcie.detail", "tlp"},
                {"pcie.mps", "256"},
                {"pcie.relaxed_ordering", relaxed ? "true" : "false"},
                {"iommu.enabled", "true"},
                {"iommu.walk_latency", "1us"}});
  rig.run([&, bytes = bytes, relaxed = relaxed] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(3 * kPage);
    const std::uint64_t data = theirs.address + kPage - bytes / 2;
    const std::uint64_t flag = theirs.address + 2 * kPage;
    rig.a.fill(mine.address, Bytes(bytes, 0xE7));
    const auto write = [&](std::uint64_t target, std::uint32_t count) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, count, target,
                           theirs.region.rkey),
                host::Status::kOk);
    };
    // The translations of the second page, behind the data, and of the flag's.
    for (const std::uint64_t known : {theirs.address + 2 * kPage - 64, flag + 64}) {
      write(known, 8);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    rig.settle();
    write(data, bytes);
    write(flag, 1);
    rig.a.core.sync();
    std::uint32_t unordered = 0;
    while (rig.b.bytes_at(flag, 1) == Bytes(1, 0)) {
      const Bytes seen = rig.b.bytes_at(data, bytes);
      const auto first = std::count(seen.begin(), seen.begin() + bytes / 2, 0xE7);
      const auto second = std::count(seen.begin() + bytes / 2, seen.end(), 0xE7);
      unordered += second > 0 && first < bytes / 2 ? 1U : 0U;
      rig.settle(nanoseconds(4));
    }
    const bool complete = rig.b.bytes_at(data, bytes) == Bytes(bytes, 0xE7);
    EXPECT_EQ(complete, !relaxed);
    EXPECT_EQ(unordered > 0, relaxed) << "a later line before an earlier one";
    for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle();
    EXPECT_EQ(rig.b.bytes_at(data, bytes), Bytes(bytes, 0xE7));
  });
}

INSTANTIATE_TEST_SUITE_P(CaseOR, FlagBehindData,
                         ::testing::Combine(::testing::Values(256U, 1024U, 4096U),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "_relaxed" : "_strict");
                         });

// OR-06 --------------------------------------------------------------------------------------

/// What is visible of data in the memory of a device beside the NIC, which shows what is written to
/// it 5 us later.
struct Flushed {
  bool when_acknowledged = false;  ///< to the CPU, which takes another way
  bool when_read = false;          ///< when the NIC's READ of another word of the BAR is over
  double read_us = 0;              ///< time of that READ
};

enum class Between { kNothing, kStrictWrite };

Flushed flush_peer(const char* relaxed, Between between) {
  constexpr protocol::AccessFlags kCounted = kAllAccess | protocol::kAccessRemoteAtomic;
  Flushed out;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"pcie.relaxed_ordering", relaxed},
                {"workload.remote_memory", "peer"},  // there is one beside each NIC
                {"peer.write_latency", "5us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const std::uint64_t bar = rig.b.node.host.map_peer(kPage);
    const auto region = rig.b.verbs().reg_mr(rig.b.core, rig.b.pd, bar, kPage, kCounted).region;
    rig.a.fill(mine.address, Bytes(64, 0x3D));
    const auto ask = [&](WrOpcode opcode, std::uint64_t offset, std::uint32_t bytes) {
      const protocol::Sge sge{mine.address + (opcode == WrOpcode::kRdmaWrite ? 0 : 64), bytes,
                              mine.region.lkey};
      SendWr wr;
      wr.opcode = opcode;
      wr.flags = SendFlags::kSignaled;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.remote_addr = bar + offset;
      wr.rkey = region.rkey;
      wr.compare_add = 1;
      ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    };
    const auto visible = [&] { return rig.b.bytes_at(bar, 64) == Bytes(64, 0x3D); };
    ask(WrOpcode::kRdmaRead, 1024, 8);  // warms the caches
    rig.settle();
    ask(WrOpcode::kRdmaWrite, 0, 64);
    out.when_acknowledged = visible();
    if (between == Between::kStrictWrite) ask(WrOpcode::kAtomicFetchAndAdd, 2048, 8);
    const Time start = rig.a.core.now();
    ask(WrOpcode::kRdmaRead, 1024, 8);
    out.read_us = to_us(rig.a.core.now() - start);
    out.when_read = visible();
    rig.settle();
    EXPECT_TRUE(visible());
  });
  return out;
}

TEST(CaseOR, OR06_AReadOfTheSameDevicePushesStrictWritesToIt) {
  const Flushed strict = flush_peer("false", Between::kNothing);
  EXPECT_FALSE(strict.when_acknowledged) << "the CPU's way gives no such guarantee";
  EXPECT_TRUE(strict.when_read);
  EXPECT_GT(strict.read_us, 4) << "it waits for the peer: 5 us since the WRITE was taken";
}

TEST(CaseOR, OR06_AReadOfTheSameDeviceMayPassRelaxedWritesToIt) {
  const Flushed relaxed = flush_peer("true", Between::kNothing);
  EXPECT_FALSE(relaxed.when_acknowledged);
  EXPECT_FALSE(relaxed.when_read);
  EXPECT_LT(relaxed.read_us, 4);
}

/// The write of an atomic is strictly ordered, whatever payload is: it passes nothing, and the READ
/// pushes it.
TEST(CaseOR, OR06_AStrictWriteToTheSameDeviceInBetweenPushesThem) {
  EXPECT_TRUE(flush_peer("true", Between::kStrictWrite).when_read);
}

}  // namespace
}  // namespace rnic::testbench
