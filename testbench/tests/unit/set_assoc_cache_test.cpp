// SPDX-License-Identifier: Apache-2.0
// Against naive models: an LRU list, and tree-PLRU as a recursive tree of "who was used last".
#include "base/set_assoc_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <vector>

namespace rnic::testbench {
namespace {

using Cache = SetAssocCache<int>;

Cache make(std::uint32_t entries, std::uint32_t ways, ReplacementPolicy policy) {
  return Cache(entries, ways, policy, Rng(1, "cache"));
}

bool access(Cache& cache, std::uint64_t key) {
  if (cache.find(key) != nullptr) return true;
  cache.insert(key) = static_cast<int>(key);
  return false;
}

/// One set of `ways` lines, least recently used at the front.
struct NaiveLru {
  std::size_t ways;
  std::list<std::uint64_t> lines{};

  bool access(std::uint64_t key) {
    const auto at = std::find(lines.begin(), lines.end(), key);
    const bool hit = at != lines.end();
    if (hit) {
      lines.erase(at);
    } else if (lines.size() == ways) {
      lines.pop_front();
    }
    lines.push_back(key);
    return hit;
  }
};

/// One set: the victim is found by taking, in halves of halves, the half that was not used last.
struct NaivePlru {
  explicit NaivePlru(std::size_t ways) : lines(ways) {}

  struct Use {
    std::size_t first, count;
    bool right_used;
  };

  bool right_used(std::size_t first, std::size_t count) const {
    for (const Use& use : uses) {
      if (use.first == first && use.count == count) return use.right_used;
    }
    return true;  // untouched trees send the first victim to the left
  }
  void use(std::size_t way) {
    std::size_t first = 0;
    for (std::size_t count = lines.size(); count > 1; count /= 2) {
      const bool right = way >= first + count / 2;
      uses.erase(std::remove_if(uses.begin(), uses.end(),
                                [&](const Use& u) { return u.first == first && u.count == count; }),
                 uses.end());
      uses.push_back({first, count, right});
      if (right) first += count / 2;
    }
  }
  bool access(std::uint64_t key) {
    for (std::size_t way = 0; way < lines.size(); ++way) {
      if (lines[way] == key) {
        use(way);
        return true;
      }
    }
    std::size_t way = 0;
    while (way < lines.size() && lines[way].has_value()) ++way;
    if (way == lines.size()) {
      way = 0;
      for (std::size_t count = lines.size(); count > 1; count /= 2) {
        if (!right_used(way, count)) way += count / 2;
      }
    }
    lines[way] = key;
    use(way);
    return false;
  }

  std::vector<std::optional<std::uint64_t>> lines;
  std::vector<Use> uses{};
};

template <typename Naive>
void compare(Cache cache, Naive naive, std::uint64_t keys) {
  Rng rng(3, "trace");
  std::uint64_t hits = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t key = rng.below(keys);
    const bool expected = naive.access(key);
    hits += expected ? 1 : 0;
    ASSERT_EQ(access(cache, key), expected) << "access " << i;
  }
  EXPECT_EQ(cache.hits(), hits);
  EXPECT_EQ(cache.misses(), 5000 - hits);
}

TEST(SetAssocCache, LruAsAList) {
  compare(make(8, 8, ReplacementPolicy::kLru), NaiveLru{8}, 12);
  compare(make(6, 6, ReplacementPolicy::kLru), NaiveLru{6}, 20);
  compare(make(1, 1, ReplacementPolicy::kLru), NaiveLru{1}, 3);
}

TEST(SetAssocCache, TreePlruAsATree) {
  compare(make(8, 8, ReplacementPolicy::kTreePlru), NaivePlru(8), 12);
  compare(make(2, 2, ReplacementPolicy::kTreePlru), NaivePlru(2), 5);
  compare(make(32, 32, ReplacementPolicy::kTreePlru), NaivePlru(32), 50);
}

TEST(SetAssocCache, SequentialTracesFitOrThrash) {
  // LRU, one set of 64: 64 keys in a circle always hit after the first round, 65 never do.
  Cache fits = make(64, 64, ReplacementPolicy::kLru);
  Cache thrashes = make(64, 64, ReplacementPolicy::kLru);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    access(fits, i % 64);
    access(thrashes, i % 65);
  }
  EXPECT_EQ(fits.misses(), 64U);
  EXPECT_EQ(thrashes.hits(), 0U);
}

TEST(SetAssocCache, RandomReplacementOnAUniformTraceHitsByTheShareThatIsCached) {
  // 32 of 64 equally likely keys are cached at any time: half of the accesses hit, for any policy.
  // 20000 samples of p = 1/2: standard deviation 0.35 %; five of them are allowed.
  for (const auto policy :
       {ReplacementPolicy::kRandom, ReplacementPolicy::kLru, ReplacementPolicy::kTreePlru}) {
    Cache cache = make(32, 32, policy);
    Rng rng(5, "uniform");
    for (int i = 0; i < 4000; ++i) access(cache, rng.below(64));
    cache.reset_statistics();
    for (int i = 0; i < 20000; ++i) access(cache, rng.below(64));
    EXPECT_NEAR(static_cast<double>(cache.hits()) / 20000, 0.5, 0.0177);
  }
}

TEST(SetAssocCache, PowerOfTwoStridesSpreadOverTheSets) {
  // 256 keys 4096 apart in 64 sets of 8: were the set the low bits, all would share one set and
  // only 8 could stay. Balls in bins: a set gets 4 on the average and rarely more than 8.
  Cache cache = make(512, 8, ReplacementPolicy::kLru);
  for (std::uint64_t i = 0; i < 256; ++i) access(cache, i * 4096);
  cache.reset_statistics();
  for (std::uint64_t i = 0; i < 256; ++i) access(cache, i * 4096);
  EXPECT_GT(cache.hits(), 200U);
}

TEST(SetAssocCache, EvictedLineComesBack) {
  Cache cache = make(2, 2, ReplacementPolicy::kLru);
  std::optional<Cache::Line> evicted;
  cache.insert(10, &evicted) = 100;
  cache.insert(11, &evicted) = 110;
  EXPECT_FALSE(evicted.has_value());
  EXPECT_EQ(*cache.find(10), 100);
  cache.insert(12, &evicted) = 120;
  ASSERT_TRUE(evicted.has_value());
  EXPECT_EQ(evicted->key, 11U);
  EXPECT_EQ(evicted->value, 110);
}

TEST(SetAssocCache, InsertingAKeyAgainKeepsOneLine) {
  Cache cache = make(4, 4, ReplacementPolicy::kLru);
  for (std::uint64_t key = 1; key <= 4; ++key) cache.insert(key) = static_cast<int>(key);
  EXPECT_TRUE(cache.invalidate(1));  // a free way before the line of key 3
  cache.insert(3) = 33;
  EXPECT_EQ(*cache.find(3), 33);
  EXPECT_TRUE(cache.invalidate(3));
  EXPECT_EQ(cache.find(3), nullptr) << "a second line of the same key";
}

TEST(SetAssocCache, InvalidateAndTouch) {
  Cache cache = make(4, 2, ReplacementPolicy::kTreePlru);
  cache.insert(1) = 1;
  EXPECT_NE(cache.touch(1), nullptr);
  EXPECT_EQ(cache.hits() + cache.misses(), 0U);  // touch() does not count
  EXPECT_FALSE(cache.invalidate(2));
  EXPECT_TRUE(cache.invalidate(1));
  EXPECT_FALSE(cache.invalidate(1));
  cache.insert(5) = 5;
  cache.invalidate_all();
  EXPECT_EQ(cache.find(5), nullptr);
  EXPECT_EQ(cache.misses(), 1U);
}

}  // namespace
}  // namespace rnic::testbench
