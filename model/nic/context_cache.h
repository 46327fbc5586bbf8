// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/pool.h"
#include "base/ring.h"
#include "base/sc_time.h"
#include "base/set_assoc_cache.h"
#include "config/nic_config.h"
#include "nic/waiter.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

inline ReplacementPolicy replacement_policy(config::Replacement r) {
  switch (r) {
    case config::Replacement::kRandom:
      return ReplacementPolicy::kRandom;
    case config::Replacement::kTreePlru:
      return ReplacementPolicy::kTreePlru;
    case config::Replacement::kLru:
      break;
  }
  return ReplacementPolicy::kLru;
}

/// How many context fetches (QPC, MPT, MTT together) the NIC keeps in flight.
class MissBudget {
 public:
  explicit MissBudget(std::uint32_t limit) : free_(limit) {}

  bool take() {
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  void give(Time now) {
    ++free_;
    if (!waiting_.empty()) waiting_.resume_all(now);
  }
  void wait(Waiter* waiter) { waiting_.push(waiter); }

 private:
  std::uint32_t free_;
  WaitList waiting_;
};

/// A cache of context-memory entries of type `Entry`, with miss-status registers: a second miss to
/// a line waits for the first one's fetch. `Entry` needs `static constexpr kLineBytes` and
/// `void load(const std::uint8_t*)` (decodes a line as read from memory).
template <typename Entry>
class ContextCache : public pcie::DmaClient {
 public:
  ContextCache(std::string name, const config::CacheConfig& config, std::uint64_t seed,
               tlm_ext::Purpose purpose, MissBudget& budget, stats::StallCause cause,
               stats::UnitStats& unit)
      : name_(std::move(name)),
        cache_(config.entries, config.ways, replacement_policy(config.replacement),
               Rng(seed, name_)),
        purpose_(purpose),
        budget_(budget),
        cause_(cause),
        unit_(unit) {}

  /// The entry when cached. `again`: a repeated lookup after a miss, not counted.
  Entry* lookup(std::uint64_t key, bool again) {
    return again ? cache_.touch(key) : cache_.find(key);
  }

  /// Fetches the line of `key` from bus address `address` and resumes `waiter` when it is there.
  void fetch(std::uint64_t key, std::uint64_t address, Time t, pcie::DmaIf& dma, Waiter* waiter) {
    for (Miss* miss : outstanding_) {
      if (miss->key == key) {
        miss->waiters.push(waiter);
        return;
      }
    }
    if (outstanding_.empty()) waiting_since_ = sim_now();
    Miss* miss = misses_.take();
    miss->key = key;
    miss->address = address;
    miss->cache = this;
    miss->dma = &dma;
    miss->waiters.push(waiter);
    outstanding_.push_back(miss);
    if (budget_.take()) {
      start(*miss, t);
    } else {
      budget_.wait(miss);
    }
  }

  void invalidate(std::uint64_t key) {
    cache_.invalidate(key);
    for (Miss* miss : outstanding_) {
      if (miss->key == key) miss->stale = true;
    }
  }

  const std::string& name() const { return name_; }
  SetAssocCache<Entry>& cache() { return cache_; }
  std::size_t outstanding() const { return outstanding_.size(); }

  void dma_done(std::uint64_t token) override {
    const Time now = sim_now();
    for (std::size_t i = 0; i < outstanding_.size(); ++i) {
      Miss* miss = outstanding_[i];
      if (miss->key != token) continue;
      if (miss->stale) {  // read before the invalidation, perhaps
        start(*miss, now);
        return;
      }
      outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(i));
      if (outstanding_.empty()) unit_.add_stall(cause_, now - waiting_since_);
      cache_.insert(token).load(miss->line.data());
      miss->waiters.resume_all(now);
      misses_.give(miss);
      budget_.give(now);
      return;
    }
  }

 private:
  struct Miss : public Waiter {
    std::uint64_t key = 0;
    std::uint64_t address = 0;
    std::array<std::uint8_t, Entry::kLineBytes> line{};
    WaitList waiters;
    ContextCache* cache = nullptr;
    pcie::DmaIf* dma = nullptr;
    bool stale = false;  ///< invalidated while its read was under way

    void resume(Time now) override {
      if (cache->budget_.take()) {
        cache->start(*this, now);
      } else {
        cache->budget_.wait(this);
      }
    }
  };

  void start(Miss& miss, Time t) {
    miss.stale = false;
    miss.dma->dma_read(t, miss.address, Entry::kLineBytes, miss.line.data(), purpose_, this,
                       miss.key);
  }

  std::string name_;
  SetAssocCache<Entry> cache_;
  tlm_ext::Purpose purpose_;
  MissBudget& budget_;
  stats::StallCause cause_;
  stats::UnitStats& unit_;  ///< whose work waits while a fetch is under way
  Time waiting_since_{0};
  std::vector<Miss*> outstanding_;
  Pool<Miss> misses_;
};

}  // namespace rnic::nic
