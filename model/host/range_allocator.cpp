// SPDX-License-Identifier: Apache-2.0
#include "host/range_allocator.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace rnic::host {

RangeAllocator::RangeAllocator(std::uint64_t begin, std::uint64_t end)
    : begin_(begin), end_(std::max(begin, end)), free_count_(end_ - begin_) {
  if (begin_ < end_) free_.emplace(begin_, end_);
}

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t count,
                                                      std::uint64_t alignment) {
  if (count == 0 || count > free_count_) return std::nullopt;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [range_begin, range_end] = *it;
    const std::uint64_t padding = (alignment - range_begin % alignment) % alignment;
    const std::uint64_t available = range_end - range_begin;
    if (available < padding || available - padding < count) continue;
    const std::uint64_t start = range_begin + padding;
    if (padding == 0) {
      free_.erase(it);
    } else {
      it->second = start;
    }
    if (start + count < range_end) free_.emplace(start + count, range_end);
    free_count_ -= count;
    return start;
  }
  return std::nullopt;
}

void RangeAllocator::release(std::uint64_t begin, std::uint64_t count) {
  if (count == 0) return;
  if (begin < begin_ || count > end_ - begin_ || begin > end_ - count) {
    panic("RangeAllocator", "a released range lies inside the managed range");
  }
  std::uint64_t end = begin + count;
  auto next = free_.lower_bound(begin);
  const bool overlaps_next = next != free_.end() && next->first < end;
  const bool overlaps_previous = next != free_.begin() && std::prev(next)->second > begin;
  if (overlaps_next || overlaps_previous) {
    panic("RangeAllocator", "a range is released once");
  }
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == begin) {
    std::prev(next)->second = end;
  } else {
    free_.emplace(begin, end);
  }
  free_count_ += count;
}

}  // namespace rnic::host
