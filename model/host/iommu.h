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

/// I/O address translation with an identity mapping: what it costs, not what it protects. An LRU
/// IOTLB of pages; misses are walked by a number of walkers, each walk shorter when the upper level
/// of the page table is cached. The walks of one request follow each other, those of different
/// requests overlap; a page that is being walked is waited for, not walked again.
class Iommu {
 public:
  explicit Iommu(const std::string& name, const config::IommuConfig& config);

  /// Extra time before an access of `bytes` at `address` that arrives at `now` may go on; zero when
  /// all pages hit.
  Time translate(Time now, std::uint64_t address, std::uint64_t bytes);

  std::uint64_t hits() const { return iotlb_.hits(); }
  std::uint64_t misses() const { return iotlb_.misses(); }
  /// Busy: the walkers' mean.
  const stats::UnitStats& unit() const { return unit_; }
  void reset_statistics(Time now);

 private:
  struct Entry {
    Time known{0};  ///< end of the walk that found it
  };
  struct Nothing {};

  /// Walks for `page`, not before `at`; returns the end.
  Time walk(Time at, std::uint64_t page);
  bool upper_level_cached(std::uint64_t page);

  Time walk_latency_;
  Time level_latency_;
  std::uint64_t page_size_;
  bool passthrough_;
  SetAssocCache<Entry> iotlb_;
  std::optional<SetAssocCache<Nothing>> walk_cache_;
  std::vector<Time> walkers_;  ///< when each is free; none: any number of walks
  stats::UnitStats unit_;
};

}  // namespace rnic::host
