// SPDX-License-Identifier: Apache-2.0
// RECVs of a workload: shared queues with more of them than messages are in flight, too few of
// them, and what the report says about it.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

const Settings kSends = {{"workload.op", "send"},
                         {"workload.pattern", "bandwidth"},
                         {"workload.iterations", "200"},
                         {"sim.warmup", "0"}};

TEST(RecvSupply, ASharedQueueHoldsAllThatIsPosted) {
  // The program itself compares what arrives with what was sent.
  for (const std::string recvs : {"4", "5", "64", "300"}) {
    const ProgramRun run = run_well(
        with(kSends,
             {{"workload.srq", "true"}, {"workload.depth", "4"}, {"workload.recv_depth", recvs}}));
    ASSERT_EQ(run.status, 0) << recvs;
    EXPECT_EQ(run.counter("rx_send_requests"), 200U);
  }
}

TEST(RecvSupply, ASharedQueueOfEachOfManySenders) {
  const ProgramRun run = run_well(with(kSends, {{"workload.srq", "true"},
                                                {"workload.msg_size", "1"},
                                                {"fabric.hosts", "8"},
                                                {"fabric.topology", "single_switch"},
                                                {"workload.traffic", "incast"},
                                                {"workload.depth", "4"},
                                                {"workload.recv_depth", "1024"},
                                                {"workload.iterations", "50"}}));
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.counter("rx_send_requests"), 7 * 50U);
}

TEST(RecvSupply, TheReportNamesTheReceiverThatHasNone) {
  const ProgramRun run = run_well(with(kSends, {{"workload.iterations", "500"},
                                                {"workload.depth", "64"},
                                                {"workload.recv_depth", "1"},
                                                {"workload.msg_size", "64"},
                                                {"workload.recv_cost", "2us"}}));
  ASSERT_EQ(run.status, 0);
  EXPECT_GT(run.counter("rnr_naks_sent"), 0U);
  EXPECT_EQ(run.counter("packet_seq_err"), 0U);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "workload.recv_depth");
  const auto why = run.result["bottleneck"]["why"].get<std::string>();
  EXPECT_NE(why.find("RNR"), std::string::npos) << why;
  EXPECT_EQ(why.find("losses"), std::string::npos) << why;
}

TEST(RecvSupply, ARegistrationThatFailsTellsWhatIsThereAlready) {
  const ProgramRun run = run_program({{"nic.max_mr", "4"}, {"workload.mrs", "5"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("nic.max_mr"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("4 regions"), std::string::npos) << run.error;
}

}  // namespace
}  // namespace rnic::testbench
