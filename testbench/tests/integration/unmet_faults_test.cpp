// SPDX-License-Identifier: Apache-2.0
// A fault that was ordered for a frame or read by its number, and never came: the report says so.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

const Settings kStream = {{"workload.pattern", "bandwidth"},
                          {"workload.msg_size", "64KiB"},
                          {"workload.iterations", "20"},
                          {"sim.warmup", "0"}};

std::vector<std::string> told(const Settings& more) {
  const ProgramRun run = run_well(with(kStream, more));
  if (!run.result.contains("without_effect")) return {};
  return run.result["without_effect"].get<std::vector<std::string>>();
}

class UnmetFaults : public ::testing::TestWithParam<const char*> {};

// 20 x 16 data packets and one of iWARP's each; 320 of them are met, and 100,000 never.
TEST_P(UnmetFaults, OfEveryListAreTold) {
  for (const char* list : {"drop", "corrupt", "duplicate", "reorder"}) {
    const std::string key = std::string("link.") + list + "_list";
    const Settings protocol = {{"transport.protocol", GetParam()}};
    EXPECT_TRUE(told(with(protocol, {{key, "1,20"}})).empty()) << key;
    const auto texts = told(with(protocol, {{key, "20,100000,ack:90000"}}));
    ASSERT_EQ(texts.size(), 1U) << key;
    EXPECT_EQ(texts[0].rfind(key + "=100000,ack:90000: cable 0 carried only ", 0), 0U) << texts[0];
  }
}

TEST_P(UnmetFaults, OfReadsOverPcieAreTold) {
  const Settings protocol = {{"transport.protocol", GetParam()},
                             {"pcie.fault.purpose", "payload"},
                             {"workload.iterations", "2"}};
  const auto texts = told(with(protocol, {{"pcie.fault.poisoned", "500000"}}));
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0].rfind("pcie.fault.poisoned=500000: no device made more than ", 0), 0U)
      << texts[0];
}

INSTANTIATE_TEST_SUITE_P(Protocols, UnmetFaults,
                         ::testing::Values("ib", "rocev1", "rocev2", "iwarp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace rnic::testbench
