// SPDX-License-Identifier: Apache-2.0
// How iWARP's connections begin again and end, with the verbs API. A set-up frame that nobody took
// would be sent again after 1 s only, so that whatever is done within milliseconds lost none.
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QpAttr;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Mask = protocol::QpAttrMask;

constexpr std::uint32_t kBytes = 4096;
constexpr Time kWithoutRetry = microseconds(100'000);

void to_state(RigSide& side, QpState state) {
  QpAttr attr;
  attr.qp_state = state;
  ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, Mask::kState), Status::kOk);
}

/// The steps of one side on its way to a new connection.
void reset(RigSide& side) {
  to_state(side, QpState::kReset);
  side.to_init(*side.qp);
}
void join(VerbsRig& rig, RigSide& side) {
  const bool first = &side == &rig.a;
  side.connect((first ? rig.b : rig.a).qp->qpn, path_between(first ? 0 : 1, first ? 1 : 0),
               rig.config().transport);
  side.core.sync();
}

struct Reconnect : ::testing::Test {
  explicit Reconnect(const Settings& more = {})
      : rig(with({{"transport.protocol", "iwarp"}, {"transport.mtu", "1500"}}, more)) {}

  void begin() {
    rig.connect();
    from = rig.a.buffer(kBytes);
    to = rig.b.buffer(kBytes);
    write();
  }
  void post() {
    rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, kBytes, to.address,
               to.region.rkey);
  }
  void write() {
    post();
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  }
  void write_to_destroyed() {
    rig.b.verbs().destroy_qp(rig.b.core, rig.b.qp);
    rig.b.core.sync();
    post();
  }

  VerbsRig rig;
  RigBuffer from;
  RigBuffer to;
};

TEST_F(Reconnect, BothResetThenTheInitiatorFirst) {
  rig.run(
      [&] {
        begin();
        for (int i = 0; i < 3; ++i) {
          reset(rig.a);
          reset(rig.b);
          join(rig, rig.a);
          rig.settle();  // its request is there before the other end wants it
          join(rig, rig.b);
          write();
        }
      },
      kWithoutRetry);
}

TEST_F(Reconnect, BothResetThenTheInitiatorLast) {
  rig.run(
      [&] {
        begin();
        for (int i = 0; i < 3; ++i) {
          reset(rig.b);
          reset(rig.a);
          join(rig, rig.b);
          rig.settle();
          join(rig, rig.a);
          write();
        }
      },
      kWithoutRetry);
}

// The peer learns of it by the reset of the connection, and flushes.
TEST_F(Reconnect, OneSideBeginsAnewBeforeTheOtherKnows) {
  rig.run(
      [&] {
        begin();
        const RigBuffer buffer = rig.b.buffer(kBytes);
        rig.b.post_recv(buffer.address, buffer.region.lkey, kBytes);
        reset(rig.a);
        join(rig, rig.a);
        EXPECT_EQ(rig.b.await_recv().status, WcStatus::kWrFlushError);
        EXPECT_EQ(rig.b.state(), QpState::kError);
        reset(rig.b);
        join(rig, rig.b);
        write();
      },
      kWithoutRetry);
}

struct SilentReconnect : Reconnect {
  SilentReconnect() : Reconnect({{"tcp.tear_down", "false"}}) {}
};

TEST_F(SilentReconnect, ARequestThatComesDuringTheOldConnectionWaits) {
  rig.run(
      [&] {
        begin();
        reset(rig.a);
        join(rig, rig.a);
        rig.settle();
        EXPECT_EQ(rig.b.state(), QpState::kRts);  // it knows nothing yet
        reset(rig.b);
        join(rig, rig.b);
        write();
      },
      kWithoutRetry);
}

// Work that the peer did not acknowledge is flushed, not timed out: the reset says that nobody is
// there, which silence does not.
TEST_F(Reconnect, TheResetFlushesThePeersWork) {
  rig.run(
      [&] {
        begin();
        write_to_destroyed();
        EXPECT_EQ(rig.a.await_send().status, WcStatus::kWrFlushError);
        EXPECT_EQ(rig.a.state(), QpState::kError);
      },
      kWithoutRetry);
}

// 8 time-outs of 10 ms, 20 ms ... 1.28 s, as for a host that has lost its power.
TEST_F(SilentReconnect, SilenceIsFoundByTheTimer) {
  rig.run(
      [&] {
        begin();
        write_to_destroyed();
        EXPECT_EQ(rig.a.await_send().status, WcStatus::kRetryExceededError);
      },
      microseconds(10'000'000));
}

std::uint64_t completed_with(const ProgramRun& run, const char* status) {
  const auto& completions = run.result.at("completions");
  return completions.contains(status) ? completions.at(status).get<std::uint64_t>() : 0;
}

// A host that answers nothing, from the first SYN on: whatever the other one wants of it ends in an
// error after tcp.connect_timeout, and the run is over.
TEST(SilentHost, SetUpIsGivenUp) {
  for (const char* host : {"0", "1"}) {
    for (const char* op : {"write", "read", "send", "write_imm"}) {
      for (const char* pattern : {"latency", "bandwidth"}) {
        SCOPED_TRACE(std::string(host) + " " + op + " " + pattern);
        const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                         {"workload.op", op},
                                         {"workload.pattern", pattern},
                                         {"workload.depth", "4"},
                                         {"workload.iterations", "8"},
                                         {"sim.warmup", "0"},
                                         {"fabric.silent_host", host}});
        EXPECT_EQ(completed_with(run, "success"), 0U);
        EXPECT_EQ(completed_with(run, "retry_exceeded_error"), 1U);
      }
    }
  }
}

// Who falls silent later is found by the retransmission limit or, with READs that are acknowledged
// and not answered, by keep-alive probes.
TEST(SilentHost, ThatFallsSilentLaterIsGivenUp) {
  for (const char* op : {"write", "read", "send", "atomic_fadd"}) {
    for (const char* pattern : {"latency", "bandwidth"}) {
      SCOPED_TRACE(std::string(op) + " " + pattern);
      const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                       {"workload.op", op},
                                       {"workload.pattern", pattern},
                                       {"workload.depth", "4"},
                                       {"workload.iterations", "2000"},
                                       {"sim.warmup", "0"},
                                       {"fabric.silent_host", "1"},
                                       {"fabric.silent_from", "300us"}});
      EXPECT_GT(completed_with(run, "success"), 0U);
      // The silent host hears nothing, but what it says is heard: it may give up first, and then
      // its reset flushes what it never answered.
      EXPECT_GE(completed_with(run, "retry_exceeded_error") + completed_with(run, "wr_flush_error"),
                1U);
    }
  }
}

// The receiver, woken by events, posts RECVs later than the sender hears of placed data; nothing on
// iWARP's wire says that one is missing, so the sender keeps count.
TEST(SendOverIwarp, ASenderWaitsForTheReceivers) {
  for (const char* depth : {"1", "2", "6", "8", "12", "24", "32"}) {
    for (const char* qps : {"1", "4"}) {
      for (const char* completion : {"event", "poll"}) {
        SCOPED_TRACE(std::string(depth) + " " + qps + " " + completion);
        const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                         {"workload.op", "send"},
                                         {"workload.pattern", "bandwidth"},
                                         {"workload.depth", depth},
                                         {"workload.qps", qps},
                                         {"workload.completion", completion},
                                         {"workload.iterations", "300"}});
        for (const auto& [status, count] : run.result.at("completions").items()) {
          EXPECT_TRUE(count == 0 || status == "success") << status;
        }
      }
    }
  }
}

// Without that count the first message that finds no RECV ends the connection (RFC 5040, 7.1).
TEST(SendOverIwarp, WithoutCountingAMissingReceiveIsFatal) {
  const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                   {"workload.op", "send"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.depth", "32"},
                                   {"workload.recv_depth", "2"},
                                   {"workload.completion", "event"},
                                   {"workload.recv_credits", "false"}});
  EXPECT_EQ(completed_with(run, "remote_operation_error"), 1U);
}

// 16 RECVs are not enough for 64 in flight: the sender has 16 in flight, with every kind of queue.
TEST(SendOverIwarp, FewReceivesOnlySlowDown) {
  for (const char* srq : {"false", "true"}) {
    for (const char* both : {"false", "true"}) {
      SCOPED_TRACE(std::string(srq) + " " + both);
      const ProgramRun run = run_well({{"transport.protocol", "iwarp"},
                                       {"workload.op", "send"},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.depth", "64"},
                                       {"workload.recv_depth", "16"},
                                       {"workload.recv_cost", "2us"},
                                       {"workload.srq", srq},
                                       {"workload.bidirectional", both},
                                       {"workload.qps", "3"}});
      EXPECT_EQ(completed_with(run, "remote_operation_error"), 0U);
      EXPECT_EQ(completed_with(run, "wr_flush_error"), 0U);
    }
  }
}

}  // namespace
}  // namespace rnic::testbench
