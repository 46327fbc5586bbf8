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

}  // namespace
}  // namespace rnic::testbench
