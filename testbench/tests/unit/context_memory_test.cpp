// SPDX-License-Identifier: Apache-2.0
#include "host/context_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.h"

namespace rnic::host {
namespace {

ContextLayout small_layout() {
  ContextLayout layout;
  layout.qps = 16;
  layout.cqs = 16;
  layout.srqs = 16;
  layout.mpts = 10;
  layout.mtts = 64;
  layout.max_mr = 100;
  return layout;
}

TEST(ContextMemory, FullSizeTablesCostNothingUntilTouched) {
  PhysicalMemory memory;
  ContextMemory context(memory, ContextLayout{});
  EXPECT_EQ(memory.resident_bytes(), 0U);
  context.write_mpt(300000, protocol::MptEntry{});
  context.write_mtt(8000000, protocol::MttEntry{});
  EXPECT_EQ(memory.resident_bytes(), 2U * 4096);
}

TEST(ContextMemory, EntriesAreSpacedBySizeAndTablesAreApart) {
  PhysicalMemory memory;
  ContextMemory context(memory, ContextLayout{});
  EXPECT_EQ(context.address_of_qpc(3) - context.address_of_qpc(2), 256U);
  EXPECT_EQ(context.address_of_cqc(3) - context.address_of_cqc(2), 64U);
  EXPECT_EQ(context.address_of_srqc(3) - context.address_of_srqc(2), 64U);
  EXPECT_EQ(context.address_of_mpt(3) - context.address_of_mpt(2), 64U);
  EXPECT_EQ(context.address_of_mtt(3) - context.address_of_mtt(2), 8U);
  // [first byte, end) of each table, from the default layout's entry counts.
  const std::map<std::uint64_t, std::uint64_t> tables{
      {context.address_of_qpc(0), context.address_of_qpc(1U << 18)},
      {context.address_of_cqc(0), context.address_of_cqc(1U << 16)},
      {context.address_of_srqc(0), context.address_of_srqc(1U << 16)},
      {context.address_of_mpt(0), context.address_of_mpt(1U << 19)},
      {context.address_of_mtt(0), context.address_of_mtt(1U << 23)}};
  ASSERT_EQ(tables.size(), 5U);
  std::uint64_t end = 1;
  for (const auto& [first, last] : tables) {
    EXPECT_GE(first, end);
    EXPECT_EQ(first % 4096, 0U);
    end = last;
  }
  EXPECT_LE(end, memory.size());
}

TEST(ContextMemory, TablesMustFit) {
  PhysicalMemory memory(1 << 20);
  EXPECT_THROW(ContextMemory(memory, ContextLayout{}), ConfigError);
}

TEST(ContextMemory, EntriesLieInMemoryAsBytes) {
  PhysicalMemory memory;
  ContextMemory context(memory, small_layout());
  context.write_mtt(9, {0x5000, true, true});
  std::array<std::uint8_t, 8> bytes;
  ASSERT_TRUE(memory.read(context.address_of_mtt(9), bytes.data(), bytes.size()));
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 8>{0, 0, 0, 0, 0, 0, 0x50, 3}));
  EXPECT_EQ(context.read_mtt(9).address, 0x5000U);
  protocol::MptEntry entry;
  entry.key = 0x00000503;
  entry.length = 77;
  context.write_mpt(5, entry);
  std::uint8_t key_byte = 0;
  ASSERT_TRUE(memory.read(context.address_of_mpt(5) + 7, &key_byte, 1));
  EXPECT_EQ(key_byte, 3);
  EXPECT_EQ(context.read_mpt(5).length, 77U);
}

TEST(ContextMemory, AReusedIndexHasAnotherKey) {
  PhysicalMemory memory;
  ContextMemory context(memory, small_layout());
  const MptSlot first = context.allocate_mpt().value();
  EXPECT_EQ(first.key >> 8, first.index);
  EXPECT_GE(first.index, ContextMemory::kFirstMpt);
  context.free_mpt(first.index);
  const MptSlot second = context.allocate_mpt().value();
  ASSERT_EQ(second.index, first.index);
  EXPECT_EQ(second.key, first.key + 1) << "the variant byte moved on";
}

TEST(ContextMemory, VariantByteWrapsWithoutTouchingTheIndex) {
  PhysicalMemory memory;
  ContextMemory context(memory, small_layout());
  const std::uint32_t index = context.allocate_mpt()->index;
  for (std::uint32_t use = 1; use <= 256; ++use) {
    context.free_mpt(index);
    const MptSlot slot = context.allocate_mpt().value();
    ASSERT_EQ(slot.key, (index << 8) | (use % 256));
  }
}

TEST(ContextMemory, MptLimits) {
  PhysicalMemory memory;
  ContextMemory context(memory, small_layout());
  // Ten entries, two reserved.
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(context.allocate_mpt());
  EXPECT_FALSE(context.allocate_mpt());
  context.free_mpt(4);
  EXPECT_EQ(context.allocate_mpt()->index, 4U);

  ContextLayout layout = small_layout();
  layout.max_mr = 3;
  ContextMemory limited(memory, layout);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limited.allocate_mpt());
  EXPECT_FALSE(limited.allocate_mpt());
  EXPECT_EQ(limited.mpts_in_use(), 3U);
  limited.free_mpt(2);
  EXPECT_TRUE(limited.allocate_mpt());
  EXPECT_THROW(limited.free_mpt(0), SimulationError);
  EXPECT_THROW(limited.free_mpt(9), SimulationError);
}

TEST(ContextMemory, MttRangesAreWholeLines) {
  PhysicalMemory memory;
  ContextMemory context(memory, small_layout());
  EXPECT_EQ(context.allocate_mtts(1), 0U);
  EXPECT_EQ(context.allocate_mtts(9), 8U) << "two regions never share eight entries";
  EXPECT_EQ(context.allocate_mtts(1), 24U);
  EXPECT_EQ(context.free_mtt_count(), 32U);
  EXPECT_EQ(context.allocate_mtts(33), std::nullopt);
  context.free_mtts(8, 9);
  EXPECT_EQ(context.allocate_mtts(16), 8U);
  EXPECT_EQ(context.allocate_mtts(~std::uint64_t{0}), std::nullopt);
}

// Property: live ranges never overlap, and freeing all gives the whole table back.
TEST(ContextMemory, RandomMttRangesNeverOverlap) {
  PhysicalMemory memory;
  ContextLayout layout = small_layout();
  layout.mtts = 4096;
  ContextMemory context(memory, layout);
  Rng rng(5, "context_memory_test");
  std::map<std::uint64_t, std::uint64_t> live;  // base -> count
  for (int step = 0; step < 20000; ++step) {
    if (rng.below(2) == 0) {
      const std::uint64_t count = 1 + rng.below(300);
      const auto base = context.allocate_mtts(count);
      if (!base) continue;
      const auto next = live.lower_bound(*base);
      if (next != live.end()) {
        ASSERT_LE(*base + count, next->first);
      }
      if (next != live.begin()) {
        const auto previous = std::prev(next);
        ASSERT_LE(previous->first + previous->second, *base);
      }
      ASSERT_LE(*base + count, layout.mtts);
      live.emplace(*base, count);
    } else if (!live.empty()) {
      auto victim = live.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(rng.below(live.size())));
      context.free_mtts(victim->first, victim->second);
      live.erase(victim);
    }
  }
  for (const auto& [base, count] : live) context.free_mtts(base, count);
  EXPECT_EQ(context.allocate_mtts(4096), 0U);
}

}  // namespace
}  // namespace rnic::host
