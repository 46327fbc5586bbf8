// SPDX-License-Identifier: Apache-2.0
#include "host/iommu.h"

#include <algorithm>

namespace rnic::host {
namespace {

constexpr std::uint64_t kTableEntries = 512;  // of one x86-64 page-table page

/// Fully associative while a search is cheap, else the largest number of ways up to that size that
/// divides the entries.
std::uint32_t ways_for(std::uint32_t entries) {
  constexpr std::uint32_t kMaxWays = 64;
  std::uint32_t ways = std::min(entries, kMaxWays);
  while (entries % ways != 0) --ways;
  return ways;
}

}  // namespace

Iommu::Iommu(const std::string& name, const config::IommuConfig& config)
    : walk_latency_(config.walk_latency),
      level_latency_(config.walk_level_latency),
      page_size_(std::max<std::uint64_t>(config.page_size, 1)),
      mapped_(config.mapped == 0 ? page_size_ : std::min(config.mapped, page_size_)),
      passthrough_(config.passthrough),
      table_by_table_(config.serial_tables),
      iotlb_(std::max(1U, config.iotlb_entries), ways_for(std::max(1U, config.iotlb_entries)),
             ReplacementPolicy::kLru, Rng(0, "iommu")),
      walkers_(config.walkers, kTimeZero),
      unit_(name) {
  if (config.walk_cache > 0) {
    walk_cache_.emplace(config.walk_cache, ways_for(config.walk_cache), ReplacementPolicy::kLru,
                        Rng(0, "iommu.walk_cache"));
  }
}

void Iommu::reset_statistics(Time now) {
  hits_ = misses_ = 0;
  unit_.reset(now);
}

Time Iommu::translate(Time now, std::uint64_t address, std::uint64_t bytes) {
  if (passthrough_) return kTimeZero;
  if (!walks_.empty()) retire_walks(now);
  Time ready = now;
  const std::uint64_t last = (address + std::max<std::uint64_t>(bytes, 1) - 1) / page_size_;
  for (std::uint64_t page = address / page_size_; page <= last; ++page) {
    ready = look_up(ready, page);
  }
  return ready - now;
}

bool Iommu::maps(std::uint64_t address, std::uint64_t bytes) const {
  if (passthrough_ || bytes == 0) return true;
  // What goes beyond the end of a page crosses its hole, if there is one.
  return mapped_ == page_size_ || address % page_size_ + bytes <= mapped_;
}

Time Iommu::look_up(Time at, std::uint64_t page) {
  if (iotlb_.touch(page) != nullptr) {
    ++hits_;
    return at;
  }
  for (const Walk& walk : walks_) {
    if (walk.page != page) continue;
    ++hits_;
    return std::max(at, walk.end);
  }
  ++misses_;
  const Time end = walk(at, page);
  walks_.push_back({page, end});
  return end;
}

void Iommu::retire_walks(Time now) {
  while (!walks_.empty()) {
    const auto first = std::min_element(walks_.begin(), walks_.end(),
                                        [](const Walk& a, const Walk& b) { return a.end < b.end; });
    if (first->end > now) return;
    iotlb_.insert(first->page);
    walks_.erase(first);
  }
}

Time Iommu::table_free(std::uint64_t page) const {
  Time free{0};
  for (const Walk& walk : walks_) {
    if (walk.page / kTableEntries == page / kTableEntries) free = std::max(free, walk.end);
  }
  return free;
}

void Iommu::invalidate(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return;
  if (bytes / page_size_ > iotlb_.entries()) {
    iotlb_.invalidate_all();
    walks_.clear();
    return;
  }
  const std::uint64_t first = address / page_size_;
  const std::uint64_t last = (address + bytes - 1) / page_size_;
  for (std::uint64_t page = first; page <= last; ++page) iotlb_.invalidate(page);
  walks_.erase(
      std::remove_if(walks_.begin(), walks_.end(),
                     [=](const Walk& walk) { return walk.page >= first && walk.page <= last; }),
      walks_.end());
}

bool Iommu::upper_level_cached(std::uint64_t page) {
  if (!walk_cache_) return true;
  const std::uint64_t table = page / kTableEntries;
  if (walk_cache_->touch(table) != nullptr) return true;
  walk_cache_->insert(table);
  return false;
}

Time Iommu::walk(Time at, std::uint64_t page) {
  const Time duration = upper_level_cached(page) ? walk_latency_ : walk_latency_ + level_latency_;
  if (table_by_table_) at = last_start_ = std::max({at, last_start_, table_free(page)});
  if (walkers_.empty()) return at + duration;
  auto walker = std::min_element(walkers_.begin(), walkers_.end());
  const Time start = std::max(at, *walker);
  if (table_by_table_) last_start_ = start;
  *walker = start + duration;
  unit_.add_busy(duration / static_cast<std::int64_t>(walkers_.size()));
  return *walker;
}

}  // namespace rnic::host
