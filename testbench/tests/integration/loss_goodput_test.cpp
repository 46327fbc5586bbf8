// SPDX-License-Identifier: Apache-2.0
// Goodput against the loss rate at 100 Gb/s: go-back-N by time-out collapses, selective repeat and
// TCP do not. 8 MiB messages one at a time, MTU 1024, a time-out of 4.096 us x 2^10 = 4.19 ms, as
// in the published measurement of a go-back-N with a time-out of 5 ms: 73, 71, 57, 18 and 2.5 Gb/s
// for loss rates of 1e-7 to 1e-3.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

double goodput(const Settings& transport, const std::string& loss, const char* seed = "1") {
  return run_well(with({{"sim.seed", seed},
                        {"workload.pattern", "bandwidth"},
                        {"workload.msg_size", "8MiB"},
                        {"workload.depth", "1"},
                        {"workload.iterations", "60"},
                        {"sim.warmup", "1"},
                        {"link.flow_control", "none"},
                        {"link.loss_rate", loss},
                        {"sim.payload", "none"}},
                       transport))
      .number("/throughput_gbps");
}

const Settings kGoBackN = {{"transport.protocol", "rocev2"},
                           {"transport.mtu", "1024"},
                           {"transport.sequence_nak", "false"},
                           {"transport.ack_timeout", "10"}};
const Settings kSelective = {{"transport.protocol", "rocev2"},
                             {"transport.mtu", "1024"},
                             {"transport.recovery", "selective_repeat"},
                             {"transport.ack_timeout", "10"}};
const Settings kTcp = {{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}};

// Each of a message's 8,192 packets is lost with probability p, and each loss costs a time-out of
// 4.19 ms besides the message's own 0.73 ms: 1 / (1 + 8192 p x 5.7). Losses are few: 5, 49 in 60
// messages, hence the tolerance of about two standard deviations.
TEST(LossGoodput, GoBackNByTimeOutCollapses) {
  const double lossless = goodput(kGoBackN, "0");
  EXPECT_GT(goodput(kGoBackN, "1e-6") / lossless, 0.85);
  const double at_1e5 = goodput(kGoBackN, "1e-5") / lossless;
  const double at_1e4 = goodput(kGoBackN, "1e-4") / lossless;
  EXPECT_NEAR(at_1e5, 1 / (1 + 8192e-5 * 5.7), 0.2);
  EXPECT_NEAR(at_1e4, 1 / (1 + 8192e-4 * 5.7), 0.06);
  EXPECT_GT(at_1e5, 0.5);  // half of the rate is lost between the two
  EXPECT_LT(at_1e4, 0.5);
  EXPECT_LT(goodput(kGoBackN, "1e-3") / lossless, 0.05);
}

TEST(LossGoodput, SelectiveRepeatDoesNot) {
  const double lossless = goodput(kSelective, "0");
  EXPECT_GT(goodput(kSelective, "1e-4") / lossless, 0.98);
  EXPECT_GT(goodput(kSelective, "1e-3") / lossless, 0.97);
  // A packet in 100 goes twice. Each loss of a message's last packet, or of its acknowledgement, is
  // found by time-out alone, the short one of 100 us: in 60 messages 1.2 of them beside 44.2 ms,
  // 0.3 %. Over four seeds 4.8 +- 2.2 of them: more than 0.97.
  double rate = 0;
  for (const char* seed : {"1", "2", "3", "4"}) rate += goodput(kSelective, "1e-2", seed) / 4;
  EXPECT_GT(rate / lossless, 0.97);
}

// READs of all sizes, 128 posted and 16 under way: what is lost of them, and lost again when it is
// asked for anew, is found by what arrives later. No time-out of 4.19 ms, of which one would cost
// half of a run (2,000 x 64 KiB take 10.7 ms); the rate is that of the wire, of which 2 in 100
// packets are lost or sent twice.
TEST(LossGoodput, SelectiveRepeatOfReads) {
  struct Size {
    const char* bytes;
    const char* reads;
  };
  for (const Size& size : {Size{"64KiB", "2000"}, Size{"1MiB", "200"}, Size{"8MiB", "40"}}) {
    for (const char* loss : {"1e-4", "1e-3", "1e-2"}) {
      const ProgramRun run = run_well({{"transport.protocol", "rocev2"},
                                       {"transport.recovery", "selective_repeat"},
                                       {"transport.ack_timeout", "10"},
                                       {"workload.op", "read"},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", size.bytes},
                                       {"workload.iterations", size.reads},
                                       {"link.flow_control", "none"},
                                       {"link.loss_rate", loss},
                                       {"sim.payload", "none"}});
      EXPECT_GT(run.number("/throughput_gbps"), 0.95 * 98) << size.bytes << " " << loss;
    }
  }
}

// A packet that is held back looks lost until it comes, right before its repetition: the time that
// answers take must not be learnt from it, nor a retry be spent on the guess that one is late.
TEST(LossGoodput, SelectiveRepeatOfReadsThatAreLostAndOutOfTurn) {
  for (const char* protocol : {"rocev2", "ib"}) {
    for (const char* rate : {"1e-3", "1e-2"}) {
      for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
        SCOPED_TRACE(std::string(protocol) + " " + rate + " " + seed);
        const ProgramRun run = run_well({{"transport.protocol", protocol},
                                         {"transport.recovery", "selective_repeat"},
                                         {"workload.op", "read"},
                                         {"workload.pattern", "bandwidth"},
                                         {"workload.msg_size", "20000"},
                                         {"workload.iterations", "200"},
                                         {"workload.signal_every", "1"},
                                         {"link.loss_rate", rate},
                                         {"link.reorder_rate", rate},
                                         {"sim.warmup", "0"},
                                         {"sim.seed", seed}});
        EXPECT_EQ(run.result["completions"], nlohmann::json({{"success", 200}}));
      }
    }
  }
}

// SENDs that come early wait for their turn and are then executed as fast as PCIe takes them; what
// arrives meanwhile joins them. A pipe of 245 packets and one loss in 1,000: go-back-N keeps 1 / (1
// + 0.245) of the rate.
TEST(LossGoodput, SelectiveRepeatOfSends) {
  const auto sends = [](const char* recovery) {
    return goodput({{"transport.protocol", "rocev2"},
                    {"transport.recovery", recovery},
                    {"transport.ack_timeout", "6"},
                    {"workload.op", "send"},
                    {"workload.msg_size", "64KiB"},
                    {"workload.depth", "64"},
                    {"workload.iterations", "3000"},
                    {"link.delay", "40us"}},
                   "1e-3");
  };
  EXPECT_NEAR(sends("go_back_n"), 98 / 1.245, 6);
  EXPECT_GT(sends("selective_repeat"), 82);
}

// NewReno halves its window at each loss, which costs more than the recovery itself.
TEST(LossGoodput, TcpFallsLater) {
  const double lossless = goodput(kTcp, "0");
  EXPECT_GT(goodput(kTcp, "1e-5") / lossless, 0.98);
  EXPECT_GT(goodput(kTcp, "1e-4") / lossless, 0.9);
  EXPECT_GT(goodput(kTcp, "1e-3"), 10 * goodput(kGoBackN, "1e-3"));
}

// On every wire, with every operation: of 16,000 to 32,000 packets what is lost is sent again, and
// nothing else waits for it, so that 1 - p of the rate is left.
TEST(LossGoodput, SelectiveRepeatOnEveryWire) {
  for (const char* protocol : {"ib", "rocev1", "rocev2"}) {
    for (const char* op : {"write", "send", "read"}) {
      const auto rate = [protocol, op](const char* loss) {
        Settings settings = {{"transport.protocol", protocol},
                             {"transport.recovery", "selective_repeat"},
                             {"workload.op", op},
                             {"workload.pattern", "bandwidth"},
                             {"workload.msg_size", "64KiB"},
                             {"workload.depth", "128"},
                             {"workload.iterations", "2000"},
                             {"sim.warmup", "100"},
                             {"sim.payload", "none"},
                             {"link.loss_rate", loss}};
        if (std::string(op) == "send") settings.push_back({"workload.recv_depth", "512"});
        const ProgramRun run = run_well(settings);
        EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U) << protocol << op << loss;
        return run.number("/throughput_gbps");
      };
      const double lossless = rate("0");
      EXPECT_NEAR(rate("1e-6") / lossless, 1, 0.002) << protocol << op;
      EXPECT_NEAR(rate("1e-4") / lossless, 1 - 1e-4, 0.005) << protocol << op;
      EXPECT_NEAR(rate("1e-3") / lossless, 1 - 1e-3, 0.005) << protocol << op;
      EXPECT_NEAR(rate("1e-2") / lossless, 1 - 1e-2, 0.01) << protocol << op;
    }
  }
}

// READs with go-back-N: who asks again takes nothing from behind the gap, so that the responder
// goes on from there and answers nothing in vain that still waits. A loss then costs what is on its
// way: 2 x 5 us and some 4 us of the NICs at 100 Gb/s and 4,178 B a packet are 42 packets, and 30
// more are between scheduler and wire of the responder (nic.tx_slots): 1 / (1 + 72 p), within
// 2 %. Requests that come twice cost nothing.
TEST(LossGoodput, GoBackNOfReadsAnswersNothingInVain) {
  const auto reads = [](const char* protocol, const Settings& fault) {
    return run_well(with({{"transport.protocol", protocol},
                          {"workload.op", "read"},
                          {"workload.pattern", "bandwidth"},
                          {"workload.msg_size", "64KiB"},
                          {"workload.depth", "128"},
                          {"workload.iterations", "4000"},
                          {"sim.warmup", "100"},
                          {"sim.payload", "none"}},
                         fault))
        .number("/throughput_gbps");
  };
  for (const char* protocol : {"rocev1", "rocev2"}) {
    const Settings far = {{"link.delay", "5us"}};
    const double lossless = reads(protocol, far);
    for (const double loss : {1e-3, 1e-4}) {
      const std::string rate = loss == 1e-3 ? "1e-3" : "1e-4";
      EXPECT_NEAR(reads(protocol, with(far, {{"link.loss_rate", rate}})) / lossless,
                  1 / (1 + 72 * loss), 0.02)
          << rate;
    }
    EXPECT_GT(reads(protocol, {{"link.reorder_rate", "1e-3"}}), 0.93 * lossless);
    EXPECT_GT(reads(protocol, {{"link.duplicate_rate", "0.1"}}), 0.99 * lossless);
  }
}

}  // namespace
}  // namespace rnic::testbench
