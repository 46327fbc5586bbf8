// SPDX-License-Identifier: Apache-2.0
// Memory windows, fast registration, local invalidation and re-registration, end to end.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::FastRegion;
using host::verbs::MemoryWindow;
using host::verbs::MwBind;
using host::verbs::MwType;
using host::verbs::next_key;
using host::verbs::QueuePair;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;
constexpr protocol::AccessFlags kBindable = kAllAccess | protocol::kAccessMwBind;

/// Host 1 owns memory and hands out keys, host 0 uses them.
struct KeyRig {
  explicit KeyRig(const std::string& protocol = "rocev2")
      : rig(Settings{{"transport.protocol", protocol}}) {}

  void connect() {
    rig.connect();
    mine = rig.a.buffer(kPage);
    theirs = rig.b.buffer(4 * kPage, kBindable);
    rig.a.fill(mine.address, Bytes(kPage, 0x77));
    rig.settle();
  }
  /// A request of the owner's queue pair to its own device.
  Wc owner(const SendWr& request) {
    SendWr wr = request;
    wr.flags |= SendFlags::kSignaled;
    EXPECT_EQ(rig.b.verbs().post_send(rig.b.core, *rig.b.qp, &wr, 1), Status::kOk);
    return rig.b.await_send();
  }
  Wc bind(MemoryWindow& window, std::uint64_t address, std::uint64_t length, std::uint32_t access,
          std::uint32_t lkey) {
    SendWr wr;
    wr.opcode = WrOpcode::kBindMw;
    wr.bind = {&window, next_key(window.rkey), lkey, address, length, access};
    return owner(wr);
  }
  /// The first page, for WRITEs.
  WcStatus bind_page(MemoryWindow& window) {
    return bind(window, theirs.address, kPage, protocol::kAccessRemoteWrite, theirs.region.lkey)
        .status;
  }
  Wc invalidate(std::uint32_t key) {
    SendWr wr;
    wr.opcode = WrOpcode::kLocalInv;
    wr.invalidate_key = key;
    return owner(wr);
  }
  WcStatus write(std::uint64_t address, std::uint32_t key, std::uint32_t bytes = 64) {
    EXPECT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, bytes, address, key),
              Status::kOk);
    const WcStatus status = rig.a.await_send().status;
    rig.settle();
    return status;
  }

  VerbsRig rig;
  RigBuffer mine;
  RigBuffer theirs;
};

TEST(MemoryWindow, Type2OpensAPartOfARegion) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    ASSERT_TRUE(window);
    const std::uint64_t start = t.theirs.address + kPage + 100;
    const Wc wc =
        t.bind(*window, start, 2 * kPage, protocol::kAccessRemoteWrite, t.theirs.region.lkey);
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.opcode, WcOpcode::kBindMw);
    // Across a page boundary, to the window's last byte.
    EXPECT_EQ(t.write(start + 2 * kPage - 64, window->rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(start + 2 * kPage - 64, 64), Bytes(64, 0x77));
    EXPECT_EQ(t.write(start, window->rkey), WcStatus::kSuccess);
    // One byte further is outside, although it is in the region.
    EXPECT_EQ(t.write(start + 2 * kPage - 63, window->rkey), WcStatus::kRemoteAccessError);
    EXPECT_EQ(t.rig.b.bytes_at(start + 2 * kPage, 1), Bytes(1, 0));
  });
}

TEST(MemoryWindow, Type2GrantsOnlyItsRights) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    EXPECT_EQ(
        t.bind(*window, t.theirs.address, kPage, protocol::kAccessRemoteRead, t.theirs.region.lkey)
            .status,
        WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kRemoteAccessError);
  });
}

TEST(MemoryWindow, Type2BelongsToItsQueuePair) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    QueuePair* other_from = t.rig.a.make_qp(RigSide::qp_attr());
    QueuePair* other_to = t.rig.b.make_qp(RigSide::qp_attr());
    t.rig.join(*other_from, *other_to);
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    EXPECT_EQ(
        t.bind(*window, t.theirs.address, kPage, protocol::kAccessRemoteWrite, t.theirs.region.lkey)
            .status,
        WcStatus::kSuccess);
    ASSERT_EQ(t.rig.a.post(*other_from, WrOpcode::kRdmaWrite, t.mine.address, t.mine.region.lkey,
                           64, t.theirs.address, window->rkey),
              Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kRemoteAccessError);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kSuccess);
  });
}

TEST(MemoryWindow, InvalidationEndsIt) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    const auto bind = [&] { return t.bind_page(*window); };
    EXPECT_EQ(bind(), WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kSuccess);
    const Wc wc = t.invalidate(window->rkey);
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.opcode, WcOpcode::kLocalInv);
    const std::uint32_t stale = window->rkey;
    EXPECT_EQ(bind(), WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, stale), WcStatus::kRemoteAccessError);
  });
}

/// A bind that the device refuses: its queue pair fails.
void expect_bind_error(const std::function<Wc(KeyRig&, MemoryWindow&)>& bind) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    ASSERT_TRUE(window);
    EXPECT_EQ(bind(t, *window).status, WcStatus::kMwBindError);
    EXPECT_EQ(t.rig.b.state(), QpState::kError);
  });
}

TEST(MemoryWindow, BeyondTheRegion) {
  expect_bind_error([](KeyRig& t, MemoryWindow& window) {
    return t.bind(window, t.theirs.address + kPage, 4 * kPage, protocol::kAccessRemoteRead,
                  t.theirs.region.lkey);
  });
}

TEST(MemoryWindow, OfARegionThatForbidsIt) {
  expect_bind_error([](KeyRig& t, MemoryWindow& window) {
    const RigBuffer plain = t.rig.b.buffer(kPage);
    return t.bind(window, plain.address, kPage, protocol::kAccessRemoteRead, plain.region.lkey);
  });
}

TEST(MemoryWindow, WithAStaleKeyOfTheRegion) {
  expect_bind_error([](KeyRig& t, MemoryWindow& window) {
    return t.bind(window, t.theirs.address, kPage, protocol::kAccessRemoteRead,
                  t.theirs.region.lkey ^ 1);
  });
}

TEST(MemoryWindow, Type2WhileItIsBound) {
  expect_bind_error([](KeyRig& t, MemoryWindow& window) {
    EXPECT_EQ(
        t.bind(window, t.theirs.address, kPage, protocol::kAccessRemoteRead, t.theirs.region.lkey)
            .status,
        WcStatus::kSuccess);
    return t.bind(window, t.theirs.address, kPage, protocol::kAccessRemoteRead,
                  t.theirs.region.lkey);
  });
}

TEST(MemoryWindow, InvalidationOfAnOrdinaryRegion) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.invalidate(t.theirs.region.lkey).status, WcStatus::kLocalQpOperationError);
    EXPECT_EQ(t.rig.b.state(), QpState::kError);
  });
}

TEST(MemoryWindow, KeepsItsRegion) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    auto window = verbs.alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    ASSERT_EQ(t.bind_page(*window), WcStatus::kSuccess);
    EXPECT_EQ(verbs.dereg_mr(t.rig.b.core, t.theirs.region), Status::kEbusy);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.invalidate(window->rkey).status, WcStatus::kSuccess);
    EXPECT_EQ(verbs.dereg_mr(t.rig.b.core, t.theirs.region), Status::kOk);
    EXPECT_EQ(verbs.dealloc_mw(t.rig.b.core, *window), Status::kOk);
  });
}

TEST(MemoryWindow, Type1IsReboundByAVerb) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    auto window = verbs.alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType1);
    ASSERT_TRUE(window);
    const auto bind = [&](std::uint64_t address, std::uint64_t length) {
      const MwBind what{&*window, 0,      t.theirs.region.lkey,
                        address,  length, protocol::kAccessRemoteWrite};
      EXPECT_EQ(verbs.bind_mw(t.rig.b.core, *t.rig.b.qp, what, 5, SendFlags::kSignaled),
                Status::kOk);
      EXPECT_EQ(t.rig.b.await_send().status, WcStatus::kSuccess);
    };
    bind(t.theirs.address, 100);
    const std::uint32_t first = window->rkey;
    EXPECT_EQ(t.write(t.theirs.address, first), WcStatus::kSuccess);
    bind(t.theirs.address + kPage, 100);  // no invalidation in between
    EXPECT_NE(window->rkey, first);
    EXPECT_EQ(t.write(t.theirs.address + kPage, window->rkey), WcStatus::kSuccess);
    bind(0, 0);
    EXPECT_EQ(t.write(t.theirs.address + kPage, window->rkey), WcStatus::kRemoteAccessError);
    auto type2 = verbs.alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    const MwBind wrong{&*type2, 0, t.theirs.region.lkey, t.theirs.address, 8, 0};
    EXPECT_EQ(verbs.bind_mw(t.rig.b.core, *t.rig.b.qp, wrong, 5, 0), Status::kEinval);
    EXPECT_EQ(verbs.dealloc_mw(t.rig.b.core, *window), Status::kOk);
  });
}

TEST(FastRegistration, RegisterUseInvalidateRegister) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    auto region = verbs.alloc_fast_mr(t.rig.b.core, t.rig.b.pd, 8);
    ASSERT_TRUE(region);
    for (std::uint8_t round = 1; round < 4; ++round) {
      const std::uint64_t address = t.rig.b.space().map(16 * kPage, kPage) + 40;
      EXPECT_EQ(verbs.map_fast_mr(t.rig.b.core, *region, address, 8 * kPage), Status::kEinval)
          << "nine pages";
      ASSERT_EQ(verbs.map_fast_mr(t.rig.b.core, *region, address, 7 * kPage), Status::kOk);
      SendWr wr;
      wr.opcode = WrOpcode::kRegMr;
      wr.reg = {&*region, next_key(region->key), kAllAccess};
      const Wc wc = t.owner(wr);
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.opcode, WcOpcode::kRegMr);
      t.rig.a.fill(t.mine.address, Bytes(kPage, round));
      EXPECT_EQ(t.write(address + 6 * kPage, region->key, kPage), WcStatus::kSuccess);
      EXPECT_EQ(t.rig.b.bytes_at(address + 6 * kPage, kPage), Bytes(kPage, round));
      EXPECT_EQ(t.invalidate(region->key).status, WcStatus::kSuccess);
    }
    EXPECT_EQ(t.write(t.theirs.address, region->key), WcStatus::kRemoteAccessError);
    EXPECT_EQ(verbs.dealloc_fast_mr(t.rig.b.core, *region), Status::kOk);
  });
}

TEST(FastRegistration, LaterWorkSeesIt) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    // Registration, use as the source of a WRITE and invalidation in one list.
    host::verbs::Context& verbs = t.rig.a.verbs();
    auto region = verbs.alloc_fast_mr(t.rig.a.core, t.rig.a.pd, 2);
    const std::uint64_t address = t.rig.a.space().map(kPage, kPage);
    t.rig.a.fill(address, Bytes(kPage, 0x3C));
    ASSERT_EQ(verbs.map_fast_mr(t.rig.a.core, *region, address, kPage), Status::kOk);
    const std::uint32_t key = next_key(region->key);
    const protocol::Sge sge{address, 512, key};
    SendWr list[3];
    list[0].opcode = WrOpcode::kRegMr;
    list[0].reg = {&*region, key, kAllAccess};
    list[1].opcode = WrOpcode::kRdmaWrite;
    list[1].sg_list = &sge;
    list[1].num_sge = 1;
    list[1].remote_addr = t.theirs.address;
    list[1].rkey = t.theirs.region.rkey;
    list[2] = list[1];
    list[2].remote_addr += kPage;
    list[2].flags = SendFlags::kSignaled;
    ASSERT_EQ(verbs.post_send(t.rig.a.core, *t.rig.a.qp, list, 3), Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    t.rig.settle();
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address, 512), Bytes(512, 0x3C));
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + kPage, 512), Bytes(512, 0x3C));
  });
}

TEST(FastRegistration, ItsEndWaitsForWorkThatUsesIt) {
  // The WRITE's first packet is lost: it is sent again, out of a region that would be gone by then.
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "1024"},
                {"transport.ack_timeout", "4"},
                {"link.drop_list", "1"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer theirs = rig.b.buffer(kPage);
    host::verbs::Context& verbs = rig.a.verbs();
    auto region = verbs.alloc_fast_mr(rig.a.core, rig.a.pd, 2);
    const std::uint64_t address = rig.a.space().map(kPage, kPage);
    rig.a.fill(address, Bytes(kPage, 0x3D));
    ASSERT_EQ(verbs.map_fast_mr(rig.a.core, *region, address, kPage), Status::kOk);
    const std::uint32_t key = next_key(region->key);
    const protocol::Sge sge{address, kPage, key};
    SendWr list[3];
    list[0].opcode = WrOpcode::kRegMr;
    list[0].reg = {&*region, key, kAllAccess};
    list[1].opcode = WrOpcode::kRdmaWrite;
    list[1].sg_list = &sge;
    list[1].num_sge = 1;
    list[1].remote_addr = theirs.address;
    list[1].rkey = theirs.region.rkey;
    list[2].opcode = WrOpcode::kLocalInv;
    list[2].invalidate_key = key;
    list[2].flags = SendFlags::kSignaled;
    ASSERT_EQ(verbs.post_send(rig.a.core, *rig.a.qp, list, 3), Status::kOk);
    const Wc wc = rig.a.await_send();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.opcode, WcOpcode::kLocalInv);
    EXPECT_GT(rig.a.node.nic.transport().counters().retransmitted_packets, 0U);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kPage), Bytes(kPage, 0x3D));
  });
}

// SEND with invalidate -------------------------------------------------------------------------

class SendWithInvalidate : public ::testing::TestWithParam<std::string> {
 protected:
  /// Host 0 sends `bytes` and ends `key` at host 1; returns the RECV's completion.
  static Wc end(KeyRig& t, std::uint32_t key, std::uint32_t bytes, std::uint32_t flags = 0) {
    EXPECT_EQ(t.rig.b.post_recv(t.theirs.address + 2 * kPage, t.theirs.region.lkey, 2 * kPage),
              Status::kOk);
    const protocol::Sge sge{t.mine.address, bytes, t.mine.region.lkey};
    SendWr wr;
    wr.opcode = WrOpcode::kSendWithInv;
    wr.flags = SendFlags::kSignaled | flags;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.invalidate_key = key;
    t.rig.settle();
    EXPECT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.rig.a.qp, &wr, 1), Status::kOk);
    const Wc recv = t.rig.b.await_recv();
    const Wc sent = t.rig.a.await_send();
    EXPECT_EQ(sent.opcode, WcOpcode::kSend);
    const bool good = recv.status == WcStatus::kSuccess;
    EXPECT_EQ(sent.status, good ? WcStatus::kSuccess : WcStatus::kRemoteAccessError);
    return recv;
  }
};

TEST_P(SendWithInvalidate, EndsAWindowBeforeTheRecvCompletes) {
  KeyRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    auto window = t.rig.b.verbs().alloc_mw(t.rig.b.core, t.rig.b.pd, MwType::kType2);
    const auto bind = [&] { return t.bind_page(*window); };
    ASSERT_EQ(bind(), WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kSuccess);
    const std::uint32_t stale = window->rkey;
    const Wc wc = end(t, stale, kPage);  // several packets
    EXPECT_EQ(wc.opcode, WcOpcode::kRecv);
    EXPECT_EQ(wc.wc_flags, Wc::kWithInv);
    EXPECT_EQ(wc.invalidated_rkey, stale);
    EXPECT_EQ(wc.byte_len, kPage);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + 2 * kPage, kPage), Bytes(kPage, 0x77));
    // Not bound any more: it can be bound again, which type 2 allows to a free window only.
    ASSERT_EQ(bind(), WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, window->rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.write(t.theirs.address, stale), WcStatus::kRemoteAccessError);
  });
}

TEST_P(SendWithInvalidate, AFastRegionCanBeRegisteredAtOnce) {
  KeyRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    auto region = verbs.alloc_fast_mr(t.rig.b.core, t.rig.b.pd, 1);
    const std::uint64_t address = t.rig.b.space().map(kPage, kPage);
    ASSERT_EQ(verbs.map_fast_mr(t.rig.b.core, *region, address, kPage), Status::kOk);
    for (int round = 0; round < 3; ++round) {
      SendWr wr;
      wr.opcode = WrOpcode::kRegMr;
      wr.reg = {&*region, next_key(region->key), kAllAccess};
      ASSERT_EQ(t.owner(wr).status, WcStatus::kSuccess);
      EXPECT_EQ(t.write(address, region->key), WcStatus::kSuccess);
      EXPECT_EQ(end(t, region->key, 0).invalidated_rkey, region->key);
    }
    EXPECT_EQ(t.write(address, region->key), WcStatus::kRemoteAccessError);
  });
}

TEST_P(SendWithInvalidate, WhatMayNotBeEndedStays) {
  KeyRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    QueuePair* other_from = t.rig.a.make_qp(RigSide::qp_attr());
    QueuePair* other_to = t.rig.b.make_qp(RigSide::qp_attr());
    t.rig.join(*other_from, *other_to);
    const Wc wc = end(t, t.theirs.region.rkey, 64);
    EXPECT_EQ(wc.status, WcStatus::kRemoteInvalidRequestError);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.state(), QpState::kError);
    EXPECT_EQ(t.rig.b.state(), QpState::kError);
    ASSERT_EQ(t.rig.a.post(*other_from, WrOpcode::kRdmaWrite, t.mine.address, t.mine.region.lkey,
                           64, t.theirs.address, t.theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, SendWithInvalidate, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

class SendWithInvalidateOver : public ::testing::TestWithParam<protocol::QpType> {};

TEST_P(SendWithInvalidateOver, AnUnreliableServiceIsRefused) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.connect(GetParam());
    SendWr wr;
    wr.opcode = WrOpcode::kSendWithInv;
    wr.ah = rig.a_to_b;
    EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), Status::kEinval);
    EXPECT_STRNE(rig.a.verbs().refusal(), "");
  });
}

INSTANTIATE_TEST_SUITE_P(Services, SendWithInvalidateOver,
                         ::testing::Values(protocol::QpType::kUc, protocol::QpType::kUd),
                         [](const auto& test) {
                           return test.param == protocol::QpType::kUc ? "uc" : "ud";
                         });

TEST(Registration, RightsTakenAwayWhileInUse) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.write(t.theirs.address, t.theirs.region.rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.verbs().rereg_mr(t.rig.b.core, t.theirs.region, t.rig.b.pd,
                                       protocol::kAccessLocalWrite | protocol::kAccessRemoteRead),
              Status::kOk);
    EXPECT_EQ(t.write(t.theirs.address, t.theirs.region.rkey), WcStatus::kRemoteAccessError);
  });
}

TEST(Registration, OtherMemoryUnderTheSameKeys) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    const std::uint64_t before = t.rig.b.space().pinned_bytes();
    EXPECT_EQ(t.write(t.theirs.address, t.theirs.region.rkey), WcStatus::kSuccess);
    const std::uint64_t other = t.rig.b.space().map(8 * kPage, kPage);
    EXPECT_EQ(verbs.rereg_mr_translation(t.rig.b.core, t.theirs.region, other, 0), Status::kEinval);
    ASSERT_EQ(verbs.rereg_mr_translation(t.rig.b.core, t.theirs.region, other + 100, 6 * kPage),
              Status::kOk);
    EXPECT_EQ(t.rig.b.space().pinned_bytes(), before + 3 * kPage) << "seven pages, not four";
    EXPECT_EQ(t.write(other + 100 + 6 * kPage - 64, t.theirs.region.rkey), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(other + 100 + 6 * kPage - 64, 64), Bytes(64, 0x77));
    // What was there before is not any more.
    EXPECT_EQ(t.write(t.theirs.address + kPage, t.theirs.region.rkey),
              WcStatus::kRemoteAccessError);
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + kPage, 1), Bytes(1, 0));
    EXPECT_EQ(verbs.dereg_mr(t.rig.b.core, t.theirs.region), Status::kOk);
    EXPECT_EQ(t.rig.b.space().pinned_bytes(), before - 4 * kPage);
  });
}

TEST(Registration, EndedWhileTrafficRuns) {
  KeyRig t;
  t.rig.run([&] {
    t.connect();
    // 5 us each on the wire: more than the command that ends the key takes.
    constexpr std::uint32_t kLong = 64 << 10;
    const RigBuffer from = t.rig.a.buffer(kLong);
    const RigBuffer into = t.rig.b.buffer(kLong);
    ASSERT_EQ(t.rig.b.verbs().dereg_mr(t.rig.b.core, t.theirs.region), Status::kOk);
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(t.rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, kLong,
                             into.address, into.region.rkey),
                Status::kOk);
    }
    // The owner does so when the first has been executed.
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    ASSERT_EQ(t.rig.b.verbs().dereg_mr(t.rig.b.core, into.region), Status::kOk);
    // Some were executed before, one is refused, the rest is flushed.
    int at = 1;
    for (; at < 30; ++at) {
      const WcStatus status = t.rig.a.await_send().status;
      if (status == WcStatus::kSuccess) continue;
      EXPECT_EQ(status, WcStatus::kRemoteAccessError);
      break;
    }
    EXPECT_LT(at, 30);
    for (++at; at < 30; ++at) EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kWrFlushError);
    EXPECT_EQ(t.rig.b.space().pinned_bytes(), 0U);
  });
}

}  // namespace
}  // namespace rnic::testbench
