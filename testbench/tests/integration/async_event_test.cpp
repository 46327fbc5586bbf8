// SPDX-License-Identifier: Apache-2.0
// Asynchronous events beyond those of verbs_event_test: of paths, ports and devices; which refusals
// raise one; and how the result counts them.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AsyncEvent;
using host::verbs::QpAttr;
using host::verbs::QpInitAttr;
using host::verbs::QueuePair;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::EventType;
using protocol::PathMigration;
using protocol::QpState;
using protocol::WcStatus;
using Mask = protocol::QpAttrMask;

constexpr std::uint32_t kNowhere = 5;  // no such host

/// The types of all events that `side` has not fetched.
std::vector<EventType> events_of(RigSide& side) {
  std::vector<EventType> types;
  AsyncEvent event;
  while (side.verbs().poll_async_event(side.core, event)) types.push_back(event.type);
  return types;
}

using Events = std::vector<EventType>;

/// A connection with an alternate path at each end.
struct MigrationRig {
  explicit MigrationRig(const std::string& protocol)
      : rig({{"transport.protocol", protocol},
             {"transport.ack_timeout", "4"},
             {"transport.retry_count", "2"}}) {}

  void connect() {
    rig.connect();
    mine = rig.a.buffer(4096);
    theirs = rig.b.buffer(4096);
  }
  Status load(RigSide& side, const protocol::AddressVector& path) {
    QpAttr attr;
    attr.alt_ah_attr = path;
    attr.alt_timeout = 6;
    attr.path_mig_state = PathMigration::kRearm;
    return side.verbs().modify_qp(side.core, *side.qp, attr, Mask::kAltPath | Mask::kPathMigState);
  }
  QpAttr query(RigSide& side) {
    QpAttr attr;
    QpInitAttr init;
    EXPECT_EQ(side.verbs().query_qp(side.core, *side.qp, attr, init), Status::kOk);
    return attr;
  }
  PathMigration state(RigSide& side) { return query(side).path_mig_state; }
  WcStatus write() {
    EXPECT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64, theirs.address,
                         theirs.region.rkey),
              Status::kOk);
    return rig.a.await_send().status;
  }
  /// Both ends have heard from each other since the paths were loaded.
  void arm(const protocol::AddressVector& of_a, const protocol::AddressVector& of_b) {
    ASSERT_EQ(load(rig.a, of_a), Status::kOk);
    ASSERT_EQ(load(rig.b, of_b), Status::kOk);
    EXPECT_EQ(state(rig.a), PathMigration::kRearm);
    EXPECT_EQ(write(), WcStatus::kSuccess);
    rig.settle();
    EXPECT_EQ(state(rig.a), PathMigration::kArmed);
    EXPECT_EQ(state(rig.b), PathMigration::kArmed);
  }
  /// What `side` sends is for nobody from now on.
  void break_path(RigSide& side) {
    QpAttr attr;
    attr.qp_state = QpState::kSqd;
    ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, Mask::kState), Status::kOk);
    attr.ah_attr = path_between(side.index(), kNowhere);
    ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, Mask::kAv), Status::kOk);
    attr.qp_state = QpState::kRts;
    ASSERT_EQ(side.verbs().modify_qp(side.core, *side.qp, attr, Mask::kState), Status::kOk);
  }

  VerbsRig rig;
  RigBuffer mine;
  RigBuffer theirs;
};

class PathMigrationTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PathMigrationTest, ToTheAlternatePathWhenTheFirstOneFails) {
  MigrationRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    t.arm(path_between(0, 1), path_between(1, 0));
    t.break_path(t.rig.a);
    events_of(t.rig.a);
    const auto& counters = t.rig.a.node.nic.transport().counters();
    const std::uint64_t timeouts = counters.local_ack_timeout_err;
    EXPECT_EQ(t.write(), WcStatus::kSuccess);
    t.rig.settle();
    // Sent three times on the first path: two retries, and the third expiry migrates.
    EXPECT_EQ(counters.local_ack_timeout_err - timeouts, 3U);
    EXPECT_EQ(events_of(t.rig.a), Events{EventType::kPathMigrated});
    EXPECT_EQ(events_of(t.rig.b), Events{EventType::kPathMigrated}) << "it follows";
    EXPECT_EQ(t.state(t.rig.a), PathMigration::kMigrated);
    EXPECT_EQ(t.state(t.rig.b), PathMigration::kMigrated);
    EXPECT_EQ(t.query(t.rig.a).timeout, 6U) << "the alternate path's";
    // There is no other path left.
    t.break_path(t.rig.a);
    EXPECT_EQ(t.write(), WcStatus::kRetryExceededError);
    t.rig.settle();
    EXPECT_EQ(events_of(t.rig.a), Events{});
  });
}

TEST_P(PathMigrationTest, WhenSoftwareSaysSoAndAgainAfterRearming) {
  MigrationRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    for (int round = 0; round < 2; ++round) {
      t.arm(path_between(0, 1), path_between(1, 0));
      QpAttr attr;
      attr.path_mig_state = PathMigration::kMigrated;
      ASSERT_EQ(t.rig.a.verbs().modify_qp(t.rig.a.core, *t.rig.a.qp, attr, Mask::kPathMigState),
                Status::kOk);
      t.rig.settle();
      EXPECT_EQ(events_of(t.rig.a), Events{EventType::kPathMigrated});
      EXPECT_EQ(events_of(t.rig.b), Events{}) << "nothing was sent yet";
      EXPECT_EQ(t.write(), WcStatus::kSuccess);
      t.rig.settle();
      EXPECT_EQ(events_of(t.rig.b), Events{EventType::kPathMigrated});
    }
  });
}

TEST_P(PathMigrationTest, ToAPathThatThePeerDoesNotHaveIsReportedOnce) {
  MigrationRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    t.arm(path_between(0, 1), path_between(1, kNowhere));
    QpAttr attr;
    attr.path_mig_state = PathMigration::kMigrated;
    ASSERT_EQ(t.rig.a.verbs().modify_qp(t.rig.a.core, *t.rig.a.qp, attr, Mask::kPathMigState),
              Status::kOk);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(t.write(), WcStatus::kSuccess);
    t.rig.settle();
    EXPECT_EQ(events_of(t.rig.b), Events{EventType::kPathMigrationError});
    EXPECT_EQ(t.state(t.rig.b), PathMigration::kArmed);
  });
}

TEST_P(PathMigrationTest, NotWithoutAnAlternatePathOrOutOfTurn) {
  MigrationRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const auto ask = [&](PathMigration state, std::uint32_t mask) {
      QpAttr attr;
      attr.path_mig_state = state;
      attr.alt_ah_attr = path_between(0, 1);
      return t.rig.a.verbs().modify_qp(t.rig.a.core, *t.rig.a.qp, attr, mask);
    };
    EXPECT_EQ(ask(PathMigration::kRearm, Mask::kPathMigState), Status::kEinval) << "no path";
    EXPECT_EQ(ask(PathMigration::kArmed, Mask::kPathMigState | Mask::kAltPath), Status::kEinval)
        << "only the device arms";
    // Loaded but not rearmed: a failure is a failure.
    EXPECT_EQ(ask(PathMigration::kMigrated, Mask::kAltPath), Status::kOk);
    EXPECT_EQ(t.write(), WcStatus::kSuccess);
    t.break_path(t.rig.a);
    EXPECT_EQ(t.write(), WcStatus::kRetryExceededError);
    QpAttr attr;
    attr.alt_port_num = 2;
    EXPECT_EQ(t.rig.b.verbs().modify_qp(t.rig.b.core, *t.rig.b.qp, attr, Mask::kAltPath),
              Status::kEinval);
  });
}

INSTANTIATE_TEST_SUITE_P(Wires, PathMigrationTest, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

TEST(PathMigration, TcpHasOnePath) {
  MigrationRig t("iwarp");
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.load(t.rig.a, path_between(0, 1)), Status::kEinval);
  });
}

TEST(PathMigration, UnreliableConnectionsGoOverWhenToldTo) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect(protocol::QpType::kUc);
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    const auto write = [&](RigSide& side, const RigBuffer& from, const RigBuffer& to) {
      ASSERT_EQ(side.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 8, to.address,
                          to.region.rkey),
                Status::kOk);
      EXPECT_EQ(side.await_send().status, WcStatus::kSuccess);
      rig.settle();
    };
    QpAttr attr;
    attr.path_mig_state = PathMigration::kRearm;
    for (RigSide* side : {&rig.a, &rig.b}) {
      attr.alt_ah_attr = path_between(side->index(), 1 - side->index());
      ASSERT_EQ(side->verbs().modify_qp(side->core, *side->qp, attr,
                                        Mask::kAltPath | Mask::kPathMigState),
                Status::kOk);
    }
    write(rig.a, mine, theirs);
    write(rig.b, theirs, mine);  // nothing acknowledges: each end must hear the other's own
    attr.path_mig_state = PathMigration::kMigrated;
    ASSERT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kPathMigState),
              Status::kOk);
    write(rig.a, mine, theirs);
    EXPECT_EQ(events_of(rig.a), Events{EventType::kPathMigrated});
    EXPECT_EQ(events_of(rig.b), Events{EventType::kPathMigrated});
  });
}

TEST(Refusals, ARecvThatIsTooSmallHasItsCompletionAndNoEvent) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 8), Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, mine.address, mine.region.lkey, 9), Status::kOk);
    EXPECT_EQ(rig.b.await_recv().status, WcStatus::kLocalLengthError);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kRemoteInvalidRequestError);
    rig.settle();
    EXPECT_EQ(events_of(rig.b), Events{});
    EXPECT_EQ(events_of(rig.a), Events{}) << "a requester's errors are completions";
  });
}

/// iWARP cannot put a message off: a stream without a RECV for it ends, and no completion tells the
/// receiver why.
TEST(Refusals, AnIwarpReceiverWithoutARecvHearsOfIt) {
  VerbsRig rig(Settings{{"transport.protocol", "iwarp"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, mine.address, mine.region.lkey, 9), Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kRemoteOperationError);
    rig.settle();
    EXPECT_EQ(rig.b.state(), QpState::kError);
    EXPECT_EQ(events_of(rig.b), Events{EventType::kQpRequestError});
    EXPECT_EQ(events_of(rig.a), Events{});
  });
}

TEST(PortEvents, WhenTheLinkIsLostAndWhenItIsBack) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.a.create();
    rig.a.port().lose_link(sim_now());
    rig.settle();
    AsyncEvent event;
    ASSERT_TRUE(rig.a.verbs().poll_async_event(rig.a.core, event));
    EXPECT_EQ(event.type, EventType::kPortError);
    EXPECT_EQ(event.port_num, 1U);
    EXPECT_EQ(event.qp, nullptr);
    rig.a.port().regain_link(sim_now());
    rig.settle();
    EXPECT_EQ(events_of(rig.a), Events{EventType::kPortActive});
    EXPECT_EQ(events_of(rig.b), Events{});
  });
}

/// Events of both hosts, as the result counts them.
double count(const ProgramRun& run, const std::string& event) {
  return static_cast<double>(run.counter("event_" + event));
}

TEST(EventCounters, ACableThatFailsForAWhile) {
  const Settings base = {{"workload.pattern", "bandwidth"},
                         {"workload.iterations", "2000"},
                         {"workload.msg_size", "4KiB"},
                         {"transport.ack_timeout", "5"}};
  const ProgramRun well = run_well(base);
  EXPECT_EQ(count(well, "port_err"), 0);
  const ProgramRun run =
      run_well(with(base, {{"link.down_at", "500us"}, {"link.down_time", "100us"}}));
  EXPECT_EQ(count(run, "port_err"), 2);  // at both ends
  EXPECT_EQ(count(run, "port_active"), 2);
  EXPECT_EQ(run.number("/counters/host1/event_port_err"), 1);
}

TEST(EventCounters, BehindASwitchOnlyTheHostOfTheCable) {
  const ProgramRun run = run_well({{"workload.pattern", "bandwidth"},
                                   {"workload.iterations", "2000"},
                                   {"workload.msg_size", "4KiB"},
                                   {"fabric.topology", "single_switch"},
                                   {"link.down_cable", "1"},
                                   {"link.down_at", "500us"},
                                   {"link.down_time", "100us"},
                                   {"transport.ack_timeout", "5"}});
  EXPECT_EQ(run.number("/counters/host0/event_port_err"), 0);
  EXPECT_EQ(run.number("/counters/host1/event_port_err"), 1);
  EXPECT_EQ(run.number("/counters/host1/event_port_active"), 1);
}

TEST(EventCounters, TheResponderWhoseKeyIsWrong) {
  const ProgramRun run = run_well({{"workload.pattern", "bandwidth"},
                                   {"workload.op", "write"},
                                   {"workload.iterations", "16"},
                                   {"sim.warmup", "0"},
                                   {"workload.mistake", "remote_key"}});
  EXPECT_EQ(run.number("/counters/host1/event_qp_access_err"), 1);
  EXPECT_EQ(run.number("/counters/host0/event_qp_access_err"), 0);
  EXPECT_EQ(count(run, "qp_req_err"), 0);
}

TEST(DeviceFatal, EverythingComesBackAndCommandsFail) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}, {"link.delay", "100us"}});
  rig.a.node.nic.command.fail_device(microseconds(3000));
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    rig.settle();
    ASSERT_LT(sim_now(), microseconds(2900));
    sc_core::wait(to_sc_time(microseconds(2990) - sim_now()));
    ASSERT_EQ(rig.a.post_recv(mine.address, mine.region.lkey, 8), Status::kOk);
    for (int i = 0; i < 3; ++i) {  // 200 us until they could be acknowledged
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 8, theirs.address,
                           theirs.region.rkey),
                Status::kOk);
    }
    EXPECT_EQ(rig.a.verbs().get_async_event(rig.a.core).type, EventType::kDeviceFatal);
    EXPECT_GE(sim_now(), microseconds(3000));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.a.await_send().status, WcStatus::kWrFlushError);
    EXPECT_EQ(rig.a.await_recv().status, WcStatus::kWrFlushError);
    EXPECT_EQ(rig.a.qp->state, QpState::kError);
    QpAttr attr;
    attr.qp_state = QpState::kReset;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, Mask::kState), Status::kEio);
    EXPECT_EQ(rig.a.verbs().create_cq(rig.a.core, 4), nullptr);
    host::verbs::PortAttr port;
    EXPECT_EQ(rig.a.verbs().query_port(rig.a.core, 1, port), Status::kEio);
    EXPECT_EQ(events_of(rig.b), Events{});
  });
}

TEST(DeviceFatal, TheWorkloadEndsWithWhatIsKnown) {
  const Settings base = {{"workload.pattern", "bandwidth"}, {"workload.op", "write"},
                         {"workload.msg_size", "4KiB"},     {"workload.iterations", "4000"},
                         {"workload.signal_every", "1"},    {"sim.warmup", "0"},
                         {"transport.ack_timeout", "5"},    {"transport.retry_count", "2"},
                         {"fabric.fatal_at", "600us"}};
  const ProgramRun own = run_well(with(base, {{"fabric.fatal_host", "0"}}));
  EXPECT_EQ(own.number("/counters/host0/event_device_fatal"), 1);
  EXPECT_GT(own.number("/completions/success"), 0);
  EXPECT_EQ(own.number("/completions/wr_flush_error"), 128);  // workload.depth
  // A peer that is gone does not answer.
  const ProgramRun peers = run_well(with(base, {{"fabric.fatal_host", "1"}}));
  EXPECT_EQ(peers.number("/counters/host1/event_device_fatal"), 1);
  EXPECT_EQ(peers.number("/completions/retry_exceeded_error"), 1);
  EXPECT_EQ(peers.number("/completions/wr_flush_error"), 127);
  const ProgramRun nobody = run_program(with(base, {{"fabric.fatal_host", "2"}}));
  EXPECT_EQ(nobody.status, 2);
  EXPECT_NE(nobody.error.find("fabric.fatal_host"), std::string::npos);
}

}  // namespace
}  // namespace rnic::testbench
