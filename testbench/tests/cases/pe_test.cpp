// SPDX-License-Identifier: Apache-2.0
// Public cases, theme PE: protection and access errors. What status, who reports it, what state the
// queue pairs are in afterwards, which bytes were placed.
#include <gtest/gtest.h>

#include "protocol/atomic.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QueuePair;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;

std::uint32_t swapped(std::uint32_t value) { return __builtin_bswap32(value); }

/// Two hosts, a page of each, filled differently.
struct PeRig {
  explicit PeRig(const Settings& more = {}) : rig(with({{"transport.protocol", "rocev2"}}, more)) {}

  void connect(std::uint32_t remote_access = protocol::kAccessRemoteMask,
               protocol::AccessFlags mine_access = kAllAccess,
               protocol::AccessFlags theirs_access = kAllAccess) {
    rig.a.create();
    rig.b.create();
    from = rig.a.make_qp(RigSide::qp_attr());
    to = rig.b.make_qp(RigSide::qp_attr(), remote_access);
    config::TransportConfig transport = rig.config().transport;
    rig.a.connect(*from, to->qpn, path_between(0, 1), transport);
    if (no_resources) transport.max_dest_rd_atomic = 0;
    rig.b.connect(*to, from->qpn, path_between(1, 0), transport);
    mine = rig.a.buffer(kPage, mine_access);
    theirs = rig.b.buffer(kPage, theirs_access);
    rig.a.fill(mine.address, before_mine);
    rig.b.fill(theirs.address, before_theirs);
    rig.settle();
  }

  Status post(WrOpcode opcode, std::uint32_t lkey, std::uint32_t rkey, std::uint64_t remote,
              std::uint32_t bytes = 64) {
    return rig.a.post(*from, opcode, mine.address, lkey, bytes, remote, rkey);
  }
  /// The status of one request.
  WcStatus outcome(WrOpcode opcode, std::uint32_t lkey, std::uint32_t rkey, std::uint64_t remote,
                   std::uint32_t bytes = 64) {
    EXPECT_EQ(post(opcode, lkey, rkey, remote, bytes), Status::kOk);
    const Wc wc = rig.a.await_send();
    EXPECT_EQ(wc.qp_num, from->qpn);
    rig.settle();
    return wc.status;
  }
  WcStatus write(std::uint32_t rkey) {
    return outcome(WrOpcode::kRdmaWrite, mine.region.lkey, rkey, theirs.address);
  }
  QpState requester() { return rig.a.device_qp(*from).state; }
  QpState responder() { return rig.b.device_qp(*to).state; }
  void expect_untouched() {
    EXPECT_EQ(rig.a.bytes_at(mine.address, kPage), before_mine);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kPage), before_theirs);
  }
  const transport::TransportCounters& responder_counters() {
    return rig.b.node.nic.transport().counters();
  }

  VerbsRig rig;
  QueuePair* from = nullptr;
  QueuePair* to = nullptr;
  RigBuffer mine;
  RigBuffer theirs;
  bool no_resources = false;  ///< the responder takes no READs and atomics
  const Bytes before_mine = Bytes(kPage, 0x22);
  const Bytes before_theirs = Bytes(kPage, 0x11);
};

TEST(CasePE, PE01_BadLkey) {
  PeRig t;
  t.rig.run([&] {
    t.connect();
    const std::uint64_t frames = t.rig.a.port().sent().data_packets;
    ASSERT_EQ(t.post(WrOpcode::kRdmaWrite, 0x00FF'FF00, t.theirs.region.rkey, t.theirs.address),
              Status::kOk);
    ASSERT_EQ(
        t.post(WrOpcode::kRdmaWrite, t.mine.region.lkey, t.theirs.region.rkey, t.theirs.address),
        Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kWrFlushError);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.port().sent().data_packets, frames) << "no packet left";
    EXPECT_EQ(t.requester(), QpState::kError);
    EXPECT_EQ(t.responder(), QpState::kRts);
    EXPECT_EQ(t.responder_counters().rx_write_requests, 0U);
    t.expect_untouched();
  });
}

TEST(CasePE, PE03_ReadSinkWithoutLocalWrite) {
  PeRig t(Settings{{"link.delay", "5us"}});  // most of the round trip
  t.rig.run([&] {
    t.connect(protocol::kAccessRemoteMask, 0);
    const Time posted = t.rig.a.core.now();
    EXPECT_EQ(
        t.outcome(WrOpcode::kRdmaRead, t.mine.region.lkey, t.theirs.region.rkey, t.theirs.address),
        WcStatus::kLocalProtectionError);
    // The right is checked when the data arrives: after one round trip, not two.
    const Time took = t.rig.a.send_cq->written.last_write() - posted;
    EXPECT_GT(took, 2 * t.rig.config().link.delay);
    EXPECT_LT(took, 4 * t.rig.config().link.delay);
    EXPECT_EQ(t.responder_counters().rx_read_requests, 1U);
    EXPECT_EQ(t.requester(), QpState::kError);
    EXPECT_EQ(t.responder(), QpState::kRts);
    t.expect_untouched();
  });
}

TEST(CasePE, PE04_QueuePairWithoutRemoteWrite) {
  PeRig t;
  t.rig.run([&] {
    t.connect(protocol::kAccessRemoteRead);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, 64), Status::kOk);
    }
    EXPECT_EQ(t.write(t.theirs.region.rkey), WcStatus::kRemoteInvalidRequestError);
    EXPECT_EQ(t.requester(), QpState::kError);
    EXPECT_EQ(t.responder(), QpState::kError);
    EXPECT_EQ(t.responder_counters().rx_write_requests, 0U);
    // No completion for the peer's request, only the RECVs come back.
    for (int i = 0; i < 2; ++i) EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kWrFlushError);
    Wc wc;
    EXPECT_EQ(t.rig.b.verbs().poll_cq(t.rig.b.core, *t.rig.b.send_cq, 1, &wc), 0U);
    EXPECT_EQ(t.rig.b.verbs().poll_cq(t.rig.b.core, *t.rig.b.recv_cq, 1, &wc), 0U);
    host::verbs::AsyncEvent event;
    ASSERT_TRUE(t.rig.b.verbs().poll_async_event(t.rig.b.core, event));
    EXPECT_EQ(event.type, protocol::EventType::kQpRequestError);
    EXPECT_EQ(event.qp, t.to);
    t.expect_untouched();
  });
}

TEST(CasePE, PE05_BadRkey) {
  PeRig t;
  t.rig.run([&] {
    t.connect();
    QueuePair* other_from = t.rig.a.make_qp(RigSide::qp_attr());
    QueuePair* other_to = t.rig.b.make_qp(RigSide::qp_attr());
    t.rig.join(*other_from, *other_to);
    EXPECT_EQ(t.write(t.theirs.region.rkey ^ 0x100), WcStatus::kRemoteAccessError);
    t.expect_untouched();
    EXPECT_EQ(t.requester(), QpState::kError);
    EXPECT_EQ(t.responder(), QpState::kError);
    Wc wc;
    EXPECT_EQ(t.rig.b.verbs().poll_cq(t.rig.b.core, *t.rig.b.send_cq, 1, &wc), 0U);
    EXPECT_EQ(t.rig.b.verbs().poll_cq(t.rig.b.core, *t.rig.b.recv_cq, 1, &wc), 0U);
    // A query or the event tell.
    EXPECT_EQ(t.rig.b.verbs().query_qp(t.rig.b.core, *t.to), QpState::kError);
    host::verbs::AsyncEvent event;
    ASSERT_TRUE(t.rig.b.verbs().poll_async_event(t.rig.b.core, event));
    EXPECT_EQ(event.type, protocol::EventType::kQpAccessError);
    // The other connection does not notice.
    ASSERT_EQ(t.rig.a.post(*other_from, WrOpcode::kRdmaWrite, t.mine.address, t.mine.region.lkey,
                           64, t.theirs.address, t.theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    // Both ends of the failed one need a reset, and work again after it.
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kReset;
    using Mask = protocol::QpAttrMask;
    EXPECT_EQ(t.rig.a.verbs().modify_qp(t.rig.a.core, *t.from, attr, Mask::kState), Status::kOk);
    EXPECT_EQ(t.rig.b.verbs().modify_qp(t.rig.b.core, *t.to, attr, Mask::kState), Status::kOk);
    attr.qp_state = QpState::kInit;
    attr.access_flags = protocol::kAccessRemoteMask;
    const auto init = Mask::kState | Mask::kPkeyIndex | Mask::kPort | Mask::kAccessFlags;
    EXPECT_EQ(t.rig.a.verbs().modify_qp(t.rig.a.core, *t.from, attr, init), Status::kOk);
    EXPECT_EQ(t.rig.b.verbs().modify_qp(t.rig.b.core, *t.to, attr, init), Status::kOk);
    t.rig.join(*t.from, *t.to);
    EXPECT_EQ(t.write(t.theirs.region.rkey), WcStatus::kSuccess);
  });
}

TEST(CasePE, PE08_LkeyUsedAsRkeyWithSharedKeys) {
  PeRig t;
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.theirs.region.lkey, t.theirs.region.rkey);
    EXPECT_EQ(t.write(t.theirs.region.lkey), WcStatus::kSuccess);
  });
}

TEST(CasePE, PE08_LkeyUsedAsRkeyWithDistinctKeys) {
  PeRig t(Settings{{"nic.key_policy", "distinct"}});
  t.rig.run([&] {
    t.connect();
    EXPECT_NE(t.theirs.region.lkey, t.theirs.region.rkey);
    EXPECT_EQ(t.write(t.theirs.region.lkey), WcStatus::kRemoteAccessError);
    t.expect_untouched();
  });
}

/// The same in a workload: what passes here says so, and what it would be elsewhere.
TEST(CasePE, PE08_AWorkloadIsWarnedWhereItsMistakeGoesUnnoticed) {
  const Settings mistake = {{"workload.op", "write"},
                            {"workload.pattern", "bandwidth"},
                            {"workload.depth", "8"},
                            {"workload.iterations", "32"},
                            {"sim.warmup", "0"},
                            {"workload.signal_every", "1"},
                            {"workload.mistake", "lkey_as_rkey"},
                            {"workload.mistake_at", "5"}};
  const ProgramRun shared = run_well(mistake);
  EXPECT_EQ(shared.number("/completions/success"), 32);
  ASSERT_EQ(shared.result.at("without_effect").size(), 1U);
  const auto warning = shared.result.at("without_effect").at(0).get<std::string>();
  EXPECT_NE(warning.find("workload.mistake"), std::string::npos) << warning;
  EXPECT_NE(warning.find("remote_access_error"), std::string::npos) << warning;
  const ProgramRun distinct = run_well(with(mistake, {{"nic.key_policy", "distinct"}}));
  EXPECT_FALSE(distinct.result.contains("without_effect"));
  EXPECT_EQ(distinct.number("/completions/success"), 4);
  EXPECT_EQ(distinct.number("/completions/remote_access_error"), 1);
  EXPECT_EQ(distinct.number("/completions/wr_flush_error"), 7) << "of a depth of 8";
}

/// Fetch-and-add with one requirement missing.
WcStatus fetch_and_add(std::uint32_t qp_access, protocol::AccessFlags mr_access, bool no_resources,
                       std::uint64_t offset) {
  WcStatus status{};
  PeRig t;
  t.no_resources = no_resources;
  t.rig.run([&] {
    t.connect(qp_access, kAllAccess, mr_access);
    const protocol::Sge sge{t.mine.address, 8, t.mine.region.lkey};
    host::verbs::SendWr wr;
    wr.opcode = WrOpcode::kAtomicFetchAndAdd;
    wr.flags = host::verbs::SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = t.theirs.address + offset;
    wr.rkey = t.theirs.region.rkey;
    wr.compare_add = 1;
    ASSERT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.from, &wr, 1), Status::kOk);
    status = t.rig.a.await_send().status;
    t.rig.settle();
    if (status == WcStatus::kSuccess) {
      EXPECT_EQ(t.rig.a.bytes_at(t.mine.address, 8), Bytes(8, 0x11)) << "the original value";
      Bytes sum(8, 0x11);
      sum[0] = 0x12;  // little-endian host
      EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 8), sum);
    } else {
      t.expect_untouched();
    }
  });
  return status;
}

constexpr std::uint32_t kAtomicQp = protocol::kAccessRemoteMask;
constexpr protocol::AccessFlags kAtomicMr = kAllAccess | protocol::kAccessRemoteAtomic;

TEST(CasePE, PE11_AllPresent) {
  EXPECT_EQ(fetch_and_add(kAtomicQp, kAtomicMr, false, 0), WcStatus::kSuccess);
}

TEST(CasePE, PE11_QueuePairWithoutTheRight) {
  EXPECT_EQ(fetch_and_add(protocol::kAccessRemoteWrite, kAtomicMr, false, 0),
            WcStatus::kRemoteInvalidRequestError);
}

TEST(CasePE, PE11_RegionWithoutTheRight) {
  EXPECT_EQ(fetch_and_add(kAtomicQp, kAllAccess, false, 0), WcStatus::kRemoteAccessError);
}

TEST(CasePE, PE11_ResponderWithoutResources) {
  EXPECT_EQ(fetch_and_add(kAtomicQp, kAtomicMr, true, 0), WcStatus::kRemoteInvalidRequestError);
}

TEST(CasePE, PE11_Misaligned) {
  EXPECT_EQ(fetch_and_add(kAtomicQp, kAtomicMr, false, 4), WcStatus::kRemoteInvalidRequestError);
}

/// A key or an address that crossed to the peer in the wrong byte order, or no key at all.
void expect_no_access(const std::function<WcStatus(PeRig&)>& write) {
  PeRig t;
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(write(t), WcStatus::kRemoteAccessError);
    t.expect_untouched();
    EXPECT_EQ(t.responder(), QpState::kError);
  });
}

TEST(CasePE, PE09_ByteSwappedRkey) {
  expect_no_access([](PeRig& t) { return t.write(swapped(t.theirs.region.rkey)); });
}

TEST(CasePE, PE09_NoRkey) {
  expect_no_access([](PeRig& t) { return t.write(0); });
}

TEST(CasePE, PE09_ByteSwappedAddress) {
  expect_no_access([](PeRig& t) {
    return t.outcome(WrOpcode::kRdmaWrite, t.mine.region.lkey, t.theirs.region.rkey,
                     __builtin_bswap64(t.theirs.address));
  });
}

TEST(CasePE, PE13_SourcesNeedNoRight) {
  PeRig t;
  t.rig.run([&] {
    t.connect(protocol::kAccessRemoteMask, 0);
    ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, 64), Status::kOk);
    EXPECT_EQ(t.write(t.theirs.region.rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.outcome(WrOpcode::kSend, t.mine.region.lkey, 0, 0), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
  });
}

TEST(CasePE, PE13_SinksNeedLocalWrite) {
  PeRig t;
  t.rig.run([&] {
    // READ: PE-03. RECV: the responder reports 4, the requester a remote operational error.
    t.connect(protocol::kAccessRemoteMask, kAllAccess, 0);
    ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, 64), Status::kOk);
    ASSERT_EQ(t.post(WrOpcode::kSend, t.mine.region.lkey, 0, 0), Status::kOk);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kRemoteOperationError);
    t.rig.settle();
    EXPECT_EQ(t.requester(), QpState::kError);
    EXPECT_EQ(t.responder(), QpState::kError);
    t.expect_untouched();
  });
}

/// An atomic whose answer may not be written. The right is checked when the answer is here, as a
/// READ's (PE-03): by then the peer's word has changed, to `expected`.
void atomic_without_a_sink(const host::verbs::SendWr& atomic, std::uint64_t expected) {
  PeRig t;
  t.rig.run([&] {
    t.connect(protocol::kAccessRemoteMask, 0, kAtomicMr);
    const protocol::Sge sge{t.mine.address, protocol::kAtomicBytes, t.mine.region.lkey};
    host::verbs::SendWr wr = atomic;
    wr.flags = host::verbs::SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = t.theirs.address;
    wr.rkey = t.theirs.region.rkey;
    ASSERT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.from, &wr, 1), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kLocalProtectionError);
    t.rig.settle();
    EXPECT_EQ(t.requester(), QpState::kError);
    EXPECT_EQ(t.responder(), QpState::kRts);
    EXPECT_EQ(t.rig.a.bytes_at(t.mine.address, kPage), t.before_mine) << "the answer is not here";
    EXPECT_EQ(protocol::load_operand(t.rig.b.bytes_at(t.theirs.address, 8).data()), expected);
  });
}

constexpr std::uint64_t kWordBefore = 0x1111'1111'1111'1111;  // PeRig::before_theirs

TEST(CasePE, PE13_AnAddsResultNeedsLocalWrite) {
  host::verbs::SendWr add;
  add.opcode = WrOpcode::kAtomicFetchAndAdd;
  add.compare_add = 3;
  atomic_without_a_sink(add, kWordBefore + 3);
}

TEST(CasePE, PE13_ACompareAndSwapsResultNeedsLocalWrite) {
  host::verbs::SendWr swap;
  swap.opcode = WrOpcode::kAtomicCmpAndSwp;
  swap.compare_add = kWordBefore;
  swap.swap = 5;
  atomic_without_a_sink(swap, 5);
}

TEST(CasePE, PE13_LocalWriteIsEnough) {
  PeRig t;
  t.rig.run([&] {
    t.connect(protocol::kAccessRemoteMask, protocol::kAccessLocalWrite, kAtomicMr);
    ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, 64), Status::kOk);
    EXPECT_EQ(t.outcome(WrOpcode::kSend, t.mine.region.lkey, 0, 0), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
    EXPECT_EQ(
        t.outcome(WrOpcode::kRdmaRead, t.mine.region.lkey, t.theirs.region.rkey, t.theirs.address),
        WcStatus::kSuccess);
    EXPECT_EQ(t.outcome(WrOpcode::kAtomicFetchAndAdd, t.mine.region.lkey, t.theirs.region.rkey,
                        t.theirs.address, 8),
              WcStatus::kSuccess);
    // And for what the peer sends: a RECV of the same rights.
    const RigBuffer sink = t.rig.b.buffer(kPage, protocol::kAccessLocalWrite);
    ASSERT_EQ(t.rig.b.post_recv(*t.to, sink.address, sink.region.lkey, 64), Status::kOk);
    EXPECT_EQ(t.outcome(WrOpcode::kSend, t.mine.region.lkey, 0, 0), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
  });
}

TEST(CasePE, PE13_RegistrationWithRemoteWriteNeedsLocalWrite) {
  PeRig t;
  t.rig.run([&] {
    t.connect();
    const std::uint64_t address = t.rig.a.space().map(kPage);
    for (const auto flags : {protocol::kAccessRemoteWrite, protocol::kAccessRemoteAtomic}) {
      const auto refused = t.rig.a.verbs().reg_mr(t.rig.a.core, t.rig.a.pd, address, kPage, flags);
      EXPECT_EQ(refused.status, Status::kEinval);
    }
    EXPECT_EQ(t.rig.a.verbs()
                  .reg_mr(t.rig.a.core, t.rig.a.pd, address, kPage, protocol::kAccessRemoteRead)
                  .status,
              Status::kOk);
  });
}

}  // namespace
}  // namespace rnic::testbench
