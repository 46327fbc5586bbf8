// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"

namespace rnic {

/// Replacement policy of a set.
enum class ReplacementPolicy { kLru, kRandom, kTreePlru };

/// Set-associative cache of values by 64-bit key: tags, replacement and statistics, no time.
/// The set is chosen by a multiplicative hash of the key, as on-chip context caches do, so that
/// power-of-two strides do not collapse into one set.
template <typename Value>
class SetAssocCache {
 public:
  struct Line {
    std::uint64_t key = 0;
    bool valid = false;
    std::uint64_t last_use = 0;
    Value value{};
  };

  /// `ways` must divide `entries`; both positive. tree-PLRU needs a power of two of at most 32
  /// ways.
  SetAssocCache(std::uint32_t entries, std::uint32_t ways, ReplacementPolicy policy, Rng rng)
      : ways_(ways),
        sets_(entries / ways),
        power_of_two_((sets_ & (sets_ - 1)) == 0),
        policy_(policy),
        rng_(rng),
        lines_(entries),
        plru_(policy == ReplacementPolicy::kTreePlru ? sets_ : 0) {}

  /// The value of `key`, or null; counts a hit or a miss and touches the line.
  Value* find(std::uint64_t key) {
    Value* value = touch(key);
    ++(value != nullptr ? hits_ : misses_);
    return value;
  }

  /// As find(), not counted: for a request that already counted its miss.
  Value* touch(std::uint64_t key) {
    // Streams ask for the same line again and again.
    if (Line& line = lines_[last_set_ * ways_ + last_way_]; line.valid && line.key == key) {
      mark_used(last_set_, last_way_);
      return &line.value;
    }
    const std::uint64_t set = set_of(key);
    Line* base = &lines_[set * ways_];
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (base[way].valid && base[way].key == key) {
        last_set_ = set;
        last_way_ = way;
        mark_used(set, way);
        return &base[way].value;
      }
    }
    return nullptr;
  }

  /// Whether `key` is here; changes nothing.
  bool contains(std::uint64_t key) const {
    const Line* base = &lines_[set_of(key) * ways_];
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (base[way].valid && base[way].key == key) return true;
    }
    return false;
  }

  /// Makes room for `key` and returns its line's value; what was there before comes back in
  /// `evicted` (for write-back).
  Value& insert(std::uint64_t key, std::optional<Line>* evicted = nullptr) {
    const std::uint64_t set = set_of(key);
    const std::uint32_t way = victim(set, key);
    Line& line = lines_[set * ways_ + way];
    if (line.valid && line.key != key && evicted != nullptr) *evicted = line;
    line.key = key;
    line.valid = true;
    mark_used(set, way);
    return line.value;
  }

  /// Forgets `key`; false when it was not there.
  bool invalidate(std::uint64_t key) {
    Line* base = &lines_[set_of(key) * ways_];
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (base[way].valid && base[way].key == key) {
        base[way].valid = false;
        return true;
      }
    }
    return false;
  }

  void invalidate_all() {
    for (auto& line : lines_) line.valid = false;
  }

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }
  void reset_statistics() { hits_ = misses_ = 0; }
  std::uint32_t entries() const { return static_cast<std::uint32_t>(lines_.size()); }

 private:
  std::uint64_t set_of(std::uint64_t key) const {
    if (sets_ == 1) return 0;
    const std::uint64_t mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15ULL;
    return power_of_two_ ? (mixed >> 32) & (sets_ - 1) : (mixed >> 32) % sets_;
  }

  void mark_used(std::uint64_t set, std::uint32_t way) {
    lines_[set * ways_ + way].last_use = ++clock_;
    if (policy_ == ReplacementPolicy::kTreePlru) {
      // Walk from the root to the leaf; every node on the way points to the other half.
      std::uint32_t node = 1;
      for (std::uint32_t half = ways_ / 2; half >= 1; half /= 2) {
        const std::uint32_t bit = (way / half) & 1;
        plru_[set] = bit != 0 ? plru_[set] & ~(1U << node) : plru_[set] | (1U << node);
        node = node * 2 + bit;
      }
    }
  }

  std::uint32_t victim(std::uint64_t set, std::uint64_t key) {
    const Line* base = &lines_[set * ways_];
    std::uint32_t oldest = 0;
    std::uint32_t unused = ways_;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (base[way].valid && base[way].key == key) return way;
      if (!base[way].valid && unused == ways_) unused = way;
      if (base[way].last_use < base[oldest].last_use) oldest = way;
    }
    if (unused != ways_) return unused;
    if (policy_ == ReplacementPolicy::kRandom) {
      return static_cast<std::uint32_t>(rng_.below(ways_));
    }
    if (policy_ == ReplacementPolicy::kTreePlru) {
      std::uint32_t node = 1;
      while (node < ways_) node = node * 2 + ((plru_[set] >> node) & 1U);
      return node - ways_;
    }
    return oldest;
  }

  std::uint32_t ways_;
  std::uint64_t sets_;
  bool power_of_two_;  ///< sets_ is
  ReplacementPolicy policy_;
  Rng rng_;
  std::vector<Line> lines_;
  std::vector<std::uint32_t> plru_;
  std::uint64_t last_set_ = 0;  ///< where the last key was found
  std::uint32_t last_way_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace rnic
