// SPDX-License-Identifier: Apache-2.0
#include "link/lane_arbiter.h"

#include <algorithm>

namespace rnic::link {
namespace {

std::uint32_t highest_bit(std::uint32_t mask) {
  return 31U - static_cast<std::uint32_t>(__builtin_clz(mask));
}

std::vector<config::LaneWeight> without_strict(std::vector<config::LaneWeight> entries) {
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [](const config::LaneWeight& entry) { return entry.strict; }),
                entries.end());
  return entries;
}

}  // namespace

WeightedTable::WeightedTable(const std::vector<config::LaneWeight>& entries,
                             std::uint32_t unit_bytes, Excess excess)
    : excess_(excess) {
  for (const config::LaneWeight& entry : entries) {
    if (entry.weight == 0) continue;
    const std::int64_t weight = std::int64_t{entry.weight} * unit_bytes;
    entries_.push_back({entry.lane, weight, 0});
    lanes_ |= 1U << entry.lane;
  }
  if (!entries_.empty()) entries_.front().left = entries_.front().weight;
}

void WeightedTable::begin_turn() {
  // What was not used lapses: a lane without traffic saves nothing up.
  Entry& before = entries_[current_];
  before.left = excess_ == Excess::kCarried ? std::min<std::int64_t>(before.left, 0) : 0;
  current_ = (current_ + 1) % entries_.size();
  entries_[current_].left += entries_[current_].weight;
}

std::uint32_t WeightedTable::pick(std::uint32_t eligible) {
  while (((eligible >> entries_[current_].lane) & 1U) == 0 || entries_[current_].left <= 0) {
    begin_turn();
  }
  return entries_[current_].lane;
}

VlArbiter::VlArbiter(const LinkPortConfig& config)
    : high_(config.arbitration_high, kWeightBytes, WeightedTable::Excess::kForgiven),
      low_(config.arbitration_low, kWeightBytes, WeightedTable::Excess::kForgiven),
      limit_(config.arbitration_limit),
      high_left_(std::int64_t{config.arbitration_limit} * kLimitBytes) {}

std::uint32_t VlArbiter::pick(std::uint32_t eligible) {
  const bool high = (eligible & high_.lanes()) != 0;
  const bool low = (eligible & low_.lanes()) != 0;
  // A limit of 0 still lets one packet pass.
  const bool exhausted = limit_ != kNoLimit && (limit_ == 0 ? high_left_ < 0 : high_left_ <= 0);
  if (low && (!high || exhausted)) {
    picked_ = From::kLow;
    return low_.pick(eligible);
  }
  picked_ = From::kHigh;
  return high_.pick(eligible);
}

void VlArbiter::sent(std::uint32_t /*lane*/, std::uint32_t bytes) {
  switch (picked_) {
    case From::kHigh:
      high_.sent(bytes);
      high_left_ -= bytes;
      break;
    case From::kLow:
      low_.sent(bytes);
      high_left_ = std::int64_t{limit_} * kLimitBytes;
      break;
    case From::kNowhere:  // alone on an idle port: nobody was passed
      break;
  }
  picked_ = From::kNowhere;
}

EtsArbiter::EtsArbiter(const LinkPortConfig& config)
    : weighted_(without_strict(config.ets), kWeightBytes, WeightedTable::Excess::kCarried) {
  for (const config::LaneWeight& entry : config.ets) {
    if (entry.strict) strict_ |= 1U << entry.lane;
  }
}

std::uint32_t EtsArbiter::pick(std::uint32_t eligible) {
  picked_weighted_ = false;
  if ((eligible & strict_) != 0) return highest_bit(eligible & strict_);
  if ((eligible & weighted_.lanes()) != 0) {
    picked_weighted_ = true;
    return weighted_.pick(eligible);
  }
  return rest_.pick(eligible);
}

void EtsArbiter::sent(std::uint32_t /*lane*/, std::uint32_t bytes) {
  if (picked_weighted_) weighted_.sent(bytes);
  picked_weighted_ = false;
}

std::unique_ptr<LaneArbiter> make_arbiter(const LinkPortConfig& config) {
  if (!config.arbitration_high.empty() || !config.arbitration_low.empty()) {
    return std::make_unique<VlArbiter>(config);
  }
  if (!config.ets.empty()) return std::make_unique<EtsArbiter>(config);
  return std::make_unique<RoundRobinArbiter>();
}

}  // namespace rnic::link
