// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace rnic::stats {

/// Distribution of times, log-linear: each octave (power of two of picoseconds) has 512 buckets of
/// equal width, so a quantile is off by at most half a bucket, 1/1024 of its value (0.098 %);
/// times below 1.024 ns are exact. Minimum, maximum, count and sum are exact. An octave takes 4 KiB
/// and is allocated by the first time that falls into it. Negative times count as zero.
class Histogram {
 public:
  /// Times from `low` to `high`, both included, have been seen `count` times.
  struct Bucket {
    Time low;
    Time high;
    std::uint64_t count;
  };

  void add(Time value) {
    const std::int64_t clamped = std::max<std::int64_t>(value.count(), 0);
    const auto ps = static_cast<std::uint64_t>(clamped);
    const Position at = position(ps);
    std::vector<std::uint64_t>& octave = octaves_[at.octave];
    if (octave.empty()) octave.resize(kSubBuckets);
    ++octave[at.index];
    ++count_;
    sum_ps_ += ps;
    min_ = std::min(min_, Time{clamped});
    max_ = std::max(max_, Time{clamped});
  }

  void merge(const Histogram& other);
  /// Adds `times` what this histogram, or one like it, gained between `before` and `after`.
  void repeat(const Histogram& before, const Histogram& after, std::uint64_t times);

  /// Forgets everything; keeps the memory.
  void reset();

  std::uint64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  /// Sum of all times, ps. Exact below 1.8e19 ps (213 days).
  std::uint64_t sum_ps() const { return sum_ps_; }
  /// Zero when empty, as all of the following.
  Time min() const { return empty() ? kTimeZero : min_; }
  Time max() const { return max_; }
  double mean_ns() const {
    return empty() ? 0.0 : static_cast<double>(sum_ps_) / static_cast<double>(count_) / 1e3;
  }

  /// The time that the share `q` (0..1) of all times does not exceed (nearest rank).
  Time quantile(double q) const { return at_rank(nearest_rank(q, count_)); }
  /// The `rank`-th smallest time, from 1 to count(); ranks beyond are taken as the nearest one.
  Time at_rank(std::uint64_t rank) const;

  /// Rank of quantile `q` among `count` values: the smallest that covers the share.
  static std::uint64_t nearest_rank(double q, std::uint64_t count);

  /// Calls `visit(const Bucket&)` for every bucket with something in it, shortest times first.
  template <class Visitor>
  void for_each_bucket(Visitor&& visit) const {
    for (std::size_t octave = 0; octave < octaves_.size(); ++octave) {
      for (std::size_t index = 0; index < octaves_[octave].size(); ++index) {
        if (octaves_[octave][index] > 0) visit(bucket(octave, index));
      }
    }
  }

 private:
  static constexpr unsigned kSubBucketBits = 9;
  static constexpr std::size_t kSubBuckets = std::size_t{1} << kSubBucketBits;
  /// Octave 0 holds 0..511 ps; then one for each leading bit from 9 to 62.
  static constexpr std::size_t kOctaves = 64 - kSubBucketBits;

  struct Position {
    std::size_t octave;
    std::size_t index;
  };

  static Position position(std::uint64_t ps) {
    if (ps < kSubBuckets) return {0, static_cast<std::size_t>(ps)};
    const unsigned leading = 63U - static_cast<unsigned>(__builtin_clzll(ps));
    const unsigned shift = leading - kSubBucketBits;
    return {shift + 1U, static_cast<std::size_t>((ps >> shift) - kSubBuckets)};
  }

  Bucket bucket(std::size_t octave, std::size_t index) const;

  std::array<std::vector<std::uint64_t>, kOctaves> octaves_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ps_ = 0;
  Time min_ = kTimeNever;
  Time max_ = kTimeZero;
};

}  // namespace rnic::stats
