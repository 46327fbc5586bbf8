// SPDX-License-Identifier: Apache-2.0
// Multicast of datagrams: who gets a copy and who does not, what the headers say, wrong use.
#include "protocol/multicast.h"

#include <gtest/gtest.h>

#include "nic/multicast_groups.h"
#include "support/captured_rig.h"
#include "support/tshark.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AddressHandle;
using host::verbs::QpInitAttr;
using host::verbs::QueuePair;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::Gid;
using protocol::QpType;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kHeader = 40;
constexpr std::uint32_t kBytes = 100;

/// Wire, IP version.
struct Wire {
  std::string protocol;
  std::string ip;
};
std::ostream& operator<<(std::ostream& out, const Wire& wire) {
  return out << wire.protocol << wire.ip;
}

/// Host 0 sends to a group. Queue pairs: some on either host, each with a RECV of its own.
class Group {
 public:
  explicit Group(VerbsRig& rig) : rig_(rig) {}

  void connect() {
    rig_.connect(QpType::kUd);
    const protocol::AddressVector av = path_to_group(rig_.config(), 0, 7);
    gid = av.destination_gid;
    lid = av.destination_lid;
    path = rig_.a.verbs().create_ah(rig_.a.core, rig_.a.pd, av);
    ASSERT_NE(path, nullptr);
    source = rig_.a.buffer(4096);
    rig_.a.fill(source.address, Bytes(kBytes, 0x5A));
  }

  struct Member {
    RigSide* side;
    QueuePair* qp;
    RigBuffer inbox;
  };
  Member member(RigSide& side, bool with_recv = true) {
    QpInitAttr attr = RigSide::qp_attr();
    attr.qp_type = QpType::kUd;
    Member made{&side, side.make_qp(attr), side.buffer(4096)};
    side.connect(*made.qp, 0, path_between(side.index(), 1 - side.index()),
                 rig_.config().transport);
    if (with_recv) post_recv(made);
    return made;
  }
  static void post_recv(const Member& m) {
    EXPECT_EQ(m.side->post_recv(*m.qp, m.inbox.address, m.inbox.region.lkey, kHeader + kBytes),
              Status::kOk);
  }
  Status attach(const Member& m) {
    return m.side->verbs().attach_mcast(m.side->core, *m.qp, gid, lid);
  }
  Status detach(const Member& m) {
    return m.side->verbs().detach_mcast(m.side->core, *m.qp, gid, lid);
  }

  void publish(QueuePair& from, std::uint32_t qkey = kRigQkey) {
    const protocol::Sge sge{source.address, kBytes, source.region.lkey};
    SendWr wr;
    wr.opcode = WrOpcode::kSendWithImm;
    wr.imm_data = 0xABCD;
    wr.flags = SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.ah = path;
    wr.remote_qpn = protocol::kMulticastQpn;
    wr.remote_qkey = qkey;
    ASSERT_EQ(rig_.a.verbs().post_send(rig_.a.core, from, &wr, 1), Status::kOk);
    EXPECT_EQ(rig_.a.await_send().status, WcStatus::kSuccess);
    rig_.settle(microseconds(50));
  }
  /// Queue pairs of which a RECV has completed since the last call, by side.
  std::vector<std::uint32_t> takers(RigSide& side, std::uint32_t sender) {
    std::vector<std::uint32_t> numbers;
    Wc wc;
    while (side.verbs().poll_cq(side.core, *side.recv_cq, 1, &wc) > 0) {
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.byte_len, kHeader + kBytes);
      EXPECT_EQ(wc.src_qp, sender);
      EXPECT_EQ(wc.imm_data, 0xABCDU);
      EXPECT_EQ(wc.wc_flags & (Wc::kGrh | Wc::kWithImm), Wc::kGrh | Wc::kWithImm);
      numbers.push_back(wc.qp_num);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

  Gid gid{};
  std::uint16_t lid = 0;
  AddressHandle* path = nullptr;
  RigBuffer source;

 private:
  VerbsRig& rig_;
};

using Numbers = std::vector<std::uint32_t>;

class Multicast : public ::testing::TestWithParam<Wire> {
 protected:
  Settings settings() const {
    return {{"transport.protocol", GetParam().protocol}, {"transport.ip_version", GetParam().ip}};
  }
};

TEST_P(Multicast, EachAttachedQueuePairGetsACopyButTheSender) {
  VerbsRig rig(settings());
  rig.run([&] {
    Group g(rig);
    g.connect();
    const auto sender = g.member(rig.a);
    const auto neighbour = g.member(rig.a);
    const auto first = g.member(rig.b);
    const auto second = g.member(rig.b);
    const auto stranger = g.member(rig.b);
    for (const auto& m : {sender, neighbour, first, second}) EXPECT_EQ(g.attach(m), Status::kOk);
    EXPECT_EQ(g.attach(first), Status::kOk) << "once more: still one copy";
    g.publish(*sender.qp);
    EXPECT_EQ(g.takers(rig.a, sender.qp->qpn), Numbers{neighbour.qp->qpn}) << "not its own";
    EXPECT_EQ(g.takers(rig.b, sender.qp->qpn), (Numbers{first.qp->qpn, second.qp->qpn}));
    for (const auto& m : {neighbour, first, second}) {
      EXPECT_EQ(m.side->bytes_at(m.inbox.address + kHeader, kBytes), Bytes(kBytes, 0x5A));
    }
    EXPECT_EQ(stranger.side->bytes_at(stranger.inbox.address, kHeader + kBytes),
              Bytes(kHeader + kBytes, 0));
    // The network header in front names the group.
    const Bytes header = first.side->bytes_at(first.inbox.address, kHeader);
    const bool ipv4 = GetParam().protocol == "rocev2" && GetParam().ip == "4";
    const std::size_t named = ipv4 ? 4 : 16;
    EXPECT_EQ(Bytes(header.end() - static_cast<std::ptrdiff_t>(named), header.end()),
              Bytes(g.gid.end() - static_cast<std::ptrdiff_t>(named), g.gid.end()));
  });
}

TEST_P(Multicast, WhoIsNotAttachedAnyMoreGetsNothing) {
  VerbsRig rig(settings());
  rig.run([&] {
    Group g(rig);
    g.connect();
    const auto stays = g.member(rig.b);
    const auto leaves = g.member(rig.b);
    EXPECT_EQ(g.attach(stays), Status::kOk);
    EXPECT_EQ(g.attach(leaves), Status::kOk);
    EXPECT_EQ(g.detach(leaves), Status::kOk);
    EXPECT_EQ(g.detach(leaves), Status::kEinval) << "it is out";
    g.publish(*rig.a.qp);
    EXPECT_EQ(g.takers(rig.b, rig.a.qp->qpn), Numbers{stays.qp->qpn});
    EXPECT_EQ(g.detach(stays), Status::kOk);
    Group::post_recv(stays);
    const std::uint64_t before = rig.b.node.nic.rx_pipeline.drops().not_mine;
    g.publish(*rig.a.qp);
    EXPECT_TRUE(g.takers(rig.b, rig.a.qp->qpn).empty());
    EXPECT_EQ(rig.b.node.nic.rx_pipeline.drops().not_mine, before + 1) << "nobody's";
  });
}

TEST_P(Multicast, WhatOneMemberCannotTakeIsNoneOfTheOthersBusiness) {
  VerbsRig rig(settings());
  rig.run([&] {
    Group g(rig);
    g.connect();
    const auto ready = g.member(rig.b);
    const auto without_recv = g.member(rig.b, false);
    const auto other_qkey = g.member(rig.b);
    for (const auto& m : {without_recv, other_qkey, ready}) EXPECT_EQ(g.attach(m), Status::kOk);
    host::verbs::QpAttr attr;
    attr.qkey = kRigQkey + 1;
    ASSERT_EQ(
        rig.b.verbs().modify_qp(rig.b.core, *other_qkey.qp, attr, protocol::QpAttrMask::kQkey),
        Status::kOk);
    g.publish(*rig.a.qp);
    EXPECT_EQ(g.takers(rig.b, rig.a.qp->qpn), Numbers{ready.qp->qpn});
    EXPECT_EQ(rig.b.node.nic.transport().counters().qkey_violations, 1U);
    for (const auto& m : {ready, without_recv, other_qkey}) {
      EXPECT_EQ(rig.b.device_qp(*m.qp).state, protocol::QpState::kRts);
    }
  });
}

TEST_P(Multicast, AFrameOnTheWireNamesItsGroup) {
  CapturedRig captured(settings());
  Gid gid{};
  const std::string file = captured.file_of([&] {
    Group g(captured.rig);
    g.connect();
    gid = g.gid;
    const auto member = g.member(captured.rig.b);
    EXPECT_EQ(g.attach(member), Status::kOk);
    g.publish(*captured.rig.a.qp);
    EXPECT_EQ(g.takers(captured.rig.b, captured.rig.a.qp->qpn), Numbers{member.qp->qpn});
  });
  EXPECT_EQ(complaints(file), "");
  const bool ib = GetParam().protocol == "ib";
  const bool ipv4 = GetParam().protocol == "rocev2" && GetParam().ip == "4";
  const auto frames = dissect(file, "infiniband.bth.opcode == 101",
                              {"infiniband.bth.destqp", "infiniband.deth", "infiniband.lrh.dlid",
                               "infiniband.grh.dgid", "eth.dst", "ip.dst", "ipv6.dst"});
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].number("infiniband.bth.destqp"), 0xFF'FFFFU);
  if (ib) {
    EXPECT_EQ(frames[0].number("infiniband.lrh.dlid"), 0xC008U);
  } else if (ipv4) {
    EXPECT_EQ(frames[0].text("eth.dst"), "01:00:5e:01:00:07");  // RFC 1112: 23 bits of 239.1.0.7
    EXPECT_EQ(frames[0].text("ip.dst"), "239.1.0.7");
  } else {
    EXPECT_EQ(frames[0].text("eth.dst"), "33:33:00:01:00:07");  // RFC 2464: the last 32 bits
  }
  const std::string group = "ff15::1:7";
  if (GetParam().protocol != "rocev2") {
    EXPECT_EQ(frames[0].text("infiniband.grh.dgid"), group);
  }
  if (GetParam().ip == "6") {
    EXPECT_EQ(frames[0].text("ipv6.dst"), group);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, Multicast,
                         ::testing::Values(Wire{"ib", "4"}, Wire{"rocev1", "4"},
                                           Wire{"rocev2", "4"}, Wire{"rocev2", "6"}),
                         [](const auto& test) { return test.param.protocol + test.param.ip; });

TEST(MulticastUse, WrongUse) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    Group g(rig);
    g.connect();
    host::verbs::Context& verbs = rig.b.verbs();
    const auto member = g.member(rig.b);
    Gid unicast = g.gid;
    unicast[0] = 0xFE;
    constexpr std::uint16_t kUnicastLid = 2;
    constexpr std::uint16_t kPermissiveLid = 0xFFFF;
    EXPECT_EQ(verbs.attach_mcast(rig.b.core, *member.qp, unicast, g.lid), Status::kEinval);
    EXPECT_EQ(verbs.attach_mcast(rig.b.core, *member.qp, g.gid, kUnicastLid), Status::kEinval);
    EXPECT_EQ(verbs.attach_mcast(rig.b.core, *member.qp, g.gid, kPermissiveLid), Status::kEinval);
    QueuePair* reliable = rig.b.make_qp(RigSide::qp_attr());
    EXPECT_EQ(verbs.attach_mcast(rig.b.core, *reliable, g.gid, g.lid), Status::kEinval);
    EXPECT_EQ(g.detach(member), Status::kEinval) << "never attached";
    EXPECT_EQ(g.attach(member), Status::kOk);
    EXPECT_EQ(verbs.destroy_qp(rig.b.core, member.qp), Status::kEbusy);
    EXPECT_EQ(g.detach(member), Status::kOk);
    EXPECT_EQ(verbs.destroy_qp(rig.b.core, member.qp), Status::kOk);
    EXPECT_EQ(verbs.query_device().max_mcast_qp_attach, protocol::kMostGroupMembers);
  });
}

TEST(MulticastUse, AGroupMustBeOneThatTheWireCanName) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.connect(QpType::kUd);
    Gid ipv6{0xFF, 0x15};
    EXPECT_EQ(rig.a.verbs().attach_mcast(rig.a.core, *rig.a.qp, ipv6, 0), Status::kEinval);
    EXPECT_EQ(rig.a.verbs().attach_mcast(rig.a.core, *rig.a.qp,
                                         protocol::ipv4_mapped_gid(0x0A00'0001), 0),
              Status::kEinval)
        << "10.0.0.1 is no group";
    protocol::AddressVector av = path_between(0, 1);
    av.destination_gid = ipv6;
    EXPECT_EQ(rig.a.verbs().create_ah(rig.a.core, rig.a.pd, av), nullptr);
  });
}

TEST(MulticastGroups, HaveSoManyMembersAtMost) {
  nic::MulticastGroups groups;
  const Gid gid{0xFF};
  for (std::uint32_t qpn = 0; qpn < protocol::kMostGroupMembers; ++qpn) {
    ASSERT_TRUE(groups.attach(gid, qpn));
  }
  EXPECT_FALSE(groups.attach(gid, protocol::kMostGroupMembers));
  EXPECT_TRUE(groups.attach(gid, 5)) << "is in it";
  EXPECT_EQ(groups.find(gid)->size(), protocol::kMostGroupMembers);
  for (std::uint32_t qpn = 0; qpn < protocol::kMostGroupMembers; ++qpn) {
    EXPECT_TRUE(groups.detach(gid, qpn));
  }
  EXPECT_TRUE(groups.empty());
}

TEST(MulticastProgram, EveryHostBehindTheSwitchHearsEveryPublisher) {
  for (const std::string protocol : {"ib", "rocev1", "rocev2"}) {
    SCOPED_TRACE(protocol);
    const ProgramRun run = run_well({{"workload.program", "multicast"},
                                     {"transport.type", "ud"},
                                     {"transport.protocol", protocol},
                                     {"fabric.hosts", "5"},
                                     {"fabric.topology", "single_switch"},
                                     {"workload.msg_size", "1000"},
                                     {"workload.iterations", "40"},
                                     {"sim.warmup", "0"}});
    if (run.status != 0) continue;
    EXPECT_EQ(run.number("/completions/success"), 40);
    // Each of 40 datagrams once out of the publishers' port and once into each of four; and four
    // receipts back.
    const auto& counters = run.result.at("counters");
    EXPECT_EQ(counters.at("host0").at("rx_send_requests"), 160);
    for (int host = 1; host < 5; ++host) {
      EXPECT_EQ(counters.at("host" + std::to_string(host)).at("rx_send_requests"), 40);
    }
    EXPECT_EQ(run.link_sum("dropped"), 0);
  }
}

}  // namespace
}  // namespace rnic::testbench
