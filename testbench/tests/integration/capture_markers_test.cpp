// SPDX-License-Identifier: Apache-2.0
// MPA markers with every option of TCP/IP that moves where FPDUs lie, checked by RFC 5044 alone.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "support/mpa_stream.h"
#include "support/program.h"
#include "support/temporary_file.h"

namespace rnic::testbench {
namespace {

/// MTU, timestamps, IP version, VLAN.
using Options = std::tuple<const char*, const char*, const char*, const char*>;

class CaptureMarkers : public ::testing::TestWithParam<Options> {};

TEST_P(CaptureMarkers, EveryMarkerAndCrcOfBothDirections) {
  const auto& [mtu, timestamps, ip, vlan] = GetParam();
  const TemporaryFile place("markers");
  int at_ends = 0;
  for (const char* op : {"write", "read", "send", "atomic_fadd"}) {
    std::filesystem::remove_all(place.path());
    Settings all{{"transport.protocol", "iwarp"},
                 {"tcp.mpa_markers", "true"},
                 {"transport.mtu", mtu},
                 {"tcp.timestamps", timestamps},
                 {"transport.ip_version", ip},
                 {"transport.vlan", vlan},
                 {"workload.op", op},
                 {"workload.pattern", "bandwidth"},
                 {"workload.iterations", "60"},
                 {"sim.warmup", "0"},
                 {"output.traces", "pcap"},
                 {"output.dir", place.path()}};
    const bool atomic = std::string(op) == "atomic_fadd";
    if (!atomic) all.emplace_back("workload.msg_size", "3001");
    run_well(all);
    const std::string file = place.path() + "/host0.nic.port.pcapng";
    const MarkedStream out = walk_marked_stream(mpa_stream(file, true));
    const MarkedStream back = walk_marked_stream(mpa_stream(file, false));
    ASSERT_FALSE(HasFailure()) << op;
    // A message is one FPDU of MTU 9000; the answers of READs and atomics come back.
    EXPECT_GE(out.fpdus, 60) << op;
    at_ends += out.at_ends + back.at_ends;
    const bool answered = atomic || std::string(op) == "read";
    EXPECT_EQ(back.fpdus >= 60, answered) << op;
    const std::size_t most = mpa_stream(file, !answered).size();
    EXPECT_EQ(static_cast<std::size_t>(answered ? back.markers : out.markers), (most + 511) / 512);
  }
  std::filesystem::remove_all(place.path());
  // One of 128 FPDUs ends where a marker stands, of whole messages (MTU 9000) none by their sizes.
  if (std::string(mtu) != "9000") {
    EXPECT_GT(at_ends, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, CaptureMarkers,
    ::testing::Combine(::testing::Values("576", "1500", "9000"), ::testing::Values("false", "true"),
                       ::testing::Values("4", "6"), ::testing::Values("false", "true")),
    [](const auto& test) {
      return std::string("mtu") + std::get<0>(test.param) +
             (std::string(std::get<1>(test.param)) == "true" ? "_stamps" : "") + "_ipv" +
             std::get<2>(test.param) +
             (std::string(std::get<3>(test.param)) == "true" ? "_vlan" : "");
    });

// The walk itself, on a stream that is not of the model.
TEST(CaptureMarkersWalk, KnowsTheVectorOfRfc5044) {
  // RFC 5044, figure 5: a leading marker, 0x2A bytes, CRC32c 52 23 99 83 (PROTOCOL vector G4).
  std::vector<std::uint8_t> stream =
      from_hex("00000000 002a 4143 00000000 00000000 00000001 00000000");
  stream.resize(stream.size() + 24);
  const std::vector<std::uint8_t> crc = from_hex("52239983");
  stream.insert(stream.end(), crc.begin(), crc.end());
  std::vector<std::uint8_t> damaged = stream;
  damaged[20] ^= 0x10;
  EXPECT_NONFATAL_FAILURE(walk_marked_stream(damaged), "FPDU at 4");
  const MarkedStream good = walk_marked_stream(stream);
  EXPECT_EQ(good.fpdus, 1);
  EXPECT_EQ(good.markers, 1);
  EXPECT_FALSE(HasFailure());
}

}  // namespace
}  // namespace rnic::testbench
