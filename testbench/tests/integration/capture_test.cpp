// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "capture/port_capture.h"
#include "support/capture_rules.h"
#include "support/temporary_file.h"
#include "support/tshark.h"
#include "support/verbs_rig.h"

// Two hosts run each operation once; tshark, an implementation that knows nothing of this one,
// reads what passed the first host's port. What it must find follows from the calls of the story.
namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::WcStatus;

constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kFirstPsn = 0xFF'FFF0;  // as VerbsRig connects

/// What one packet of the story must look like; fields that a packet does not have are absent.
struct Expected {
  const char* what;
  std::uint32_t opcode;
  std::uint32_t psn;  ///< behind kFirstPsn
  bool from_a;
  std::map<std::string, std::uint64_t> fields;
};

const std::vector<std::string>& rc_fields() {
  static const std::vector<std::string> fields{"frame.packet_flags_direction",
                                               "infiniband.bth.opcode",
                                               "infiniband.bth.psn",
                                               "infiniband.bth.destqp",
                                               "infiniband.bth.a",
                                               "infiniband.bth.padcnt",
                                               "infiniband.bth.p_key",
                                               "infiniband.reth.va",
                                               "infiniband.reth.r_key",
                                               "infiniband.reth.dmalen",
                                               "infiniband.aeth.syndrome",
                                               "infiniband.aeth.msn",
                                               "infiniband.immdt",
                                               "infiniband.aeth.syndrome.opcode"};
  return fields;
}

void expect_packets(const std::vector<Dissection>& packets, const std::vector<Expected>& expected,
                    std::uint32_t a_qpn, std::uint32_t b_qpn) {
  ASSERT_EQ(packets.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Expected& want = expected[i];
    const Dissection& got = packets[i];
    SCOPED_TRACE(want.what);
    constexpr std::uint64_t kInbound = 1;
    constexpr std::uint64_t kOutbound = 2;
    EXPECT_EQ(got.number("frame.packet_flags_direction"), want.from_a ? kOutbound : kInbound);
    EXPECT_EQ(got.number("infiniband.bth.opcode"), want.opcode);
    EXPECT_EQ(got.number("infiniband.bth.psn"), (kFirstPsn + want.psn) & 0xFF'FFFF);
    EXPECT_EQ(got.number("infiniband.bth.destqp"), want.from_a ? b_qpn : a_qpn);
    EXPECT_EQ(got.number("infiniband.bth.p_key"), 0xFFFFU);
    for (const char* header : {"reth.va", "reth.r_key", "reth.dmalen", "aeth.msn", "immdt"}) {
      const std::string field = std::string("infiniband.") + header;
      const auto value = want.fields.find(header);
      ASSERT_EQ(got.has(field), value != want.fields.end()) << field;
      if (value != want.fields.end()) {
        EXPECT_EQ(got.number(field), value->second) << field;
      }
    }
    if (want.fields.count("padcnt") != 0) {
      EXPECT_EQ(got.number("infiniband.bth.padcnt"), want.fields.at("padcnt"));
    }
    if (got.has("infiniband.aeth.msn")) {
      EXPECT_EQ(got.number("infiniband.aeth.syndrome.opcode"), 0U);  // ACK
    }
  }
}

/// Runs WRITE, WRITE with immediate, READ and both SENDs from `a`; returns what must be seen.
std::vector<Expected> run_story(VerbsRig& rig) {
  constexpr std::uint32_t kWriteImm = 0xCAFE'1234;
  constexpr std::uint32_t kSendImm = 0x0102'0304;
  RigBuffer local;
  RigBuffer remote;
  rig.run([&] {
    rig.connect();
    local = rig.a.buffer(8192);
    remote = rig.b.buffer(8192);
    const auto go = [&](WrOpcode op, std::uint32_t bytes, std::uint32_t imm) {
      EXPECT_EQ(rig.a.post(op, local.address, local.region.lkey, bytes, remote.address + 8,
                           remote.region.rkey, imm),
                host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    };
    for (int i = 0; i < 3; ++i) rig.b.post_recv(remote.address, remote.region.lkey, 4096);
    rig.settle();
    go(WrOpcode::kRdmaWrite, 101, 0);
    go(WrOpcode::kRdmaWriteWithImm, 64, kWriteImm);
    go(WrOpcode::kRdmaRead, 4 * kMtu + 904, 0);
    go(WrOpcode::kSend, 2000, 0);
    go(WrOpcode::kSendWithImm, 3, kSendImm);
    rig.settle();
  });
  const std::uint64_t va = remote.address + 8;
  const std::uint64_t rkey = remote.region.rkey;
  return {
      {"WRITE only",
       0x0A,
       0,
       true,
       {{"reth.va", va}, {"reth.r_key", rkey}, {"reth.dmalen", 101}, {"padcnt", 3}}},
      {"its ACK", 0x11, 0, false, {{"aeth.msn", 1}}},
      {"WRITE only with immediate",
       0x0B,
       1,
       true,
       {{"reth.va", va}, {"reth.r_key", rkey}, {"reth.dmalen", 64}, {"immdt", kWriteImm}}},
      {"its ACK", 0x11, 1, false, {{"aeth.msn", 2}}},
      {"READ request",
       0x0C,
       2,
       true,
       {{"reth.va", va}, {"reth.r_key", rkey}, {"reth.dmalen", 5000}}},
      {"READ response first", 0x0D, 2, false, {{"aeth.msn", 3}}},
      {"READ response middle", 0x0E, 3, false, {}},
      {"READ response middle", 0x0E, 4, false, {}},
      {"READ response middle", 0x0E, 5, false, {}},
      {"READ response last", 0x0F, 6, false, {{"aeth.msn", 3}}},
      {"SEND first", 0x00, 7, true, {}},
      {"SEND last", 0x02, 8, true, {}},
      {"its ACK", 0x11, 8, false, {{"aeth.msn", 4}}},
      {"SEND only with immediate", 0x05, 9, true, {{"immdt", kSendImm}, {"padcnt", 1}}},
      {"its ACK", 0x11, 9, false, {{"aeth.msn", 5}}},
  };
}

/// The story on one wire; `more` checks the headers around the BTH.
template <typename More>
void check_wire(const Settings& settings, const std::string& protocol, const More& more) {
  const TemporaryFile place("capture_" + protocol);
  std::filesystem::remove(place.path());
  VerbsRig rig(
      with({{"transport.protocol", protocol}, {"transport.mtu", std::to_string(kMtu)}}, settings));
  PortCapture capture(place.path(), "a",
                      protocol == "ib" ? CaptureLink::kErf : CaptureLink::kEthernet,
                      rig.a.node.nic.encapsulation());
  rig.a.port().set_tap(&capture);
  const std::vector<Expected> expected = run_story(rig);
  capture.finish();
  const std::string file = place.path() + "/a.pcapng";
  EXPECT_EQ(complaints(file), "");
  expect_packets(dissect(file, "infiniband.bth.opcode", rc_fields()), expected, rig.a.qp->qpn,
                 rig.b.qp->qpn);
  EXPECT_EQ(expect_crcs(file, protocol), static_cast<int>(expected.size()));
  more(file);
}

TEST(CaptureTest, Infiniband) {
  check_wire({}, "ib", [](const std::string& file) {
    for (const Dissection& p :
         dissect(file, "infiniband.bth.opcode && frame.packet_flags_direction == 2",
                 {"infiniband.lrh.slid", "infiniband.lrh.dlid", "infiniband.lrh.lnh",
                  "infiniband.lrh.pktlen", "frame.len"})) {
      EXPECT_EQ(p.number("infiniband.lrh.slid"), 1U);
      EXPECT_EQ(p.number("infiniband.lrh.dlid"), 2U);
      EXPECT_EQ(p.number("infiniband.lrh.lnh"), 2U);  // BTH follows
      EXPECT_EQ(p.number("infiniband.lrh.pktlen") * 4 + 2, p.number("frame.len"));
    }
    // Each end tells its credits once before traffic: 256 KiB are more than 2,048 blocks.
    const auto credits =
        dissect(file, "infiniband_link.op == 1", {"infiniband_link.fccl", "infiniband_link.vl"});
    ASSERT_EQ(credits.size(), 2U);
    for (const Dissection& p : credits) EXPECT_EQ(p.number("infiniband_link.fccl"), 2048U);
  });
}

TEST(CaptureTest, RoceV1) {
  check_wire({}, "rocev1", [](const std::string& file) {
    for (const Dissection& p :
         dissect(file, "infiniband.bth.opcode && frame.packet_flags_direction == 2",
                 {"eth.type", "eth.src", "eth.dst", "infiniband.grh.sgid", "infiniband.grh.dgid",
                  "infiniband.grh.nxthdr", "infiniband.grh.hoplmt", "eth.fcs.status"})) {
      EXPECT_EQ(p.number("eth.type"), 0x8915U);
      EXPECT_EQ(p.text("eth.src"), "02:00:00:00:00:01");
      EXPECT_EQ(p.text("eth.dst"), "02:00:00:00:00:02");
      EXPECT_EQ(p.text("infiniband.grh.sgid"), "fe80::1");
      EXPECT_EQ(p.text("infiniband.grh.dgid"), "fe80::2");
      EXPECT_EQ(p.number("infiniband.grh.nxthdr"), 0x1BU);
      EXPECT_EQ(p.number("infiniband.grh.hoplmt"), 64U);
      EXPECT_EQ(p.number("eth.fcs.status"), 1U);
    }
  });
}

TEST(CaptureTest, RoceV2) {
  check_wire({}, "rocev2", [](const std::string& file) {
    for (const Dissection& p :
         dissect(file, "infiniband.bth.opcode && frame.packet_flags_direction == 2",
                 {"ip.src", "ip.dst", "ip.ttl", "ip.flags.df", "ip.checksum.status", "udp.dstport",
                  "udp.length", "ip.len", "eth.fcs.status", "udp.checksum"})) {
      EXPECT_EQ(p.text("ip.src"), "10.0.0.1");
      EXPECT_EQ(p.text("ip.dst"), "10.0.0.2");
      EXPECT_EQ(p.number("ip.ttl"), 64U);
      EXPECT_EQ(p.number("ip.flags.df"), 1U);
      EXPECT_EQ(p.number("ip.checksum.status"), 1U);
      EXPECT_EQ(p.number("udp.dstport"), 4791U);
      EXPECT_EQ(p.number("udp.checksum"), 0U);
      EXPECT_EQ(p.number("udp.length") + 20, p.number("ip.len"));
      EXPECT_EQ(p.number("eth.fcs.status"), 1U);
    }
  });
}

TEST(CaptureTest, InfinibandWithGrh) {
  check_wire({{"transport.grh", "true"}}, "ib", [](const std::string& file) {
    for (const Dissection& p :
         dissect(file, "infiniband.bth.opcode && frame.packet_flags_direction == 2",
                 {"infiniband.lrh.lnh", "infiniband.grh.dgid", "infiniband.grh.nxthdr"})) {
      EXPECT_EQ(p.number("infiniband.lrh.lnh"), 3U);
      EXPECT_EQ(p.text("infiniband.grh.dgid"), "fe80::2");
      EXPECT_EQ(p.number("infiniband.grh.nxthdr"), 0x1BU);
    }
  });
}

TEST(CaptureTest, RoceV2OverIpv6WithVlan) {
  check_wire({{"transport.ip_version", "6"}, {"transport.vlan", "true"}}, "rocev2",
             [](const std::string& file) {
               for (const Dissection& p :
                    dissect(file, "infiniband.bth.opcode && frame.packet_flags_direction == 2",
                            {"vlan.etype", "ipv6.src", "ipv6.dst", "ipv6.nxt", "ipv6.hlim",
                             "ipv6.plen", "udp.length"})) {
                 EXPECT_EQ(p.number("vlan.etype"), 0x86DDU);
                 EXPECT_EQ(p.text("ipv6.src"), "fe80::1");
                 EXPECT_EQ(p.text("ipv6.dst"), "fe80::2");
                 EXPECT_EQ(p.number("ipv6.nxt"), 17U);
                 EXPECT_EQ(p.number("ipv6.hlim"), 64U);
                 EXPECT_EQ(p.number("ipv6.plen"), p.number("udp.length"));
               }
             });
}

/// Captures a run of the program at host 0's port.
class CapturedRun {
 public:
  explicit CapturedRun(const Settings& settings) : place_("captured_run") {
    std::filesystem::remove(place_.path());
    run_well(with({{"workload.iterations", "8"},
                   {"sim.warmup", "0"},
                   {"output.traces", "pcap"},
                   {"output.dir", place_.path()}},
                  settings));
  }
  std::string file(const std::string& port = "host0.nic.port") const {
    return place_.path() + "/" + port + ".pcapng";
  }

 private:
  TemporaryFile place_;
};

TEST(CaptureTest, EthernetPriorityDscpEcnAndSourcePort) {
  const CapturedRun run({{"transport.protocol", "rocev2"},
                         {"transport.vlan", "true"},
                         {"transport.vlan_id", "100"},
                         {"transport.service_level", "3,5"},
                         {"transport.response_service_level", "6"},
                         {"transport.ecn", "2"},
                         {"transport.hop_limit", "33"},
                         {"workload.pattern", "bandwidth"},
                         {"workload.qps", "2"}});
  EXPECT_EQ(complaints(run.file()), "");
  std::map<std::uint64_t, std::uint64_t> port_of;  // by destination QP
  for (const Dissection& p :
       dissect(run.file(), "infiniband.bth.opcode",
               {"frame.packet_flags_direction", "vlan.priority", "vlan.id", "ip.dsfield.dscp",
                "ip.dsfield.ecn", "ip.ttl", "udp.srcport", "infiniband.bth.destqp"})) {
    const std::uint64_t priority = p.number("vlan.priority");
    const std::uint64_t qp = p.number("infiniband.bth.destqp");
    if (p.number("frame.packet_flags_direction") == 2) {
      EXPECT_TRUE(priority == 3 || priority == 5) << priority;
      port_of[qp] = p.number("udp.srcport");
    } else {
      EXPECT_EQ(priority, 6U);
    }
    EXPECT_EQ(p.number("vlan.id"), 100U);
    EXPECT_EQ(p.number("ip.dsfield.dscp"), 8 * priority);
    EXPECT_EQ(p.number("ip.dsfield.ecn"), 2U);
    EXPECT_EQ(p.number("ip.ttl"), 33U);
  }
  ASSERT_EQ(port_of.size(), 2U);
  for (const auto& [qp, port] : port_of) {
    // Both ends have the same QP numbers. Linux: the flow label is the product, folded; small
    // products lose nothing.
    const std::uint64_t label = qp * qp;
    ASSERT_LT(label, 1U << 14);
    EXPECT_EQ(port, 0xC000 | label) << qp;
  }
}

TEST(CaptureTest, ServiceLevelsAndVirtualLanes) {
  const CapturedRun run({{"transport.protocol", "ib"},
                         {"link.data_vls", "4"},
                         {"link.sl2vl", "0,3,2,1"},
                         {"transport.service_level", "1,6"},
                         {"workload.pattern", "bandwidth"},
                         {"workload.qps", "2"}});
  EXPECT_EQ(complaints(run.file()), "");
  std::map<std::uint64_t, std::uint64_t> vl_of;
  for (const Dissection& p :
       dissect(run.file(), "infiniband.bth.opcode", {"infiniband.lrh.sl", "infiniband.lrh.vl"})) {
    vl_of[p.number("infiniband.lrh.sl")] = p.number("infiniband.lrh.vl");
  }
  // The table repeats: SL 6 is its entry 2.
  EXPECT_EQ(vl_of, (std::map<std::uint64_t, std::uint64_t>{{1, 3}, {6, 2}}));
}

TEST(CaptureTest, PausesOfACongestedSwitch) {
  for (const bool global : {false, true}) {
    // Two senders to host 0: the switch stops them.
    const CapturedRun run({{"transport.protocol", "rocev2"},
                           {"transport.service_level", "4"},
                           {"link.flow_control", global ? "pause" : "pfc"},
                           {"fabric.topology", "single_switch"},
                           {"fabric.hosts", "3"},
                           {"workload.traffic", "incast"},
                           {"workload.pattern", "bandwidth"},
                           {"workload.msg_size", "256KiB"}});
    const std::string port = run.file("host1.nic.port");
    EXPECT_EQ(complaints(port), "");
    const auto pauses = dissect(port, "macc",
                                {"frame.packet_flags_direction", "eth.src", "macc.opcode",
                                 "macc.pause_time", "macc.cbfc.enbv", "macc.cbfc.pause_time.c4"});
    ASSERT_GT(pauses.size(), 1U);
    const Dissection& first = pauses.front();
    EXPECT_EQ(first.number("frame.packet_flags_direction"), 1U);
    EXPECT_EQ(first.text("eth.src"), "06:00:00:00:00:01");  // the switch's port 1
    if (global) {
      EXPECT_EQ(first.number("macc.opcode"), 0x0001U);
      EXPECT_EQ(first.number("macc.pause_time"), 0xFFFFU);
      EXPECT_EQ(pauses[1].number("macc.pause_time"), 0U);
    } else {
      EXPECT_EQ(first.number("macc.opcode"), 0x0101U);
      EXPECT_EQ(first.number("macc.cbfc.enbv"), 1U << 4);
      EXPECT_EQ(first.number("macc.cbfc.pause_time.c4"), 0xFFFFU);
      EXPECT_EQ(pauses[1].number("macc.cbfc.pause_time.c4"), 0U);
    }
  }
}

/// The iWARP story: WRITE of two segments, READ, SEND. MULPDU of a 1,500-byte MTU: EMSS 1,460 less
/// MPA's 6 (RFC 5044), so that a tagged segment holds 1,454 - 14 = 1,440 bytes, an untagged 1,436.
TEST(CaptureTest, Iwarp) {
  const TemporaryFile place("capture_iwarp");
  std::filesystem::remove(place.path());
  VerbsRig rig({{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}});
  PortCapture capture(place.path(), "a", CaptureLink::kEthernet, rig.a.node.nic.encapsulation());
  rig.a.port().set_tap(&capture);
  RigBuffer local;
  RigBuffer remote;
  rig.run([&] {
    rig.connect();
    local = rig.a.buffer(8192);
    remote = rig.b.buffer(8192);
    const auto go = [&](WrOpcode op, std::uint32_t bytes) {
      EXPECT_EQ(rig.a.post(op, local.address, local.region.lkey, bytes, remote.address + 8,
                           remote.region.rkey),
                host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    };
    rig.b.post_recv(remote.address, remote.region.lkey, 4096);
    rig.settle();
    go(WrOpcode::kRdmaWrite, 1440 + 101);
    go(WrOpcode::kRdmaRead, 77);
    go(WrOpcode::kSend, 1436 + 4);
    rig.settle(microseconds(300));  // the last delayed ACK
  });
  capture.finish();
  const std::string file = place.path() + "/a.pcapng";
  EXPECT_EQ(complaints(file), "");
  const std::string text = dissection_text(file);
  EXPECT_EQ(text.find("Bad CRC32"), std::string::npos);

  const auto tcp =
      dissect(file, "tcp",
              {"tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.options.mss_val",
               "tcp.options.wscale.shift", "iwarp_mpa.rev", "iwarp_mpa.crc_flag"});
  ASSERT_GT(tcp.size(), 5U);
  // Both ends have the same initial sequence number: sq_psn of the rig.
  constexpr std::uint32_t kIsn = kFirstPsn;
  EXPECT_EQ(tcp[0].number("tcp.flags"), 0x002U);  // SYN
  EXPECT_EQ(tcp[0].number("tcp.seq_raw"), kIsn);
  EXPECT_EQ(tcp[0].number("tcp.options.mss_val"), 1460U);
  EXPECT_TRUE(tcp[0].has("tcp.options.wscale.shift"));
  EXPECT_EQ(tcp[1].number("tcp.flags"), 0x012U);  // SYN, ACK
  EXPECT_EQ(tcp[1].number("tcp.ack_raw"), kIsn + 1);
  EXPECT_EQ(tcp[2].number("tcp.flags"), 0x010U);  // ACK
  EXPECT_EQ(tcp[2].number("tcp.seq_raw"), kIsn + 1);
  EXPECT_EQ(tcp[3].number("tcp.len"), 20U);  // MPA request
  EXPECT_EQ(tcp[3].number("iwarp_mpa.rev"), 1U);
  EXPECT_EQ(tcp[3].number("iwarp_mpa.crc_flag"), 1U);
  EXPECT_EQ(tcp[4].number("tcp.len"), 20U);  // MPA reply
  EXPECT_EQ(tcp[4].number("tcp.ack_raw"), kIsn + 21);

  const auto ddp = dissect(
      file, "iwarp_ddp",
      {"frame.packet_flags_direction", "tcp.seq_raw", "iwarp_mpa.ulpdulength",
       "iwarp_ddp.tagged_flag", "iwarp_ddp.last_flag", "iwarp_ddp.stag", "iwarp_ddp.tagged_offset",
       "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_ddp.mo", "iwarp_rdma.opcode", "iwarp_rdma.sinkstag",
       "iwarp_rdma.sinkto", "iwarp_rdma.rdmardsz", "iwarp_rdma.srcstag", "iwarp_rdma.srcto"});
  ASSERT_EQ(ddp.size(), 6U);
  const auto expect = [&](std::size_t i, const std::map<std::string, std::uint64_t>& wanted) {
    for (const auto& [field, value] : wanted) {
      EXPECT_EQ(ddp[i].number(field), value) << "segment " << i << ", " << field;
    }
  };
  const std::uint64_t va = remote.address + 8;
  expect(0, {{"iwarp_ddp.tagged_flag", 1},
             {"iwarp_ddp.last_flag", 0},
             {"iwarp_ddp.stag", remote.region.rkey},
             {"iwarp_ddp.tagged_offset", va},
             {"iwarp_rdma.opcode", 0},
             {"iwarp_mpa.ulpdulength", 1454},
             {"tcp.seq_raw", kIsn + 21}});
  // The first FPDU: 2 + 1,454 + 4 bytes.
  expect(1, {{"iwarp_ddp.last_flag", 1},
             {"iwarp_ddp.tagged_offset", va + 1440},
             {"iwarp_mpa.ulpdulength", 14 + 101},
             {"tcp.seq_raw", kIsn + 21 + 1460}});
  expect(2, {{"iwarp_ddp.tagged_flag", 0},
             {"iwarp_ddp.qn", 1},
             {"iwarp_ddp.msn", 1},
             {"iwarp_rdma.opcode", 1},
             {"iwarp_rdma.sinkstag", local.region.lkey},
             {"iwarp_rdma.sinkto", local.address},
             {"iwarp_rdma.rdmardsz", 77},
             {"iwarp_rdma.srcstag", remote.region.rkey},
             {"iwarp_rdma.srcto", va}});
  expect(3, {{"frame.packet_flags_direction", 1},
             {"iwarp_rdma.opcode", 2},
             {"iwarp_ddp.stag", local.region.lkey},
             {"iwarp_ddp.tagged_offset", local.address}});
  expect(4, {{"iwarp_rdma.opcode", 3},
             {"iwarp_ddp.qn", 0},
             {"iwarp_ddp.msn", 1},
             {"iwarp_ddp.mo", 0},
             {"iwarp_ddp.last_flag", 0}});
  expect(5, {{"iwarp_rdma.opcode", 3}, {"iwarp_ddp.mo", 1436}, {"iwarp_ddp.last_flag", 1}});
  std::size_t good = 0;
  for (std::size_t at = 0; (at = text.find("Good CRC32", at)) != std::string::npos; ++at) ++good;
  EXPECT_EQ(good, 6U);
}

TEST(CaptureTest, EveryOperationOnEveryWireIsWellFormed) {
  for (const std::string& protocol : all_protocols()) {
    const TemporaryFile place("captures_" + protocol);
    std::filesystem::remove(place.path());
    std::vector<std::string> files;  // tshark's start takes longer than all the rest
    for (const std::string& op : operations_of(protocol)) {
      const Settings settings{
          {"transport.protocol", protocol},    {"workload.op", op}, {"workload.msg_size", "9001"},
          {"workload.iterations", "4"},        {"sim.warmup", "0"}, {"output.traces", "pcap"},
          {"fabric.topology", "single_switch"}};
      const std::string directory = place.path() + "/" + op;
      run_well(with(settings, {{"output.dir", directory}}));
      for (const char* port : {"host0.nic.port", "switch.port1"}) {
        files.push_back(directory + "/" + port + ".pcapng");
        EXPECT_GT(read_pcapng(files.back()).size(), 4U);
      }
      EXPECT_TRUE(std::filesystem::exists(directory + "/host1.nic.port.pcapng"));
      EXPECT_TRUE(std::filesystem::exists(directory + "/switch.port0.pcapng"));
    }
    const std::string all = place.path() + "/all.pcapng";
    merge_captures(files, all);
    EXPECT_EQ(complaints(all), "") << protocol;
  }
}

TEST(CaptureTest, StampsAreNanosecondsInOrderAndCablesDelay) {
  const TemporaryFile place("captures");
  std::filesystem::remove(place.path());
  run_well({{"transport.protocol", "rocev2"},
            {"workload.op", "send"},
            {"link.delay", "1us"},
            {"link.phy_latency", "30ns"},
            {"workload.iterations", "20"},
            {"sim.warmup", "0"},
            {"output.traces", "pcap"},
            {"output.dir", place.path()}});
  const auto a = read_pcapng(place.path() + "/host0.nic.port.pcapng");
  const auto b = read_pcapng(place.path() + "/host1.nic.port.pcapng");
  std::vector<CapturedPacket> sent;
  std::vector<CapturedPacket> received;
  for (const CapturedPacket& packet : a) {
    if (packet.sent) sent.push_back(packet);
  }
  for (const CapturedPacket& packet : b) {
    if (!packet.sent) received.push_back(packet);
  }
  ASSERT_GT(sent.size(), 20U);
  ASSERT_EQ(sent.size(), received.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].bytes, received[i].bytes);
    // The cable and a PHY at each end; stamps are rounded down to whole nanoseconds.
    EXPECT_EQ(received[i].nanoseconds - sent[i].nanoseconds, 1000U + 2 * 30);
  }
  for (std::size_t i = 1; i < a.size(); ++i) EXPECT_LE(a[i - 1].nanoseconds, a[i].nanoseconds);
}

TEST(CaptureTest, TracesNeedADirectory) {
  // run_program() gives a directory of its own, so this one asks for none at all.
  const ProgramRun run = run_program({{"output.traces", "vcd"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("output.traces"), std::string::npos) << run.error;
}

}  // namespace
}  // namespace rnic::testbench
