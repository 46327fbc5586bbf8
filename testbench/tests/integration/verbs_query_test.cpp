// SPDX-License-Identifier: Apache-2.0
// What the query calls of verbs tell, and the texts that libibverbs has for codes.
#include <gtest/gtest.h>

#include <cstring>

#include "protocol/multicast.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::DeviceAttr;
using host::verbs::PortAttr;
using host::verbs::QpAttr;
using host::verbs::QpInitAttr;
using host::verbs::SrqAttr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::EventType;
using protocol::PathMigration;
using protocol::PortState;
using protocol::QpState;
using protocol::WcStatus;
using Mask = protocol::QpAttrMask;

TEST(QueryQp, AllThatModifyTook) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"transport.mtu", "2048"}});
  rig.run([&] {
    rig.a.create();
    QpInitAttr init;
    init.max_send_wr = 20;
    init.max_recv_wr = 30;
    init.max_send_sge = 2;
    init.max_recv_sge = 3;
    init.max_inline_data = 48;
    init.sq_sig_all = true;
    auto* qp = rig.a.verbs().create_qp(rig.a.core, rig.a.pd, *rig.a.send_cq, *rig.a.recv_cq, init);
    ASSERT_NE(qp, nullptr);
    QpAttr attr;
    QpInitAttr made;
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *qp, attr, made), Status::kOk);
    EXPECT_EQ(attr.qp_state, QpState::kReset);
    EXPECT_EQ(made.max_send_wr, 20U);
    EXPECT_EQ(made.max_recv_wr, 30U);
    EXPECT_EQ(made.max_send_sge, 2U);
    EXPECT_EQ(made.max_recv_sge, 3U);
    EXPECT_EQ(made.max_inline_data, 48U);
    EXPECT_TRUE(made.sq_sig_all);
    EXPECT_EQ(made.qp_type, protocol::QpType::kRc);

    QpAttr set;
    set.qp_state = QpState::kInit;
    set.access_flags = protocol::kAccessRemoteRead;
    ASSERT_EQ(
        rig.a.verbs().modify_qp(rig.a.core, *qp, set,
                                Mask::kState | Mask::kPkeyIndex | Mask::kPort | Mask::kAccessFlags),
        Status::kOk);
    set.qp_state = QpState::kRtr;
    set.ah_attr = path_between(0, 1);
    set.ah_attr.traffic_class = 0x68;
    set.path_mtu = 2048;
    set.dest_qp_num = 0x4321;
    set.rq_psn = 0x111;
    set.max_dest_rd_atomic = 5;
    set.min_rnr_timer = 9;
    ASSERT_EQ(
        rig.a.verbs().modify_qp(rig.a.core, *qp, set,
                                Mask::kState | Mask::kAv | Mask::kPathMtu | Mask::kDestQpn |
                                    Mask::kRqPsn | Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer),
        Status::kOk);
    set.qp_state = QpState::kRts;
    set.sq_psn = 0x222;
    set.timeout = 13;
    set.retry_cnt = 6;
    set.rnr_retry = 3;
    set.max_rd_atomic = 4;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *qp, set,
                                      Mask::kState | Mask::kSqPsn | Mask::kTimeout |
                                          Mask::kRetryCnt | Mask::kRnrRetry | Mask::kMaxQpRdAtomic),
              Status::kOk);
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *qp, attr, made), Status::kOk);
    EXPECT_EQ(attr.qp_state, QpState::kRts);
    EXPECT_EQ(attr.cur_qp_state, QpState::kRts);
    EXPECT_EQ(attr.access_flags, protocol::kAccessRemoteRead);
    EXPECT_EQ(attr.path_mtu, 2048U);
    EXPECT_EQ(attr.dest_qp_num, 0x4321U);
    EXPECT_EQ(attr.rq_psn, 0x111U);
    EXPECT_EQ(attr.sq_psn, 0x222U);
    EXPECT_EQ(attr.timeout, 13U);
    EXPECT_EQ(attr.retry_cnt, 6U);
    EXPECT_EQ(attr.rnr_retry, 3U);
    EXPECT_EQ(attr.min_rnr_timer, 9U);
    EXPECT_EQ(attr.max_rd_atomic, 4U);
    EXPECT_EQ(attr.max_dest_rd_atomic, 5U);
    EXPECT_EQ(attr.port_num, 1U);
    EXPECT_EQ(attr.pkey_index, 0U);
    EXPECT_EQ(attr.path_mig_state, PathMigration::kMigrated);
    EXPECT_FALSE(attr.sq_draining);
    EXPECT_EQ(attr.ah_attr.destination_ipv4, set.ah_attr.destination_ipv4);
    EXPECT_EQ(attr.ah_attr.traffic_class, 0x68);
  });
}

TEST(QueryQp, PsnsAreThoseOfTheNextPackets) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();  // from PSN 0xFFFFF0
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 8, theirs.address,
                           theirs.region.rkey),
                Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    QpAttr attr;
    QpInitAttr init;
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *rig.a.qp, attr, init), Status::kOk);
    EXPECT_EQ(attr.sq_psn, 4U);  // 0xFFFFF0 + 20 in 24 bits
    ASSERT_EQ(rig.b.verbs().query_qp(rig.b.core, *rig.b.qp, attr, init), Status::kOk);
    EXPECT_EQ(attr.rq_psn, 4U);
  });
}

TEST(QueryQp, DrainingAndTheStateThatTheDriverDoesNotKnow) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(1U << 20);
    const RigBuffer theirs = rig.b.buffer(1U << 20);
    rig.settle();
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 1U << 20,
                         theirs.address, theirs.region.rkey),
              Status::kOk);
    rig.settle(microseconds(5));  // of 84 us
    QpAttr attr;
    attr.qp_state = QpState::kSqd;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kState), Status::kOk);
    QpInitAttr init;
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *rig.a.qp, attr, init), Status::kOk);
    EXPECT_EQ(attr.qp_state, QpState::kSqd);
    EXPECT_TRUE(attr.sq_draining);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *rig.a.qp, attr, init), Status::kOk);
    EXPECT_FALSE(attr.sq_draining);
    // The peer breaks a rule: nobody polls, the query tells.
    attr.qp_state = QpState::kRts;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kState), Status::kOk);
    ASSERT_EQ(rig.b.post(WrOpcode::kRdmaWrite, theirs.address, theirs.region.lkey, 8, mine.address,
                         0x777),
              Status::kOk);
    rig.settle();
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *rig.a.qp, attr, init), Status::kOk);
    EXPECT_EQ(attr.qp_state, QpState::kError);
  });
}

TEST(QueryQp, OneQueuePairOfDatagrams) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect(protocol::QpType::kUd);
    QpAttr attr;
    QpInitAttr init;
    ASSERT_EQ(rig.a.verbs().query_qp(rig.a.core, *rig.a.qp, attr, init), Status::kOk);
    EXPECT_EQ(attr.qkey, kRigQkey);
    EXPECT_EQ(init.qp_type, protocol::QpType::kUd);
  });
}

TEST(QuerySrq, TheLimitIsGoneOnceItWasReached) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    host::verbs::Context& verbs = rig.b.verbs();
    auto* srq = verbs.create_srq(rig.b.core, rig.b.pd, {10, 2});
    ASSERT_NE(srq, nullptr);
    QpInitAttr init = RigSide::qp_attr();
    init.srq = srq;
    auto* to = rig.b.make_qp(init);
    auto* from = rig.a.make_qp(RigSide::qp_attr());
    rig.join(*from, *to);
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(rig.b.post_srq_recv(*srq, theirs.address, theirs.region.lkey, 64), Status::kOk);
    }
    ASSERT_EQ(verbs.modify_srq(rig.b.core, *srq, 2), Status::kOk);
    SrqAttr attr;
    ASSERT_EQ(verbs.query_srq(rig.b.core, *srq, attr), Status::kOk);
    EXPECT_EQ(attr.max_wr, 10U);
    EXPECT_EQ(attr.max_sge, 2U);
    EXPECT_EQ(attr.srq_limit, 2U);
    for (int i = 0; i < 2; ++i) {  // one is left, below two
      ASSERT_EQ(rig.a.post(*from, WrOpcode::kSend, mine.address, mine.region.lkey, 8), Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    rig.settle();
    ASSERT_EQ(verbs.query_srq(rig.b.core, *srq, attr), Status::kOk);
    EXPECT_EQ(attr.srq_limit, 0U);
  });
}

TEST(QueryDevice, ItsLimitsAreThoseThatItKeeps) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    host::verbs::Context& verbs = rig.a.verbs();
    const DeviceAttr device = verbs.query_device();
    EXPECT_EQ(device.max_qp_rd_atom, rig.config().nic.max_rd_atomic);
    EXPECT_EQ(device.max_mr, rig.config().nic.max_mr);
    EXPECT_EQ(device.phys_port_cnt, 1U);
    EXPECT_EQ(device.max_pkeys, 1U);
    const auto make = [&](const std::function<void(QpInitAttr&)>& set) {
      QpInitAttr attr;
      attr.max_send_wr = attr.max_recv_wr = 4;
      set(attr);
      return verbs.create_qp(rig.a.core, rig.a.pd, *rig.a.send_cq, *rig.a.recv_cq, attr) != nullptr;
    };
    EXPECT_TRUE(make([&](QpInitAttr& a) { a.max_send_sge = device.max_sge; }));
    EXPECT_FALSE(make([&](QpInitAttr& a) { a.max_send_sge = device.max_sge + 1; }));
    EXPECT_TRUE(make([&](QpInitAttr& a) { a.max_inline_data = device.max_inline; }));
    EXPECT_FALSE(make([&](QpInitAttr& a) { a.max_inline_data = device.max_inline + 1; }));
    EXPECT_FALSE(make([&](QpInitAttr& a) { a.max_send_wr = device.max_qp_wr + 1; }));
    EXPECT_EQ(verbs.create_cq(rig.a.core, device.max_cqe + 1), nullptr);
    EXPECT_NE(verbs.create_srq(rig.a.core, rig.a.pd, {device.max_srq_wr - 1, device.max_srq_sge}),
              nullptr);
    EXPECT_EQ(verbs.create_srq(rig.a.core, rig.a.pd, {device.max_srq_wr + 1, 1}), nullptr);
    EXPECT_EQ(verbs.create_srq(rig.a.core, rig.a.pd, {4, device.max_srq_sge + 1}), nullptr);
  });
}

TEST(QueryPort, StateAndSizes) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"transport.mtu", "1024"}});
  rig.run([&] {
    rig.a.create();
    PortAttr port;
    EXPECT_EQ(rig.a.verbs().query_port(rig.a.core, 0, port), Status::kEinval);
    EXPECT_EQ(rig.a.verbs().query_port(rig.a.core, 2, port), Status::kEinval);
    ASSERT_EQ(rig.a.verbs().query_port(rig.a.core, 1, port), Status::kOk);
    EXPECT_EQ(port.state, PortState::kActive);
    EXPECT_EQ(port.max_mtu, 4096U);
    EXPECT_EQ(port.active_mtu, 1024U);
    EXPECT_EQ(port.max_msg_sz, 1U << 31);
    EXPECT_NEAR(port.active_gbps, 100, 0.1);
    EXPECT_TRUE(port.ethernet);
    rig.a.port().lose_link(sim_now());
    ASSERT_EQ(rig.a.verbs().query_port(rig.a.core, 1, port), Status::kOk);
    EXPECT_EQ(port.state, PortState::kDown);
    rig.a.port().regain_link(sim_now());
    ASSERT_EQ(rig.a.verbs().query_port(rig.a.core, 1, port), Status::kOk);
    EXPECT_EQ(port.state, PortState::kActive);
  });
}

/// What an application exchanges with its peer before it connects.
class PortTables : public ::testing::TestWithParam<std::string> {};

TEST_P(PortTables, NameThePort) {
  VerbsRig rig(Settings{{"transport.protocol", GetParam()}});
  rig.run([&] {
    rig.connect();
    PortAttr port;
    ASSERT_EQ(rig.b.verbs().query_port(rig.b.core, 1, port), Status::kOk);
    EXPECT_EQ(port.gid_tbl_len, 1U);
    protocol::Gid gid{};
    std::uint16_t pkey = 0;
    EXPECT_EQ(rig.b.verbs().query_gid(rig.b.core, 2, 0, gid), Status::kEinval);
    EXPECT_EQ(rig.b.verbs().query_gid(rig.b.core, 1, 1, gid), Status::kEinval);
    EXPECT_EQ(rig.b.verbs().query_pkey(rig.b.core, 1, port.pkey_tbl_len, pkey), Status::kEinval);
    EXPECT_EQ(rig.b.verbs().query_pkey(rig.b.core, 0, 0, pkey), Status::kEinval);
    ASSERT_EQ(rig.b.verbs().query_pkey(rig.b.core, 1, 0, pkey), Status::kOk);
    EXPECT_EQ(pkey, 0xFFFF);
    ASSERT_EQ(rig.b.verbs().query_gid(rig.b.core, 1, 0, gid), Status::kOk);
    // Host 1 is fe80::2, 10.0.0.2, 02:00:00:00:00:02 and LID 2.
    protocol::Gid expected{};
    if (GetParam() == "rocev2") {
      expected = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};
    } else if (GetParam() == "iwarp") {
      expected = {0x02, 0, 0, 0, 0, 2};
    } else {
      expected = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    }
    EXPECT_EQ(gid, expected);
    EXPECT_EQ(port.lid, GetParam() == "ib" ? 2 : 0);
    // And that is where its frames come from.
    if (GetParam() == "iwarp") return;
    QpAttr attr;
    QpInitAttr init;
    ASSERT_EQ(rig.b.verbs().query_qp(rig.b.core, *rig.b.qp, attr, init), Status::kOk);
    const protocol::Gid& source = attr.ah_attr.source_gid;
    EXPECT_EQ(GetParam() == "rocev2" ? protocol::ipv4_mapped_gid(attr.ah_attr.source_ipv4) : source,
              gid);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, PortTables, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

/// Runs have hundreds of thousands of idle queue pairs; of what the driver holds for each, 96 B are
/// numbers and addresses, and 56 B are the two empty lists of work and two pointers.
TEST(QueryQp, AnIdleQueuePairIsSmall) { EXPECT_LE(sizeof(host::verbs::QueuePair), 152U); }

/// The codes that ConnectX adds to a status.
TEST(VendorError, TellsOneFailureFromAnother) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096, 0);  // no place for what a READ brings
    const RigBuffer theirs = rig.b.buffer(4096);
    const auto outcome = [&](WrOpcode opcode, std::uint32_t lkey, std::uint32_t rkey) {
      auto* from = rig.a.make_qp(RigSide::qp_attr());
      auto* to = rig.b.make_qp(RigSide::qp_attr());
      rig.join(*from, *to);
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(rig.a.post(*from, opcode, mine.address, lkey, 64, theirs.address, rkey),
                  Status::kOk);
      }
      const Wc failed = rig.a.await_send();
      const Wc flushed = rig.a.await_send();
      EXPECT_EQ(flushed.status, WcStatus::kWrFlushError);
      EXPECT_EQ(flushed.vendor_err, 249U);
      return failed;
    };
    const std::uint32_t lkey = mine.region.lkey;
    const std::uint32_t rkey = theirs.region.rkey;
    EXPECT_EQ(outcome(WrOpcode::kRdmaWrite, lkey ^ 0x100, rkey).vendor_err, 0x52U);
    const Wc sink = outcome(WrOpcode::kRdmaRead, lkey, rkey);
    EXPECT_EQ(sink.status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(sink.vendor_err, 0x33U);
    EXPECT_EQ(outcome(WrOpcode::kRdmaWrite, lkey, rkey ^ 0x100).vendor_err, 0x88U);
    ASSERT_EQ(
        rig.a.post(*rig.a.qp, WrOpcode::kRdmaWrite, mine.address, lkey, 64, theirs.address, rkey),
        Status::kOk);
    const Wc good = rig.a.await_send();
    EXPECT_EQ(good.status, WcStatus::kSuccess);
    EXPECT_EQ(good.vendor_err, 0U);
  });
}

TEST(ModifyQp, PortsAndPartitionKeysThatDoNotExist) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.a.create();
    auto* qp = rig.a.verbs().create_qp(rig.a.core, rig.a.pd, *rig.a.send_cq, *rig.a.recv_cq,
                                       RigSide::qp_attr());
    const auto init = [&](std::uint8_t port, std::uint16_t pkey_index) {
      QpAttr attr;
      attr.qp_state = QpState::kInit;
      attr.port_num = port;
      attr.pkey_index = pkey_index;
      return rig.a.verbs().modify_qp(
          rig.a.core, *qp, attr,
          Mask::kState | Mask::kPkeyIndex | Mask::kPort | Mask::kAccessFlags);
    };
    EXPECT_EQ(init(0, 0), Status::kEinval);
    EXPECT_EQ(init(2, 0), Status::kEinval);
    EXPECT_EQ(init(1, 1), Status::kEinval);
    EXPECT_EQ(rig.a.verbs().query_qp(rig.a.core, *qp), QpState::kReset);
    EXPECT_EQ(init(1, 0), Status::kOk);
  });
}

TEST(Texts, AsLibibverbsHasThem) {
  EXPECT_STREQ(protocol::wc_status_str(WcStatus::kSuccess), "success");
  EXPECT_STREQ(protocol::wc_status_str(WcStatus::kLocalProtectionError), "local protection error");
  EXPECT_STREQ(protocol::wc_status_str(WcStatus::kWrFlushError), "Work Request Flushed Error");
  EXPECT_STREQ(protocol::wc_status_str(WcStatus::kMwBindError),
               "memory management operation error");
  EXPECT_STREQ(protocol::wc_status_str(WcStatus::kRetryExceededError),
               "transport retry counter exceeded");
  EXPECT_STREQ(protocol::event_type_str(EventType::kQpAccessError),
               "local access violation work queue error");
  EXPECT_STREQ(protocol::event_type_str(EventType::kPathMigrated), "path migrated");
  EXPECT_STREQ(protocol::event_type_str(EventType::kQpLastWqeReached), "last WQE reached");
  EXPECT_STREQ(protocol::event_type_str(static_cast<EventType>(200)), "unknown");
}

}  // namespace
}  // namespace rnic::testbench
