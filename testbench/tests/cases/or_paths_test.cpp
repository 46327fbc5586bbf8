// SPDX-License-Identifier: Apache-2.0
// Public case OR-02: messages with and without immediate data over a network of several paths whose
// routing is adaptive for those without.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kBytes = 1 << 20;
constexpr std::uint32_t kPaths = 4;

/// The receiver of a WRITE does not mind order, and the sender knows that paths are of different
/// length: three times 300 ns are less than three packets of the line, and 32 are never passed.
const Settings kSprayed = {{"transport.protocol", "rocev2"},
                           {"transport.mtu", "4096"},
                           {"transport.recovery", "selective_repeat"},
                           {"transport.reorder_tolerance", "32"},
                           {"link.paths", std::to_string(kPaths)},
                           {"link.path_skew", "300ns"},
                           {"link.path_choice", "adaptive"}};

/// 256 packets of 4096 + 82 B over all paths together: 100 Gb/s.
constexpr double kAllPathsUs = 256 * 4178 * 8 / 100e3;
/// What comes on top, however many paths there are: posting, both devices and memories, the cable
/// and the completion.
constexpr double kSetUpUs = 6;
/// The longest path is 300 ns longer than the one before it.
constexpr double kSkewUs = 0.9;

struct Notified {
  double us = 0;  ///< from the post to the completion at the receiver
  std::uint64_t overtaken = 0;
  std::uint64_t resent = 0;
};

/// One megabyte and its notification: a WRITE with immediate, or a WRITE and an empty one.
Notified one_megabyte(bool separate, const Settings& more = {}) {
  Notified out;
  VerbsRig rig(with(kSprayed, more));
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(kBytes);
    Bytes data(kBytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 31 >> 5);
    rig.a.fill(mine.address, data);
    ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 0), host::Status::kOk);
    rig.settle();
    const Time start = sim_now();
    if (separate) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes,
                           theirs.address, theirs.region.rkey),
                host::Status::kOk);
    }
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey,
                         separate ? 0 : kBytes, theirs.address, theirs.region.rkey, 77),
              host::Status::kOk);
    rig.a.core.sync();
    const host::verbs::Wc wc = rig.b.await_recv();
    out.us = to_us(sim_now() - start);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kBytes), data) << "never before the last byte";
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.imm_data, 77U);
    EXPECT_EQ(wc.byte_len, separate ? 0U : kBytes);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    out.overtaken = rig.b.node.nic.transport().counters().out_of_sequence;
    out.resent = rig.a.node.nic.transport().counters().retransmitted_packets;
  });
  return out;
}

TEST(CaseOR, OR02_AMessageWithImmediateKeepsToOnePath) {
  const Notified imm = one_megabyte(false);
  EXPECT_GT(imm.us, kAllPathsUs * kPaths);
  EXPECT_LT(imm.us, kAllPathsUs * kPaths + kSetUpUs);
  EXPECT_EQ(imm.overtaken, 0U);
}

TEST(CaseOR, OR02_WhatAnEmptyImmediateFollowsIsSprayed) {
  const Notified apart = one_megabyte(true);
  EXPECT_GT(apart.us, kAllPathsUs);
  EXPECT_LT(apart.us, kAllPathsUs + kSkewUs + kSetUpUs);
  EXPECT_GT(apart.overtaken, 0U) << "paths are of different length";
  EXPECT_EQ(apart.resent, 0U) << "nothing was lost";
}

/// Where every packet is sprayed the immediate comes early as often as not, and waits.
TEST(CaseOR, OR02_AnImmediateThatOvertakesItsDataWaitsForThem) {
  const Notified all = one_megabyte(false, {{"link.path_choice", "spray"}});
  EXPECT_GT(all.overtaken, 0U);
  EXPECT_LT(all.us, kAllPathsUs + kSkewUs + kSetUpUs);
}

/// The same of a stream, as a workload has it: the ratio is the number of paths.
TEST(CaseOR, OR02_StreamsWithAndWithoutImmediate) {
  const auto gbps = [](const char* op, const char* paths) {
    return run_well(with(kSprayed, {{"workload.op", op},
                                    {"workload.pattern", "bandwidth"},
                                    {"workload.msg_size", "1MiB"},
                                    {"workload.depth", "8"},
                                    {"link.paths", paths},
                                    {"sim.payload", "none"},
                                    {"workload.iterations", "64"},
                                    {"sim.warmup", "8"}}))
        .number("/throughput_gbps");
  };
  for (const char* paths : {"2", "4", "8"}) {
    const double ratio = gbps("write", paths) / gbps("write_imm", paths);
    EXPECT_NEAR(ratio, std::stod(paths), 0.05 * std::stod(paths)) << paths;
  }
}

}  // namespace
}  // namespace rnic::testbench
