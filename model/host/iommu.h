// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/set_assoc_cache.h"
#include "base/time.h"
#include "config/host_config.h"
#include "stats/unit_stats.h"

namespace rnic::host {

/// I/O address translation with an identity mapping: what it costs; what it protects only as
/// far as a driver's mistake leaves a part of each page unmapped. An LRU IOTLB of pages; misses are
/// walked by a number of walkers, each walk shorter when the upper level of the page table is
/// cached. The walks of one request follow each other, those of different requests overlap; a page
/// that is being walked is waited for, not walked again, and takes its place in the IOTLB when the
/// walk has found it.
class Iommu {
 public:
  explicit Iommu(const std::string& name, const config::IommuConfig& config);

  /// Extra time before an access of `bytes` at `address` that arrives at `now` may go on; zero when
  /// all pages hit.
  Time translate(Time now, std::uint64_t address, std::uint64_t bytes);

  /// The IOTLB forgets the pages of [address, address + bytes), and what is being walked for.
  void invalidate(std::uint64_t address, std::uint64_t bytes);
  bool passes_through() const { return passthrough_; }
  /// Whether all bytes of a payload at `address` are mapped (iommu.mapped_bytes).
  bool maps(std::uint64_t address, std::uint64_t bytes) const;

  /// Pages found, or being walked for already.
  std::uint64_t hits() const { return hits_; }
  /// Walks.
  std::uint64_t misses() const { return misses_; }
  /// Busy: the walkers' mean.
  const stats::UnitStats& unit() const { return unit_; }
  void reset_statistics(Time now);

 private:
  struct Nothing {};
  struct Walk {
    std::uint64_t page = 0;
    Time end{0};
  };

  /// When a translation of `page` that is asked for at `at` is there.
  Time look_up(Time at, std::uint64_t page);
  /// The IOTLB learns what walks have found by `now`, in their order.
  void retire_walks(Time now);
  /// Walks for `page`, not before `at`; returns the end.
  Time walk(Time at, std::uint64_t page);
  bool upper_level_cached(std::uint64_t page);
  /// When the walks in the same page-table page as `page`'s are over.
  Time table_free(std::uint64_t page) const;

  Time walk_latency_;
  Time level_latency_;
  std::uint64_t page_size_;
  std::uint64_t mapped_;
  bool passthrough_;
  bool table_by_table_;
  SetAssocCache<Nothing> iotlb_;
  std::optional<SetAssocCache<Nothing>> walk_cache_;
  std::vector<Time> walkers_;  ///< when each is free; none: any number of walks
  std::vector<Walk> walks_;    ///< not yet retired
  Time last_start_{0};         ///< of a walk, if they start in order
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  stats::UnitStats unit_;
};

}  // namespace rnic::host
