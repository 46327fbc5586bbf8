// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/set_assoc_cache.h"
#include "base/time.h"
#include "config/host_config.h"

namespace rnic::host {

/// I/O address translation with an identity mapping: what it costs, not what it protects. An LRU
/// IOTLB of pages; the walks of one request follow each other, those of different requests overlap.
class Iommu {
 public:
  /// `page_size`: bytes that one IOTLB entry covers, a power of two.
  Iommu(const config::IommuConfig& config, std::uint64_t page_size);

  /// Extra time before an access of `bytes` at `address` may go on; zero when all pages hit.
  Time translate(std::uint64_t address, std::uint64_t bytes);

  std::uint64_t hits() const { return iotlb_.hits(); }
  std::uint64_t misses() const { return iotlb_.misses(); }
  void reset_statistics() { iotlb_.reset_statistics(); }

 private:
  struct Nothing {};

  Time walk_latency_;
  std::uint64_t page_size_;
  SetAssocCache<Nothing> iotlb_;
};

}  // namespace rnic::host
