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

// TR-01 --------------------------------------------------------------------------------------

/// The profile of EFA's SRD: packets over eight paths, and who writes with immediate data must be
/// known.
Settings srd_profile() {
  Settings profile;
  for (const config::Setting& each : config::read_file(config::find_file("srd"))) {
    profile.emplace_back(each.key, each.text);
  }
  return profile;
}

struct Immediate {
  WcStatus sent = WcStatus::kGeneralError;
  bool completed = false;
  host::verbs::Wc received;
  std::size_t recvs_left = 0;
};

Immediate write_with_imm(bool handle, const char* unsolicited) {
  Immediate out;
  VerbsRig rig(with(srd_profile(), {{"nic.write_imm_unsolicited", unsolicited}}));
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(16384);
    const RigBuffer theirs = rig.b.buffer(16384);
    rig.a.fill(mine.address, std::vector<std::uint8_t>(16384, 0x2B));
    host::verbs::AddressHandle* ah = nullptr;
    if (handle) ah = rig.b.verbs().create_ah(rig.b.core, rig.b.pd, path_between(1, 0));
    ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 64), host::Status::kOk);
    // Without immediate data nobody asks for a handle.
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64, theirs.address,
                         theirs.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, 16384,
                         theirs.address, theirs.region.rkey, 77),
              host::Status::kOk);
    out.sent = rig.a.await_send().status;
    rig.settle();
    host::verbs::Wc wc;
    out.completed = rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &wc) > 0;
    out.received = wc;
    out.recvs_left = rig.b.qp->recvs.size();
    if (!handle) return;
    EXPECT_EQ(rig.b.bytes_at(theirs.address, 16384), std::vector<std::uint8_t>(16384, 0x2B));
    // Once the handle is gone, so is the permission.
    ASSERT_EQ(rig.b.verbs().destroy_ah(rig.b.core, ah), host::Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, 64,
                         theirs.address, theirs.region.rkey, 78),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kRemoteOperationError);
  });
  return out;
}

TEST(CaseTR, TR01_NobodyKnowsTheRequester) {
  EXPECT_EQ(write_with_imm(false, "false").sent, WcStatus::kRemoteOperationError);
}

TEST(CaseTR, TR01_AHandleOfTheRequesterIsThere) {
  const Immediate with = write_with_imm(true, "false");
  EXPECT_EQ(with.sent, WcStatus::kSuccess);
  EXPECT_EQ(with.received.imm_data, 77U);
  EXPECT_EQ(with.received.wc_flags & host::verbs::Wc::kUnsolicited, 0U);
  EXPECT_EQ(with.recvs_left, 0U);
}

TEST(CaseTR, TR01_ImmediateDataWithoutARecv) {
  const Immediate with = write_with_imm(true, "true");
  EXPECT_EQ(with.sent, WcStatus::kSuccess);
  EXPECT_TRUE(with.completed);
  EXPECT_EQ(with.received.imm_data, 77U);
  EXPECT_EQ(with.received.opcode, protocol::WcOpcode::kRecvRdmaWithImm);
  EXPECT_NE(with.received.wc_flags & host::verbs::Wc::kUnsolicited, 0U);
  EXPECT_EQ(with.recvs_left, 1U) << "the RECV is still there";
}

/// A megabyte over the profile's paths: overtaken and complete, the notification behind it, and
/// nothing sent twice.
TEST(CaseTR, TR01_TheProfileSpraysAndKeepsWhatItPromises) {
  VerbsRig rig(with(srd_profile(), {{"transport.mtu", "4096"}}));
  rig.run([&] {
    constexpr std::uint32_t kBytes = 1 << 20;
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(kBytes);
    rig.a.fill(mine.address, std::vector<std::uint8_t>(kBytes, 0x2C));
    ASSERT_NE(rig.b.verbs().create_ah(rig.b.core, rig.b.pd, path_between(1, 0)), nullptr);
    ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 64), host::Status::kOk);
    rig.settle();
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, kBytes,
                         theirs.address, theirs.region.rkey, 77),
              host::Status::kOk);
    EXPECT_EQ(rig.b.await_recv().byte_len, kBytes);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kBytes), std::vector<std::uint8_t>(kBytes, 0x2C));
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_GT(rig.b.node.nic.transport().counters().out_of_sequence, 0U);
    EXPECT_EQ(rig.a.node.nic.transport().counters().retransmitted_packets, 0U);
  });
}

// TR-03 --------------------------------------------------------------------------------------

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
