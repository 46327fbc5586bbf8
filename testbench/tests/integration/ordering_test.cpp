// SPDX-License-Identifier: Apache-2.0
// What a queue pair's operations may overtake, and what a fence holds back (IBTA vol 1, 9.5 and
// 10.8.3.3; RFC 5040, 5.5).
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kLong = 1U << 20;

class OrderingTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Last byte that a READ of 1 MiB brings when a WRITE of that byte is posted behind it.
  std::uint8_t read_then_write(std::uint32_t flags) {
    VerbsRig rig({{"transport.protocol", GetParam()}});
    std::uint8_t last = 0;
    rig.run([&] {
      rig.connect();
      RigBuffer sink = rig.a.buffer(kLong);
      RigBuffer source = rig.a.buffer(4096);
      RigBuffer target = rig.b.buffer(kLong);
      rig.b.fill(target.address, Bytes(kLong, 1));
      rig.a.fill(source.address, Bytes(1, 2));
      const protocol::Sge into{sink.address, kLong, sink.region.lkey};
      const protocol::Sge from{source.address, 1, source.region.lkey};
      std::vector<SendWr> wrs(2);
      wrs[0].opcode = WrOpcode::kRdmaRead;
      wrs[0].sg_list = &into;
      wrs[1].opcode = WrOpcode::kRdmaWrite;
      wrs[1].sg_list = &from;
      wrs[0].num_sge = wrs[1].num_sge = 1;
      wrs[0].remote_addr = target.address;
      wrs[1].remote_addr = target.address + kLong - 1;
      wrs[0].rkey = wrs[1].rkey = target.region.rkey;
      wrs[1].flags = SendFlags::kSignaled | flags;
      EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, wrs.data(), 2), host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
      last = rig.a.bytes_at(sink.address + kLong - 1, 1)[0];
      EXPECT_EQ(rig.a.bytes_at(sink.address, 1)[0], 1);
      EXPECT_EQ(rig.b.bytes_at(target.address + kLong - 1, 1)[0], 2);
    });
    return last;
  }
};

TEST_P(OrderingTest, AWriteOvertakesAReadUnlessFenced) {
  // 1 MiB takes 84 us at 100 Gb/s; the WRITE is there after one.
  EXPECT_EQ(read_then_write(0), 2);
}

TEST_P(OrderingTest, AFenceWaitsForReads) { EXPECT_EQ(read_then_write(SendFlags::kFence), 1); }

TEST_P(OrderingTest, AReadSeesTheWriteBeforeIt) {
  VerbsRig rig({{"transport.protocol", GetParam()}});
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(kLong);
    RigBuffer sink = rig.a.buffer(kLong);
    RigBuffer target = rig.b.buffer(kLong);
    rig.a.fill(mine.address, Bytes(kLong, 9));
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kLong,
                         target.address, target.region.rkey),
              host::Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaRead, sink.address, sink.region.lkey, kLong, target.address,
                         target.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().opcode, protocol::WcOpcode::kRdmaWrite);
    EXPECT_EQ(rig.a.await_send().opcode, protocol::WcOpcode::kRdmaRead);
    EXPECT_EQ(rig.a.bytes_at(sink.address, kLong), Bytes(kLong, 9));
  });
}

/// Completions of four WRITEs of which the last alone asks for one.
std::vector<std::uint64_t> completions_of_four(VerbsRig& rig, bool all_signaled) {
  std::vector<std::uint64_t> ids;
  rig.run([&] {
    for (RigSide* side : {&rig.a, &rig.b}) {
      side->create();
      host::verbs::QpInitAttr attr = RigSide::qp_attr();
      attr.sq_sig_all = all_signaled;
      side->qp = side->make_qp(attr);
    }
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
    rig.b.connect(rig.a.qp->qpn, path_between(1, 0), rig.config().transport);
    rig.settle();
    RigBuffer mine = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096);
    const protocol::Sge sge{mine.address, 8, mine.region.lkey};
    std::vector<SendWr> wrs(4);
    for (std::size_t i = 0; i < wrs.size(); ++i) {
      wrs[i].wr_id = 100 + i;
      wrs[i].opcode = WrOpcode::kRdmaWrite;
      wrs[i].sg_list = &sge;
      wrs[i].num_sge = 1;
      wrs[i].remote_addr = target.address;
      wrs[i].rkey = target.region.rkey;
    }
    wrs[3].flags = SendFlags::kSignaled;
    EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, wrs.data(), 4), host::Status::kOk);
    rig.settle(microseconds(50));
    host::verbs::Wc wc;
    while (rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 1, &wc) > 0) ids.push_back(wc.wr_id);
  });
  return ids;
}

TEST_P(OrderingTest, UnsignalledWorkCompletesSilently) {
  VerbsRig rig({{"transport.protocol", GetParam()}});
  EXPECT_EQ(completions_of_four(rig, false), std::vector<std::uint64_t>{103});
}

TEST_P(OrderingTest, SqSigAllCompletesEverything) {
  VerbsRig rig({{"transport.protocol", GetParam()}});
  EXPECT_EQ(completions_of_four(rig, true), (std::vector<std::uint64_t>{100, 101, 102, 103}));
}

INSTANTIATE_TEST_SUITE_P(Transports, OrderingTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
