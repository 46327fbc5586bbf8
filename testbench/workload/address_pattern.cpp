// SPDX-License-Identifier: Apache-2.0
#include "workload/address_pattern.h"

#include <algorithm>
#include <cmath>

namespace rnic::testbench {
namespace {

constexpr double kZipfExponent = 0.99;

}  // namespace

AddressPattern::AddressPattern(config::Access access, std::uint64_t slots, const Rng& rng)
    : access_(access), slots_(std::max<std::uint64_t>(1, slots)), rng_(rng) {
  if (access_ != config::Access::kZipf) return;
  cumulative_.reserve(slots_);
  double sum = 0;
  for (std::uint64_t rank = 1; rank <= slots_; ++rank) {
    sum += std::pow(static_cast<double>(rank), -kZipfExponent);
    cumulative_.push_back(sum);
  }
}

std::uint64_t AddressPattern::next() {
  switch (access_) {
    case config::Access::kRandom:
      return rng_.below(slots_);
    case config::Access::kZipf: {
      const double point = rng_.uniform() * cumulative_.back();
      const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), point);
      return static_cast<std::uint64_t>(at - cumulative_.begin());
    }
    case config::Access::kSequential:
      break;
  }
  const std::uint64_t slot = position_;
  position_ = position_ + 1 == slots_ ? 0 : position_ + 1;
  return slot;
}

}  // namespace rnic::testbench
