// SPDX-License-Identifier: Apache-2.0
// What a doorbell costs the host: published rates of one QP that posts one message at a time.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings one_by_one(const Settings& more) {
  return with({{"workload.op", "write"},
               {"workload.pattern", "bandwidth"},
               {"workload.msg_size", "32B"},
               {"workload.post_batch", "1"},
               {"workload.iterations", "4000"}},
              more);
}

TEST(DoorbellCostTest, XeonsPostFiveToNineMillionMessagesASecond) {
  const ProgramRun run = run_well(one_by_one({}));
  EXPECT_GE(run.number("/message_rate_mops"), 5);
  EXPECT_LE(run.number("/message_rate_mops"), 9);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.cpu");
}

TEST(DoorbellCostTest, ADearerDoorbellIsAFlatLimitThatBatchesLift) {
  // EPYC hosts and virtual machines: 2.5 to 2.9 M/s whatever the device, 350 to 400 ns a message.
  const Settings dear = {{"cpu.doorbell_cost", "300ns"}};
  const ProgramRun single = run_well(one_by_one(dear));
  EXPECT_GE(single.number("/message_rate_mops"), 2.4);
  EXPECT_LE(single.number("/message_rate_mops"), 3.0);
  EXPECT_EQ(single.result["bottleneck"]["unit"], "host0.cpu");
  const ProgramRun batched = run_well(one_by_one(with(dear, {{"workload.post_batch", "16"}})));
  EXPECT_GT(batched.number("/message_rate_mops"), 2 * single.number("/message_rate_mops"));
}

}  // namespace
}  // namespace rnic::testbench
