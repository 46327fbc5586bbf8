// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rnic::transport {

/// Disjoint ranges of a stream, in order: what a receiver has behind a gap, or a sender knows of.
class SequenceRanges {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  ///< one behind the last byte
  };

  bool empty() const { return ranges_.empty(); }
  std::size_t size() const { return ranges_.size(); }
  const Range& operator[](std::size_t i) const { return ranges_[i]; }
  void clear() { ranges_.clear(); }

  /// Adds [begin, end), joining what touches; false when all of it was there.
  bool add(std::uint64_t begin, std::uint64_t end) {
    auto at = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                               [](const Range& r, std::uint64_t x) { return r.end < x; });
    if (at == ranges_.end() || at->begin > end) {
      ranges_.insert(at, Range{begin, end});
      return true;
    }
    if (at->begin <= begin && end <= at->end) return false;
    at->begin = std::min(at->begin, begin);
    auto last = at;
    while (last != ranges_.end() && last->begin <= end) {
      at->end = std::max({at->end, last->end, end});
      ++last;
    }
    ranges_.erase(at + 1, last);
    return true;
  }

  /// Forgets everything before `sequence`.
  void drop_before(std::uint64_t sequence) {
    auto keep = ranges_.begin();
    while (keep != ranges_.end() && keep->end <= sequence) ++keep;
    ranges_.erase(ranges_.begin(), keep);
    if (!ranges_.empty()) ranges_.front().begin = std::max(ranges_.front().begin, sequence);
  }

  /// Bytes of [begin, end) that are in no range.
  std::uint64_t missing(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return 0;
    std::uint64_t bytes = end - begin;
    for (const Range& r : ranges_) {
      const std::uint64_t from = std::max(r.begin, begin);
      const std::uint64_t to = std::min(r.end, end);
      if (from < to) bytes -= to - from;
    }
    return bytes;
  }

  /// `sequence`, or the end of the range that it is in.
  std::uint64_t skip(std::uint64_t sequence) const {
    for (const Range& r : ranges_) {
      if (r.begin <= sequence && sequence < r.end) return r.end;
    }
    return sequence;
  }

 private:
  std::vector<Range> ranges_;
};

}  // namespace rnic::transport
