// SPDX-License-Identifier: Apache-2.0
// Refusals of the responder as they stand on the wire, where they need a whole device: a key that
// ends in the middle of a WRITE, and a shared receive queue that is empty.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kFirstPsn = 0xFF'FFF0;  ///< of VerbsRig's queue pairs
constexpr std::uint32_t kMtu = 1024;

/// Whose key a WRITE of 1 MiB names, and how it ends meanwhile.
enum class Ending { kDeregistered, kInvalidated, kWindowInvalidated, kWindowFreed };

class MiddleOfAWrite : public ::testing::TestWithParam<std::tuple<std::string, Ending>> {
 protected:
  static constexpr std::uint32_t kLong = 1 << 20;  ///< 85 us at 100 Gb/s
  static constexpr std::uint64_t kPage = 4096;

  std::string protocol() const { return std::get<0>(GetParam()); }
  Ending ending() const { return std::get<1>(GetParam()); }
  host::verbs::Context& verbs() { return rig_.b.verbs(); }

  void owner(const SendWr& wr) {
    SendWr signalled = wr;
    signalled.flags |= SendFlags::kSignaled;
    ASSERT_EQ(verbs().post_send(rig_.b.core, *rig_.b.qp, &signalled, 1), Status::kOk);
    EXPECT_EQ(rig_.b.await_send().status, WcStatus::kSuccess);
  }
  /// Makes `key_` name the memory at `address_`.
  void open() {
    if (ending() == Ending::kInvalidated) {
      fast_ = *verbs().alloc_fast_mr(rig_.b.core, rig_.b.pd, kLong / kPage);
      address_ = rig_.b.space().map(kLong, kPage);
      ASSERT_EQ(verbs().map_fast_mr(rig_.b.core, fast_, address_, kLong), Status::kOk);
      key_ = host::verbs::next_key(fast_.key);
      SendWr wr;
      wr.opcode = WrOpcode::kRegMr;
      wr.reg = {&fast_, key_, kAllAccess};
      owner(wr);
      return;
    }
    region_ = rig_.b.buffer(kLong, kAllAccess | protocol::kAccessMwBind);
    address_ = region_.address;
    key_ = region_.region.rkey;
    if (ending() == Ending::kDeregistered) return;
    window_ = *verbs().alloc_mw(rig_.b.core, rig_.b.pd, host::verbs::MwType::kType2);
    key_ = host::verbs::next_key(window_.rkey);
    SendWr bind;
    bind.opcode = WrOpcode::kBindMw;
    bind.bind = {&window_, key_,  region_.region.lkey,
                 address_, kLong, protocol::kAccessRemoteWrite};
    owner(bind);
    window_.rkey = key_;
  }
  void end() {
    SendWr invalidate;
    invalidate.opcode = WrOpcode::kLocalInv;
    invalidate.invalidate_key = key_;
    switch (ending()) {
      case Ending::kDeregistered:
        ASSERT_EQ(verbs().dereg_mr(rig_.b.core, region_.region), Status::kOk);
        return;
      case Ending::kWindowFreed:
        ASSERT_EQ(verbs().dealloc_mw(rig_.b.core, window_), Status::kOk);
        return;
      default:
        ASSERT_EQ(verbs().post_send(rig_.b.core, *rig_.b.qp, &invalidate, 1), Status::kOk);
    }
  }

  WireSpy spy_{"spy", WireSpy::named(protocol())};
  VerbsRig rig_{{{"transport.protocol", protocol()},
                 {"transport.mtu", protocol() == "iwarp" ? "1500" : std::to_string(kMtu)}},
                &spy_};
  RigBuffer region_;
  host::verbs::FastRegion fast_;
  host::verbs::MemoryWindow window_;
  std::uint64_t address_ = 0;
  std::uint32_t key_ = 0;
};

// The packet that finds the key gone is refused with 0x62 and its own PSN; everything before it is
// in memory, nothing from there on. iWARP: DDP, tagged buffer, invalid STag (RFC 5041, 8.2).
TEST_P(MiddleOfAWrite, TheNextPacketIsRefused) {
  rig_.run([&] {
    rig_.connect();
    open();
    const RigBuffer source = rig_.a.buffer(kLong);
    rig_.a.fill(source.address, Bytes(kLong, 0x5A));
    rig_.settle();
    spy_.forget();
    const std::uint32_t before = rig_.b.node.nic.queue_pairs.find(rig_.b.qp->qpn)->expected_psn;
    ASSERT_EQ(rig_.a.post(WrOpcode::kRdmaWrite, source.address, source.region.lkey, kLong, address_,
                          key_),
              Status::kOk);
    rig_.a.core.sync();
    while (rig_.b.bytes_at(address_ + kLong / 8, 1) == Bytes(1, 0)) {
      rig_.settle(nanoseconds(500));
    }
    end();
    EXPECT_EQ(rig_.a.await_send().status, WcStatus::kRemoteAccessError);
    rig_.settle(microseconds(200));
    EXPECT_EQ(rig_.a.state(), QpState::kError);
    EXPECT_EQ(rig_.b.state(), QpState::kError);
    const Bytes after = rig_.b.bytes_at(address_, kLong);
    const auto placed = static_cast<std::uint32_t>(std::count(after.begin(), after.end(), 0x5A));
    EXPECT_GT(placed, kLong / 8);
    EXPECT_LT(placed, kLong);
    EXPECT_EQ(Bytes(after.begin(), after.begin() + placed), Bytes(placed, 0x5A)) << "no holes";
    if (protocol() == "iwarp") {
      EXPECT_EQ(spy_.refusal(), 0x1100U);
      return;
    }
    EXPECT_EQ(before, kFirstPsn);
    EXPECT_EQ(spy_.refusal(), 0x62U);
    EXPECT_EQ(spy_.refusals(), 1);
    EXPECT_EQ(spy_.refusal_psn(), (kFirstPsn + placed / kMtu) & 0xFF'FFFF);
    EXPECT_EQ(placed % kMtu, 0U);
  });
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::string, Ending>>& test) {
  const char* endings[] = {"deregistered", "invalidated", "window_invalidated", "window_freed"};
  return std::get<0>(test.param) + "_" + endings[static_cast<int>(std::get<1>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(
    Wires, MiddleOfAWrite,
    ::testing::Combine(::testing::Values("ib", "rocev1", "rocev2", "iwarp"),
                       ::testing::Values(Ending::kDeregistered, Ending::kInvalidated,
                                         Ending::kWindowInvalidated, Ending::kWindowFreed)),
    name_of);

class EmptySharedQueue : public ::testing::TestWithParam<std::string> {};

// A shared queue's RECVs are nobody's in particular, so its responder tells of no credits: syndrome
// 0x1F in every ACK, though credits are on. Where it is empty the SEND is refused by RNR NAK with
// its own PSN and the timer's code (here 14 of 0.96 ms: 0x2E), and taken when sent again.
TEST_P(EmptySharedQueue, IsNotReadyAndTellsNoCredits) {
  WireSpy spy("spy", WireSpy::named(GetParam()));
  VerbsRig rig({{"transport.protocol", GetParam()},
                {"transport.end_to_end_credits", "true"},
                {"transport.min_rnr_timer", "14"}},
               &spy);
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    host::verbs::Context& verbs = rig.b.verbs();
    auto* shared = verbs.create_srq(rig.b.core, rig.b.pd, {16, 1});
    host::verbs::QpInitAttr attr = RigSide::qp_attr();
    attr.srq = shared;
    rig.b.qp = rig.b.make_qp(attr);
    rig.join(*rig.a.qp, *rig.b.qp);
    rig.settle();
    const RigBuffer source = rig.a.buffer(64);
    const RigBuffer sink = rig.b.buffer(64);
    const protocol::Sge sge{sink.address, 64, sink.region.lkey};
    const host::verbs::RecvWr recv{1, &sge, 1};
    const auto send = [&] {
      ASSERT_EQ(rig.a.post(WrOpcode::kSend, source.address, source.region.lkey, 64), Status::kOk);
      rig.settle();
    };
    ASSERT_EQ(verbs.post_srq_recv(rig.b.core, *shared, &recv, 1), Status::kOk);
    rig.settle();
    send();
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(spy.ack_syndrome(), 0x1F);
    EXPECT_EQ(spy.ack_psn(), kFirstPsn);
    EXPECT_EQ(spy.refusals(), 0);
    for (int i = 0; i < 2; ++i) send();  // the first is refused, the second dropped behind it
    EXPECT_EQ(spy.refusals(), 1);
    EXPECT_EQ(spy.refusal(), 0x2EU);
    EXPECT_EQ(spy.refusal_psn(), kFirstPsn + 1);
    EXPECT_EQ(rig.b.state(), QpState::kRts);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(verbs.post_srq_recv(rig.b.core, *shared, &recv, 1), Status::kOk);
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(spy.refusals(), 1);
    EXPECT_EQ(spy.ack_syndrome(), 0x1F);
    EXPECT_EQ(spy.ack_psn(), kFirstPsn + 2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.b.await_recv().status, WcStatus::kSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Wires, EmptySharedQueue, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
