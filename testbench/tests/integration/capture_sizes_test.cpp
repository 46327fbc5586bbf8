// SPDX-License-Identifier: Apache-2.0
// Captures of messages of no byte, of one, of exactly a packet and of one byte more: where headers,
// pads and frames meet. tshark reads them, and the checksums that it does not check are computed.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/capture_rules.h"
#include "support/captured_rig.h"
#include "support/mpa_stream.h"
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

/// A wire with its options, and what a packet of it holds.
struct Wire {
  const char* name;
  std::string protocol;
  Settings settings;
  std::uint32_t tagged;    ///< B of a WRITE or a READ response
  std::uint32_t untagged;  ///< B of a SEND
};

// iWARP: the IP MTU less IP, TCP, MPA's 6 B and the DDP header of 14 or 18 B, in whole words (RFC
// 5044, 5.1): 1500 - 40 = 1460, of which 1440 and 1436 are payload.
std::vector<Wire> wires() {
  return {
      {"ib", "ib", {{"transport.mtu", "1024"}}, 1024, 1024},
      {"ib_grh", "ib", {{"transport.mtu", "256"}, {"transport.grh", "true"}}, 256, 256},
      {"rocev1", "rocev1", {{"transport.mtu", "1024"}}, 1024, 1024},
      {"rocev1_vlan", "rocev1", {{"transport.mtu", "512"}, {"transport.vlan", "true"}}, 512, 512},
      {"rocev2", "rocev2", {{"transport.mtu", "1024"}}, 1024, 1024},
      {"rocev2_dscp_ecn",
       "rocev2",
       {{"transport.mtu", "4096"}, {"transport.service_level", "5"}, {"transport.ecn", "1"}},
       4096,
       4096},
      {"rocev2_ipv6_vlan",
       "rocev2",
       {{"transport.mtu", "2048"}, {"transport.ip_version", "6"}, {"transport.vlan", "true"}},
       2048,
       2048},
      {"iwarp_1500", "iwarp", {{"transport.mtu", "1500"}}, 1440, 1436},
      {"iwarp_9000", "iwarp", {{"transport.mtu", "9000"}}, 8940, 8936},
      {"iwarp_576", "iwarp", {{"transport.mtu", "576"}}, 516, 512},
      {"iwarp_timestamps",
       "iwarp",
       {{"transport.mtu", "1500"}, {"tcp.timestamps", "true"}},
       1428,
       1424},
      {"iwarp_ipv6",
       "iwarp",
       {{"transport.mtu", "1500"}, {"transport.ip_version", "6"}},
       1420,
       1416},
      {"iwarp_markers",
       "iwarp",
       {{"transport.mtu", "1500"}, {"tcp.mpa_markers", "true"}},
       1428,
       1424}};
}

struct Work {
  std::string service;
  std::string op;
};

std::vector<Work> work_of(const std::string& protocol) {
  std::vector<Work> work;
  for (const std::string& op : operations_of(protocol)) work.push_back({"rc", op});
  if (protocol == "iwarp") return work;
  for (const char* op : {"write", "write_imm", "send", "send_imm"}) work.push_back({"uc", op});
  for (const char* op : {"send", "send_imm"}) work.push_back({"ud", op});
  return work;
}

class CaptureSizes : public ::testing::TestWithParam<Wire> {
 protected:
  void SetUp() override { std::filesystem::remove(place_.path()); }

  /// Three messages of `bytes`, one after the other; the capture's file.
  std::string file_of(const Work& work, std::uint32_t bytes) {
    std::string directory = place_.path();
    directory.append("/").append(work.service).append("_").append(work.op).append("_");
    directory += std::to_string(bytes);
    run_well(with({{"transport.protocol", GetParam().protocol},
                   {"transport.type", work.service},
                   {"workload.op", work.op},
                   {"workload.msg_size", std::to_string(bytes)},
                   {"workload.pattern", "bandwidth"},
                   {"workload.depth", "1"},
                   {"workload.iterations", "3"},
                   {"sim.warmup", "0"},
                   {"output.traces", "pcap"},
                   {"output.dir", directory}},
                  GetParam().settings));
    return directory + "/host0.nic.port.pcapng";
  }
  TemporaryFile place_{"capture_sizes"};
};

/// FPDUs of one direction whose CRC32c is right; any other fails the test.
int good_fpdus(const std::string& file, bool sent, std::size_t marker_interval) {
  return walk_stream(mpa_stream(file, sent), marker_interval).fpdus;
}

/// Packets that carry a message of `bytes`.
int packets_of(std::uint32_t bytes, std::uint32_t packet) {
  return bytes == 0 ? 1 : static_cast<int>((bytes + packet - 1) / packet);
}

TEST_P(CaptureSizes, NothingIsMalformed) {
  const Wire& wire = GetParam();
  const bool iwarp = wire.protocol == "iwarp";
  const std::size_t markers = std::string(wire.name) == "iwarp_markers" ? 512 : 0;
  std::vector<std::string> files;
  for (const Work& work : work_of(wire.protocol)) {
    const std::uint32_t most = work.op.rfind("send", 0) == 0 ? wire.untagged : wire.tagged;
    for (const std::uint32_t bytes : {0U, 1U, most - 1, most, most + 1}) {
      if (work.service == "ud" && bytes > most) continue;
      SCOPED_TRACE(work.service + " " + work.op + " " + std::to_string(bytes));
      files.push_back(file_of(work, bytes));
      const int packets = expect_crcs(files.back(), wire.protocol);
      const int data = 3 * packets_of(bytes, most);
      const bool read = work.op == "read";
      if (!iwarp) {
        // One ACK a message, or one READ request.
        EXPECT_EQ(packets, data + (work.service == "rc" ? 3 : 0));
        continue;
      }
      const int requests = read || work.op == "write_imm" ? 3 : 0;  // opcode 1; opcode 8, behind it
      EXPECT_EQ(good_fpdus(files.back(), true, markers), (read ? 0 : data) + requests);
      EXPECT_EQ(good_fpdus(files.back(), false, markers), read ? data : 0);
    }
  }
  if (markers > 0) return;  // tshark loses its place where an FPDU ends at a marker's
  const std::string all = place_.path() + "/all.pcapng";
  merge_captures(files, all);
  EXPECT_EQ(complaints(all), "");
}

INSTANTIATE_TEST_SUITE_P(Wires, CaptureSizes, ::testing::ValuesIn(wires()),
                         [](const auto& test) { return std::string(test.param.name); });

/// SEND with invalidate of these sizes, each of which ends a registration of the receiver's that
/// was made for it by its send queue (FRWR).
class CaptureInvalidate : public ::testing::TestWithParam<std::string> {};

void invalidate_by_send(CapturedRig& captured, std::uint32_t bytes) {
  VerbsRig& rig = captured.rig;
  host::verbs::Context& verbs = rig.b.verbs();
  auto fast = verbs.alloc_fast_mr(rig.b.core, rig.b.pd, 2);
  ASSERT_TRUE(fast);
  ASSERT_EQ(verbs.map_fast_mr(rig.b.core, *fast, captured.remote.address, 4096), Status::kOk);
  SendWr reg;
  reg.opcode = WrOpcode::kRegMr;
  reg.flags = SendFlags::kSignaled;
  reg.reg = {&*fast, host::verbs::next_key(fast->key), kAllAccess};
  ASSERT_EQ(verbs.post_send(rig.b.core, *rig.b.qp, &reg, 1), Status::kOk);
  ASSERT_EQ(rig.b.await_send().status, WcStatus::kSuccess);
  rig.b.post_recv(captured.remote.address, captured.remote.region.lkey, 8192);
  rig.settle();
  const protocol::Sge sge{captured.local.address, bytes, captured.local.region.lkey};
  SendWr wr;
  wr.opcode = WrOpcode::kSendWithInv;
  wr.flags = SendFlags::kSignaled;
  wr.sg_list = &sge;
  wr.num_sge = bytes == 0 ? 0 : 1;
  wr.invalidate_key = fast->key;
  ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), Status::kOk);
  EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  const host::verbs::Wc told = rig.b.await_recv();
  EXPECT_EQ(told.status, WcStatus::kSuccess);
  EXPECT_EQ(told.byte_len, bytes);
}

TEST_P(CaptureInvalidate, OfEverySize) {
  const bool iwarp = GetParam() == "iwarp";
  const std::uint32_t packet = iwarp ? 1436 : 1024;
  CapturedRig captured(
      {{"transport.protocol", GetParam()}, {"transport.mtu", iwarp ? "1500" : "1024"}});
  const std::vector<std::uint32_t> sizes{0, 1, packet, packet + 1};
  const std::string file = captured.file_of([&] {
    captured.rig.connect();
    captured.map();
    for (const std::uint32_t bytes : sizes) invalidate_by_send(captured, bytes);
  });
  // 1 + 1 + 1 + 2 packets, of which the last of each message has the key.
  if (iwarp) {
    EXPECT_EQ(dissect(file, "iwarp_rdma.opcode == 4", {"iwarp_rdma.inval_stag"}).size(), 5U);
    EXPECT_EQ(good_fpdus(file, true, 0), 5);
    return;
  }
  EXPECT_EQ(dissect(file, "infiniband.ieth", {"infiniband.ieth"}).size(), 4U);
  EXPECT_EQ(expect_crcs(file, GetParam()), 5 + 4);
}

INSTANTIATE_TEST_SUITE_P(Wires, CaptureInvalidate, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
