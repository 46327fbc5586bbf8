// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace rnic::host {

/// First-fit allocator of contiguous ranges of numbers (addresses, table indices); neighbouring
/// free ranges merge, so a fully released allocator is one range again.
class RangeAllocator {
 public:
  /// Manages [begin, end).
  RangeAllocator(std::uint64_t begin, std::uint64_t end);

  /// The lowest `count` free numbers in a row that start at a multiple of `alignment` (at least 1);
  /// nothing when `count` is 0 or no such range is free.
  std::optional<std::uint64_t> allocate(std::uint64_t count, std::uint64_t alignment = 1);

  /// Gives back [begin, begin + count), all of it allocated; throws SimulationError otherwise.
  void release(std::uint64_t begin, std::uint64_t count);

  /// Numbers that are free, in however many pieces.
  std::uint64_t free_count() const { return free_count_; }

 private:
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t free_count_;
  std::map<std::uint64_t, std::uint64_t> free_;  // begin -> end of each free range
};

}  // namespace rnic::host
