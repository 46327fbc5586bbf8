// SPDX-License-Identifier: Apache-2.0
// Captures of what the other captures leave out: MPA with markers and without CRC, atomics, the
// unacknowledged services, and how an iWARP connection ends. tshark reads them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/captured_rig.h"
#include "support/program.h"
#include "support/temporary_file.h"
#include "support/tshark.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::WcStatus;

/// WRITE of 10,000 B, READ of 3,000 B, SEND of 2,000 B; with markers a tagged segment of MTU 1500
/// holds 1,428 B, an untagged one 1,424 B.
std::string framing_story(CapturedRig& captured) {
  return captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.rig.b.post_recv(captured.remote.address, captured.remote.region.lkey, 4096);
    captured.rig.settle();
    captured.go(WrOpcode::kRdmaWrite, 10'000);
    captured.go(WrOpcode::kRdmaRead, 3'000);
    captured.go(WrOpcode::kSend, 2'000);
  });
}

TEST(CaptureServices, MpaMarkers) {
  CapturedRig captured(
      {{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}, {"tcp.mpa_markers", "true"}});
  const std::string file = framing_story(captured);
  const auto start = dissect(file, "iwarp_mpa.req || iwarp_mpa.rep", {"iwarp_mpa.marker_flag"});
  ASSERT_EQ(start.size(), 2U);
  for (const Dissection& frame : start) EXPECT_EQ(frame.number("iwarp_mpa.marker_flag"), 1U);
  // WRITE 8 segments (7 x 1,428 = 9,996), READ request, 3 of its response, SEND 2. tshark takes the
  // markers out and finds the CRC over them right.
  const std::string text = dissection_text(file);
  EXPECT_EQ(count_of(text, "Bad CRC32"), 0U);
  EXPECT_EQ(count_of(text, "Good CRC32"), 8U + 1 + 3 + 2);
  const auto ddp = dissect(file, "iwarp_ddp.tagged_flag == 1 && tcp.len > 1000",
                           {"iwarp_mpa.ulpdulength", "tcp.len"});
  for (const Dissection& segment : ddp) {
    if (segment.number("iwarp_mpa.ulpdulength") != 1442) continue;
    // 2 + 1,442 + 4 B and two or three markers.
    EXPECT_TRUE(segment.number("tcp.len") == 1456 || segment.number("tcp.len") == 1460);
  }
}

/// The markers of a captured stream, by the rule alone (RFC 5044, 4.3): at every 512th byte of what
/// follows the MPA frame, two zero bytes and the distance back to the FPDU's length field.
TEST(CaptureServices, MarkersStandWhereTheRuleAsks) {
  CapturedRig captured(
      {{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}, {"tcp.mpa_markers", "true"}});
  const std::string file = framing_story(captured);
  std::size_t behind = 0;  // bytes of the stream so far
  int markers = 0;
  bool full_operation = false;
  for (const CapturedPacket& packet : read_pcapng(file)) {
    if (!packet.sent) continue;
    const std::vector<std::uint8_t>& b = packet.bytes;
    const std::size_t tcp = 34;
    const std::size_t ip_end = 14 + static_cast<std::size_t>(b[16] << 8 | b[17]);
    const std::size_t from = tcp + (b[tcp + 12] >> 4) * 4U;
    if (from >= ip_end) continue;
    if (!full_operation) {  // the MPA request
      full_operation = true;
      continue;
    }
    // The length field is the first thing that is no marker.
    const std::size_t length_at = behind % 512 == 0 ? 4 : 0;
    for (std::size_t i = 0; i < ip_end - from; ++i) {
      if ((behind + i) % 512 != 0) continue;
      ++markers;
      const std::size_t at = from + i;
      EXPECT_EQ(b[at] << 8 | b[at + 1], 0);
      const std::size_t distance = i < length_at ? 0 : i - length_at;
      EXPECT_EQ(static_cast<std::size_t>(b[at + 2] << 8 | b[at + 3]), distance)
          << "byte " << behind + i;
    }
    behind += ip_end - from;
  }
  EXPECT_GT(markers, 20);
}

TEST(CaptureServices, MpaWithoutCrc) {
  CapturedRig captured(
      {{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}, {"tcp.mpa_crc", "false"}});
  const std::string file = framing_story(captured);
  const auto start = dissect(file, "iwarp_mpa.req || iwarp_mpa.rep", {"iwarp_mpa.crc_flag"});
  ASSERT_EQ(start.size(), 2U);
  for (const Dissection& frame : start) EXPECT_EQ(frame.number("iwarp_mpa.crc_flag"), 0U);
  EXPECT_GT(dissect(file, "iwarp_ddp", {"iwarp_ddp.last_flag"}).size(), 10U);
  const auto syns =
      dissect(file, "tcp.flags.syn == 1",
              {"tcp.options.sack_perm", "tcp.options.mss_val", "tcp.options.wscale.shift"});
  ASSERT_EQ(syns.size(), 2U);
  for (const Dissection& syn : syns) {
    EXPECT_TRUE(syn.has("tcp.options.sack_perm"));
    EXPECT_EQ(syn.number("tcp.options.mss_val"), 1460U);
    EXPECT_TRUE(syn.has("tcp.options.wscale.shift"));
  }
}

// RFC 6581: 4 bytes of private data with the limits of READs, A (peer-to-peer) and the offered
// messages; the reply selects one, and the first FPDU is that one, without data.
TEST(CaptureServices, EnhancedSetUp) {
  struct Kind {
    const char* name;
    std::uint32_t flags;   ///< B (SEND) in the first half, C (WRITE) and D (READ) in the second
    std::uint64_t opcode;  ///< of RDMAP
  };
  for (const Kind& kind :
       {Kind{"send", 0x4000'0000U, 3}, Kind{"write", 0x8000U, 0}, Kind{"read", 0x4000U, 1}}) {
    const TemporaryFile place("capture_enhanced");
    std::filesystem::remove(place.path());
    run_well({{"transport.protocol", "iwarp"},
              {"transport.mtu", "1500"},
              {"tcp.mpa_revision", "2"},
              {"tcp.mpa_rtr", "any"},
              {"tcp.mpa_rtr_accept", kind.name},
              {"transport.max_rd_atomic", "5"},
              {"transport.max_dest_rd_atomic", "7"},
              {"workload.iterations", "2"},
              {"sim.warmup", "0"},
              {"output.traces", "pcap"},
              {"output.dir", place.path()}});
    const std::string file = place.path() + "/host0.nic.port.pcapng";
    EXPECT_EQ(complaints(file), "") << kind.name;
    std::vector<std::uint32_t> terms;  // request, reply
    std::vector<std::uint64_t> opcodes;
    for (const CapturedPacket& packet : read_pcapng(file)) {
      const std::vector<std::uint8_t>& b = packet.bytes;
      const std::size_t tcp = 34;
      const std::size_t ip_end = 14 + static_cast<std::size_t>(b[16] << 8 | b[17]);
      const std::size_t from = tcp + (b[tcp + 12] >> 4) * 4U;
      if (from >= ip_end) continue;
      if (terms.size() < 2) {
        ASSERT_EQ(ip_end - from, 24U);
        EXPECT_EQ(b[from + 16], 0x50);  // C and S
        EXPECT_EQ(b[from + 17], 2);     // revision
        EXPECT_EQ(b[from + 18] << 8 | b[from + 19], 4);
        terms.push_back(static_cast<std::uint32_t>(b[from + 20]) << 24 |
                        static_cast<std::uint32_t>(b[from + 21]) << 16 |
                        static_cast<std::uint32_t>(b[from + 22]) << 8 | b[from + 23]);
      } else {
        opcodes.push_back(b[from + 3] & 0xFU);
      }
    }
    ASSERT_GE(opcodes.size(), 3U);
    EXPECT_EQ(terms[0], 0x8000'0000U | 0x4000'0000U | 7U << 16 | 0xC000U | 5U);
    EXPECT_EQ(terms[1], 0x8000'0000U | kind.flags | 7U << 16 | 5U);
    EXPECT_EQ(opcodes[0], kind.opcode) << kind.name;
    // The READ's empty response comes back while the initiator sends already.
    const auto responses = std::count(opcodes.begin(), opcodes.end(), std::uint64_t{2});
    EXPECT_EQ(responses, kind.opcode == 1 ? 1 : 0) << kind.name;
  }
}

// A WRITE with a wrong key: TERMINATE with FIN, answered by an ACK with FIN.
TEST(CaptureServices, TerminateEndsTheStream) {
  CapturedRig captured({{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}});
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.go(WrOpcode::kRdmaWrite, 100, WcStatus::kRemoteAccessError, 0x100);
  });
  const auto terminate = dissect(file, "iwarp_rdma.opcode == 7",
                                 {"frame.packet_flags_direction", "tcp.flags.fin", "iwarp_ddp.qn"});
  ASSERT_EQ(terminate.size(), 1U);
  EXPECT_EQ(terminate[0].number("frame.packet_flags_direction"), 1U);
  EXPECT_EQ(terminate[0].number("tcp.flags.fin"), 1U);
  EXPECT_EQ(terminate[0].number("iwarp_ddp.qn"), 2U);
  const auto fins = dissect(file, "tcp.flags.fin == 1", {"frame.packet_flags_direction"});
  ASSERT_EQ(fins.size(), 2U);
  EXPECT_EQ(fins[1].number("frame.packet_flags_direction"), 2U);
  EXPECT_TRUE(dissect(file, "tcp.flags.reset == 1", {"tcp.seq_raw"}).empty());
}

TEST(CaptureServices, ErrorStateResetsTheConnection) {
  CapturedRig captured({{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}});
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.go(WrOpcode::kRdmaWrite, 100);
    host::verbs::QpAttr attr;
    attr.qp_state = protocol::QpState::kError;
    EXPECT_EQ(captured.rig.a.verbs().modify_qp(captured.rig.a.core, *captured.rig.a.qp, attr,
                                               protocol::QpAttrMask::kState),
              host::Status::kOk);
    captured.rig.settle();
    EXPECT_EQ(captured.rig.b.state(), protocol::QpState::kError);
  });
  EXPECT_EQ(dissect(file, "tcp.flags.reset == 1", {"tcp.seq_raw"}).size(), 1U);
}

class CaptureAtomics : public ::testing::TestWithParam<std::string> {};

TEST_P(CaptureAtomics, RequestAndAnswer) {
  CapturedRig captured({{"transport.protocol", GetParam()}, {"transport.mtu", "1024"}});
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.go(WrOpcode::kAtomicCmpAndSwp, 8);
    captured.go(WrOpcode::kAtomicFetchAndAdd, 8);
  });
  const auto packets = dissect(file, "infiniband.bth.opcode",
                               {"infiniband.bth.opcode", "infiniband.atomiceth.swapdt",
                                "infiniband.atomicacketh.origremdt"});
  ASSERT_EQ(packets.size(), 4U);
  constexpr std::uint64_t kOpcodes[] = {0x13, 0x12, 0x14, 0x12};  // requests and acknowledgements
  for (std::size_t i = 0; i < packets.size(); ++i) {
    EXPECT_EQ(packets[i].number("infiniband.bth.opcode"), kOpcodes[i]);
    EXPECT_EQ(packets[i].has("infiniband.atomiceth.swapdt"), i % 2 == 0);
    EXPECT_EQ(packets[i].has("infiniband.atomicacketh.origremdt"), i % 2 == 1);
  }
}
INSTANTIATE_TEST_SUITE_P(Wires, CaptureAtomics, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

TEST(CaptureServices, AtomicsOfIwarp) {
  CapturedRig captured({{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}});
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.go(WrOpcode::kAtomicFetchAndAdd, 8);
  });
  // Opcodes 10 and 11 of RFC 7306, on the untagged queues 1 and 3.
  const auto ddp = dissect(file, "iwarp_ddp",
                           {"iwarp_rdma.opcode", "iwarp_ddp.qn", "iwarp_rdma.atomic.remote_stag"});
  ASSERT_EQ(ddp.size(), 2U);
  EXPECT_EQ(ddp[0].number("iwarp_rdma.opcode"), 10U);
  EXPECT_EQ(ddp[0].number("iwarp_ddp.qn"), 1U);
  EXPECT_EQ(ddp[0].number("iwarp_rdma.atomic.remote_stag"), captured.remote.region.rkey);
  EXPECT_EQ(ddp[1].number("iwarp_rdma.opcode"), 11U);
  EXPECT_EQ(ddp[1].number("iwarp_ddp.qn"), 3U);
}

// WRITE of three packets and SEND with immediate: opcodes of UC are those of RC and 0x20.
TEST(CaptureServices, UnreliableConnection) {
  CapturedRig captured(
      {{"transport.protocol", "rocev2"}, {"transport.type", "uc"}, {"transport.mtu", "1024"}});
  const std::string file = captured.file_of([&] {
    captured.rig.connect(protocol::QpType::kUc);
    captured.map();
    captured.rig.b.post_recv(captured.remote.address, captured.remote.region.lkey, 4096);
    captured.rig.settle();
    captured.go(WrOpcode::kRdmaWrite, 3'000);
    captured.go(WrOpcode::kSendWithImm, 10);
  });
  std::vector<std::uint64_t> opcodes;
  for (const Dissection& p : dissect(file, "infiniband.bth.opcode", {"infiniband.bth.opcode"})) {
    opcodes.push_back(p.number("infiniband.bth.opcode"));
  }
  EXPECT_EQ(opcodes, (std::vector<std::uint64_t>{0x26, 0x27, 0x28, 0x25}));
}

// A datagram carries a DETH and is a packet of its own: SEND Only of UD is 0x60 + 0x04.
TEST(CaptureServices, UnreliableDatagram) {
  for (const char* protocol : {"ib", "rocev1", "rocev2"}) {
    const TemporaryFile place("capture_datagram");
    std::filesystem::remove(place.path());  // a directory of that name is made by the program
    run_well({{"transport.protocol", protocol},
              {"transport.type", "ud"},
              {"workload.op", "send"},
              {"workload.pattern", "bandwidth"},
              {"workload.msg_size", "100"},
              {"workload.depth", "1"},
              {"workload.iterations", "3"},
              {"sim.warmup", "0"},
              {"output.traces", "pcap"},
              {"output.dir", place.path()}});
    const std::string file = place.path() + "/host0.nic.port.pcapng";
    EXPECT_EQ(complaints(file), "") << protocol;
    std::size_t datagrams = 0;
    for (const Dissection& p : dissect(file, "infiniband.bth.opcode",
                                       {"infiniband.bth.opcode", "infiniband.deth.q_key"})) {
      EXPECT_EQ(p.number("infiniband.bth.opcode"), 0x64U) << protocol;
      EXPECT_TRUE(p.has("infiniband.deth.q_key")) << protocol;
      ++datagrams;
    }
    EXPECT_EQ(datagrams, 3U) << protocol;
  }
}

}  // namespace
}  // namespace rnic::testbench
