// SPDX-License-Identifier: Apache-2.0
// A queue pair that is reset while its rings are being read begins a new life: nothing of the old
// one is executed, completed or counted in it.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QpAttr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Mask = protocol::QpAttrMask;

constexpr std::uint32_t kOld = 4096;  // bytes of a message of the first life
constexpr std::uint32_t kNew = 64;

class ResetUnderLoad : public ::testing::TestWithParam<std::string> {
 protected:
  /// Reads of one WQE, so that one is under way at almost any time, and commands that take no
  /// longer than such a read.
  explicit ResetUnderLoad(const Settings& more = {})
      : rig(with({{"transport.protocol", GetParam()},
                  {"transport.ack_timeout", "4"},
                  {"nic.blueflame", "false"},
                  {"nic.wqe_prefetch", "1"},
                  {"nic.command_latency", "100ns"}},
                 more)) {}

  static void reset(RigSide& side) {
    QpAttr attr;
    attr.qp_state = QpState::kReset;
    ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, Mask::kState), Status::kOk);
  }

  static std::vector<std::uint8_t> pattern(std::uint32_t round) {
    return std::vector<std::uint8_t>(kNew, static_cast<std::uint8_t>(0xA0 + round));
  }

  /// `posted` messages are on their way when first the sender and then the receiver is reset.
  void lose(std::uint32_t posted) {
    for (std::uint32_t i = 0; i < posted; ++i) {
      ASSERT_EQ(rig.b.post_recv(old_to.address, old_to.region.lkey, kOld), Status::kOk);
    }
    for (std::uint32_t i = 0; i < posted; ++i) {
      ASSERT_EQ(rig.a.post(WrOpcode::kSend, old_from.address, old_from.region.lkey, kOld),
                Status::kOk);
    }
    rig.a.core.sync();
    under_way += rig.a.device_qp().sq_fetches + (rig.b.device_qp().own_rq.fetching ? 1 : 0);
    reset(rig.a);
    reset(rig.b);
  }

  void begin_anew() {
    rig.a.to_init(*rig.a.qp);
    rig.b.to_init(*rig.b.qp);
    rig.join(*rig.a.qp, *rig.b.qp);
  }

  /// One message, which has the buffer, the length and the bytes of the second life.
  void send_one(std::uint32_t round) {
    rig.a.fill(new_from.address, pattern(round));
    ASSERT_EQ(rig.b.post_recv(new_to.address, new_to.region.lkey, kNew), Status::kOk);
    const std::uint64_t recv_id = rig.b.wr_ids;
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, new_from.address, new_from.region.lkey, kNew),
              Status::kOk);
    const Wc sent = rig.a.await_send();
    EXPECT_EQ(sent.status, WcStatus::kSuccess);
    EXPECT_EQ(sent.wr_id, rig.a.wr_ids);
    const Wc received = rig.b.await_recv();
    EXPECT_EQ(received.status, WcStatus::kSuccess);
    EXPECT_EQ(received.wr_id, recv_id);
    EXPECT_EQ(received.byte_len, kNew);
    EXPECT_EQ(rig.b.bytes_at(new_to.address, kNew), pattern(round));
    rig.settle(microseconds(200));
    Wc none;
    EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 1, &none), 0U);
    EXPECT_EQ(rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &none), 0U);
  }

  VerbsRig rig;
  RigBuffer old_from, old_to, new_from, new_to;
  std::uint32_t under_way = 0;  ///< reads of a ring when the command was about to be given
};

TEST_P(ResetUnderLoad, ForgetsWhatIsBeingRead) {
  rig.run([&] {
    rig.connect();
    old_from = rig.a.buffer(kOld);
    new_from = rig.a.buffer(kNew);
    old_to = rig.b.buffer(kOld);
    new_to = rig.b.buffer(kNew);
    rig.settle();
    std::uint32_t round = 0;
    for (const std::uint32_t posted : {1U, 2U, 5U, 9U, 17U, 31U}) {
      SCOPED_TRACE(posted);
      lose(posted);
      begin_anew();
      send_one(++round);
    }
    EXPECT_GE(under_way, 6U) << "reads must be under way, or this tests nothing";
  });
}

class ResetWithSlowMemory : public ResetUnderLoad {
 protected:
  ResetWithSlowMemory()
      : ResetUnderLoad({{"memory.read_latency", "20us"}, {"transport.ack_timeout", "8"}}) {}
};

/// Packets whose payload is being read when their queue pair is reset stay in the device. A read of
/// memory takes 20 us: that of the WQE is over when the command has been read, that of the payload,
/// which comes behind it, is not.
TEST_P(ResetWithSlowMemory, KeepsPacketsThatHaveNotLeft) {
  rig.run([&] {
    rig.connect();
    old_from = rig.a.buffer(kOld);
    old_to = rig.b.buffer(kOld);
    const auto write = [&] {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, old_from.address, old_from.region.lkey, kOld,
                           old_to.address, old_to.region.rkey),
                Status::kOk);
    };
    write();  // what the caches need is there from now on
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle(microseconds(500));
    const std::uint64_t before = rig.a.port().sent().data_packets;
    write();
    reset(rig.a);
    EXPECT_GT(rig.a.node.nic.dma.outstanding(), 0U) << "or this tests nothing";
    rig.settle(microseconds(500));
    EXPECT_EQ(rig.a.port().sent().data_packets, before);
    EXPECT_EQ(rig.a.node.nic.dma.outstanding(), 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, ResetUnderLoad, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Transports, ResetWithSlowMemory, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
