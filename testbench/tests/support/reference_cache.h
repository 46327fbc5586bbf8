// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/rng.h"

namespace rnic::testbench {

/// A second, independent simulation of a set-associative cache, for a trace of keys: no time, one
/// access after the other. Written from the definitions of the policies (LRU: the way whose last
/// use is oldest; tree-PLRU: follow the bits that point away from recent use; random), in another
/// form than the model's: a list of keys in a set, ages by position; the tree as a map from ranges
/// of ways.
class ReferenceCache {
 public:
  enum class Policy { kLru, kTreePlru, kRandom };

  /// `draws`: where kRandom takes the ways of its victims from, one draw for each.
  ReferenceCache(std::uint64_t entries, std::uint64_t ways, Policy policy,
                 const std::optional<Rng>& draws = std::nullopt)
      : ways_(ways), sets_(entries / ways), policy_(policy), draws_(draws), content_(sets_) {}

  /// True when `key` was there; it is afterwards.
  bool access(std::uint64_t key) {
    Set& set = content_[set_of(key)];
    for (std::uint64_t way = 0; way < set.keys.size(); ++way) {
      if (set.keys[way] != key) continue;
      use(set, way);
      ++hits;
      return true;
    }
    ++misses;
    std::uint64_t way = set.keys.size();
    if (way < ways_) {
      set.keys.push_back(key);
      set.used.push_back(0);
    } else {
      way = policy_ == Policy::kLru      ? oldest(set)
            : policy_ == Policy::kRandom ? draws_.value().below(ways_)
                                         : pointed_at(set);
      set.keys[way] = key;
    }
    use(set, way);
    return false;
  }

  std::uint64_t hits = 0;
  std::uint64_t misses = 0;

 private:
  struct Set {
    std::vector<std::uint64_t> keys;  ///< by way
    std::vector<std::uint64_t> used;  ///< number of the last use
    /// (first way, count) -> whether the left half is the one to give way.
    std::map<std::pair<std::uint64_t, std::uint64_t>, bool> left_next;
  };

  /// The set of a key: Fibonacci hashing with the 64-bit golden ratio, upper half, modulo sets.
  std::uint64_t set_of(std::uint64_t key) const {
    return sets_ == 1 ? 0 : (((key ^ (key >> 32)) * 11400714819323198485ULL) >> 32) % sets_;
  }

  void use(Set& set, std::uint64_t way) {
    set.used[way] = ++now_;
    std::uint64_t first = 0;
    for (std::uint64_t count = ways_; policy_ == Policy::kTreePlru && count > 1; count /= 2) {
      const bool in_right = way - first >= count / 2;
      set.left_next[{first, count}] = in_right;
      if (in_right) first += count / 2;
    }
  }

  static std::uint64_t oldest(const Set& set) {
    std::uint64_t way = 0;
    for (std::uint64_t i = 1; i < set.used.size(); ++i) {
      if (set.used[i] < set.used[way]) way = i;
    }
    return way;
  }

  std::uint64_t pointed_at(const Set& set) const {
    std::uint64_t first = 0;
    for (std::uint64_t count = ways_; count > 1; count /= 2) {
      const auto bit = set.left_next.find({first, count});
      const bool left = bit == set.left_next.end() || bit->second;
      if (!left) first += count / 2;
    }
    return first;
  }

  std::uint64_t ways_;
  std::uint64_t sets_;
  Policy policy_;
  std::optional<Rng> draws_;
  std::uint64_t now_ = 0;
  std::vector<Set> content_;
};

}  // namespace rnic::testbench
