// SPDX-License-Identifier: Apache-2.0
#include "host/last_level_cache.h"

#include <algorithm>
#include <bitset>

namespace rnic::host {
namespace {

constexpr std::uint32_t kLine = LastLevelCache::kLineBytes;
constexpr std::uint32_t kSector = LastLevelCache::kSectorBytes;
constexpr std::uint32_t kLinesPerSector = kSector / kLine;

std::uint32_t lines_in(std::uint32_t mask) {
  return static_cast<std::uint32_t>(std::bitset<kLinesPerSector>(mask).count());
}

/// The part of an access that lies in one sector.
struct Part {
  std::uint64_t tag;
  std::uint16_t lines;    ///< touched
  std::uint16_t partial;  ///< touched but not covered
};

Part part_at(std::uint64_t at, std::uint64_t end) {
  const std::uint64_t tag = at / kSector;
  const std::uint64_t stop = std::min(end, (tag + 1) * kSector);
  const auto first = static_cast<std::uint32_t>(at % kSector / kLine);
  const auto last = static_cast<std::uint32_t>((stop - 1) % kSector / kLine);
  const std::uint32_t lines = ((2U << last) - 1) & ~((1U << first) - 1);
  std::uint32_t partial = at % kLine != 0 ? 1U << first : 0U;
  if (stop % kLine != 0) partial |= 1U << last;
  return {tag, static_cast<std::uint16_t>(lines), static_cast<std::uint16_t>(partial)};
}

template <typename Visit>
void for_each_part(std::uint64_t address, std::uint64_t bytes, Visit visit) {
  const std::uint64_t end = address + bytes;
  for (std::uint64_t at = address; at < end; at = (at / kSector + 1) * kSector) {
    visit(part_at(at, end));
  }
}

std::uint16_t without(std::uint16_t mask, std::uint16_t lines) {
  return static_cast<std::uint16_t>(mask & ~lines);
}

}  // namespace

LastLevelCache::LastLevelCache(std::uint64_t bytes, std::uint32_t ways, std::uint32_t io_ways)
    : ways_(ways),
      io_ways_(std::min(io_ways, ways)),
      sets_(std::max<std::uint64_t>(1, bytes / kSectorBytes / ways)),
      sectors_(sets_ * ways) {}

LastLevelCache::Sector* LastLevelCache::set_of(std::uint64_t tag) {
  // Hashed, as CPUs spread addresses over slices; powers of two would collapse otherwise.
  const std::uint64_t mixed = (tag ^ (tag >> 20)) * 0x9E3779B97F4A7C15ULL;
  return &sectors_[(mixed >> 32) % sets_ * ways_];
}

LastLevelCache::Sector* LastLevelCache::find(std::uint64_t tag) {
  Sector* set = set_of(tag);
  for (std::uint32_t way = 0; way < ways_; ++way) {
    if (set[way].tag == tag) {
      set[way].last_use = ++clock_;
      return &set[way];
    }
  }
  return nullptr;
}

LastLevelCache::Sector& LastLevelCache::allocate(std::uint64_t tag, std::uint32_t ways,
                                                 Outcome& outcome) {
  if (Sector* found = find(tag)) return *found;
  Sector* set = set_of(tag);
  Sector* victim = std::min_element(
      set, set + ways, [](const Sector& a, const Sector& b) { return a.last_use < b.last_use; });
  outcome.written_back += lines_in(victim->dirty);
  *victim = Sector{tag, ++clock_, 0, 0};
  return *victim;
}

LastLevelCache::Outcome LastLevelCache::device_read(std::uint64_t address, std::uint64_t bytes) {
  Outcome outcome;
  for_each_part(address, bytes, [&](const Part& part) {
    const Sector* sector = find(part.tag);
    const std::uint32_t present = sector == nullptr ? 0U : sector->present;
    outcome.hits += lines_in(part.lines & present);
    outcome.misses += lines_in(part.lines & ~present);
  });
  return outcome;
}

LastLevelCache::Outcome LastLevelCache::device_write(std::uint64_t address, std::uint64_t bytes) {
  Outcome outcome;
  for_each_part(address, bytes, [&](const Part& part) {
    if (io_ways_ == 0 && find(part.tag) == nullptr) {
      outcome.misses += lines_in(part.lines);
      outcome.missed_partial += lines_in(part.partial);
      outcome.written_back += lines_in(part.lines);
      return;
    }
    Sector& sector = allocate(part.tag, io_ways_, outcome);
    outcome.hits += lines_in(part.lines & sector.present);
    outcome.misses += lines_in(part.lines & ~sector.present);
    outcome.missed_partial += lines_in(part.partial & ~sector.present);
    sector.present = static_cast<std::uint16_t>(sector.present | part.lines);
    sector.dirty = static_cast<std::uint16_t>(sector.dirty | part.lines);
  });
  return outcome;
}

LastLevelCache::Outcome LastLevelCache::device_write_around(std::uint64_t address,
                                                            std::uint64_t bytes) {
  Outcome outcome;
  for_each_part(address, bytes, [&](const Part& part) {
    outcome.misses += lines_in(part.lines);
    outcome.written_back += lines_in(part.lines);
    Sector* sector = find(part.tag);
    const std::uint32_t present = sector == nullptr ? 0U : sector->present;
    outcome.missed_partial += lines_in(part.partial & ~present);
    if (sector == nullptr) return;
    sector->present = without(sector->present, part.lines);
    sector->dirty = without(sector->dirty, part.lines);
  });
  return outcome;
}

LastLevelCache::Outcome LastLevelCache::cpu_access(std::uint64_t address, std::uint64_t bytes,
                                                   bool dirty) {
  Outcome outcome;
  for_each_part(address, bytes, [&](const Part& part) {
    Sector& sector = allocate(part.tag, ways_, outcome);
    outcome.hits += lines_in(part.lines & sector.present);
    outcome.misses += lines_in(part.lines & ~sector.present);
    sector.present = static_cast<std::uint16_t>(sector.present | part.lines);
    if (dirty) sector.dirty = static_cast<std::uint16_t>(sector.dirty | part.lines);
  });
  return outcome;
}

}  // namespace rnic::host
