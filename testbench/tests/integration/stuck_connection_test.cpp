// SPDX-License-Identifier: Apache-2.0
// What is said of connections when a run gets stuck (exit status 3).
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

// A run that ends in the middle tells of the connection in its own terms: of a stream sequence
// numbers of bytes, time-outs and the set-up, of packets PSNs.
TEST(StuckConnection, IsToldInTermsOfItsTransport) {
  const Settings dead = {{"workload.pattern", "bandwidth"},
                         {"workload.msg_size", "64KiB"},
                         {"workload.iterations", "20"},
                         {"fabric.silent_host", "1"},
                         {"sim.max_time", "20ms"}};
  const ProgramRun stream = run_program(with(dead, {{"transport.protocol", "iwarp"}}));
  ASSERT_EQ(stream.status, 3) << stream.error;
  EXPECT_EQ(stream.error.find("PSN"), std::string::npos) << stream.error;
  for (const char* part :
       {"TCP snd_una ", ", snd_nxt ", ", rcv_nxt ", " time-outs in a row, RTO ", ", MPA "}) {
    EXPECT_NE(stream.error.find(part), std::string::npos) << part << stream.error;
  }
  const ProgramRun packets = run_program(with(dead, {{"transport.protocol", "rocev2"}}));
  ASSERT_EQ(packets.status, 3) << packets.error;
  EXPECT_NE(packets.error.find("oldest unacknowledged PSN "), std::string::npos) << packets.error;
}

// A time that is too short is named with its key; so is a timer that was not set.
TEST(StuckConnection, NamesTheKeyThatWouldHelp) {
  const ProgramRun lossy = run_program({{"transport.protocol", "iwarp"},
                                        {"workload.pattern", "bandwidth"},
                                        {"link.loss_rate", "0.9"},
                                        {"sim.max_time", "1s"}});
  ASSERT_EQ(lossy.status, 3) << lossy.error;
  EXPECT_NE(lossy.error.find("sim.max_time=1.00 s is over"), std::string::npos) << lossy.error;
  EXPECT_NE(lossy.error.find("remedy: a larger sim.max_time"), std::string::npos) << lossy.error;
  for (const char* protocol : {"ib", "rocev1", "rocev2"}) {
    const Settings lost = {
        {"transport.protocol", protocol}, {"workload.iterations", "20"}, {"link.drop_list", "1"}};
    const ProgramRun untimed = run_program(with(lost, {{"transport.ack_timeout", "0"}}));
    ASSERT_EQ(untimed.status, 3) << protocol;
    EXPECT_NE(untimed.error.find("remedy: transport.ack_timeout=1..31"), std::string::npos)
        << untimed.error;
    EXPECT_EQ(run_well(lost).status, 0) << protocol;
  }
}

}  // namespace
}  // namespace rnic::testbench
