// SPDX-License-Identifier: Apache-2.0
#include "host/iommu.h"

#include <algorithm>

namespace rnic::host {
namespace {

/// Fully associative while a search is cheap, else the largest number of ways up to that size that
/// divides the entries.
std::uint32_t ways_for(std::uint32_t entries) {
  constexpr std::uint32_t kMaxWays = 64;
  std::uint32_t ways = std::min(entries, kMaxWays);
  while (entries % ways != 0) --ways;
  return ways;
}

}  // namespace

Iommu::Iommu(const config::IommuConfig& config, std::uint64_t page_size)
    : walk_latency_(config.walk_latency),
      page_size_(page_size),
      iotlb_(std::max(1U, config.iotlb_entries), ways_for(std::max(1U, config.iotlb_entries)),
             ReplacementPolicy::kLru, Rng(0, "iommu")) {}

Time Iommu::translate(std::uint64_t address, std::uint64_t bytes) {
  Time extra = kTimeZero;
  const std::uint64_t last = (address + std::max<std::uint64_t>(bytes, 1) - 1) / page_size_;
  for (std::uint64_t page = address / page_size_; page <= last; ++page) {
    if (iotlb_.find(page) == nullptr) {
      iotlb_.insert(page);
      extra += walk_latency_;
    }
  }
  return extra;
}

}  // namespace rnic::host
