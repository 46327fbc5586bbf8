// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "capture/port_capture.h"
#include "support/hex.h"
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
      if (value != want.fields.end()) EXPECT_EQ(got.number(field), value->second) << field;
    }
    if (want.fields.count("padcnt") != 0) {
      EXPECT_EQ(got.number("infiniband.bth.padcnt"), want.fields.at("padcnt"));
    }
    if (got.has("infiniband.aeth.msn")) {
      EXPECT_EQ(got.number("infiniband.aeth.syndrome.opcode"), 0U);  // ACK
    }
  }
}

/// ICRC of a captured packet by the rules alone: `start` is where the LRH (IB), GRH or IP header
/// is. Bit by bit, and with the masks of each format spelt out.
std::uint32_t icrc_by_rules(const std::vector<std::uint8_t>& packet, std::size_t start,
                            std::size_t end, const std::string& protocol) {
  std::vector<std::uint8_t> in(packet.begin() + static_cast<std::ptrdiff_t>(start),
                               packet.begin() + static_cast<std::ptrdiff_t>(end));
  std::size_t bth = 0;
  const auto ones = [&in](std::size_t at, std::size_t n) {
    std::fill_n(in.begin() + static_cast<std::ptrdiff_t>(at), n, std::uint8_t{0xFF});
  };
  const bool ipv6 = protocol != "ib" && (in[0] >> 4) == 6;
  if (protocol == "ib") {
    in[0] |= 0xF0;  // VL
    bth = 8;
  } else if (ipv6) {
    in[0] |= 0x0F;  // traffic class, flow label, hop limit
    ones(1, 3);
    ones(7, 1);
    bth = protocol == "rocev1" ? 40 : 48;
    if (protocol == "rocev2") ones(46, 2);  // UDP checksum
  } else {
    ones(1, 1);   // ToS
    ones(8, 1);   // TTL
    ones(10, 2);  // header checksum
    ones(26, 2);  // UDP checksum
    bth = 28;
  }
  ones(bth + 4, 1);                                      // FECN, BECN
  if (protocol != "ib") in.insert(in.begin(), 8, 0xFF);  // in the place of the LRH
  return bitwise_crc(in, 0xEDB8'8320U, 0xFFFF'FFFFU);
}

std::uint32_t little_endian_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | bytes[at + i];
  return value;
}

/// ICRC and link CRC of every packet; how many had both.
int expect_crcs(const std::string& capture, const std::string& protocol) {
  int checked = 0;
  for (const CapturedPacket& packet : read_pcapng(capture)) {
    const std::vector<std::uint8_t>& b = packet.bytes;
    std::size_t start = 0;
    std::size_t icrc_at = 0;
    if (protocol == "ib") {
      constexpr std::size_t kErf = 16;
      if (b[8] != 21) continue;  // a link packet
      start = kErf;
      icrc_at = b.size() - 6;
      const std::vector<std::uint8_t> covered(b.begin() + kErf, b.end() - 2);
      EXPECT_EQ(bitwise_crc(covered, 0xD008U, 0xFFFFU),
                static_cast<std::uint32_t>(b[b.size() - 2] | b[b.size() - 1] << 8))
          << "VCRC";
    } else {
      const std::vector<std::uint8_t> covered(b.begin(), b.end() - 4);
      EXPECT_EQ(bitwise_crc(covered, 0xEDB8'8320U, 0xFFFF'FFFFU), little_endian_at(b, b.size() - 4))
          << "FCS";
      if (b[12] == 0x88 && b[13] == 0x08) continue;  // MAC control
      start = b[12] == 0x81 ? 18 : 14;
      // By the length fields: short frames have padding behind the ICRC.
      const std::size_t at = start + (b[start] >> 4 == 6 ? 4U : 2U);
      const std::size_t length = static_cast<std::size_t>(b[at] << 8 | b[at + 1]);
      icrc_at = start + length + (b[start] >> 4 == 6 ? 40U : 0U) - 4;
    }
    EXPECT_EQ(icrc_by_rules(b, start, icrc_at, protocol), little_endian_at(b, icrc_at)) << "ICRC";
    ++checked;
  }
  return checked;
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
