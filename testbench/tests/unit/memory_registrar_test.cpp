// SPDX-License-Identifier: Apache-2.0
#include "host/memory_registrar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/mpt.h"
#include "protocol/mtt.h"

namespace rnic::host {
namespace {

using protocol::AccessResult;
using protocol::kAccessLocalWrite;
using protocol::kAccessRemoteAtomic;
using protocol::kAccessRemoteRead;
using protocol::kAccessRemoteWrite;
using protocol::kAccessZeroBased;

constexpr std::uint32_t kPd = 7;
constexpr std::uint64_t kMax = ~std::uint64_t{0};

config::MemoryConfig costs() {
  config::MemoryConfig config{};
  config.reg_call_cost = nanoseconds(1000);
  config.reg_page_cost = nanoseconds(100);
  config.dereg_call_cost = nanoseconds(500);
  config.dereg_page_cost = nanoseconds(10);
  return config;
}

ContextLayout layout() {
  ContextLayout layout;
  layout.qps = 16;
  layout.cqs = 16;
  layout.srqs = 16;
  layout.mpts = 1024;
  layout.mtts = 1 << 16;
  layout.max_mr = 1000;
  return layout;
}

class MemoryRegistrarTest : public ::testing::Test {
 protected:
  /// The device's view: nothing but a key, an address and the bytes in context memory. Returns the
  /// physical address.
  std::uint64_t device_translate(std::uint32_t key, std::uint64_t va) {
    const auto entry = context_.read_mpt(protocol::key_index(key));
    EXPECT_EQ(protocol::check_access(entry, key, kPd, va, 1, 0), AccessResult::kOk);
    const auto location = protocol::locate(entry, va);
    EXPECT_LT(location.index, entry.mtt_base + entry.mtt_count);
    const auto mtt = context_.read_mtt(location.index);
    EXPECT_TRUE(mtt.present());
    return mtt.address + location.offset;
  }
  AccessResult device_check(std::uint32_t key, std::uint64_t va, std::uint64_t bytes,
                            protocol::AccessFlags needed, std::uint32_t pd = kPd) {
    const auto entry = context_.read_mpt(protocol::key_index(key));
    return protocol::check_access(entry, key, pd, va, bytes, needed);
  }

  PhysicalMemory memory_{std::uint64_t{16} << 30};
  AddressSpace space_{memory_, kPage4KiB, std::uint64_t{4} << 30, Rng(1, "app")};
  ContextMemory context_{memory_, layout()};
  MemoryRegistrar registrar_{context_, costs()};
};

TEST_F(MemoryRegistrarTest, RegistrationPinsAndHandsTheMapOver) {
  const auto va = space_.map(16 * kPage4KiB);
  // Bytes 100 to 8,291 of the buffer: pages 0, 1 and 2.
  const auto result = registrar_.reg_mr(space_, kPd, va + 100, 8192, kAccessLocalWrite);
  ASSERT_EQ(result.status, Status::kOk);
  const MemoryRegion& mr = result.region;
  EXPECT_EQ(mr.lkey, mr.rkey);
  EXPECT_EQ(mr.va, va + 100);
  EXPECT_EQ(mr.iova, va + 100);
  EXPECT_EQ(mr.length, 8192U);
  EXPECT_EQ(mr.npages, 3U);
  EXPECT_EQ(mr.mtt_count, 3U);
  EXPECT_EQ(mr.page_size, kPage4KiB);
  EXPECT_EQ(space_.pinned_bytes(), 3 * kPage4KiB);
  EXPECT_EQ(result.cost, nanoseconds(1000 + 3 * 100));
  EXPECT_EQ(space_.migrate(va), Status::kEbusy);
  EXPECT_EQ(space_.migrate(va + 3 * kPage4KiB), Status::kEfault) << "not touched";
  for (const std::uint64_t at : {100U, 4095U, 4096U, 8191U, 8192U, 8291U}) {
    EXPECT_EQ(device_translate(mr.lkey, va + at), space_.translate(va + at));
  }
  EXPECT_EQ(device_check(mr.lkey, va + 100, 8192, kAccessLocalWrite), AccessResult::kOk);
  EXPECT_EQ(device_check(mr.lkey, va + 99, 1, 0), AccessResult::kOutOfBounds);
  EXPECT_EQ(device_check(mr.lkey, va + 8291, 2, 0), AccessResult::kOutOfBounds);
  EXPECT_EQ(device_check(mr.lkey, va + 100, 1, 0, kPd + 1), AccessResult::kWrongPd);
  EXPECT_EQ(device_check(mr.rkey, va + 100, 1, kAccessRemoteWrite), AccessResult::kNoRight);
}

TEST_F(MemoryRegistrarTest, MttWriteBitFollowsTheRights) {
  const auto va = space_.map(kPage4KiB);
  const auto read_only = registrar_.reg_mr(space_, kPd, va, 1, kAccessRemoteRead).region;
  const auto writable = registrar_.reg_mr(space_, kPd, va, 1, kAccessLocalWrite).region;
  EXPECT_FALSE(context_.read_mtt(read_only.mtt_base).writable);
  EXPECT_TRUE(context_.read_mtt(read_only.mtt_base).readable);
  EXPECT_TRUE(context_.read_mtt(writable.mtt_base).writable);
}

TEST_F(MemoryRegistrarTest, LargePagesNeedOneMttEach) {
  const auto va = space_.map(4 * kPage2MiB, kPage2MiB);
  const auto whole = registrar_.reg_mr(space_, kPd, va, 4 * kPage2MiB, kAccessLocalWrite);
  ASSERT_EQ(whole.status, Status::kOk);
  EXPECT_EQ(whole.region.npages, 4U);
  EXPECT_EQ(whole.cost, nanoseconds(1000 + 4 * 100));
  EXPECT_GE(whole.region.page_size, kPage2MiB);
  EXPECT_LE(whole.region.mtt_count, 4U);
  // The middle of page 0 to the middle of page 1.
  const auto part =
      registrar_.reg_mr(space_, kPd, va + kPage2MiB / 2, kPage2MiB, kAccessLocalWrite);
  EXPECT_EQ(part.region.npages, 2U);
  EXPECT_LE(part.region.mtt_count, 2U);
  EXPECT_EQ(space_.pinned_bytes(), 4 * kPage2MiB + kPage2MiB) << "counted in 4 KiB pages";
  for (std::uint64_t at = kPage2MiB / 2; at < kPage2MiB * 3 / 2; at += 65537) {
    EXPECT_EQ(device_translate(part.region.lkey, va + at), space_.translate(va + at));
    EXPECT_EQ(device_translate(whole.region.lkey, va + at), space_.translate(va + at));
  }
}

TEST_F(MemoryRegistrarTest, OneMttIsNoLargerThanTheRegionNeeds) {
  const auto va = space_.map(kPage2MiB, kPage2MiB);
  EXPECT_EQ(registrar_.reg_mr(space_, kPd, va + 64, 64, 0).region.page_size, kPage4KiB);
  // Bytes 0 to 12,287 share all address bits above the low 14: one 16 KiB entry covers them.
  const auto three_pages = registrar_.reg_mr(space_, kPd, va, 3 * kPage4KiB, 0).region;
  EXPECT_EQ(three_pages.page_size, 4 * kPage4KiB);
  EXPECT_EQ(three_pages.mtt_count, 1U);
}

TEST_F(MemoryRegistrarTest, GigabytePage) {
  const auto va = space_.map(kPage1GiB, kPage1GiB);
  const auto mr = registrar_.reg_mr(space_, kPd, va, kPage1GiB, kAccessLocalWrite).region;
  EXPECT_EQ(mr.page_size, kPage1GiB);
  EXPECT_EQ(mr.mtt_count, 1U);
  EXPECT_EQ(device_translate(mr.lkey, va + kPage1GiB - 1), space_.translate(va + kPage1GiB - 1));
}

TEST_F(MemoryRegistrarTest, IovaRenamesTheBytes) {
  const auto va = space_.map(kPage2MiB, kPage2MiB);
  constexpr std::uint64_t kIova = 0x1000'0000'3000;
  // va + 0x5080 and the IOVA agree in the low 12 bits, 0x080.
  const auto mr = registrar_.reg_mr(space_, kPd, va + 0x5080, 0x8000, 0, kIova + 0x80).region;
  for (std::uint64_t at = 0; at < 0x8000; at += 511) {
    EXPECT_EQ(device_translate(mr.lkey, kIova + 0x80 + at), space_.translate(va + 0x5080 + at));
  }
  EXPECT_EQ(device_check(mr.lkey, va + 0x5080, 1, 0), AccessResult::kOutOfBounds);
  EXPECT_EQ(registrar_.reg_mr(space_, kPd, va + 0x5080, 8, 0, kIova).status, Status::kEinval);
}

TEST_F(MemoryRegistrarTest, ZeroBasedRegionsStartAtZero) {
  const auto va = space_.map(8 * kPage4KiB);
  const auto by_flag =
      registrar_.reg_mr(space_, kPd, va + 300, 20000, kAccessLocalWrite | kAccessZeroBased);
  const auto by_argument =
      registrar_.reg_mr(space_, kPd, va + 300, 20000, kAccessLocalWrite, 0, true);
  for (const auto& result : {by_flag, by_argument}) {
    ASSERT_EQ(result.status, Status::kOk);
    EXPECT_TRUE(context_.read_mpt(protocol::key_index(result.region.lkey)).zero_based);
    for (std::uint64_t at = 0; at < 20000; at += 499) {
      EXPECT_EQ(device_translate(result.region.lkey, at), space_.translate(va + 300 + at));
    }
    EXPECT_EQ(device_check(result.region.lkey, 20000, 1, 0), AccessResult::kOutOfBounds);
  }
}

TEST_F(MemoryRegistrarTest, ArgumentErrors) {
  const auto va = space_.map(kPage4KiB);
  const auto status = [&](std::uint64_t at, std::uint64_t bytes, protocol::AccessFlags access) {
    const auto result = registrar_.reg_mr(space_, kPd, at, bytes, access);
    EXPECT_EQ(result.cost, nanoseconds(1000)) << "the call alone";
    return result.status;
  };
  EXPECT_EQ(status(va, 0, 0), Status::kEinval);
  EXPECT_EQ(status(va, kMax, 0), Status::kEinval);
  EXPECT_EQ(status(kMax - 4095, 4096, 0), Status::kEinval);
  EXPECT_EQ(status(va, 8, kAccessRemoteWrite), Status::kEinval);
  EXPECT_EQ(status(va, 8, kAccessRemoteAtomic), Status::kEinval);
  EXPECT_EQ(status(va, 8, protocol::kAccessOnDemand | protocol::kAccessMwBind), Status::kEinval);
  EXPECT_EQ(status(va, kPage4KiB + 1, 0), Status::kEfault);
  EXPECT_EQ(status(4096, 8, 0), Status::kEfault);
  EXPECT_EQ(space_.pinned_bytes(), 0U);
  EXPECT_EQ(context_.mpts_in_use(), 0U);
  EXPECT_EQ(context_.free_mtt_count(), 1U << 16);
}

TEST_F(MemoryRegistrarTest, AnOnDemandRegionHasNoPagesUntilTheyAreWanted) {
  const auto va = space_.map(4 * kPage4KiB) + 100;
  const std::uint64_t bytes = 3 * kPage4KiB;  // four pages
  const auto result =
      registrar_.reg_mr(space_, kPd, va, bytes, kAccessLocalWrite | protocol::kAccessOnDemand);
  ASSERT_EQ(result.status, Status::kOk);
  EXPECT_EQ(result.cost, nanoseconds(1000)) << "the call alone";
  EXPECT_EQ(space_.pinned_bytes(), 0U);
  const host::MemoryRegion& region = result.region;
  EXPECT_EQ(region.mtt_count, 4U);
  EXPECT_EQ(registrar_.missing(region, va, bytes), 4U);
  // The second page and the third, by a range that ends one byte into the third.
  const auto range = registrar_.populate(space_, region, va - 100 + kPage4KiB, kPage4KiB + 1);
  EXPECT_EQ(range.first_mtt, region.mtt_base + 1);
  EXPECT_EQ(range.count, 2U);
  EXPECT_EQ(range.mapped, 2U);
  EXPECT_EQ(registrar_.missing(region, va, bytes), 2U);
  EXPECT_EQ(device_translate(region.lkey, va + kPage4KiB), space_.translate(va + kPage4KiB));
  // What lies outside the region is left out, and what is there is not mapped again.
  const auto all = registrar_.populate(space_, region, va - 100, 10 * kPage4KiB);
  EXPECT_EQ(all.count, 4U);
  EXPECT_EQ(all.mapped, 2U);
  EXPECT_EQ(registrar_.populate(space_, region, va + bytes, 8).count, 0U);
  EXPECT_EQ(registrar_.dereg_mr(space_, region).status, Status::kOk);
}

TEST_F(MemoryRegistrarTest, RightsChangeUnderTheSameKeys) {
  const auto va = space_.map(kPage4KiB);
  auto region = registrar_.reg_mr(space_, kPd, va, 100, 0).region;
  EXPECT_EQ(device_check(region.rkey, va, 8, kAccessRemoteWrite), AccessResult::kNoRight);
  EXPECT_EQ(registrar_.change_rights(region, kPd, kAccessRemoteWrite), Status::kEinval);
  EXPECT_EQ(registrar_.change_rights(region, kPd + 1, kAccessLocalWrite | kAccessRemoteWrite),
            Status::kOk);
  EXPECT_EQ(device_check(region.rkey, va, 8, kAccessRemoteWrite), AccessResult::kWrongPd);
  EXPECT_EQ(device_check(region.rkey, va, 8, kAccessRemoteWrite, kPd + 1), AccessResult::kOk);
  EXPECT_TRUE(context_.read_mtt(region.mtt_base).writable);
  EXPECT_EQ(registrar_.dereg_mr(space_, region).status, Status::kOk);
  EXPECT_EQ(registrar_.change_rights(region, kPd, 0), Status::kEinval);
}

TEST_F(MemoryRegistrarTest, MemlockLimitAtTheBoundary) {
  AddressSpace space(memory_, kPage4KiB, 10 * kPage4KiB, Rng(2, "app"));
  const auto va = space.map(20 * kPage4KiB);
  const auto first = registrar_.reg_mr(space, kPd, va, 6 * kPage4KiB, 0);
  ASSERT_EQ(first.status, Status::kOk);
  EXPECT_EQ(registrar_.reg_mr(space, kPd, va, 4 * kPage4KiB + 1, 0).status, Status::kEnomem);
  EXPECT_EQ(registrar_.reg_mr(space, kPd, va, 4 * kPage4KiB, 0).status, Status::kOk);
  EXPECT_EQ(registrar_.reg_mr(space, kPd, va, 1, 0).status, Status::kEnomem);
  EXPECT_EQ(registrar_.dereg_mr(space, first.region).status, Status::kOk);
  EXPECT_EQ(registrar_.reg_mr(space, kPd, va, 6 * kPage4KiB, 0).status, Status::kOk);
}

TEST_F(MemoryRegistrarTest, FullTablesGiveEnomemAndUndoEverything) {
  ContextLayout tight = layout();
  tight.max_mr = 2;
  tight.mtts = 16;
  ContextMemory context(memory_, tight);
  MemoryRegistrar registrar(context, costs());
  const auto va = space_.map(32 * kPage4KiB);
  EXPECT_EQ(registrar.reg_mr(space_, kPd, va, 17 * kPage4KiB, 0).status, Status::kEnomem)
      << "17 entries do not fit in 16";
  EXPECT_EQ(space_.pinned_bytes(), 0U);
  ASSERT_EQ(registrar.reg_mr(space_, kPd, va, 1, 0).status, Status::kOk);
  ASSERT_EQ(registrar.reg_mr(space_, kPd, va, 1, 0).status, Status::kOk);
  const auto pinned = space_.pinned_bytes();
  EXPECT_EQ(registrar.reg_mr(space_, kPd, va, 1, 0).status, Status::kEnomem);
  EXPECT_EQ(space_.pinned_bytes(), pinned);

  ContextMemory other(memory_, tight);
  MemoryRegistrar distinct(other, costs(), KeyPolicy::kDistinct);
  ASSERT_EQ(distinct.reg_mr(space_, kPd, va, 1, 0).status, Status::kOk);
  const auto free_mtts = other.free_mtt_count();
  EXPECT_EQ(distinct.reg_mr(space_, kPd, va, 1, 0).status, Status::kEnomem);
  EXPECT_EQ(other.free_mtt_count(), free_mtts);
  EXPECT_EQ(other.mpts_in_use(), 2U);
}

TEST_F(MemoryRegistrarTest, DeregistrationInvalidatesTheKeyAndUnpins) {
  const auto va = space_.map(4 * kPage4KiB);
  const auto mr = registrar_.reg_mr(space_, kPd, va, 4 * kPage4KiB, kAccessLocalWrite).region;
  const auto result = registrar_.dereg_mr(space_, mr);
  EXPECT_EQ(result.status, Status::kOk);
  EXPECT_EQ(result.cost, nanoseconds(500 + 4 * 10));
  EXPECT_EQ(device_check(mr.lkey, va, 1, 0), AccessResult::kInvalidState);
  EXPECT_EQ(space_.pinned_bytes(), 0U);
  EXPECT_EQ(space_.migrate(va), Status::kOk);
  EXPECT_EQ(context_.free_mtt_count(), 1U << 16);
  EXPECT_EQ(registrar_.dereg_mr(space_, mr).status, Status::kEinval) << "only once";

  const auto again = registrar_.reg_mr(space_, kPd, va, 8, kAccessLocalWrite).region;
  EXPECT_EQ(protocol::key_index(again.lkey), protocol::key_index(mr.lkey));
  EXPECT_EQ(device_check(mr.lkey, va, 1, 0), AccessResult::kBadKey) << "the stale key";
  EXPECT_EQ(device_check(again.lkey, va, 1, 0), AccessResult::kOk);
  EXPECT_EQ(registrar_.dereg_mr(space_, mr).status, Status::kEinval);
  EXPECT_EQ(registrar_.dereg_mr(space_, MemoryRegion{}).status, Status::kEinval);
}

TEST_F(MemoryRegistrarTest, DistinctKeysSplitTheRights) {
  MemoryRegistrar registrar(context_, costs(), KeyPolicy::kDistinct);
  const auto va = space_.map(kPage4KiB);
  const auto mr =
      registrar.reg_mr(space_, kPd, va, 64, kAccessLocalWrite | kAccessRemoteRead).region;
  EXPECT_NE(mr.lkey, mr.rkey);
  EXPECT_EQ(device_check(mr.rkey, va, 64, kAccessRemoteRead), AccessResult::kOk);
  EXPECT_EQ(device_check(mr.lkey, va, 64, kAccessRemoteRead), AccessResult::kNoRight);
  EXPECT_EQ(device_check(mr.lkey, va, 64, kAccessLocalWrite), AccessResult::kOk);
  EXPECT_EQ(device_translate(mr.lkey, va), device_translate(mr.rkey, va));
  EXPECT_EQ(registrar.dereg_mr(space_, mr).status, Status::kOk);
  EXPECT_EQ(context_.mpts_in_use(), 0U);
}

// Property: regions of every shape at once, under memory pressure. What the application stores by
// virtual address is what the device finds through the bytes of the MPT and MTTs, and what the
// device writes there is what the application loads.
TEST_F(MemoryRegistrarTest, RandomRegionsAgreeInBothDirections) {
  Rng rng(9, "memory_registrar_test");
  const std::uint64_t small = space_.map(256 * kPage4KiB);
  const std::uint64_t large = space_.map(4 * kPage2MiB, kPage2MiB);
  std::vector<MemoryRegion> live;
  std::uint64_t expected_pinned = 0;
  for (int step = 0; step < 3000; ++step) {
    if (live.size() < 30 && rng.below(2) == 0) {
      const bool huge = rng.below(4) == 0;
      const std::uint64_t bytes = huge ? 4 * kPage2MiB : 256 * kPage4KiB;
      const std::uint64_t offset = rng.below(bytes);
      const std::uint64_t length = 1 + rng.below(bytes - offset);
      const std::uint64_t va = (huge ? large : small) + offset;
      const bool zero_based = rng.below(3) == 0;
      const auto result =
          registrar_.reg_mr(space_, kPd, va, length, kAccessLocalWrite, va, zero_based);
      ASSERT_EQ(result.status, Status::kOk);
      live.push_back(result.region);
      expected_pinned += ((va + length - 1) / 4096 - va / 4096 + 1) * 4096;
    } else if (!live.empty() && rng.below(2) == 0) {
      const std::size_t victim = rng.below(live.size());
      const MemoryRegion mr = live[victim];
      live[victim] = live.back();
      live.pop_back();
      ASSERT_EQ(registrar_.dereg_mr(space_, mr).status, Status::kOk);
      expected_pinned -= ((mr.va + mr.length - 1) / 4096 - mr.va / 4096 + 1) * 4096;
    }
    ASSERT_EQ(space_.pinned_bytes(), expected_pinned);
    space_.reclaim(8);
    if (live.empty()) continue;
    const MemoryRegion& mr = live[rng.below(live.size())];
    const std::uint64_t at = rng.below(mr.length);
    const auto pa = device_translate(mr.lkey, mr.iova + at);
    const auto stored = static_cast<std::uint8_t>(rng.next());
    ASSERT_EQ(space_.write(mr.va + at, &stored, 1), Status::kOk);
    std::uint8_t found = 0;
    ASSERT_TRUE(memory_.read(pa, &found, 1));
    ASSERT_EQ(found, stored);
    const auto sent = static_cast<std::uint8_t>(rng.next());
    ASSERT_TRUE(memory_.write(pa, &sent, 1));
    ASSERT_EQ(space_.read(mr.va + at, &found, 1), Status::kOk);
    ASSERT_EQ(found, sent);
  }
  for (const auto& mr : live) ASSERT_EQ(registrar_.dereg_mr(space_, mr).status, Status::kOk);
  EXPECT_EQ(space_.pinned_bytes(), 0U);
  EXPECT_EQ(context_.mpts_in_use(), 0U);
  EXPECT_EQ(context_.free_mtt_count(), 1U << 16);
}

}  // namespace
}  // namespace rnic::host
