// SPDX-License-Identifier: Apache-2.0
// ECN marks of the switch and DCQCN, several senders to one host.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

double at_port(const ProgramRun& run, const std::string& port, const std::string& field) {
  for (const auto& link : run.result.at("link")) {
    if (link.at("name") == port) return link.at(field).get<double>();
  }
  ADD_FAILURE() << "no port " << port;
  return 0;
}

/// Pause frames that the switch sends to the senders.
double pauses(const ProgramRun& run) {
  double sum = 0;
  for (const auto& link : run.result.at("link")) {
    if (link.at("name").get<std::string>().rfind("switch.", 0) == 0) {
      sum += link.at("control_frames").get<double>();
    }
  }
  return sum;
}

/// Alpha takes 256 x 55 us = 14 ms to come down from 1: the warm-up is some 40 ms.
Settings incast(int senders, const std::string& rate, int warmup) {
  return {{"transport.protocol", "rocev2"},
          {"fabric.topology", "single_switch"},
          {"fabric.hosts", std::to_string(senders + 1)},
          {"workload.traffic", "incast"},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},
          {"workload.depth", "16"},
          {"workload.iterations", "800"},
          {"sim.warmup", std::to_string(warmup)},
          {"link.rate", rate},
          {"sim.payload", "none"}};
}

const Settings kDcqcn = {{"transport.congestion_control", "dcqcn"}};

// 25 x 1024 / 1106 = 23.15 Gb/s is what the port can carry; 2 x 300 messages are 14 ms of it. A
// time-out of 67 ms, while which one flow has the port to itself, leaves less than a fifth.
TEST(CaseCC, CC01_TwoSendersAt25G) {
  const Settings two = with(incast(2, "25Gbps", 2500), {{"transport.mtu", "1024"}});
  const Settings lossy{{"link.flow_control", "none"},
                       {"switch.buffer", "256KiB"},
                       {"workload.depth", "128"},
                       {"workload.iterations", "300"}};
  for (const char* warmup : {"0", "100"}) {
    const ProgramRun tail_drop = run_well(with(with(two, lossy), {{"sim.warmup", warmup}}));
    EXPECT_LT(tail_drop.number("/throughput_gbps"), 0.5 * 23.15) << warmup;
    EXPECT_GT(tail_drop.counter("local_ack_timeout_err"), 0U) << warmup;
    EXPECT_EQ(tail_drop.result.at("bottleneck").at("unit"), "transport.recovery") << warmup;
    const std::string why = tail_drop.result.at("bottleneck").at("why");
    EXPECT_NE(why.find("frames were dropped"), std::string::npos) << why;
    EXPECT_NE(why.find("switch.buffer"), std::string::npos) << why;
    EXPECT_NE(why.find("repetitions"), std::string::npos) << why;
  }
  const ProgramRun pfc = run_well(two);
  EXPECT_GE(pfc.number("/throughput_gbps"), 22);
  EXPECT_LE(pfc.number("/throughput_gbps"), 23.2);
  EXPECT_EQ(pfc.counter("np_cnp_sent"), 0U);
  for (const char* flow_control : {"pfc", "none"}) {
    const ProgramRun dcqcn = run_well(with(
        with(two, kDcqcn), {{"link.flow_control", flow_control}, {"workload.iterations", "2000"}}));
    EXPECT_GE(dcqcn.number("/throughput_gbps"), 22) << flow_control;
    EXPECT_LE(dcqcn.number("/throughput_gbps"), 23.2) << flow_control;
    EXPECT_GT(dcqcn.counter("np_cnp_sent"), 0U) << flow_control;
    EXPECT_EQ(dcqcn.counter("out_of_sequence"), 0U) << flow_control;
  }
  // Without marks DCQCN does nothing.
  const ProgramRun unmarked = run_well(
      with(with(with(two, lossy), kDcqcn),
           {{"sim.warmup", "0"}, {"switch.ecn_kmin", "1GiB"}, {"switch.ecn_kmax", "1GiB"}}));
  EXPECT_EQ(unmarked.counter("np_cnp_sent"), 0U);
  EXPECT_LT(unmarked.number("/throughput_gbps"), 0.5 * 23.15);
}

TEST(CaseCC, CC04_DcqcnReplacesPauses) {
  const Settings three = with(incast(3, "100Gbps", 3000), {{"workload.iterations", "2000"}});
  const ProgramRun off = run_well(three);
  const ProgramRun on = run_well(with(three, kDcqcn));
  EXPECT_GT(pauses(off), 100);
  EXPECT_LE(pauses(on), 0.05 * pauses(off));
  EXPECT_EQ(off.counter("np_cnp_sent"), 0U);
  EXPECT_GT(on.counter("np_cnp_sent"), 0U);
  EXPECT_EQ(on.counter("np_cnp_sent"), on.counter("rp_cnp_handled"));
  for (const ProgramRun* run : {&off, &on}) {
    EXPECT_EQ(run->link_sum("dropped") + run->link_sum("switch_dropped_full"), 0);
    EXPECT_EQ(run->counter("out_of_sequence"), 0U);
  }
  EXPECT_NEAR(on.number("/throughput_gbps") / off.number("/throughput_gbps"), 1, 0.05);
}

// The queue follows the thresholds; PFC comes first when its threshold is below them.
TEST(CaseCC, CC07_TheQueueFollowsTheThresholds) {
  const Settings two = with(with(incast(2, "100Gbps", 3000), kDcqcn), {{"switch.ecn_pmax", "0.2"}});
  const auto highest = [](const ProgramRun& run) {
    return at_port(run, "switch.port0", "egress_queue_highest");
  };
  const ProgramRun small =
      run_well(with(two, {{"switch.ecn_kmin", "20KB"}, {"switch.ecn_kmax", "80KB"}}));
  const ProgramRun large = run_well(with(two, {{"switch.ecn_kmin", "100KB"},
                                               {"switch.ecn_kmax", "400KB"},
                                               {"switch.pfc_xoff", "600KB"},
                                               {"switch.pfc_xon", "500KB"}}));
  EXPECT_GT(highest(small), 20e3);
  EXPECT_LT(highest(small), 80e3);
  EXPECT_GT(highest(large), 100e3);
  EXPECT_LT(highest(large), 400e3);
  EXPECT_EQ(pauses(large), 0);
  // Each of the two ingress ports pauses at 64 KiB; the queue of the egress port never has 400 KB.
  const ProgramRun pfc_first = run_well(with(two, {{"switch.ecn_kmin", "400KB"},
                                                   {"switch.ecn_kmax", "1600KB"},
                                                   {"switch.pfc_xoff", "64KiB"},
                                                   {"switch.pfc_xon", "48KiB"}}));
  EXPECT_LT(highest(pfc_first), 400e3);
  EXPECT_GT(pauses(pfc_first), 100);
  EXPECT_EQ(pfc_first.counter("np_cnp_sent"), 0U);
}

// At 25 Gb/s, too, the longest queue lies between the thresholds, a frame or two above at most.
TEST(CaseCC, CC07_TheQueueScalesWithTheThresholdsAt25G) {
  double before = 0;
  for (const int kmin : {5'000, 20'000, 100'000}) {
    const ProgramRun run = run_well(with(with(incast(3, "25Gbps", 3000), kDcqcn),
                                         {{"switch.ecn_pmax", "0.2"},
                                          {"switch.ecn_kmin", std::to_string(kmin)},
                                          {"switch.ecn_kmax", std::to_string(4 * kmin)},
                                          {"switch.pfc_xoff", "2MiB"},
                                          {"switch.pfc_xon", "1MiB"}}));
    const double queue = at_port(run, "switch.port0", "egress_queue_highest");
    EXPECT_GT(queue, kmin);
    EXPECT_LT(queue, 4 * kmin + 2 * 4178);
    EXPECT_GT(queue, 2 * before);
    EXPECT_EQ(pauses(run), 0);
    EXPECT_NEAR(run.number("/throughput_gbps"), 24.5, 0.5);
    before = queue;
  }
}

// Over 50 us of cable the marks come late: a short queue runs dry meanwhile.
TEST(CaseCC, CC07_SmallThresholdsCostThroughputOverALongPath) {
  const auto gbps = [](const char* kmin, const char* kmax) {
    return run_well(with(with(incast(2, "100Gbps", 6000), kDcqcn), {{"link.delay", "50us"},
                                                                    {"workload.depth", "128"},
                                                                    {"workload.iterations", "6000"},
                                                                    {"switch.ecn_pmax", "0.2"},
                                                                    {"switch.ecn_kmin", kmin},
                                                                    {"switch.ecn_kmax", kmax},
                                                                    {"switch.pfc_xoff", "8MiB"},
                                                                    {"switch.pfc_xon", "4MiB"},
                                                                    {"switch.buffer", "64MiB"}}))
        .number("/throughput_gbps");
  };
  EXPECT_LT(gbps("5KB", "20KB"), gbps("100KB", "400KB"));
}

TEST(CaseCC, CC14_MarksAloneChangeNothing) {
  const Settings three = incast(3, "100Gbps", 200);
  const ProgramRun plain = run_well(three);
  const ProgramRun no_np =
      run_well(with(with(three, kDcqcn), {{"dcqcn.notification_point", "false"}}));
  const ProgramRun no_rp = run_well(with(with(three, kDcqcn), {{"dcqcn.reaction_point", "false"}}));
  for (const ProgramRun* run : {&no_np, &no_rp}) {
    EXPECT_GT(at_port(*run, "switch.port0", "ecn_marked"), 0);
    EXPECT_GT(run->counter("np_ecn_marked_roce_packets"), 0U);
    EXPECT_NEAR(run->number("/throughput_gbps"), plain.number("/throughput_gbps"), 1);
    EXPECT_NEAR(pauses(*run) / pauses(plain), 1, 0.05);
  }
  EXPECT_EQ(no_np.counter("np_cnp_sent"), 0U);
  EXPECT_GT(no_rp.counter("np_cnp_sent"), 0U);
}

// A marked datagram is counted, and answered by nothing: its queue pair sends to many, and no rate
// of the sender belongs to this one.
TEST(CaseCC, MarkedDatagramsAreCounted) {
  const ProgramRun run =
      run_well(with(with(incast(3, "100Gbps", 0), kDcqcn), {{"transport.type", "ud"},
                                                            {"workload.op", "send"},
                                                            {"workload.msg_size", "4096"},
                                                            {"workload.iterations", "1000"}}));
  double marked = 0;
  for (const auto& link : run.result.at("link")) marked += link.value("ecn_marked", 0.0);
  EXPECT_GT(run.counter("np_ecn_marked_roce_packets"), 0U);
  EXPECT_EQ(run.counter("np_cnp_sent"), 0U);
  EXPECT_LE(run.counter("np_ecn_marked_roce_packets"), marked);  // some may not have arrived
}

}  // namespace
}  // namespace rnic::testbench
