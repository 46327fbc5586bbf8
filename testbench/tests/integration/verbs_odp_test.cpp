// SPDX-License-Identifier: Apache-2.0
// On-demand paging end to end: explicit regions, and implicit ones that stand for all memory that a
// process has or will have.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::MemoryRegion;
using host::MemoryRegistrar;
using host::Status;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint32_t kBytes = 3 * kPage;
constexpr protocol::AccessFlags kOnDemand =
    kAllAccess | protocol::kAccessRemoteAtomic | protocol::kAccessOnDemand;

/// Host 1 opens all of its memory; host 0 has a registered buffer.
struct ImplicitRig {
  explicit ImplicitRig(const std::string& protocol = "rocev2", const Settings& more = {})
      : rig(with({{"transport.protocol", protocol}, {"transport.min_rnr_timer", "5"}}, more)) {}

  void connect() {
    rig.connect();
    mine = rig.a.buffer(2 * kBytes);
    whole = implicit(rig.b);
    rig.settle();
  }
  static MemoryRegion implicit(RigSide& side) {
    const auto made =
        side.verbs().reg_mr(side.core, side.pd, 0, MemoryRegistrar::kWholeSpace, kOnDemand);
    EXPECT_EQ(made.status, Status::kOk);
    return made.region;
  }
  WcStatus ask(WrOpcode opcode, std::uint64_t remote, std::uint32_t bytes = kBytes) {
    EXPECT_EQ(rig.a.post(opcode, mine.address, mine.region.lkey, bytes, remote, whole.rkey),
              Status::kOk);
    const WcStatus status = rig.a.await_send().status;
    rig.settle();
    return status;
  }

  VerbsRig rig;
  RigBuffer mine;
  MemoryRegion whole;
};

class ImplicitRegion : public ::testing::TestWithParam<std::string> {};

TEST_P(ImplicitRegion, ReachesWhateverIsMapped) {
  ImplicitRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.rig.b.space().pinned_bytes(), 0U);
    for (std::uint8_t round = 1; round <= 3; ++round) {
      // Mapped after the registration, in the middle of a page.
      const std::uint64_t target = t.rig.b.space().map(4 * kPage) + 100;
      t.rig.a.fill(t.mine.address, Bytes(kBytes, round));
      EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, target), WcStatus::kSuccess);
      EXPECT_EQ(t.rig.b.bytes_at(target, kBytes), Bytes(kBytes, round));
      EXPECT_EQ(t.rig.b.bytes_at(target + kBytes, 1), Bytes(1, 0));
      t.rig.a.fill(t.mine.address, Bytes(kBytes, 0));
      EXPECT_EQ(t.ask(WrOpcode::kRdmaRead, target), WcStatus::kSuccess);
      EXPECT_EQ(t.rig.a.bytes_at(t.mine.address, kBytes), Bytes(kBytes, round));
    }
    EXPECT_EQ(t.rig.b.verbs().stats().pages_on_demand, 3 * 4U);
    EXPECT_EQ(t.rig.b.space().pinned_bytes(), 0U);
  });
}

TEST_P(ImplicitRegion, ServesAsSourceAndAsReceiveBuffer) {
  ImplicitRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const MemoryRegion local = ImplicitRig::implicit(t.rig.a);
    const std::uint64_t from = t.rig.a.space().map(4 * kPage);
    const std::uint64_t into = t.rig.b.space().map(4 * kPage);
    t.rig.a.fill(from, Bytes(kBytes, 0x3D));
    ASSERT_EQ(t.rig.b.post_recv(into, t.whole.lkey, kBytes), Status::kOk);
    t.rig.settle();
    ASSERT_EQ(t.rig.a.post(WrOpcode::kSend, from, local.lkey, kBytes), Status::kOk);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(into, kBytes), Bytes(kBytes, 0x3D));
  });
}

TEST_P(ImplicitRegion, AcrossGigabytes) {
  ImplicitRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const std::uint64_t start = t.rig.b.space().map(2 * kGiB, kPage);
    const std::uint64_t border = (start / kGiB + 1) * kGiB;
    t.rig.a.fill(t.mine.address, Bytes(kBytes, 0x61));
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, border - 1000), WcStatus::kSuccess);
    EXPECT_EQ(t.rig.b.bytes_at(border - 1000, kBytes), Bytes(kBytes, 0x61));
    EXPECT_EQ(t.rig.b.bytes_at(border - 1001, 1), Bytes(1, 0));
  });
}

TEST_P(ImplicitRegion, WhatIsNotMappedIsRefused) {
  ImplicitRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const std::uint64_t last = t.rig.b.space().map(kPage);
    t.rig.a.fill(t.mine.address, Bytes(kBytes, 0x62));
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, last, kPage), WcStatus::kSuccess);
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, last + kPage, 8), WcStatus::kRemoteAccessError);
    EXPECT_EQ(t.rig.b.state(), QpState::kError);
  });
}

TEST_P(ImplicitRegion, NoAddressOfAProcess) {
  ImplicitRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    EXPECT_EQ(t.ask(WrOpcode::kRdmaRead, std::uint64_t{1} << 60, 8), WcStatus::kRemoteAccessError);
  });
}

TEST_P(ImplicitRegion, ASourceThatIsNotMapped) {
  ImplicitRig t(GetParam());
  t.rig.run([&] {
    t.connect();
    const MemoryRegion local = ImplicitRig::implicit(t.rig.a);
    const std::uint64_t into = t.rig.b.space().map(kPage);
    ASSERT_EQ(t.rig.a.post(WrOpcode::kRdmaWrite, 0x1000, local.lkey, 8, into, t.whole.rkey),
              Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kLocalProtectionError);
    // A connection of TCP ends for both.
    t.rig.settle();
    EXPECT_EQ(t.rig.b.state(), GetParam() == "iwarp" ? QpState::kError : QpState::kRts);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, ImplicitRegion, ::testing::Values("ib", "rocev2", "iwarp"),
                         [](const auto& test) { return test.param; });

TEST(ImplicitRegionLife, EndsWithItsParts) {
  ImplicitRig t;
  t.rig.run([&] {
    t.connect();
    host::ContextMemory& tables = t.rig.b.node.host.context_memory;
    const std::uint32_t keys = tables.mpts_in_use();
    const std::uint64_t target = t.rig.b.space().map(4 * kPage);
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, target), WcStatus::kSuccess);
    EXPECT_EQ(tables.mpts_in_use(), keys + 1) << "one gigabyte was touched";
    ASSERT_EQ(t.rig.b.verbs().dereg_mr(t.rig.b.core, t.whole), Status::kOk);
    EXPECT_EQ(tables.mpts_in_use(), keys - 1);
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, target), WcStatus::kRemoteAccessError);
  });
}

TEST(ImplicitRegionLife, TheKeyOfAPartIsNoKey) {
  ImplicitRig t;
  t.rig.run([&] {
    t.connect();
    const std::uint64_t target = t.rig.b.space().map(4 * kPage);
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, target), WcStatus::kSuccess);
    // The part's entry is the next one that was made.
    const std::uint32_t part = t.whole.rkey + (1U << 8);
    EXPECT_EQ(t.rig.b.node.host.context_memory.read_mpt(protocol::key_index(part)).key, part);
    ASSERT_EQ(
        t.rig.a.post(WrOpcode::kRdmaWrite, t.mine.address, t.mine.region.lkey, 8, target, part),
        Status::kOk);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kRemoteAccessError);
  });
}

TEST(ImplicitRegionLife, FaultsCostAsThoseOfARegion) {
  // READs wait for the page: one fault of 100 us and a page of 200 ns each time, and the second
  // READ finds it.
  ImplicitRig t("rocev2", {{"memory.odp_fault_cost", "100us"}, {"memory.odp_page_cost", "200ns"}});
  t.rig.run([&] {
    t.connect();
    const std::uint64_t target = t.rig.b.space().map(kPage);
    const auto read = [&] {
      const Time start = t.rig.a.core.now();
      EXPECT_EQ(t.rig.a.post(WrOpcode::kRdmaRead, t.mine.address, t.mine.region.lkey, 8, target,
                             t.whole.rkey),
                Status::kOk);
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
      return to_us(t.rig.a.core.now() - start);
    };
    const double cold = read();
    const double warm = read();
    EXPECT_GT(cold - warm, 100.2);
    // The event, its interrupt of 1 us, the doorbell, and tables and contexts that are read once.
    EXPECT_LT(cold - warm, 100.2 + 10);
  });
}

TEST(ImplicitRegionLife, PrefetchBringsItsPages) {
  ImplicitRig t;
  t.rig.run([&] {
    t.connect();
    host::verbs::Context& verbs = t.rig.b.verbs();
    const std::uint64_t target = t.rig.b.space().map(16 * kPage, kPage);
    EXPECT_EQ(verbs.advise_mr(t.rig.b.core, t.whole, target, 16 * kPage), Status::kOk);
    t.rig.settle(microseconds(100));
    EXPECT_EQ(verbs.stats().pages_on_demand, 16U);
    EXPECT_EQ(t.ask(WrOpcode::kRdmaWrite, target), WcStatus::kSuccess);
    EXPECT_EQ(verbs.stats().page_faults, 0U);
  });
}

TEST(ImplicitRegionLife, OnlyOnDemandAndFromZero) {
  VerbsRig rig({});
  rig.run([&] {
    rig.a.create();
    host::verbs::Context& verbs = rig.a.verbs();
    const auto reg = [&](std::uint64_t address, std::uint64_t length, std::uint32_t access) {
      return verbs.reg_mr(rig.a.core, rig.a.pd, address, length, access).status;
    };
    EXPECT_NE(reg(0, MemoryRegistrar::kWholeSpace, kAllAccess), Status::kOk);
    EXPECT_EQ(reg(kPage, MemoryRegistrar::kWholeSpace, kOnDemand), Status::kEinval);
    EXPECT_EQ(reg(0, MemoryRegistrar::kWholeSpace, kOnDemand | protocol::kAccessMwBind),
              Status::kEinval);
    EXPECT_EQ(reg(0, MemoryRegistrar::kWholeSpace, kOnDemand), Status::kOk);
  });
}

/// What the process gives back while a region still names it: the page cannot come.
TEST(ExplicitRegion, OfMemoryThatIsGone) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"transport.min_rnr_timer", "5"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(4 * kPage, kOnDemand);
    ASSERT_EQ(rig.b.space().unmap(theirs.address), Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64,
                         theirs.address + kPage, theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kRemoteAccessError);
  });
}

}  // namespace
}  // namespace rnic::testbench
