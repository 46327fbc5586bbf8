// SPDX-License-Identifier: Apache-2.0
// Selective repeat, messages one at a time: what is lost of a message's end, or of what
// acknowledges it, is found by a short timer, whatever the message's size.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

class LostTail : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

// 20 messages of n packets. Lost are: a message's last ACK (as many are sent as the message has
// packets, four at most), its last three ACKs, its last packet, its last three packets. The timer
// is of 100 us beside verbs' 67 ms, and grows where one packet after the other is found missing.
TEST_P(LostTail, CostsAShortTimer) {
  const auto& [protocol, op] = GetParam();
  for (const std::uint64_t packets : {1U, 2U, 3U, 4U, 5U, 16U, 200U}) {
    const std::uint64_t acks = std::min<std::uint64_t>(packets, 4);
    const auto nth = [](std::uint64_t n) { return std::to_string(n); };
    const std::uint64_t ends = 3 * packets;
    std::vector<std::string> lists = {nth(ends)};
    if (std::string(op) == "read") {
      lists = {"response:" + nth(ends)};
      if (packets >= 3) {
        lists.push_back("response:" + nth(ends) + ",response:" + nth(ends - 1) +
                        ",response:" + nth(ends - 2));
      }
    } else if (packets <= 64) {
      lists.push_back("ack:" + nth(3 * acks));
      if (acks >= 3) {
        lists.push_back(nth(ends) + "," + nth(ends - 1) + "," + nth(ends - 2));
        lists.push_back("ack:" + nth(3 * acks) + ",ack:" + nth(3 * acks - 1) +
                        ",ack:" + nth(3 * acks - 2));
      }
    }
    for (const std::string& list : lists) {
      const ProgramRun run = run_well({{"transport.protocol", protocol},
                                       {"transport.recovery", "selective_repeat"},
                                       {"workload.op", op},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.depth", "1"},
                                       {"workload.msg_size", nth(packets * 4096)},
                                       {"workload.iterations", "20"},
                                       {"sim.warmup", "0"},
                                       {"link.drop_list", list}});
      SCOPED_TRACE(nth(packets) + " packets, lost " + list);
      EXPECT_LT(run.number("/latency_ns/max"), 1'000'000);
      EXPECT_GT(run.number("/latency_ns/max"), 100'000);
      EXPECT_EQ(run.result["completions"]["success"], 20);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, LostTail,
                         ::testing::Combine(::testing::Values("ib", "rocev1", "rocev2"),
                                            ::testing::Values("write", "write_imm", "send",
                                                              "read")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

}  // namespace
}  // namespace rnic::testbench
