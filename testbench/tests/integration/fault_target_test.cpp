// SPDX-License-Identifier: Apache-2.0
// Faults that are meant for one kind of frame, one way, one cable (link.drop_list=ack:1 and the
// like), and what the transport makes of the loss of exactly that frame.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings writes(const std::string& protocol) {
  return {
      {"transport.protocol", protocol}, {"workload.op", "write"}, {"workload.pattern", "bandwidth"},
      {"workload.msg_size", "4096"},    {"workload.depth", "1"},  {"workload.iterations", "10"},
      {"workload.signal_every", "1"},   {"sim.warmup", "0"},      {"transport.ack_timeout", "8"},
      {"tcp.delayed_ack", "1"},         {"tcp.min_rto", "1ms"}};
}

double lost(const ProgramRun& run) { return run.link_sum("cable_lost"); }

class FaultTargets : public ::testing::TestWithParam<std::string> {};

// One message of one packet at a time: nothing behind it makes up for its ACK, so the timer finds
// the loss, and the packet comes twice.
TEST_P(FaultTargets, ALostAckIsFoundByTheTimer) {
  const ProgramRun run = run_well(with(writes(GetParam()), {{"link.drop_list", "ack:3"}}));
  EXPECT_EQ(lost(run), 1);
  EXPECT_EQ(run.number("/completions/success"), 10);
  EXPECT_EQ(run.counter("local_ack_timeout_err"), 1U);
  EXPECT_EQ(run.counter("retransmitted_packets"), 1U);
  EXPECT_EQ(run.counter("duplicate_request"), 1U);
  EXPECT_EQ(run.counter("rx_write_requests"), 10U);
}

TEST_P(FaultTargets, ACorruptAckIsALostOne) {
  const ProgramRun run = run_well(with(writes(GetParam()), {{"link.corrupt_list", "ack:3"}}));
  EXPECT_EQ(run.counter("rx_bad_checksum"), 1U);
  EXPECT_EQ(run.counter("local_ack_timeout_err"), 1U);
  EXPECT_EQ(run.number("/completions/success"), 10);
}

// An ACK that comes twice or late says nothing new.
TEST_P(FaultTargets, AnAckTwiceOrLateChangesNothing) {
  for (const char* fault : {"link.duplicate_list", "link.reorder_list"}) {
    const ProgramRun run = run_well(with(writes(GetParam()), {{fault, "ack:2,ack:5"}}));
    EXPECT_EQ(run.number("/completions/success"), 10) << fault;
    EXPECT_EQ(run.counter("retransmitted_packets"), 0U) << fault;
    EXPECT_EQ(run.link_sum("cable_duplicated") + run.link_sum("cable_reordered"), 2) << fault;
  }
}

// Requests and responses are counted apart.
TEST_P(FaultTargets, ALostResponse) {
  for (const char* target : {"response:3", "request:2"}) {
    const ProgramRun run =
        run_well(with(writes(GetParam()), {{"workload.op", "read"}, {"link.drop_list", target}}));
    EXPECT_EQ(lost(run), 1) << target;
    EXPECT_EQ(run.number("/completions/success"), 10) << target;
  }
}

TEST_P(FaultTargets, RatesStrikeTheKindsThatAreNamed) {
  // With every ACK lost nothing completes, with every answer to READs lost WRITEs do not notice.
  const ProgramRun none = run_well(
      with(writes(GetParam()),
           {{"link.loss_rate", "1"}, {"link.fault_frames", "response"}, {"sim.seed", "3"}}));
  EXPECT_EQ(lost(none), 0);
  EXPECT_EQ(none.number("/completions/success"), 10);
  const ProgramRun all = run_well(with(writes(GetParam()), {{"link.loss_rate", "1"},
                                                            {"link.fault_frames", "ack"},
                                                            {"link.fault_direction", "to_host"},
                                                            {"tcp.handshake", "false"},
                                                            {"transport.retry_count", "2"}}));
  EXPECT_EQ(all.number("/completions/success"), 0);
  EXPECT_EQ(all.number("/completions/retry_exceeded_error"), 1);
  EXPECT_EQ(all.counter("rx_write_requests"), 1U);  // it arrived each time
}

// The requester notices a lost answer by the next one and asks again for that operation and all
// behind it, some of which are still being executed at the responder: each is answered again, when
// it has been, so no time-out is needed (IBTA vol 1, 9.7.5.1.4). Only the last answers have none
// behind them.
TEST(FaultOfOneAnswer, InADeepQueueIsFoundByTheNext) {
  constexpr int kOperations = 40;
  for (const std::string protocol : {"ib", "rocev1", "rocev2"}) {
    for (const std::string op : {"atomic_fadd", "atomic_cas", "read"}) {
      const int step = protocol == "rocev2" ? 2 : 9;
      for (int lost_answer = 1; lost_answer < kOperations; lost_answer += step) {
        const ProgramRun run = run_well(with(
            writes(protocol), {{"workload.op", op},
                               {"workload.msg_size", "8"},
                               {"workload.depth", "16"},
                               {"workload.iterations", std::to_string(kOperations)},
                               {"link.drop_list", "response:" + std::to_string(lost_answer)}}));
        EXPECT_EQ(lost(run), 1) << protocol << ' ' << op << ' ' << lost_answer;
        EXPECT_EQ(run.number("/completions/success"), kOperations);
        EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U)
            << protocol << ' ' << op << ' ' << lost_answer;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, FaultTargets, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

// The first NAK tells of data packet 6; without it the timer must. The gap's second packet raises
// no NAK of its own.
TEST(FaultTarget, ALostNakIsFoundByTheTimer) {
  for (const char* protocol : {"ib", "rocev1", "rocev2"}) {
    const Settings stream = with(writes(protocol), {{"workload.depth", "8"}});
    const ProgramRun naked = run_well(with(stream, {{"link.drop_list", "6"}}));
    EXPECT_EQ(naked.counter("packet_seq_err"), 1U);
    EXPECT_EQ(naked.counter("local_ack_timeout_err"), 0U);
    const ProgramRun silent = run_well(with(stream, {{"link.drop_list", "6,nak:1"}}));
    EXPECT_EQ(lost(silent), 2) << protocol;
    EXPECT_EQ(silent.counter("packet_seq_err"), 0U) << protocol;
    EXPECT_EQ(silent.counter("local_ack_timeout_err"), 1U) << protocol;
    EXPECT_EQ(silent.number("/completions/success"), 10) << protocol;
  }
}

// The RECV comes 50 us late; without its RNR NAK the sender hears nothing until its timer runs out.
TEST(FaultTarget, ALostRnrNak) {
  const Settings late{{"transport.protocol", "rocev2"},
                      {"workload.op", "send"},
                      {"workload.pattern", "bandwidth"},
                      {"workload.msg_size", "1KiB"},
                      {"workload.depth", "2"},
                      {"workload.recv_depth", "1"},
                      {"workload.recv_cost", "50us"},
                      {"workload.iterations", "6"},
                      {"sim.warmup", "0"},
                      {"transport.min_rnr_timer", "3"},
                      {"transport.ack_timeout", "6"}};
  const ProgramRun all = run_well(late);
  ASSERT_GT(all.counter("rnr_naks_sent"), 0U);
  EXPECT_EQ(all.counter("local_ack_timeout_err"), 0U);
  const ProgramRun run = run_well(with(late, {{"link.drop_list", "rnr:1"}}));
  EXPECT_EQ(lost(run), 1);
  EXPECT_EQ(run.counter("local_ack_timeout_err"), 1U);
  EXPECT_EQ(run.number("/completions/success"), 6);
}

TEST(FaultTarget, LostNotificationsAreNotSentAgain) {
  const Settings congested{{"transport.protocol", "rocev2"},
                           {"fabric.topology", "single_switch"},
                           {"fabric.hosts", "3"},
                           {"workload.traffic", "incast"},
                           {"workload.pattern", "bandwidth"},
                           {"workload.msg_size", "64KiB"},
                           {"workload.iterations", "200"},
                           {"transport.congestion_control", "dcqcn"},
                           {"sim.warmup", "0"},
                           {"sim.payload", "none"}};
  // They leave host 0, the receiver, on cable 0.
  const ProgramRun run = run_well(with(congested, {{"link.drop_list", "cnp:1,cnp:4"}}));
  EXPECT_EQ(lost(run), 2);
  EXPECT_EQ(run.counter("np_cnp_sent"), run.counter("rp_cnp_handled") + 2);
  const ProgramRun none =
      run_well(with(congested, {{"link.loss_rate", "1"}, {"link.fault_frames", "cnp"}}));
  EXPECT_GT(none.counter("np_cnp_sent"), 0U);
  EXPECT_EQ(none.counter("rp_cnp_handled"), 0U);
}

// Both hosts send; each way has its own first packet.
TEST(FaultTarget, OneWayOfACable) {
  const Settings both =
      with(writes("rocev2"),
           {{"workload.bidirectional", "true"}, {"workload.depth", "8"}, {"link.drop_list", "2"}});
  const auto retransmitted = [&both](const char* direction, std::size_t host) {
    const ProgramRun run = run_well(with(both, {{"link.fault_direction", direction}}));
    EXPECT_EQ(lost(run), 1);
    return run.result["counters"]["host" + std::to_string(host)]["retransmitted_packets"]
        .get<int>();
  };
  EXPECT_GT(retransmitted("from_host", 0), 0);
  EXPECT_EQ(retransmitted("from_host", 1), 0);
  EXPECT_EQ(retransmitted("to_host", 0), 0);
  EXPECT_GT(retransmitted("to_host", 1), 0);
}

// Hosts 1 and 2 send to host 0 through a switch: the cable of host 2 loses everything that host 2
// sends, or only its third packet.
TEST(FaultTarget, OneCableOfSeveral) {
  const Settings incast = with(writes("rocev2"), {{"fabric.topology", "single_switch"},
                                                  {"fabric.hosts", "3"},
                                                  {"workload.traffic", "incast"},
                                                  {"workload.depth", "8"},
                                                  {"transport.retry_count", "1"},
                                                  {"link.fault_cable", "2"},
                                                  {"link.fault_direction", "from_host"}});
  const auto of = [](const ProgramRun& run, const char* host, const char* counter) {
    return run.result["counters"][host][counter].get<int>();
  };
  const ProgramRun dead = run_well(with(incast, {{"link.loss_rate", "1"}}));
  EXPECT_EQ(dead.number("/completions/success"), 10);
  EXPECT_EQ(dead.number("/completions/retry_exceeded_error"), 1);
  EXPECT_EQ(of(dead, "host1", "retransmitted_packets"), 0);
  const ProgramRun one = run_well(with(incast, {{"link.drop_list", "3"}}));
  EXPECT_EQ(lost(one), 1);
  EXPECT_EQ(one.number("/completions/success"), 20);
  EXPECT_EQ(of(one, "host1", "retransmitted_packets"), 0);
  EXPECT_GT(of(one, "host2", "retransmitted_packets"), 0);
}

// Frames of iWARP's set-up: each may be lost, the connection comes all the same.
TEST(FaultTarget, SetUpFrames) {
  for (const char* target : {"connection:1", "connection:2", "connection:3", "connection:4"}) {
    const ProgramRun run =
        run_well(with(writes("iwarp"), {{"link.drop_list", target}, {"tcp.syn_timeout", "100us"}}));
    EXPECT_EQ(lost(run), 1) << target;
    EXPECT_EQ(run.number("/completions/success"), 10) << target;
  }
}

// Before the handshake has measured the round trip a frame is sent again after tcp.syn_timeout (RFC
// 6298, 2.1); MPA's frames are data of TCP, which by then has a time-out of its own: tcp.min_rto.
TEST(FaultTarget, StartUpFramesOfMpaAreSentAgainAsDataAre) {
  const Settings slow = with(writes("iwarp"), {{"tcp.syn_timeout", "1s"}, {"tcp.min_rto", "10ms"}});
  for (const char* target : {"connection:3", "connection:4"}) {
    const ProgramRun run = run_well(with(slow, {{"link.drop_list", target}}));
    EXPECT_EQ(lost(run), 1) << target;
    EXPECT_GT(run.number("/sim/simulated_ns"), 10e6) << target;
    EXPECT_LT(run.number("/sim/simulated_ns"), 11e6) << target;
  }
  EXPECT_GT(run_well(with(slow, {{"link.drop_list", "connection:1"}})).number("/sim/simulated_ns"),
            1e9);
}

}  // namespace
}  // namespace rnic::testbench
