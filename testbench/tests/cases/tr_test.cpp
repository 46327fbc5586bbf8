// SPDX-License-Identifier: Apache-2.0
// Public cases of theme TR: unreliable datagram and unreliable connection.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::QpType;
using protocol::WcStatus;

host::Status send_datagram(VerbsRig& rig, const RigBuffer& from, std::uint32_t bytes) {
  const protocol::Sge sge{from.address, bytes, from.region.lkey};
  SendWr wr;
  wr.opcode = WrOpcode::kSend;
  wr.flags = SendFlags::kSignaled;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.ah = rig.a_to_b;
  wr.remote_qpn = rig.b.qp->qpn;
  wr.remote_qkey = kRigQkey;
  return rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1);
}

/// A RECV of 256 B has room for 256 - 40 = 216 B of a datagram.
void recv_of_256(const std::string& long_message) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"nic.long_message", long_message}});
  rig.run([&] {
    rig.connect(QpType::kUd);
    RigBuffer from = rig.a.buffer(4096);
    RigBuffer to = rig.b.buffer(4096);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(rig.b.post_recv(to.address, to.region.lkey, 256), host::Status::kOk);
    }
    for (const std::uint32_t bytes : {216U, 217U, 100U}) {
      ASSERT_EQ(send_datagram(rig, from, bytes), host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess) << bytes;
    }
    host::verbs::Wc wc = rig.b.await_recv();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, 256U);
    wc = rig.b.await_recv();
    if (long_message == "complete") {
      EXPECT_EQ(wc.status, WcStatus::kLocalLengthError);
      wc = rig.b.await_recv();
    }
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, 140U);  // the next one, not the long one
    EXPECT_EQ(rig.a.device_qp().state, QpState::kRts);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kRts);
  });
}

TEST(CaseTR, TR03_DatagramLongerThanItsRecv) { recv_of_256("drop"); }
TEST(CaseTR, TR03_DatagramLongerThanItsRecvVendor) { recv_of_256("complete"); }

// TR-04 --------------------------------------------------------------------------------------

/// A message of eight packets of which the third is overtaken by the fourth, and one behind it.
/// Completions at the receiver, by immediate.
std::vector<std::uint32_t> reordered(QpType type, WrOpcode opcode) {
  std::vector<std::uint32_t> arrived;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"link.reorder_list", "3"},
                {"link.reorder_delay", "500ns"}});  // a packet of 4 KiB takes 334 ns
  rig.run([&] {
    constexpr std::uint32_t kBytes = 32 << 10;
    rig.connect(type);
    RigBuffer from = rig.a.buffer(kBytes);
    RigBuffer to = rig.b.buffer(2 * kBytes);
    rig.a.fill(from.address, std::vector<std::uint8_t>(kBytes, 0x2D));
    for (std::uint32_t i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.b.post_recv(to.address + i * kBytes, to.region.lkey, kBytes),
                host::Status::kOk);
    }
    rig.settle();
    for (std::uint32_t i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.a.post(opcode, from.address, from.region.lkey, kBytes, to.address + i * kBytes,
                           to.region.rkey, 7 + i),
                host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    rig.settle(microseconds(100));
    host::verbs::Wc wc;
    while (rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &wc) > 0) {
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.byte_len, kBytes);
      arrived.push_back(wc.imm_data);
      // A RECV that a broken message had begun to fill takes the next one.
      const std::uint64_t at = opcode == WrOpcode::kSendWithImm
                                   ? to.address + (wc.wr_id - rig.b.wr_ids + 1) * kBytes
                                   : to.address + (wc.imm_data - 7) * kBytes;
      EXPECT_EQ(rig.b.bytes_at(at, kBytes), std::vector<std::uint8_t>(kBytes, 0x2D));
    }
    EXPECT_EQ(rig.b.state(), QpState::kRts);
    const auto& counters = rig.b.node.nic.transport().counters();
    EXPECT_EQ(counters.dropped_messages, type == QpType::kUc ? 1U : 0U);
  });
  return arrived;
}

TEST(CaseTR, TR04_AnUnreliableWriteOutOfOrderIsLost) {
  EXPECT_EQ(reordered(QpType::kUc, WrOpcode::kRdmaWriteWithImm), (std::vector<std::uint32_t>{8}));
}
TEST(CaseTR, TR04_AnUnreliableSendOutOfOrderIsLost) {
  EXPECT_EQ(reordered(QpType::kUc, WrOpcode::kSendWithImm), (std::vector<std::uint32_t>{8}));
}
TEST(CaseTR, TR04_TheReliableConnectionRecovers) {
  EXPECT_EQ(reordered(QpType::kRc, WrOpcode::kRdmaWriteWithImm),
            (std::vector<std::uint32_t>{7, 8}));
}

TEST(CaseTR, TR04_DatagramsHaveNoOrderToLose) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"link.reorder_list", "1"},
                {"link.reorder_delay", "5us"}});
  rig.run([&] {
    rig.connect(QpType::kUd);
    RigBuffer from = rig.a.buffer(4096);
    RigBuffer to = rig.b.buffer(4096);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(rig.b.post_recv(to.address, to.region.lkey, 256), host::Status::kOk);
    }
    rig.settle();
    for (const std::uint32_t bytes : {1U, 2U, 3U}) {
      ASSERT_EQ(send_datagram(rig, from, bytes), host::Status::kOk);
    }
    for (const std::uint32_t bytes : {2U, 3U, 1U}) {
      EXPECT_EQ(rig.b.await_recv().byte_len, 40 + bytes);
    }
  });
}

}  // namespace
}  // namespace rnic::testbench
