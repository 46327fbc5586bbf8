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

}  // namespace
}  // namespace rnic::testbench
