// SPDX-License-Identifier: Apache-2.0
// Public cases, theme RG: registration, locked memory, on-demand paging.
#include <gtest/gtest.h>

#include <map>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::SendFlags;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr protocol::AccessFlags kOnDemand = kAllAccess | protocol::kAccessOnDemand;

Time registration_time(RigSide& side, std::uint64_t bytes, std::uint64_t page_size,
                       host::MemoryRegion* region = nullptr) {
  const std::uint64_t address = side.space().map(bytes, page_size);
  const Time start = side.core.now();
  const auto result = side.verbs().reg_mr(side.core, side.pd, address, bytes, kAllAccess);
  EXPECT_EQ(result.status, Status::kOk);
  if (region != nullptr) *region = result.region;
  return side.core.now() - start;
}

TEST(CaseRG, RG01_AroundTheLimitOfLockedMemory) {
  VerbsRig rig({{"memory.memlock_limit", "64KiB"}, {"memory.page_size", "4KiB"}});
  rig.run([&] {
    rig.a.create();
    host::verbs::Context& verbs = rig.a.verbs();
    const auto reg = [&](std::uint64_t bytes) {
      return verbs.reg_mr(rig.a.core, rig.a.pd, rig.a.space().map(bytes), bytes, kAllAccess);
    };
    EXPECT_EQ(reg(16 * kPage + 1).status, Status::kEnomem) << "17 pages of 16";
    const auto all = reg(16 * kPage);
    EXPECT_EQ(all.status, Status::kOk) << "exactly the limit";
    EXPECT_EQ(reg(1).status, Status::kEnomem);
    EXPECT_EQ(verbs.dereg_mr(rig.a.core, all.region), Status::kOk);
    // Several regions: whole pages count, whatever they hold.
    for (int i = 0; i < 16; ++i) EXPECT_EQ(reg(1).status, Status::kOk) << i;
    EXPECT_EQ(reg(1).status, Status::kEnomem);
  });
}

TEST(CaseRG, RG01_APrivilegedProcessHasNoLimit) {
  VerbsRig rig(Settings{{"memory.memlock_limit", "unlimited"}});
  rig.run([&] {
    rig.a.create();
    const std::uint64_t address = rig.a.space().map(64 << 20);
    EXPECT_EQ(rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, address, 64 << 20, kAllAccess).status,
              Status::kOk);
  });
}

TEST(CaseRG, RG03_TimeOfHugeRegistrations) {
  // Pages that are present: 0.35 us each, as large registrations show.
  VerbsRig rig(Settings{{"memory.reg_page_cost", "350ns"}});
  rig.run([&] {
    rig.a.create();
    const double ms_per_gib = to_us(registration_time(rig.a, kGiB, kPage)) / 1e3;
    EXPECT_GT(ms_per_gib, 80);
    EXPECT_LT(ms_per_gib, 100);
    const double huge = to_us(registration_time(rig.a, kGiB, 2U << 20)) / 1e3;
    EXPECT_GE(ms_per_gib / huge, 20);
    // Linear in the number of pages.
    const Time call = rig.config().memory.reg_call_cost;
    EXPECT_NEAR(to_us(registration_time(rig.a, kGiB / 4, kPage) - call),
                (ms_per_gib * 1e3 - to_us(call)) / 4, 1);
  });
}

TEST(CaseRG, RG03_MemoryThatNobodyHasTouchedIsClearedFirst) {
  // 0.35 us to pin a page, 0.8 us to clear it (5 GB/s): clearing dominates.
  VerbsRig rig({{"memory.reg_page_cost", "350ns"}, {"memory.reg_zero_cost", "800ns"}});
  rig.run([&] {
    rig.a.create();
    constexpr std::uint64_t kBytes = kGiB / 16;
    constexpr double kPages = 16384;
    const std::uint64_t address = rig.a.space().map(kBytes, kPage);
    const auto reg_ms = [&] {
      const Time start = rig.a.core.now();
      const auto made = rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, address, kBytes, kAllAccess);
      EXPECT_EQ(made.status, Status::kOk);
      const double took = to_us(rig.a.core.now() - start) / 1e3;
      EXPECT_EQ(rig.a.verbs().dereg_mr(rig.a.core, made.region), Status::kOk);
      return took;
    };
    const double untouched = reg_ms();
    const double touched = reg_ms();
    EXPECT_NEAR(untouched - touched, kPages * 0.8e-3, 1e-6);
    EXPECT_GT(untouched, 3 * touched);
    // 2 MiB pages are as much to clear, though few to pin.
    const double huge = to_us(registration_time(rig.a, kBytes, 2U << 20)) / 1e3;
    EXPECT_GT(huge, kPages * 0.8e-3);
  });
}

TEST(CaseRG, RG03_DeregistrationAndSeveralThreads) {
  VerbsRig rig({{"memory.reg_page_cost", "350ns"}, {"memory.dereg_page_cost", "85ns"}});
  rig.run([&] {
    rig.a.create();
    host::MemoryRegion whole;
    const Time alone = registration_time(rig.a, kGiB, kPage, &whole);
    Time start = rig.a.core.now();
    EXPECT_EQ(rig.a.verbs().dereg_mr(rig.a.core, whole), Status::kOk);
    EXPECT_NEAR(to_us(rig.a.core.now() - start) / to_us(alone), 0.25, 0.05);
    // Four threads, a quarter each: the calls do not wait for each other.
    rig.settle();
    start = sim_now();
    constexpr int kThreads = 4;
    int running = kThreads;
    sc_core::sc_event all_done;
    for (int i = 0; i < kThreads; ++i) {
      sc_core::sc_spawn([&] {
        host::Core core;
        core.sync();
        const std::uint64_t address = rig.a.space().map(kGiB / kThreads, kPage);
        EXPECT_EQ(rig.a.verbs().reg_mr(core, rig.a.pd, address, kGiB / kThreads, kAllAccess).status,
                  Status::kOk);
        core.sync();
        if (--running == 0) all_done.notify();
      });
    }
    sc_core::wait(all_done);
    const double speed_up = to_us(alone) / to_us(sim_now() - start);
    EXPECT_GE(speed_up, 3);
    EXPECT_LE(speed_up, 5);
  });
}

TEST(CaseRG, RG04_ThePoolForEveryConnectionOrOnce) {
  VerbsRig rig({});
  rig.run([&] {
    rig.a.create();
    constexpr int kConnections = 16;
    constexpr std::uint64_t kPool = 4U << 20;
    const std::uint64_t pool = rig.a.space().map(kPool, kPage);
    const auto reg = [&] {
      const Time start = rig.a.core.now();
      const auto result = rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, pool, kPool, kAllAccess);
      EXPECT_EQ(result.status, Status::kOk);
      return std::make_pair(rig.a.core.now() - start, result.region.mtt_count);
    };
    const auto once = reg();
    Time each{0};
    const std::uint64_t before = rig.a.node.host.context_memory.free_mtt_count();
    for (int i = 0; i < kConnections; ++i) each += reg().first;
    EXPECT_EQ(each, kConnections * once.first);
    EXPECT_EQ(before - rig.a.node.host.context_memory.free_mtt_count(), kConnections * once.second);
  });
}

/// Payload bytes that leave host 0 and the time of each message, for `count` WRITEs of 10 KB.
struct OdpWrites {
  double wire_ratio = 0;
  Time each{0};
};

OdpWrites write_to_new_pages(bool prefault) {
  constexpr std::uint64_t kMessage = 10240;
  constexpr std::uint64_t kStride = 12288;  // three pages, not shared by messages
  constexpr int kCount = 20;
  OdpWrites out;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"transport.min_rnr_timer", "14"},  // 1.28 ms
                {"transport.rnr_retry", "7"},
                {"memory.odp_fault_cost", "200us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kMessage);
    RigBuffer theirs = rig.b.buffer(kCount * kStride, kOnDemand);
    rig.a.fill(mine.address, Bytes(kMessage, 0x5A));
    if (prefault) {
      ASSERT_EQ(rig.b.verbs().advise_mr(rig.b.core, theirs.region, theirs.address, theirs.bytes),
                Status::kOk);
      rig.settle(microseconds(1000));
    }
    const std::uint64_t before = rig.a.port().sent().payload_bytes;
    const Time start = rig.a.core.now();
    for (int i = 0; i < kCount; ++i) {
      ASSERT_EQ(
          rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kMessage,
                     theirs.address + static_cast<std::uint64_t>(i) * kStride, theirs.region.rkey),
          Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
      EXPECT_EQ(rig.b.bytes_at(theirs.address + static_cast<std::uint64_t>(i) * kStride, kMessage),
                Bytes(kMessage, 0x5A));
    }
    out.each = (rig.a.core.now() - start) / kCount;
    out.wire_ratio = static_cast<double>(rig.a.port().sent().payload_bytes - before) /
                     (static_cast<double>(kMessage) * kCount);
  });
  return out;
}

TEST(CaseRG, RG06_WritesToPagesThatAreNotThere) {
  const OdpWrites writes = write_to_new_pages(false);
  // All three packets go out, are refused, and go out again after the RNR timer.
  EXPECT_DOUBLE_EQ(writes.wire_ratio, 2.0);
  EXPECT_GT(writes.each, microseconds(1280));
  EXPECT_LT(writes.each, microseconds(1280 + 20));
}

TEST(CaseRG, RG06_WritesToPagesThatWereBroughtIn) {
  const OdpWrites writes = write_to_new_pages(true);
  EXPECT_DOUBLE_EQ(writes.wire_ratio, 1.0);
  EXPECT_LT(writes.each, microseconds(20));
}

/// Time to send `kOdpBytes` out of an on-demand region that was never touched.
constexpr std::uint64_t kOdpBytes = 4U << 20;

Time send_cold(const std::string& granularity, bool prefetch) {
  Time took{0};
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"memory.odp_fault_cost", "100us"},
                {"memory.odp_handlers", "4"},
                {"memory.odp_granularity", granularity}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kOdpBytes, kOnDemand);
    const RigBuffer theirs = rig.b.buffer(kOdpBytes);
    rig.settle();  // the registrations' time is over
    const Time start = rig.a.core.now();
    if (prefetch) {
      ASSERT_EQ(rig.a.verbs().advise_mr(rig.a.core, mine.region, mine.address, kOdpBytes),
                Status::kOk);
      rig.settle(microseconds(110));  // the first chunk: 512 pages of 200 ns
    }
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kOdpBytes,
                         theirs.address, theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    took = rig.a.core.now() - start;
  });
  return took;
}

TEST(CaseRG, RG07_OneFaultForEachPage) {
  // 1024 faults of 100 us (and 200 ns), four at a time.
  const double expected = 1024 / 4 * 100.2;
  EXPECT_NEAR(to_us(send_cold("4KiB", false)) / expected, 1.0, 0.1);
}

TEST(CaseRG, RG07_OneFaultForEach64KiB) {
  // 64 faults of 100 us and 16 pages; packets of the message are too close to each other for more
  // than one or two faults at a time, so the bounds are those of one and of four handlers.
  const double us = to_us(send_cold("64KiB", false));
  EXPECT_GT(us, 64 / 4 * 103.2);
  EXPECT_LT(us, 64 * 103.2 + 700);
}

TEST(CaseRG, RG07_OneFaultForEach2MiB) {
  // Two faults of 100 us and 512 pages of 200 ns each, one after the other or together; and the
  // wire takes 342 us for the whole.
  const double us = to_us(send_cold("2MiB", false));
  EXPECT_GT(us, 100 + 512 * 0.2 + 342 / 2.0);
  EXPECT_LT(us, 2 * (100 + 512 * 0.2) + 342 + 50);
}

TEST(CaseRG, RG07_PrefetchedAheadOfTheWire) {
  // 4 MiB at 100 Gb/s: 342 us with headers; the prefetcher's start comes on top.
  const double us = to_us(send_cold("4KiB", true));
  EXPECT_GT(us, 342);
  EXPECT_LT(us, 342 + 110 + 120);
}

/// An application that registers what each 4-byte operation touches, through a cache of
/// registrations with entries of `unit` bytes.
struct CachedRegistration {
  double first_sweep_us = 0;
  double second_sweep_us = 0;
  std::uint64_t data_packets = 0;
};

CachedRegistration sweep(std::uint64_t unit) {
  constexpr std::uint64_t kBlocks = 4096;  // of 8 bytes: eight pages
  CachedRegistration out;
  VerbsRig rig({{"memory.reg_call_cost", "20us"}, {"memory.reg_page_cost", "400ns"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer theirs = rig.b.buffer(kPage);
    const std::uint64_t base = rig.a.space().map(kBlocks * 8, kPage);
    std::map<std::uint64_t, host::MemoryRegion> cache;
    const auto run = [&](std::uint64_t salt) {
      const Time start = rig.a.core.now();
      for (std::uint64_t i = 0; i < kBlocks; ++i) {
        const std::uint64_t address = base + i * 8;
        // An exact entry never fits another buffer: the second sweep's buffers are others.
        const std::uint64_t key = unit == 4 ? address + salt : address / unit * unit;
        auto found = cache.find(key);
        if (found == cache.end()) {
          const auto made = rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, key, unit, kAllAccess);
          EXPECT_EQ(made.status, Status::kOk);
          found = cache.emplace(key, made.region).first;
        }
        const std::uint32_t flags = (i + 1) % 16 == 0 ? SendFlags::kSignaled : 0;
        EXPECT_EQ(rig.a.post(*rig.a.qp, WrOpcode::kRdmaWrite, unit == 4 ? key : address,
                             found->second.lkey, 4, theirs.address, theirs.region.rkey, 0, flags),
                  Status::kOk);
        if (flags != 0) {
          EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
        }
      }
      rig.a.core.sync();
      return to_us(rig.a.core.now() - start) / kBlocks;
    };
    out.first_sweep_us = run(0);
    out.second_sweep_us = run(4);
    out.data_packets = rig.a.port().sent().data_packets;
  });
  return out;
}

TEST(CaseRG, RG09_ExactRegistrationsNeverHit) {
  const CachedRegistration exact = sweep(4);
  EXPECT_NEAR(exact.first_sweep_us, 21, 1);
  EXPECT_NEAR(exact.second_sweep_us, 21, 1);
  EXPECT_EQ(exact.data_packets, 2 * 4096U);
}

TEST(CaseRG, RG09_PagesHitFiveHundredTimes) {
  const CachedRegistration pages = sweep(kPage);
  // t_reg / 512 = 40 ns more in the first sweep.
  EXPECT_NEAR(pages.first_sweep_us - pages.second_sweep_us, 20.4 / 512, 0.01);
  EXPECT_LT(pages.second_sweep_us, 0.8);
  EXPECT_GT(21 / pages.second_sweep_us, 25);
  EXPECT_EQ(pages.data_packets, 2 * 4096U) << "the same traffic";
}

}  // namespace
}  // namespace rnic::testbench
