// SPDX-License-Identifier: Apache-2.0
// Every operation on every service and wire, as tshark reads it, with the checksums that tshark
// does not check computed by the rules; and what answers wrong requests.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/capture_rules.h"
#include "support/captured_rig.h"
#include "support/program.h"
#include "support/temporary_file.h"
#include "support/tshark.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::WcStatus;

Settings wire(const std::string& protocol) {
  return {{"transport.protocol", protocol},
          {"transport.mtu", protocol == "iwarp" ? "1500" : "1024"}};
}

class CaptureOperations : public ::testing::TestWithParam<std::string> {
 protected:
  static bool iwarp() { return GetParam() == "iwarp"; }
};
INSTANTIATE_TEST_SUITE_P(Wires, CaptureOperations, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

/// Binds a window of `b` and sends `bytes` that end it; returns its key.
std::uint32_t send_with_invalidate(CapturedRig& captured, std::uint32_t bytes,
                                   std::uint32_t flags) {
  VerbsRig& rig = captured.rig;
  auto window = rig.b.verbs().alloc_mw(rig.b.core, rig.b.pd, host::verbs::MwType::kType2);
  SendWr bind;
  bind.opcode = WrOpcode::kBindMw;
  bind.flags = SendFlags::kSignaled;
  bind.bind = {&*window,
               host::verbs::next_key(window->rkey),
               captured.remote.region.lkey,
               captured.remote.address,
               4096,
               protocol::kAccessRemoteWrite};
  EXPECT_EQ(rig.b.verbs().post_send(rig.b.core, *rig.b.qp, &bind, 1), Status::kOk);
  EXPECT_EQ(rig.b.await_send().status, WcStatus::kSuccess);
  rig.b.post_recv(captured.remote.address, captured.remote.region.lkey, 8192);
  rig.settle();
  const std::uint32_t key = window->rkey;
  const protocol::Sge sge{captured.local.address, bytes, captured.local.region.lkey};
  SendWr wr;
  wr.opcode = WrOpcode::kSendWithInv;
  wr.flags = SendFlags::kSignaled | flags;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.invalidate_key = key;
  EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), Status::kOk);
  EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  return key;
}

// SEND Only (0x17) and Last (0x16) with Invalidate carry the key in an IETH; iWARP has opcodes 4
// and, solicited, 6, with the key in the DDP header.
TEST_P(CaptureOperations, SendWithInvalidate) {
  CapturedRig captured(wire(GetParam()));
  std::vector<std::uint32_t> keys;
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map(kAllAccess | protocol::kAccessMwBind);
    keys.push_back(send_with_invalidate(captured, 100, 0));
    keys.push_back(send_with_invalidate(captured, 1500, SendFlags::kSolicited));
  });
  std::size_t found = 0;
  if (iwarp()) {
    for (const Dissection& p :
         dissect(file, "iwarp_rdma.opcode == 4 || iwarp_rdma.opcode == 6",
                 {"iwarp_rdma.opcode", "iwarp_rdma.inval_stag", "iwarp_ddp.msn"})) {
      const std::uint64_t message = p.number("iwarp_ddp.msn");  // the second one is two segments
      ASSERT_TRUE(message == 1 || message == 2);
      EXPECT_EQ(p.number("iwarp_rdma.opcode"), message == 1 ? 4U : 6U);
      EXPECT_EQ(p.number("iwarp_rdma.inval_stag"), keys.at(message - 1));
      ++found;
    }
    EXPECT_EQ(found, 3U);
  } else {
    const auto packets = dissect(file,
                                 "infiniband.bth.opcode <= 5 || (infiniband.bth.opcode >= 0x16 && "
                                 "infiniband.bth.opcode <= 0x17)",
                                 {"infiniband.bth.opcode", "infiniband.ieth", "infiniband.bth.se"});
    ASSERT_EQ(packets.size(), 3U);
    constexpr std::uint64_t kOpcodes[] = {0x17, 0x00, 0x16};
    for (std::size_t i = 0; i < packets.size(); ++i) {
      EXPECT_EQ(packets[i].number("infiniband.bth.opcode"), kOpcodes[i]);
      ASSERT_EQ(packets[i].has("infiniband.ieth"), i != 1);
      EXPECT_EQ(packets[i].number("infiniband.bth.se"), i == 2 ? 1U : 0U);
    }
    EXPECT_EQ(packets[0].number("infiniband.ieth"), keys[0]);
    EXPECT_EQ(packets[2].number("infiniband.ieth"), keys[1]);
  }
  EXPECT_GT(expect_crcs(file, GetParam()), 4);
}

// Both atomics with all their fields; the memory holds 0 and then what the swap left, 7.
TEST_P(CaptureOperations, AtomicFields) {
  CapturedRig captured(wire(GetParam()));
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.rig.b.fill(captured.remote.address, std::vector<std::uint8_t>(8, 0));
    const auto go = [&](WrOpcode op, std::uint64_t compare_add, std::uint64_t swap) {
      const protocol::Sge sge{captured.local.address, 8, captured.local.region.lkey};
      SendWr wr;
      wr.opcode = op;
      wr.flags = SendFlags::kSignaled;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.remote_addr = captured.remote.address;
      wr.rkey = captured.remote.region.rkey;
      wr.compare_add = compare_add;
      wr.swap = swap;
      VerbsRig& rig = captured.rig;
      EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    };
    go(WrOpcode::kAtomicCmpAndSwp, 0, 7);
    go(WrOpcode::kAtomicFetchAndAdd, 0x1'0000'0003, 0);
  });
  EXPECT_EQ(expect_crcs(file, GetParam()) >= 4, true);
  if (iwarp()) {
    const auto packets =
        dissect(file, "iwarp_rdma.opcode == 10 || iwarp_rdma.opcode == 11",
                {"iwarp_rdma.opcode", "iwarp_rdma.atomic.opcode", "iwarp_rdma.atomic.remote_stag",
                 "iwarp_rdma.atomic.remote_tagged_offset", "iwarp_rdma.atomic.add_data",
                 "iwarp_rdma.atomic.swap_data", "iwarp_rdma.atomic.compare_data",
                 "iwarp_rdma.atomic.original_remote_data_value"});
    ASSERT_EQ(packets.size(), 4U);
    for (const std::size_t request : {std::size_t{0}, std::size_t{2}}) {
      EXPECT_EQ(packets[request].number("iwarp_rdma.atomic.remote_stag"),
                captured.remote.region.rkey);
      EXPECT_EQ(packets[request].number("iwarp_rdma.atomic.remote_tagged_offset"),
                captured.remote.address);
    }
    EXPECT_EQ(packets[0].number("iwarp_rdma.atomic.opcode"), 2U);  // RFC 7306: CmpSwap
    EXPECT_EQ(packets[0].number("iwarp_rdma.atomic.swap_data"), 7U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.atomic.compare_data"), 0U);
    EXPECT_EQ(packets[1].number("iwarp_rdma.atomic.original_remote_data_value"), 0U);
    EXPECT_EQ(packets[2].number("iwarp_rdma.atomic.opcode"), 0U);  // FetchAdd
    EXPECT_EQ(packets[2].number("iwarp_rdma.atomic.add_data"), 0x1'0000'0003U);
    EXPECT_EQ(packets[3].number("iwarp_rdma.atomic.original_remote_data_value"), 7U);
    return;
  }
  const auto packets =
      dissect(file, "infiniband.bth.opcode",
              {"infiniband.bth.opcode", "infiniband.reth.va", "infiniband.reth.r_key",
               "infiniband.atomiceth.swapdt", "infiniband.atomiceth.cmpdt",
               "infiniband.atomicacketh.origremdt", "infiniband.aeth.msn"});
  ASSERT_EQ(packets.size(), 4U);
  for (const std::size_t request : {std::size_t{0}, std::size_t{2}}) {
    EXPECT_EQ(packets[request].number("infiniband.reth.va"), captured.remote.address);
    EXPECT_EQ(packets[request].number("infiniband.reth.r_key"), captured.remote.region.rkey);
  }
  EXPECT_EQ(packets[0].number("infiniband.atomiceth.swapdt"), 7U);
  EXPECT_EQ(packets[0].number("infiniband.atomiceth.cmpdt"), 0U);
  EXPECT_EQ(packets[1].number("infiniband.atomicacketh.origremdt"), 0U);
  EXPECT_EQ(packets[1].number("infiniband.aeth.msn"), 1U);
  EXPECT_EQ(packets[2].number("infiniband.atomiceth.swapdt"), 0x1'0000'0003U);
  EXPECT_EQ(packets[3].number("infiniband.atomicacketh.origremdt"), 7U);
  EXPECT_EQ(packets[3].number("infiniband.aeth.msn"), 2U);
}

// What answers a WRITE with a wrong key: NAK 2 (remote access error) at its PSN; of iWARP a
// TERMINATE of DDP, type 1 (tagged), code 0 (invalid STag), with the length and header of what it
// answers.
TEST_P(CaptureOperations, RefusedWrite) {
  CapturedRig captured(wire(GetParam()));
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    captured.go(WrOpcode::kRdmaWrite, 100, WcStatus::kRemoteAccessError, 0x100);
  });
  EXPECT_GT(expect_crcs(file, GetParam()), 1);
  if (iwarp()) {
    const auto packets = dissect(
        file, "iwarp_rdma.opcode == 7",
        {"iwarp_rdma.term_layer", "iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_errcode_ddp_tagged",
         "iwarp_rdma.term_ddp_seg_len", "iwarp_ddp.qn", "iwarp_ddp.msn"});
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_layer"), 1U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_etype_ddp"), 1U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_errcode_ddp_tagged"), 0U);
    EXPECT_EQ(packets[0].text("iwarp_rdma.term_ddp_seg_len"), "0072");  // 14 + 100
    EXPECT_EQ(packets[0].number("iwarp_ddp.qn"), 2U);
    EXPECT_EQ(packets[0].number("iwarp_ddp.msn"), 1U);
    return;
  }
  const auto packets =
      dissect(file, "infiniband.aeth",
              {"infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.aeth.syndrome.opcode",
               "infiniband.aeth.syndrome.error_code", "infiniband.aeth.msn"});
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].number("infiniband.bth.opcode"), 0x11U);
  EXPECT_EQ(packets[0].number("infiniband.bth.psn"), 0xFF'FFF0U);  // as the rig connects
  EXPECT_EQ(packets[0].number("infiniband.aeth.syndrome.opcode"), 3U);
  EXPECT_EQ(packets[0].number("infiniband.aeth.syndrome.error_code"), 2U);
  EXPECT_EQ(packets[0].number("infiniband.aeth.msn"), 0U);
}

// Each fault of a key has its code: of DDP's tagged model 0 invalid STag, 1 base or bounds, 2 not
// associated; rights, and all that READs name, are RDMAP's: 0 invalid STag, 1 bounds, 2 rights, 3
// not associated (RFC 5040, 4.8; RFC 5041, 8.2).
TEST(CaptureTerminate, NamesTheFaultOfAKey) {
  struct Kind {
    const char* op;
    const char* mistake;
    std::uint64_t layer;
    std::uint64_t code;
  };
  for (const Kind& kind : {Kind{"write", "remote_key", 1, 0}, Kind{"write", "remote_bounds", 1, 1},
                           Kind{"write", "remote_pd", 1, 2}, Kind{"write", "remote_right", 0, 2},
                           Kind{"read", "remote_key", 0, 0}, Kind{"read", "remote_bounds", 0, 1},
                           Kind{"read", "remote_pd", 0, 3}, Kind{"read", "remote_right", 0, 2}}) {
    SCOPED_TRACE(std::string(kind.op) + " " + kind.mistake);
    const TemporaryFile place("capture_terminate");
    std::filesystem::remove(place.path());
    run_well({{"transport.protocol", "iwarp"},
              {"workload.op", kind.op},
              {"workload.pattern", "bandwidth"},
              {"workload.mistake", kind.mistake},
              {"workload.mistake_at", "3"},
              {"workload.iterations", "8"},
              {"sim.warmup", "0"},
              {"output.traces", "pcap"},
              {"output.dir", place.path()}});
    const std::string file = place.path() + "/host0.nic.port.pcapng";
    EXPECT_EQ(complaints(file), "");
    const auto packets =
        dissect(file, "iwarp_rdma.opcode == 7",
                {"iwarp_rdma.term_layer", "iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_etype_ddp",
                 "iwarp_rdma.term_errcode_rdma", "iwarp_rdma.term_errcode_ddp_tagged"});
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_layer"), kind.layer);
    const bool ddp = kind.layer == 1;
    EXPECT_EQ(packets[0].number(ddp ? "iwarp_rdma.term_etype_ddp" : "iwarp_rdma.term_etype_rdma"),
              1U);
    EXPECT_EQ(packets[0].number(ddp ? "iwarp_rdma.term_errcode_ddp_tagged"
                                    : "iwarp_rdma.term_errcode_rdma"),
              kind.code);
  }
}

// A SEND that finds no RECV: an RNR NAK with the timer's code, and the same packet again; of iWARP
// a TERMINATE of DDP, type 2 (untagged), code 2 (no buffer).
TEST_P(CaptureOperations, SendWithoutReceive) {
  CapturedRig captured(with(wire(GetParam()), {{"transport.min_rnr_timer", "12"}}));
  VerbsRig& rig = captured.rig;
  const std::string file = captured.file_of([&] {
    rig.connect();
    captured.map();
    EXPECT_EQ(rig.a.post(WrOpcode::kSend, captured.local.address, captured.local.region.lkey, 64),
              Status::kOk);
    rig.settle();
    if (!iwarp()) rig.b.post_recv(captured.remote.address, captured.remote.region.lkey, 4096);
    EXPECT_EQ(rig.a.await_send().status,
              iwarp() ? WcStatus::kRemoteOperationError : WcStatus::kSuccess);
  });
  EXPECT_GT(expect_crcs(file, GetParam()), 1);
  if (iwarp()) {
    const auto packets = dissect(file, "iwarp_rdma.opcode == 7",
                                 {"iwarp_rdma.term_layer", "iwarp_rdma.term_etype_ddp",
                                  "iwarp_rdma.term_errcode_ddp_untagged"});
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_layer"), 1U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_etype_ddp"), 2U);
    EXPECT_EQ(packets[0].number("iwarp_rdma.term_errcode_ddp_untagged"), 2U);
    return;
  }
  const auto packets =
      dissect(file, "infiniband.bth.opcode",
              {"infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.aeth.syndrome.opcode",
               "infiniband.aeth.syndrome.timer"});
  ASSERT_EQ(packets.size(), 4U);
  constexpr std::uint64_t kOpcodes[] = {0x04, 0x11, 0x04, 0x11};
  for (std::size_t i = 0; i < packets.size(); ++i) {
    EXPECT_EQ(packets[i].number("infiniband.bth.opcode"), kOpcodes[i]);
    EXPECT_EQ(packets[i].number("infiniband.bth.psn"), 0xFF'FFF0U);
  }
  EXPECT_EQ(packets[1].number("infiniband.aeth.syndrome.opcode"), 1U);
  EXPECT_EQ(packets[1].number("infiniband.aeth.syndrome.timer"), 12U);
  EXPECT_EQ(packets[3].number("infiniband.aeth.syndrome.opcode"), 0U);
}

/// A wire with its options.
struct Variant {
  const char* name;
  std::string protocol;
  Settings settings;
};

// Markers are in captures of their own: where an FPDU ends at a marker's place tshark expects one
// more, and then finds the next CRC wrong.
std::vector<Variant> variants() {
  return {
      {"ib", "ib", {}},
      {"ib_grh", "ib", {{"transport.grh", "true"}}},
      {"rocev1", "rocev1", {}},
      {"rocev1_vlan", "rocev1", {{"transport.vlan", "true"}, {"transport.vlan_id", "7"}}},
      {"rocev2", "rocev2", {}},
      {"rocev2_vlan", "rocev2", {{"transport.vlan", "true"}}},
      {"rocev2_ipv6", "rocev2", {{"transport.ip_version", "6"}}},
      {"rocev2_ipv6_vlan", "rocev2", {{"transport.ip_version", "6"}, {"transport.vlan", "true"}}},
      {"rocev2_dcqcn", "rocev2", {{"transport.congestion_control", "dcqcn"}}},
      {"iwarp", "iwarp", {}},
      {"iwarp_1500_timestamps", "iwarp", {{"transport.mtu", "1500"}, {"tcp.timestamps", "true"}}},
      {"iwarp_vlan", "iwarp", {{"transport.mtu", "1500"}, {"transport.vlan", "true"}}},
      {"iwarp_ipv6", "iwarp", {{"transport.mtu", "1500"}, {"transport.ip_version", "6"}}},
      {"iwarp_ipv6_timestamps",
       "iwarp",
       {{"transport.mtu", "1500"}, {"transport.ip_version", "6"}, {"tcp.timestamps", "true"}}},
      {"iwarp_revision2", "iwarp", {{"tcp.mpa_revision", "2"}, {"tcp.mpa_rtr", "any"}}}};
}

class CaptureMatrix : public ::testing::TestWithParam<Variant> {};

/// Each operation of the variant's services, by service.
std::vector<std::pair<std::string, std::string>> work_of(const std::string& protocol) {
  std::vector<std::pair<std::string, std::string>> work;
  for (const std::string& op : operations_of(protocol)) work.emplace_back("rc", op);
  work.emplace_back("rc", "atomic_cas");
  work.emplace_back("rc", "atomic_fadd");
  if (protocol == "iwarp") return work;
  for (const char* op : {"write", "write_imm", "send", "send_imm"}) work.emplace_back("uc", op);
  for (const char* op : {"send", "send_imm"}) work.emplace_back("ud", op);
  return work;
}

TEST_P(CaptureMatrix, EveryOperationOfEveryServiceIsWellFormed) {
  const Variant& variant = GetParam();
  const TemporaryFile place(std::string("matrix_") + variant.name);
  std::filesystem::remove(place.path());
  std::vector<std::string> files;
  for (const auto& [service, op] : work_of(variant.protocol)) {
    SCOPED_TRACE(service + " " + op);
    const std::string directory = place.path() + "/" + service + "_" + op;
    Settings settings = with({{"transport.protocol", variant.protocol},
                              {"transport.type", service},
                              {"workload.op", op},
                              {"workload.pattern", service == "rc" ? "latency" : "bandwidth"},
                              {"workload.depth", "2"},
                              {"workload.iterations", "4"},
                              {"sim.warmup", "0"},
                              {"output.traces", "pcap"},
                              {"output.dir", directory}},
                             variant.settings);
    // Odd sizes of more than one packet, but for datagrams.
    if (op.rfind("atomic", 0) != 0) {
      settings.emplace_back("workload.msg_size", service == "ud" ? "1001" : "9001");
    }
    run_well(settings);
    files.push_back(directory + "/host0.nic.port.pcapng");
    EXPECT_GT(expect_crcs(files.back(), variant.protocol), 3);
    if (variant.protocol != "iwarp") continue;
    const std::string text = dissection_text(files.back());
    EXPECT_EQ(count_of(text, "Bad CRC32"), 0U);
    EXPECT_GT(count_of(text, "Good CRC32"), 3U);
  }
  const std::string all = place.path() + "/all.pcapng";
  merge_captures(files, all);
  EXPECT_EQ(complaints(all), "");
}
INSTANTIATE_TEST_SUITE_P(Variants, CaptureMatrix, ::testing::ValuesIn(variants()),
                         [](const auto& test) { return std::string(test.param.name); });

// Marks, CNPs in a class of their own (priority 6, DSCP 48, ECT kept), pauses: 3 senders to one.
TEST(CaptureCongestion, CnpsAreAsTheAnnexSays) {
  const TemporaryFile place("capture_cnp");
  std::filesystem::remove(place.path());
  run_well({{"transport.protocol", "rocev2"},
            {"transport.congestion_control", "dcqcn"},
            {"transport.cnp_service_level", "6"},
            {"transport.service_level", "3"},
            {"fabric.topology", "single_switch"},
            {"fabric.hosts", "3"},
            {"workload.traffic", "incast"},
            {"workload.pattern", "bandwidth"},
            {"workload.msg_size", "256KiB"},
            {"workload.depth", "8"},
            {"workload.iterations", "16"},
            {"sim.warmup", "0"},
            {"output.traces", "pcap"},
            {"output.dir", place.path()}});
  const std::string file = place.path() + "/host1.nic.port.pcapng";
  EXPECT_EQ(complaints(file), "");
  EXPECT_GT(expect_crcs(file, "rocev2"), 100);
  // tshark knows no opcode 0x81, so the bytes themselves: Ethernet 14, IPv4 20, UDP 8, BTH at 42.
  std::size_t cnps = 0;
  std::size_t data = 0;
  for (const CapturedPacket& packet : read_pcapng(file)) {
    const std::vector<std::uint8_t>& b = packet.bytes;
    if (b[12] != 0x08 || b[13] != 0x00) continue;
    if (b[42] != 0x81) {
      if (packet.sent) {
        EXPECT_EQ(b[15] >> 2, 24);  // DSCP 8 x 3
      }
      ++data;
      continue;
    }
    ++cnps;
    EXPECT_FALSE(packet.sent);  // from the receiver
    EXPECT_EQ(b.size(), 74U + 4U);
    EXPECT_EQ(b[15], 0xC2);                                    // DSCP 48, ECT(0)
    EXPECT_EQ(b[16] << 8 | b[17], 60);                         // IP length
    EXPECT_EQ(b[38] << 8 | b[39], 40);                         // UDP length
    EXPECT_EQ(b[43], 0);                                       // SE, M, pad, TVer
    EXPECT_EQ(b[46], 0x40);                                    // BECN
    for (std::size_t i = 50; i < 54; ++i) EXPECT_EQ(b[i], 0);  // no AckReq, PSN 0
    for (std::size_t i = 54; i < 70; ++i) EXPECT_EQ(b[i], 0);  // 16 reserved bytes
  }
  EXPECT_GT(cnps, 0U);
  EXPECT_GT(data, 0U);
}

}  // namespace
}  // namespace rnic::testbench
