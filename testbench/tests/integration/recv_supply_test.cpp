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

// Each RNR NAK costs 0.64 ms (code 12), and of all that time the sender is told to wait, whatever
// else it waits for, or has nothing left to send but that once more. The stages say so, too: the
// wait is in the send queue, or behind what is held for the message that was refused.
TEST(RecvSupply, TheWaitForRecvsIsTheSendersWait) {
  for (const Settings& more : {Settings{},
                               {{"transport.end_to_end_credits", "true"}},
                               {{"transport.recovery", "selective_repeat"}},
                               {{"transport.window", "2"}},
                               {{"workload.post_batch", "16"}, {"workload.signal_every", "16"}}}) {
    const ProgramRun run = run_well(with(with(kSends, {{"workload.depth", "64"},
                                                       {"workload.recv_depth", "4"},
                                                       {"workload.recv_cost", "50us"},
                                                       {"transport.min_rnr_timer", "12"},
                                                       {"workload.iterations", "100"}}),
                                         more));
    SCOPED_TRACE(text_of(more));
    ASSERT_EQ(run.status, 0);
    const double waits = static_cast<double>(run.counter("rnr_nak_retry_err")) * 0.64e6;
    EXPECT_EQ(run.result["bottleneck"]["unit"], "workload.recv_depth");
    EXPECT_NEAR(run.number("/bottleneck/utilization"), waits / run.number("/window_ns"), 0.02);
    EXPECT_LT(run.stage("rx_parse"), 0.01 * run.number("/latency_ns/mean"));
    EXPECT_GT(run.stage("sq_wait") + run.stage("reorder"), 0.5 * run.number("/latency_ns/mean"));
  }
}

TEST(RecvSupply, ARegistrationThatFailsTellsWhatIsThereAlready) {
  const ProgramRun run = run_program({{"nic.max_mr", "4"}, {"workload.mrs", "5"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("nic.max_mr"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("4 regions"), std::string::npos) << run.error;
}

}  // namespace
}  // namespace rnic::testbench
