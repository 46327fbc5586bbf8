// SPDX-License-Identifier: Apache-2.0
// What experts of verbs ask of datagrams: inline, immediate and empty ones, service levels, queue
// pairs that do not exist, RECVs without room for the header, one queue pair and several peers.
#include <gtest/gtest.h>

#include "support/corner_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QpInitAttr;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::QpType;
using protocol::Sge;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = CornerRig::kPage;

class DatagramCorner : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wires, DatagramCorner, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

TEST_P(DatagramCorner, InlineImmediateAndEmpty) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect(QpType::kUd);
    const Sge room{t.theirs.address, 256, t.theirs.region.lkey};
    for (int i = 0; i < 3; ++i) ASSERT_EQ(t.post_recv(&room, 1), Status::kOk);
    t.rig.a.fill(t.mine.address, {9, 8, 7});
    const Sge three{t.mine.address, 3, 0x1234};  // inline: no key
    SendWr wr = t.request(WrOpcode::kSendWithImm, &three, 1);
    wr.flags |= SendFlags::kInline;
    wr.imm_data = 0x0102'0304;
    ASSERT_EQ(t.post(wr), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    Wc wc = t.rig.b.await_recv();
    EXPECT_EQ(wc.byte_len, 43U);
    EXPECT_EQ(wc.imm_data, 0x0102'0304U);
    EXPECT_NE(wc.wc_flags & Wc::kWithImm, 0U);
    EXPECT_EQ(wc.src_qp, t.rig.a.qp->qpn);
    EXPECT_EQ(wc.slid, GetParam() == "ib" ? 1U : 0U) << "host 0's LID";
    EXPECT_EQ(wc.sl, 0U);
    EXPECT_EQ(wc.pkey_index, 0U);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + 40, 3), (Bytes{9, 8, 7}));
    ASSERT_EQ(t.post(t.request(WrOpcode::kSend, nullptr, 0)), Status::kOk);
    wc = t.rig.b.await_recv();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, 40U) << "the place of the GRH counts";
  });
}

TEST(DatagramLevels, ACompletionTellsTheServiceLevelOfItsMessage) {
  CornerRig t("ib", {{"link.data_vls", "1"}});
  t.rig.run([&] {
    t.connect(QpType::kUd);
    protocol::AddressVector av = path_between(0, 1);
    av.service_level = 5;
    auto* path = t.rig.a.verbs().create_ah(t.rig.a.core, t.rig.a.pd, av);
    const Sge room{t.theirs.address, 256, t.theirs.region.lkey};
    ASSERT_EQ(t.post_recv(&room, 1), Status::kOk);
    SendWr wr = t.request(WrOpcode::kSend, nullptr, 0);
    wr.ah = path;
    ASSERT_EQ(t.post(wr), Status::kOk);
    EXPECT_EQ(t.rig.b.await_recv().sl, 5U);
  });
}

TEST_P(DatagramCorner, ToAQueuePairThatDoesNotExist) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect(QpType::kUd);
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    SendWr wr = t.request(WrOpcode::kSend, &sge, 1);
    wr.remote_qpn = 0xABCDE;
    ASSERT_EQ(t.post(wr), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.state(), QpState::kRts);
  });
}

TEST_P(DatagramCorner, ARecvThatIsSmallerThanTheHeaderIsTooSmall) {
  CornerRig t(GetParam(), {{"nic.long_message", "complete"}});
  t.rig.run([&] {
    t.connect(QpType::kUd);
    const Sge small{t.theirs.address, 39, t.theirs.region.lkey};
    ASSERT_EQ(t.post_recv(&small, 1), Status::kOk);
    ASSERT_EQ(t.post(t.request(WrOpcode::kSend, nullptr, 0)), Status::kOk);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kLocalLengthError);
    EXPECT_EQ(t.rig.b.state(), QpState::kRts);
  });
}

TEST_P(DatagramCorner, OneQueuePairReachesSeveralPeers) {
  CornerRig t(GetParam());
  t.rig.run([&] {
    t.connect(QpType::kUd);
    QpInitAttr attr = RigSide::qp_attr();
    attr.qp_type = QpType::kUd;
    auto* other = t.rig.b.make_qp(attr);
    t.rig.b.connect(*other, 0, path_between(1, 0), t.rig.config().transport);
    const Sge room{t.theirs.address, 256, t.theirs.region.lkey};
    ASSERT_EQ(t.post_recv(&room, 1), Status::kOk);
    ASSERT_EQ(t.rig.b.post_recv(*other, t.theirs.address + kPage, t.theirs.region.lkey, 256),
              Status::kOk);
    const Sge sge{t.mine.address, 8, t.mine.region.lkey};
    for (const std::uint32_t qpn : {other->qpn, t.rig.b.qp->qpn}) {
      SendWr wr = t.request(WrOpcode::kSend, &sge, 1);
      wr.remote_qpn = qpn;
      ASSERT_EQ(t.post(wr), Status::kOk);
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      EXPECT_EQ(t.rig.b.await_recv().qp_num, qpn);
    }
  });
}

// Limits and ranges --------------------------------------------------------------------------

}  // namespace
}  // namespace rnic::testbench
