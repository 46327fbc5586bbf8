// SPDX-License-Identifier: Apache-2.0
// How the driver tells the device of posted work: by a doorbell, after which the WQE is fetched, or
// by writing the WQE itself (BlueFlame).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;

/// A work request, and whether mlx4_post_send writes it to the device: it does when it has set
/// `inl` (rdma-core, providers/mlx4/qp.c), which is the bytes of inline data, or 1 for a READ and
/// for a WRITE without scatter/gather entries.
struct Posted {
  const char* name;
  WrOpcode opcode;
  std::uint32_t bytes;
  std::uint32_t entries;
  std::uint32_t flags;
  bool by_mlx4;
};

constexpr Posted kPosted[] = {
    {"write", WrOpcode::kRdmaWrite, 8, 1, 0, false},
    {"write_inline", WrOpcode::kRdmaWrite, 8, 1, SendFlags::kInline, true},
    {"write_of_nothing", WrOpcode::kRdmaWrite, 0, 0, 0, true},
    {"write_inline_of_no_bytes", WrOpcode::kRdmaWrite, 0, 1, SendFlags::kInline, false},
    {"write_with_imm", WrOpcode::kRdmaWriteWithImm, 8, 1, 0, false},
    {"write_with_imm_inline", WrOpcode::kRdmaWriteWithImm, 8, 1, SendFlags::kInline, true},
    {"write_with_imm_of_nothing", WrOpcode::kRdmaWriteWithImm, 0, 0, 0, true},
    {"send", WrOpcode::kSend, 8, 1, 0, false},
    {"send_inline", WrOpcode::kSend, 8, 1, SendFlags::kInline, true},
    {"send_of_nothing", WrOpcode::kSend, 0, 0, 0, false},
    {"send_with_imm", WrOpcode::kSendWithImm, 8, 1, 0, false},
    {"read", WrOpcode::kRdmaRead, 8, 1, 0, true},
    {"compare_and_swap", WrOpcode::kAtomicCmpAndSwp, 8, 1, 0, false},
    {"fetch_and_add", WrOpcode::kAtomicFetchAndAdd, 8, 1, 0, false},
};

/// What the driver did for one post, in a run of its own.
struct Told {
  std::uint64_t blueflames = 0;
  std::uint64_t doorbells = 0;
  std::uint64_t wqe_reads = 0;  ///< TLPs of the device that ask for WQEs
};

class PostedAlone : public ::testing::TestWithParam<Posted> {
 protected:
  /// `copies` of the work request in one list.
  static Told post(const Settings& settings, const Posted& posted, std::uint32_t copies = 1) {
    VerbsRig rig(with(Settings{{"transport.protocol", "ib"}}, settings));
    Told told;
    rig.run([&] {
      rig.connect();
      const RigBuffer mine = rig.a.buffer(4096);
      const RigBuffer theirs = rig.b.buffer(4096, kAllAccess | protocol::kAccessRemoteAtomic);
      for (std::uint32_t i = 0; i < copies; ++i) {
        ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 64), host::Status::kOk);
      }
      const protocol::Sge sge{mine.address, posted.bytes, mine.region.lkey};
      SendWr wr;
      wr.opcode = posted.opcode;
      wr.flags = SendFlags::kSignaled | posted.flags;
      wr.sg_list = posted.entries > 0 ? &sge : nullptr;
      wr.num_sge = posted.entries;
      wr.remote_addr = theirs.address;
      wr.rkey = theirs.region.rkey;
      const std::vector<SendWr> list(copies, wr);
      const auto& stats = rig.a.verbs().stats();
      const auto& reads = rig.a.node.pcie.counter(pcie::Direction::kToHost, tlm_ext::Purpose::kWqe);
      const Told before{stats.blueflames, stats.doorbells, reads.tlps};
      ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, list.data(), copies),
                host::Status::kOk);
      for (std::uint32_t i = 0; i < copies; ++i) {
        EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
      }
      told = {stats.blueflames - before.blueflames, stats.doorbells - before.doorbells,
              reads.tlps - before.wqe_reads};
    });
    return told;
  }

  static void expect_told(const Told& told, bool written) {
    EXPECT_EQ(told.blueflames, written ? 1U : 0U);
    EXPECT_EQ(told.doorbells, written ? 0U : 1U);
    EXPECT_EQ(told.wqe_reads > 0, !written);
  }
};

TEST_P(PostedAlone, IsWrittenToTheDevice) { expect_told(post({}, GetParam()), true); }

TEST_P(PostedAlone, IsWrittenAsMlx4Does) {
  expect_told(post({{"nic.blueflame_ops", "inline_and_reads"}}, GetParam()), GetParam().by_mlx4);
}

TEST_P(PostedAlone, IsRungForWithoutBlueFlame) {
  expect_told(
      post({{"nic.blueflame", "false"}, {"nic.blueflame_ops", "inline_and_reads"}}, GetParam()),
      false);
}

TEST_P(PostedAlone, IsRungForInAList) {
  expect_told(post({{"nic.blueflame_ops", "inline_and_reads"}}, GetParam(), 2), false);
}

INSTANTIATE_TEST_SUITE_P(Operations, PostedAlone, ::testing::ValuesIn(kPosted),
                         [](const auto& test) { return std::string(test.param.name); });

/// Rate of one queue pair whose core is the limit, as the time between two posts in ns.
double post_interval(const Settings& settings) {
  const Settings stream = {{"workload.op", "write"},        {"workload.pattern", "bandwidth"},
                           {"workload.msg_size", "8"},      {"workload.inline_max", "0"},
                           {"workload.depth", "64"},        {"workload.signal_every", "16"},
                           {"workload.iterations", "4000"}, {"sim.warmup", "1000"},
                           {"sim.payload", "none"},         {"cpu.post_cost", "200ns"}};
  return 1e3 / run_well(with(stream, settings)).number("/message_rate_mops");
}

TEST(BlueFlameStall, IsPaidWhereAWqeIsWritten) {
  // A WRITE that is not inline: written to the device it takes the core 100 ns longer, rung for it
  // does not; cpu.doorbell_stall is paid by both.
  for (const char* ops : {"all", "inline_and_reads"}) {
    SCOPED_TRACE(ops);
    const Settings base = {{"nic.blueflame_ops", ops}};
    const double free = post_interval(base);
    const double extra = post_interval(with(base, {{"cpu.blueflame_stall", "100ns"}})) - free;
    EXPECT_NEAR(extra, std::string(ops) == "all" ? 100 : 0, 1);
    EXPECT_NEAR(post_interval(with(base, {{"cpu.doorbell_stall", "100ns"}})) - free, 100, 1);
  }
}

}  // namespace
}  // namespace rnic::testbench
