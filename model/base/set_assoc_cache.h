// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "base/zeroed_array.h"

namespace rnic {

/// Replacement policy of a set.
enum class ReplacementPolicy { kLru, kRandom, kTreePlru };

/// Set-associative cache of values by 64-bit key: tags, replacement and statistics, no time.
/// The set is chosen by a multiplicative hash of the key, as on-chip context caches do, so that
/// power-of-two strides do not collapse into one set.
///
/// Tags, ages and values stand in tables of their own: a look-up reads the tags of a set, which are
/// one cache line of the machine that simulates, and one value.
template <typename Value>
class SetAssocCache {
 public:
  struct Line {
    std::uint64_t key = 0;
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
        tags_(entries),
        last_use_(entries),
        values_(entries),
        plru_(policy == ReplacementPolicy::kTreePlru ? sets_ : 0) {}

  /// The value of `key`, or null; counts a hit or a miss and touches the line. No key is ~0.
  Value* find(std::uint64_t key) {
    Value* value = touch(key);
    ++(value != nullptr ? hits_ : misses_);
    return value;
  }

  /// As find(), counted as a miss wherever the line is now: it was fetched for this very request.
  Value* find_late(std::uint64_t key) {
    ++misses_;
    return touch(key);
  }

  /// As find(), not counted: for a request that already counted its miss.
  Value* touch(std::uint64_t key) {
    // Streams ask for the same line again and again.
    if (tags_[last_set_ * ways_ + last_way_] != tag_of(key)) {
      const std::uint64_t set = set_of(key);
      const std::uint32_t way = way_of(set, key);
      if (way == ways_) return nullptr;
      last_set_ = set;
      last_way_ = way;
    }
    mark_used(last_set_, last_way_);
    return &values_[last_set_ * ways_ + last_way_];
  }

  /// Whether `key` is here; changes nothing.
  bool contains(std::uint64_t key) const { return way_of(set_of(key), key) != ways_; }

  /// Makes room for `key` and returns its line's value; what was there before comes back in
  /// `evicted` (for write-back).
  Value& insert(std::uint64_t key, std::optional<Line>* evicted = nullptr) {
    const std::uint64_t set = set_of(key);
    const std::uint32_t way = victim(set, key);
    const std::uint64_t line = set * ways_ + way;
    if (tags_[line] == kNoTag) {
      new (&values_[line]) Value{};
    } else if (tags_[line] != tag_of(key) && evicted != nullptr) {
      *evicted = Line{tags_[line] - 1, values_[line]};
    }
    tags_[line] = tag_of(key);
    mark_used(set, way);
    return values_[line];
  }

  /// Forgets `key`; false when it was not there.
  bool invalidate(std::uint64_t key) {
    const std::uint64_t set = set_of(key);
    const std::uint32_t way = way_of(set, key);
    if (way == ways_) return false;
    tags_[set * ways_ + way] = kNoTag;
    return true;
  }

  void invalidate_all() {
    for (auto& tag : tags_) tag = kNoTag;
  }

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }
  void reset_statistics() { hits_ = misses_ = 0; }
  std::uint32_t entries() const { return static_cast<std::uint32_t>(tags_.size()); }

 private:
  static constexpr std::uint64_t kNoTag = 0;
  static std::uint64_t tag_of(std::uint64_t key) { return key + 1; }

  std::uint64_t set_of(std::uint64_t key) const {
    if (sets_ == 1) return 0;
    const std::uint64_t mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15ULL;
    return power_of_two_ ? (mixed >> 32) & (sets_ - 1) : (mixed >> 32) % sets_;
  }

  /// The way of `set` that holds `key`; ways_ when none does.
  std::uint32_t way_of(std::uint64_t set, std::uint64_t key) const {
    const std::uint64_t* tags = tags_.data() + set * ways_;
    std::uint32_t way = 0;
    while (way < ways_ && tags[way] != tag_of(key)) ++way;
    return way;
  }

  void mark_used(std::uint64_t set, std::uint32_t way) {
    last_use_[set * ways_ + way] = ++clock_;
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
    if (const std::uint32_t way = way_of(set, key); way != ways_) return way;
    const std::uint64_t* tags = tags_.data() + set * ways_;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (tags[way] == kNoTag) return way;
    }
    if (policy_ == ReplacementPolicy::kRandom) {
      return static_cast<std::uint32_t>(rng_.below(ways_));
    }
    if (policy_ == ReplacementPolicy::kTreePlru) {
      std::uint32_t node = 1;
      while (node < ways_) node = node * 2 + ((plru_[set] >> node) & 1U);
      return node - ways_;
    }
    const std::uint64_t* ages = last_use_.data() + set * ways_;
    return static_cast<std::uint32_t>(std::min_element(ages, ages + ways_) - ages);
  }

  std::uint32_t ways_;
  std::uint64_t sets_;
  bool power_of_two_;  ///< sets_ is
  ReplacementPolicy policy_;
  Rng rng_;
  ZeroedArray<std::uint64_t> tags_;      ///< key + 1; 0: an empty line
  ZeroedArray<std::uint64_t> last_use_;  ///< clock_ of then
  ZeroedArray<Value> values_;
  std::vector<std::uint32_t> plru_;
  std::uint64_t last_set_ = 0;  ///< where the last key was found
  std::uint32_t last_way_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace rnic
