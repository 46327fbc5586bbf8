// SPDX-License-Identifier: Apache-2.0
#include "stats/histogram.h"

#include <cmath>

namespace rnic::stats {

void Histogram::merge(const Histogram& other) {
  for (std::size_t octave = 0; octave < kOctaves; ++octave) {
    const std::vector<std::uint64_t>& theirs = other.octaves_[octave];
    if (theirs.empty()) continue;
    std::vector<std::uint64_t>& ours = octaves_[octave];
    if (ours.empty()) ours.resize(kSubBuckets);
    for (std::size_t index = 0; index < kSubBuckets; ++index) ours[index] += theirs[index];
  }
  count_ += other.count_;
  sum_ps_ += other.sum_ps_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::repeat(const Histogram& before, const Histogram& after, std::uint64_t times) {
  for (std::size_t octave = 0; octave < kOctaves; ++octave) {
    const std::vector<std::uint64_t>& then = before.octaves_[octave];
    const std::vector<std::uint64_t>& now = after.octaves_[octave];
    if (now.empty()) continue;
    std::vector<std::uint64_t>& ours = octaves_[octave];
    if (ours.empty()) ours.resize(kSubBuckets);
    for (std::size_t index = 0; index < kSubBuckets; ++index) {
      ours[index] += times * (now[index] - (then.empty() ? 0 : then[index]));
    }
  }
  count_ += times * (after.count_ - before.count_);
  sum_ps_ += times * (after.sum_ps_ - before.sum_ps_);
}

void Histogram::reset() {
  for (std::vector<std::uint64_t>& octave : octaves_) {
    std::fill(octave.begin(), octave.end(), std::uint64_t{0});
  }
  count_ = 0;
  sum_ps_ = 0;
  min_ = kTimeNever;
  max_ = kTimeZero;
}

std::uint64_t Histogram::nearest_rank(double q, std::uint64_t count) {
  if (count == 0) return 0;
  // The slack keeps q * count = 90.00000000000001 from asking for the 91st of 100.
  const double rank = std::ceil(q * static_cast<double>(count) * (1 - 1e-12));
  if (!(rank > 1)) return 1;
  return std::min(static_cast<std::uint64_t>(rank), count);
}

Time Histogram::at_rank(std::uint64_t rank) const {
  if (rank <= 1) return min();
  if (rank >= count_) return max_;
  std::uint64_t below = 0;
  for (std::size_t octave = 0; octave < kOctaves; ++octave) {
    for (std::size_t index = 0; index < octaves_[octave].size(); ++index) {
      below += octaves_[octave][index];
      if (below < rank) continue;
      const Bucket found = bucket(octave, index);
      return std::clamp(found.low + (found.high - found.low) / 2, min_, max_);
    }
  }
  return max_;
}

Histogram::Bucket Histogram::bucket(std::size_t octave, std::size_t index) const {
  const std::uint64_t count = octaves_[octave][index];
  if (octave == 0) {
    const Time only{static_cast<std::int64_t>(index)};
    return {only, only, count};
  }
  const auto shift = static_cast<unsigned>(octave - 1);
  const std::uint64_t low = (kSubBuckets + index) << shift;
  const std::uint64_t width = std::uint64_t{1} << shift;
  return {Time{static_cast<std::int64_t>(low)}, Time{static_cast<std::int64_t>(low + width - 1)},
          count};
}

}  // namespace rnic::stats
