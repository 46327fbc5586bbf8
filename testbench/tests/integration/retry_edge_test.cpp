// SPDX-License-Identifier: Apache-2.0
// Edges of loss recovery: no retries, no timer, waits without end, path MTUs that differ, packets
// that overtake one another, and everything twice.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;

const std::vector<std::string>& psn_wires() {
  static const std::vector<std::string> wires{"ib", "rocev1", "rocev2"};
  return wires;
}

Settings writes(const std::string& protocol) {
  return {{"transport.protocol", protocol}, {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "4096"},    {"workload.depth", "8"},
          {"workload.iterations", "20"},    {"workload.signal_every", "1"},
          {"link.flow_control", "none"},    {"sim.warmup", "0"},
          {"transport.ack_timeout", "8"}};
}

// retry_cnt = 0: the first sign of a loss ends it, a NAK at once and the timer after one period.
TEST(RetryEdge, WithoutRetriesTheFirstNakEndsIt) {
  for (const std::string& protocol : psn_wires()) {
    const ProgramRun run =
        run_well(with(writes(protocol), {{"transport.retry_count", "0"}, {"link.drop_list", "5"}}));
    EXPECT_EQ(run.number("/completions/success"), 4) << protocol;
    EXPECT_EQ(run.number("/completions/retry_exceeded_error"), 1) << protocol;
    EXPECT_EQ(run.counter("packet_seq_err"), 1U) << protocol;
    EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U) << protocol;
    EXPECT_EQ(run.counter("retransmitted_packets"), 0U) << protocol;
  }
}

TEST(RetryEdge, WithoutRetriesTheFirstTimeOutEndsIt) {
  for (const std::string& protocol : psn_wires()) {
    const ProgramRun run = run_well(
        with(writes(protocol), {{"transport.retry_count", "0"}, {"link.drop_list", "20"}}));
    EXPECT_EQ(run.number("/completions/success"), 19) << protocol;  // the last is lost
    EXPECT_EQ(run.number("/completions/retry_exceeded_error"), 1) << protocol;
    EXPECT_EQ(run.counter("local_ack_timeout_err"), 1U) << protocol;
    EXPECT_EQ(run.counter("retransmitted_packets"), 0U) << protocol;
  }
}

// timeout = 0: no timer. What later packets tell of is repaired; the loss of the last packet never
// is, and the program says who waits.
TEST(RetryEdge, WithoutATimerOnlyLaterPacketsTell) {
  for (const std::string& protocol : psn_wires()) {
    const Settings forever = with(writes(protocol), {{"transport.ack_timeout", "0"}});
    const ProgramRun inside = run_well(with(forever, {{"link.drop_list", "5"}}));
    EXPECT_EQ(inside.number("/completions/success"), 20) << protocol;
    const ProgramRun last = run_program(with(forever, {{"link.drop_list", "20"}}));
    EXPECT_EQ(last.status, 3) << protocol;
    EXPECT_NE(last.error.find("oldest unacknowledged PSN"), std::string::npos) << last.error;
  }
}

// rnr_retry = 7 is without end: 5,000 waits of 0.01 ms (code 1) later the RECV is there.
TEST(RetryEdge, ReceiverNotReadyForLong) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.rnr_retry", "7"},
                {"transport.min_rnr_timer", "1"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer from = rig.a.buffer(4096);
    const RigBuffer to = rig.b.buffer(4096);
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, from.address, from.region.lkey, 64), host::Status::kOk);
    rig.settle(microseconds(60'000));
    EXPECT_GT(rig.a.node.nic.transport().counters().rnr_nak_retry_err, 4000U);
    rig.b.post_recv(to.address, to.region.lkey, 4096);
    rig.b.core.sync();
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.await_recv().byte_len, 64U);
  });
}

/// Path MTUs of the two ends, and what becomes of a WRITE and a READ of 2,000 B.
struct MtuMismatch {
  const char* name;
  std::uint32_t requester;
  std::uint32_t responder;
  WcStatus write;
  WcStatus read;
};

class PathMtuMismatch : public ::testing::TestWithParam<std::tuple<MtuMismatch, WrOpcode>> {};

// A FIRST packet is exactly the responder's path MTU, else it is an invalid request (IBTA vol 1,
// 9.7.4.1.6); a READ's answer in other packets than the requester's is of the wrong length. What is
// no longer than both passes.
TEST_P(PathMtuMismatch, EndsWithTheFirstLongMessage) {
  const auto& [mtu, opcode] = GetParam();
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&, &mtu = mtu, &opcode = opcode] {
    rig.a.create();
    rig.b.create();
    config::TransportConfig transport = rig.config().transport;
    transport.mtu = mtu.requester;
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), transport);
    transport.mtu = mtu.responder;
    rig.b.connect(rig.a.qp->qpn, path_between(1, 0), transport);
    rig.settle();
    const RigBuffer from = rig.a.buffer(4096);
    const RigBuffer to = rig.b.buffer(4096);
    for (const std::uint32_t bytes : {512U, 2000U}) {
      ASSERT_EQ(
          rig.a.post(opcode, from.address, from.region.lkey, bytes, to.address, to.region.rkey),
          host::Status::kOk);
      const WcStatus expected = opcode == WrOpcode::kRdmaRead ? mtu.read : mtu.write;
      EXPECT_EQ(rig.a.await_send().status, bytes == 512 ? WcStatus::kSuccess : expected) << bytes;
    }
    rig.settle();
    EXPECT_EQ(rig.a.state(), QpState::kError);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, PathMtuMismatch,
    ::testing::Combine(::testing::Values(MtuMismatch{"LargerAtTheRequester", 1024, 512,
                                                     WcStatus::kRemoteInvalidRequestError,
                                                     WcStatus::kLocalLengthError},
                                         MtuMismatch{"SmallerAtTheRequester", 512, 1024,
                                                     WcStatus::kRemoteInvalidRequestError,
                                                     WcStatus::kLocalLengthError}),
                       ::testing::Values(WrOpcode::kRdmaWrite, WrOpcode::kRdmaRead)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) +
             (std::get<1>(test.param) == WrOpcode::kRdmaRead ? "Read" : "Write");
    });

// Of a stream of segments of 9,038 B on the wire, 0.723 us each at 100 Gb/s, one
// comes 1.0, 1.8, 2.5 or 3.3 us late: 1, 2, 3 or 4 overtake it. The third duplicate ACK is a loss
// (RFC 5681, 3.2), two are not (RFC 6675, 4): nothing is sent again below three.
TEST(Overtaken, TcpWaitsForTheThird) {
  int overtaken = 1;
  for (const char* late : {"1us", "1800ns", "2500ns", "3300ns"}) {
    for (const char* op : {"write", "read"}) {
      const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                       {"transport.mtu", "9000"},
                                       {"workload.op", op},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", "1MiB"},
                                       {"workload.iterations", "4"},
                                       {"workload.depth", "2"},
                                       {"sim.warmup", "0"},
                                       {"link.reorder_list", "100"},
                                       {"link.reorder_delay", late}});
      EXPECT_EQ(run.counter("out_of_sequence"), static_cast<std::uint64_t>(overtaken)) << late;
      EXPECT_EQ(run.counter("retransmitted_packets") > 0, overtaken >= 3) << late << op;
      EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U) << late << op;
    }
    ++overtaken;
  }
}

// IBTA knows no reordering: each packet that comes too early is a loss at once, whatever overtakes.
// One NAK for it, and one for the packet that was dropped meanwhile.
TEST(Overtaken, GoBackNGoesBackForEach) {
  for (const std::string& protocol : psn_wires()) {
    for (const char* late : {"400ns", "800ns", "1200ns"}) {
      const ProgramRun run = run_well({{"transport.protocol", protocol},
                                       {"transport.mtu", "4096"},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", "1MiB"},
                                       {"workload.iterations", "4"},
                                       {"workload.depth", "2"},
                                       {"sim.warmup", "0"},
                                       {"transport.adaptive_retransmission", "true"},
                                       {"link.reorder_list", "100"},
                                       {"link.reorder_delay", late}});
      EXPECT_EQ(run.counter("packet_seq_err"), 2U) << protocol << late;
      EXPECT_GT(run.counter("retransmitted_packets"), 0U) << protocol << late;
      EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U) << protocol << late;
      EXPECT_EQ(run.number("/completions/success"), 4) << protocol << late;
    }
  }
}

// Every frame of either direction comes twice: each request is executed once, the rest is counted.
TEST(EverythingTwice, IsDoneOnce) {
  for (const std::string& protocol : all_protocols()) {
    std::vector<std::string> ops = operations_of(protocol);
    ops.emplace_back("atomic_fadd");
    for (const std::string& op : ops) {
      SCOPED_TRACE(protocol + " " + op);
      Settings all = with(
          writes(protocol),
          {{"workload.op", op}, {"link.duplicate_rate", "1"}, {"transport.ack_timeout", "14"}});
      if (op == "atomic_fadd") all.emplace_back("workload.msg_size", "8");
      const ProgramRun run = run_well(all);
      EXPECT_EQ(run.number("/completions/success"), 20);
      EXPECT_EQ(run.result.at("completions").size(), 1U);
      EXPECT_EQ(run.counter("local_ack_timeout_err"), 0U);
      EXPECT_GE(run.counter("duplicate_request"), 20U);
      const char* requests = op == "read"                ? "rx_read_requests"
                             : op == "atomic_fadd"       ? "rx_atomic_requests"
                             : op.rfind("write", 0) == 0 ? "rx_write_requests"
                                                         : "rx_send_requests";
      EXPECT_EQ(run.counter(requests), 20U);
    }
  }
}

}  // namespace
}  // namespace rnic::testbench
