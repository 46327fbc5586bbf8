// SPDX-License-Identifier: Apache-2.0
#include "protocol/tlp.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "support/program.h"

namespace rnic::protocol {
namespace {

TlpRules server_rules() { return tlp_rules(4, 256, 512, 64); }

TEST(Tlp, AWriteIsCutAtMps) {
  // 64 B: one TLP, 64 + 24. 257 B: two, 257 + 48. 4096 B: sixteen, 4096 + 384.
  EXPECT_EQ(write_tlps(server_rules(), 0, 64).wire_bytes, 88U);
  EXPECT_EQ(write_tlps(server_rules(), 0, 257).tlps, 2U);
  EXPECT_EQ(write_tlps(server_rules(), 0, 257).wire_bytes, 305U);
  EXPECT_EQ(write_tlps(server_rules(), 0, 4096).tlps, 16U);
  EXPECT_EQ(write_tlps(server_rules(), 0, 4096).wire_bytes, 4480U);
  EXPECT_EQ(write_tlps(server_rules(), 0, 4096).payload_bytes, 4096U);
}

TEST(Tlp, NoWriteCrossesA4KiBBoundary) {
  // 64 B at 4096 - 8: 8 B before the boundary and 56 B after it.
  EXPECT_EQ(write_tlps(server_rules(), 4088, 64).tlps, 2U);
  EXPECT_EQ(write_tlps(server_rules(), 4032, 64).tlps, 1U);
  // 8192 B at 100: 3996 B (16 TLPs), 4096 B (16 TLPs), 100 B (1 TLP).
  EXPECT_EQ(write_tlps(server_rules(), 100, 8192).tlps, 33U);
}

TEST(Tlp, ATransferOfNothingIsOnePacket) {
  EXPECT_EQ(write_tlps(server_rules(), 0, 0).wire_bytes, 24U);
  EXPECT_EQ(read_request_tlps(server_rules(), 0, 0).wire_bytes, 24U);
  EXPECT_EQ(completion_tlps(server_rules(), 0, 0).wire_bytes, 20U);
}

TEST(Tlp, AReadIsRequestedInPiecesOfMrrs) {
  EXPECT_EQ(read_request_tlps(server_rules(), 0, 512).tlps, 1U);
  EXPECT_EQ(read_request_tlps(server_rules(), 0, 513).tlps, 2U);
  EXPECT_EQ(read_request_tlps(server_rules(), 0, 4096).wire_bytes, 8U * 24);
  EXPECT_EQ(read_request_tlps(server_rules(), 4095, 2).tlps, 2U);
  EXPECT_EQ(first_read_request(server_rules(), 0, 4096), 512U);
  EXPECT_EQ(first_read_request(server_rules(), 4000, 4096), 96U);
  EXPECT_EQ(first_read_request(server_rules(), 0, 10), 10U);
}

TEST(Tlp, CompletionsEndOnTheReadCompletionBoundary) {
  // Aligned: 512 B in two completions of MPS.
  EXPECT_EQ(completion_tlps(server_rules(), 0, 512).tlps, 2U);
  EXPECT_EQ(completion_tlps(server_rules(), 0, 512).wire_bytes, 552U);
  // 512 B at 16 with RCB 64: 48 B to the boundary, 256 B, then 208 B.
  EXPECT_EQ(completion_tlps(server_rules(), 16, 512).tlps, 3U);
  // 40 B at 16 end before the boundary; 49 B pass it by one byte.
  EXPECT_EQ(completion_tlps(server_rules(), 16, 40).tlps, 1U);
  EXPECT_EQ(completion_tlps(server_rules(), 16, 49).tlps, 2U);
  // With RCB 128 the first completion at 64 B ends at 128.
  EXPECT_EQ(completion_tlps(tlp_rules(4, 256, 512, 128), 64, 256).tlps, 2U);
  EXPECT_EQ(completion_tlps(server_rules(), 64, 256).tlps, 1U);
}

TEST(Tlp, EveryReadRequestIsAnsweredForItself) {
  // 1024 B at 256, MRRS 512, MPS 512: requests 256..767 and 768..1279, one completion each.
  EXPECT_EQ(completion_tlps(tlp_rules(4, 512, 512, 64), 256, 1024).tlps, 2U);
  // MPS above MRRS does not merge requests.
  EXPECT_EQ(completion_tlps(tlp_rules(4, 4096, 512, 64), 0, 4096).tlps, 8U);
}

TEST(Tlp, CountsAreThoseOfAWalkPacketByPacket) {
  // The walk takes one packet after another, as first_write(), first_read_request() and
  // for_each_completion() cut them; the counts are arithmetic.
  for (const std::uint32_t mrrs : {128U, 256U, 512U, 4096U}) {
    for (const std::uint32_t mps : {128U, 256U, 512U}) {
      for (const std::uint32_t rcb : {64U, 128U}) {
        const TlpRules rules = tlp_rules(4, mps, mrrs, rcb);
        for (const std::uint64_t address : {0U, 1U, 52U, 64U, 511U, 512U, 4044U, 4095U, 8191U}) {
          for (const std::uint64_t bytes : {1U, 52U, 64U, 513U, 4044U, 4096U, 4097U, 9000U}) {
            std::uint64_t writes = 0;
            for (std::uint64_t at = 0; at < bytes; ++writes) {
              at += first_write(rules, address + at, bytes - at);
            }
            std::uint64_t requests = 0;
            for (std::uint64_t at = 0; at < bytes; ++requests) {
              at += first_read_request(rules, address + at, bytes - at);
            }
            std::uint64_t completions = 0;
            for_each_completion(rules, address, bytes, [&](std::uint32_t) { ++completions; });
            SCOPED_TRACE(std::to_string(mrrs) + " " + std::to_string(mps) + " " +
                         std::to_string(rcb) + ": " + std::to_string(bytes) + " at " +
                         std::to_string(address));
            ASSERT_EQ(write_tlps(rules, address, bytes).tlps, writes);
            ASSERT_EQ(read_request_tlps(rules, address, bytes).tlps, requests);
            ASSERT_EQ(completion_tlps(rules, address, bytes).tlps, completions);
          }
        }
      }
    }
  }
}

TEST(Tlp, CodedRates) {
  // Per lane: 2.5 GT/s x 0.8; 8 GT/s x 128/130; generation 6: 64 Gb/s x 236/256.
  EXPECT_DOUBLE_EQ(coded_rate(1, 1).to_gbps(), 2.0);
  EXPECT_DOUBLE_EQ(coded_rate(2, 16).to_gbps(), 64.0);
  EXPECT_NEAR(coded_rate(3, 8).to_gbps(), 63.0154, 1e-4);
  EXPECT_NEAR(coded_rate(4, 16).to_gbps(), 252.0615, 1e-4);
  EXPECT_NEAR(coded_rate(5, 16).to_gbps(), 504.1231, 1e-4);
  EXPECT_NEAR(coded_rate(6, 16).to_gbps(), 944.0, 1e-9);
  EXPECT_THROW(coded_rate(0, 8), ConfigError);
  EXPECT_THROW(coded_rate(7, 8), ConfigError);
  EXPECT_THROW(coded_rate(4, 0), ConfigError);
}

TEST(Tlp, DllpShare) {
  // Published by pcie-model, MPS 256: Gen3 x8 keeps 57.88 of 63.02 Gb/s, x16 113.70 of 126.03.
  EXPECT_NEAR(dllp_overhead(3, 8, 256), 0.081, 0.001);
  EXPECT_NEAR(dllp_overhead(3, 16, 256), 0.098, 0.001);
  // Generation 1 has the shortest limits in symbol times: x1, MPS 128: (156 x 1.4 + 19) = 237.
  EXPECT_NEAR(dllp_overhead(1, 1, 128), 16.0 / 237 + 4.0 / 1538, 1e-12);
  EXPECT_NEAR(tlp_rate(3, 8, 256, 0.5).to_gbps(), 31.5077, 1e-4);
  EXPECT_NEAR(tlp_rate(3, 8, 256, -1).to_gbps(), 57.885, 0.01);
  EXPECT_THROW(tlp_rate(3, 8, 256, 1.0), ConfigError);
}

TEST(Tlp, DllpShareBySymbolTimesOfAllLanes) {
  // x1 is the same. Generation 3 x16, MPS 128: 156 x 3.0 / 16 + 19 = 48 symbol times, and 96.
  EXPECT_DOUBLE_EQ(dllp_overhead_by_symbols(3, 1, 128), dllp_overhead(3, 1, 128));
  for (const std::uint32_t lanes : {2U, 8U, 16U}) {
    EXPECT_NEAR(dllp_overhead_by_symbols(3, lanes, 256) - 4.0 / 1538,
                (dllp_overhead(3, lanes, 256) - 4.0 / 1538) / lanes, 1e-12);
  }
  EXPECT_NEAR(dllp_overhead_by_symbols(3, 16, 128), 16.0 / (144 * 16) + 4.0 / 1538, 1e-12);
  EXPECT_NEAR(tlp_rate(3, 16, 128, kDllpsBySymbols).to_gbps(), 126.0308 * (1 - 0.009545), 0.01);
}

/// One line of the published figures.
struct Published {
  std::uint32_t gen, lanes, mps, mrrs, completion, size;
  double write, read, read_and_write;
};

std::vector<Published> published_figures() {
  const auto path =
      std::filesystem::path(testbench::data_path()) / "pcie" / "effective_bandwidth.csv";
  std::ifstream file(path);
  std::vector<Published> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] < '0' || line[0] > '9') continue;
    std::istringstream fields(line);
    Published row{};
    char comma = 0;
    fields >> row.gen >> comma >> row.lanes >> comma >> row.mps >> comma >> row.mrrs >> comma >>
        row.completion >> comma >> row.size >> comma >> row.write >> comma >> row.read >> comma >>
        row.read_and_write;
    EXPECT_FALSE(fields.fail()) << line;
    rows.push_back(row);
  }
  return rows;
}

TEST(Tlp, ReproducesPublishedEffectiveBandwidthWithinOnePercent) {
  const auto rows = published_figures();
  ASSERT_EQ(rows.size(), 8U * 47);
  for (const Published& row : rows) {
    TlpRules rules = tlp_rules(row.gen, row.mps, row.mrrs, 64);
    rules.completion_size = row.completion;
    const BitRate rate = tlp_rate(row.gen, row.lanes, row.mps, -1);
    const EffectiveBandwidth mine = effective_bandwidth(rules, rate, row.size);
    const std::string where = "gen " + std::to_string(row.gen) + " x" + std::to_string(row.lanes) +
                              " mps " + std::to_string(row.mps) + " size " +
                              std::to_string(row.size);
    EXPECT_NEAR(mine.write / 1e9, row.write, row.write * 0.01) << where;
    EXPECT_NEAR(mine.read / 1e9, row.read, row.read * 0.01) << where;
    EXPECT_NEAR(mine.read_and_write / 1e9, row.read_and_write, row.read_and_write * 0.01) << where;
  }
}

}  // namespace
}  // namespace rnic::protocol
