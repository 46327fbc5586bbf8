// SPDX-License-Identifier: Apache-2.0
// What is lost of UC and UD: every message is delivered or counted, goodput is that of whole
// messages, and a latency program goes on.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

constexpr double kPacket = 4096;

Settings uc_stream(const std::string& op, const std::string& protocol = "rocev2") {
  return {{"transport.protocol", protocol},
          {"transport.type", "uc"},
          {"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},
          {"workload.iterations", "100"},
          {"workload.depth", "8"},
          {"sim.warmup", "0"}};
}

double messages(const ProgramRun& run, const std::string& which) {
  return run.number(("/messages/" + which).c_str());
}

/// Gb/s times ns are bits; rounded figures give them back to a millionth.
double delivered_bytes(const ProgramRun& run) {
  return run.number("/throughput_gbps") * run.number("/window_ns") / 8;
}

// Messages of 16 packets: 5 is in the first, 33 begins the third, 64 ends the fourth, 100 and 101
// are both in the seventh, and 128 and 129 end the eighth and begin the ninth, of which the
// receiver sees only packets that continue nothing: six messages in all.
TEST(UnreliableLoss, OnlyWholeMessagesCount) {
  for (const std::string op : {"write", "send", "write_imm"}) {
    for (const std::string protocol : {"ib", "rocev1", "rocev2"}) {
      SCOPED_TRACE(op + " " + protocol);
      const ProgramRun run =
          run_well(with(uc_stream(op, protocol), {{"link.drop_list", "5,33,64,100,101,128,129"}}));
      ASSERT_EQ(run.status, 0);
      EXPECT_EQ(messages(run, "sent"), 100);
      EXPECT_EQ(messages(run, "delivered"), 94);
      EXPECT_EQ(messages(run, "lost"), 6);
      EXPECT_EQ(run.counter(op == "send" ? "rx_send_requests" : "rx_write_requests"), 94U);
      // The receiver noticed the four whose beginning it had seen.
      EXPECT_EQ(run.counter("dropped_messages"), 4U);
      EXPECT_NEAR(delivered_bytes(run), 94 * 16 * kPacket, 100);
    }
  }
}

// At a rate p a message of n packets arrives with probability (1 - p)^n: of 1,000 within five
// standard deviations, and throughput falls as much.
TEST(UnreliableLoss, AMessageArrivesWithAllItsPackets) {
  constexpr double kMessages = 1000;
  for (const int packets : {1, 4, 16}) {
    const Settings all =
        with(uc_stream("write"), {{"workload.iterations", "1000"},
                                  {"workload.msg_size", std::to_string(4096 * packets)},
                                  {"link.loss_rate", "0.02"},
                                  {"sim.payload", "none"}});
    const ProgramRun run = run_well(all);
    ASSERT_EQ(run.status, 0);
    const double expected = std::pow(0.98, packets);
    const double deviation = std::sqrt(expected * (1 - expected) / kMessages);
    EXPECT_EQ(messages(run, "sent"), kMessages);
    EXPECT_EQ(messages(run, "delivered") + messages(run, "lost"), kMessages);
    EXPECT_EQ(messages(run, "delivered"), static_cast<double>(run.counter("rx_write_requests")));
    EXPECT_NEAR(messages(run, "delivered") / kMessages, expected, 5 * deviation) << packets;
    EXPECT_NEAR(delivered_bytes(run), messages(run, "delivered") * packets * kPacket,
                delivered_bytes(run) * 1e-5);
    // The line is as busy as without losses: 4,096 B of 4,178, and the RETH of a first packet.
    const double line = 100 * kPacket * packets / (4178.0 * packets + 16);
    EXPECT_NEAR(run.number("/throughput_gbps"), line * messages(run, "delivered") / kMessages,
                0.01 * line)
        << packets;
  }
}

// Messages of no bytes are counted as they arrive, too.
TEST(UnreliableLoss, EmptyMessagesAreLostAsOthersAre) {
  for (const char* type : {"uc", "ud"}) {
    const ProgramRun run = run_well({{"transport.type", type},
                                     {"workload.op", "send"},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.msg_size", "0"},
                                     {"workload.iterations", "100"},
                                     {"sim.warmup", "0"},
                                     {"link.drop_list", "3,50"}});
    EXPECT_EQ(messages(run, "delivered"), 98) << type;
    EXPECT_EQ(messages(run, "lost"), 2) << type;
  }
}

// Two queue pairs whose packets alternate: a message of one does not end what the other has begun.
TEST(UnreliableLoss, QueuePairsAreCountedApart) {
  const ProgramRun run =
      run_well(with(uc_stream("write"), {{"workload.qps", "2"}, {"link.drop_list", "400,401"}}));
  EXPECT_EQ(messages(run, "sent"), 100);
  EXPECT_EQ(messages(run, "delivered"), 98);
  EXPECT_EQ(run.counter("rx_write_requests"), 98U);
}

TEST(UnreliableLoss, ReliableServicesLoseNoneAndDoNotSaySo) {
  const ProgramRun run = run_well({{"workload.pattern", "bandwidth"}, {"link.loss_rate", "0.01"}});
  EXPECT_FALSE(run.result.contains("messages"));
}

class UnreliablePingPong : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  Settings settings() const {
    return {{"transport.protocol", "rocev2"},
            {"transport.type", std::get<0>(GetParam())},
            {"workload.op", std::get<1>(GetParam())},
            {"workload.pattern", "latency"},
            {"workload.iterations", "50"},
            {"sim.warmup", "0"}};
  }
};

// Packets 1, 3, 5 are pings. The third is lost, so that 6, 8, ... are pings, and 21 is a pong. Each
// costs one turn of 50; the others are as ever, and the program waits for 1 ms and 4 x (10 ns +
// 1 us + what 64 B take at 0.5 Gb/s, 1,024 ns).
TEST_P(UnreliablePingPong, GoesOnBehindALostMessage) {
  const ProgramRun whole = run_well(settings());
  const ProgramRun run = run_well(with(settings(), {{"link.drop_list", "5,21"}}));
  ASSERT_EQ(run.status, 0) << run.error;
  EXPECT_EQ(messages(run, "lost"), 2);
  // 50 pings, and a pong for each but the lost ping.
  EXPECT_EQ(messages(run, "sent"), 50 + 49);
  EXPECT_NEAR(run.number("/latency_ns/p50"), whole.number("/latency_ns/p50"), 1);
  EXPECT_LE(run.number("/latency_ns/max"), whole.number("/latency_ns/max"));
  double sum = 0;
  for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
  EXPECT_NEAR(sum, run.number("/latency_ns/mean"), run.number("/latency_ns/mean") / 1000);
  const double waited = 1e6 + 4 * (1010 + 1024);
  EXPECT_NEAR(run.number("/window_ns"), 2 * waited + 48 * 2 * run.number("/latency_ns/mean"),
              0.01 * waited);
}

TEST_P(UnreliablePingPong, TheLimitIsAKey) {
  const ProgramRun run =
      run_well(with(settings(), {{"link.drop_list", "7"}, {"workload.answer_timeout", "50us"}}));
  EXPECT_EQ(messages(run, "lost"), 1);
  EXPECT_NEAR(run.number("/window_ns"), 50e3 + 49 * 2 * run.number("/latency_ns/mean"), 2e3);
}

// Nothing is lost where all is slow: a large message on the slowest link in the smallest packets,
// and programs that look now and then.
TEST_P(UnreliablePingPong, SlowIsNotLost) {
  const ProgramRun large = run_well(with(settings(), {{"workload.msg_size", "256"},
                                                      {"link.rate", "1Gbps"},
                                                      {"transport.mtu", "256"},
                                                      {"workload.iterations", "5"}}));
  EXPECT_EQ(messages(large, "lost"), 0);
  EXPECT_LT(large.number("/throughput_gbps"), 1);
  const ProgramRun lazy = run_well(
      with(settings(), {{"workload.poll_interval", "10ms"}, {"workload.iterations", "5"}}));
  EXPECT_EQ(messages(lazy, "lost"), 0);
}

TEST(UnreliablePingPongOfLargeMessages, AMebibyteAtAGigabitIsNotLost) {
  const ProgramRun run = run_well({{"transport.type", "uc"},
                                   {"workload.op", "send"},
                                   {"workload.pattern", "latency"},
                                   {"workload.msg_size", "1MiB"},
                                   {"workload.iterations", "4"},
                                   {"sim.warmup", "0"},
                                   {"link.rate", "1Gbps"},
                                   {"transport.mtu", "256"}});
  EXPECT_EQ(messages(run, "lost"), 0);
  EXPECT_LT(run.number("/throughput_gbps"), 0.93);  // 256 of at least 278 bytes
}

// As perftest, which waits for ever.
TEST_P(UnreliablePingPong, WithoutALimitItIsStuck) {
  const ProgramRun run =
      run_program(with(settings(), {{"link.drop_list", "7"}, {"workload.answer_timeout", "0"}}));
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.error.find("workload.answer_timeout"), std::string::npos) << run.error;
}

// Whatever is lost, with several queue pairs in turn.
TEST_P(UnreliablePingPong, ManyLosses) {
  for (const char* seed : {"1", "2", "3", "4", "5"}) {
    const ProgramRun run = run_well(with(settings(), {{"link.loss_rate", "0.1"},
                                                      {"workload.qps", "3"},
                                                      {"workload.iterations", "300"},
                                                      {"workload.answer_timeout", "100us"},
                                                      {"sim.seed", seed}}));
    ASSERT_EQ(run.status, 0) << run.error;
    // A turn is lost with probability 1 - 0.9^2 = 0.19: 57 of 300, standard deviation 6.8.
    EXPECT_NEAR(messages(run, "lost"), 57, 34) << seed;
    EXPECT_LT(run.number("/latency_ns/max"), 5e3) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, UnreliablePingPong,
                         ::testing::Values(std::tuple{"uc", "write"}, std::tuple{"uc", "send"},
                                           std::tuple{"uc", "write_imm"}, std::tuple{"ud", "send"}),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace rnic::testbench
