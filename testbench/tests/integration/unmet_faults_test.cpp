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

struct TimedFault {
  Settings settings;
  const char* key;
};

// 20 messages of 64 KiB are over long before 1 s; while they run, frames pass all the time.
TEST_P(UnmetFaults, AtATimeBehindTheEndAreTold) {
  const Settings protocol = {{"transport.protocol", GetParam()}};
  const TimedFault faults[] = {
      {{{"link.down_time", "1us"}, {"link.down_at", "1s"}}, "link.down_at=1.00 s"},
      {{{"fabric.silent_host", "1"}, {"fabric.silent_from", "1s"}}, "fabric.silent_from=1.00 s"},
      {{{"fabric.fatal_host", "1"}, {"fabric.fatal_at", "1s"}}, "fabric.fatal_at=1.00 s"}};
  for (const TimedFault& fault : faults) {
    const auto texts = told(with(protocol, fault.settings));
    ASSERT_EQ(texts.size(), 1U) << fault.key;
    EXPECT_EQ(texts[0].rfind(fault.key, 0), 0U) << texts[0];
    EXPECT_NE(texts[0].find("the run was over before"), std::string::npos) << texts[0];
  }
}

// While regions are registered, which takes more than 100 us, the link has only its own frames:
// the time to be down is 0 if not given. iWARP's connection comes behind it, too.
TEST_P(UnmetFaults, WhileNothingPassesAreTold) {
  const Settings protocol = {{"transport.protocol", GetParam()}};
  const auto idle = told(with(protocol, {{"link.down_time", "20us"}}));
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_NE(idle[0].find("no frame was on cable 0"), std::string::npos) << idle[0];
  EXPECT_TRUE(told(with(protocol, {{"link.down_at", "1us"}, {"link.down_time", "250us"}})).empty());
}

// What a host sends that gets no answers goes on; that it is deaf has no effect.
TEST(UnmetFaultsOfASilentHost, ThatNobodySendsToAreTold) {
  const auto texts = told({{"transport.type", "uc"}, {"fabric.silent_host", "0"}});
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_NE(texts[0].find("no frame came to host0"), std::string::npos) << texts[0];
  EXPECT_TRUE(told({{"transport.type", "uc"}, {"fabric.silent_host", "1"}}).empty());
}

INSTANTIATE_TEST_SUITE_P(Protocols, UnmetFaults,
                         ::testing::Values("ib", "rocev1", "rocev2", "iwarp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace rnic::testbench
