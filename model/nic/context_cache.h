// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

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

/// How many fetches go on at a time: of one cache (its miss-status registers), or of all caches of
/// the NIC together.
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
    waiting_.resume_first(now);
  }
  void wait(Waiter* waiter) { waiting_.push(waiter); }

 private:
  std::uint32_t free_;
  WaitList waiting_;
};

/// What a miss asks for: the line `key` at bus address `address`.
struct LineFetch {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;        ///< read; at most Entry::kLineBytes
  std::uint32_t directories = 0;  ///< reads that must be made one after the other before the line's
  std::uint64_t last_key = 0;     ///< prefetch up to this line, whose address follows `address`
};

/// Who is to blame for a line that could not be read: the owner of a cache whose lines say when an
/// object of the device may be used. That object fails, and is here from then on, to be ended.
class LineFaultClient {
 public:
  virtual ~LineFaultClient() = default;
  virtual void line_unreadable(const LineFetch& line, Time now) = 0;
};

/// Whether an entry type has state of its own that is lost unless it is written back on eviction.
/// Such an entry has `std::uint64_t address` and `bool dirty`.
template <typename Entry, typename = void>
struct WritesBack : std::false_type {};
template <typename Entry>
struct WritesBack<Entry, std::void_t<decltype(Entry::dirty)>> : std::true_type {};

/// A cache of context-memory entries of type `Entry`, with miss-status registers: a second miss to
/// a line joins the first one's fetch. Optionally a small first level in front of it, lines
/// fetched ahead, and write-back of what was changed. `Entry` needs `static constexpr kLineBytes`
/// and `void load(const std::uint8_t*)` (decodes a line as read from memory).
template <typename Entry>
class ContextCache : public pcie::DmaClient {
 public:
  /// `first_level_miss` is the time by which a hit here is later than one in the first level.
  ContextCache(std::string name, const config::CacheConfig& config, std::uint64_t seed,
               tlm_ext::Purpose purpose, MissBudget& budget, stats::StallCause cause,
               stats::UnitStats& unit, Time first_level_miss = kTimeZero)
      : name_(std::move(name)),
        cache_(config.entries, config.ways, replacement_policy(config.replacement),
               Rng(seed, name_)),
        purpose_(purpose),
        budget_(budget),
        registers_(config.misses == 0 ? UINT32_MAX : config.misses),
        prefetch_(config.prefetch),
        first_level_miss_(first_level_miss),
        cause_(cause),
        unit_(unit) {
    if (config.l0_entries > 0) {
      const std::uint32_t ways = std::min(config.l0_entries, config.l0_ways);
      first_level_ = std::make_unique<SetAssocCache<Entry>>(
          config.l0_entries, ways, ReplacementPolicy::kLru, Rng(seed, name_ + ".l0"));
    }
  }

  /// Who is told of lines that cannot be read. Null: nobody; who waits for such a line is resumed
  /// with Waiter::failed set, and the line is not here.
  void set_fault_client(LineFaultClient* client) { fault_client_ = client; }

  /// The entry when cached. `again`: a repeated lookup after a miss, not counted.
  Entry* lookup(std::uint64_t key, bool again) {
    if (again) return cache_.touch(key);
    if (!expected_.empty() && expected_.erase(key) > 0) return cache_.find_late(key);
    Entry* entry = cache_.find(key);
    if (entry == nullptr && find(key) != nullptr) ++joined_;
    return entry;
  }

  /// As above, through the first level if there is one: `t` is advanced when only the second has
  /// the entry.
  Entry* lookup(std::uint64_t key, bool again, Time& t) {
    if (first_level_ == nullptr) return lookup(key, again);
    if (Entry* near = again ? first_level_->touch(key) : first_level_->find(key)) return near;
    Entry* entry = lookup(key, again);
    if (entry == nullptr) return nullptr;
    if (!again) t += first_level_miss_;
    Entry& near = first_level_->insert(key);
    near = *entry;
    return &near;
  }

  /// Fetches a line and resumes `waiter` when it is there.
  void fetch(const LineFetch& line, Time t, pcie::DmaIf& dma, Waiter* waiter) {
    if (demanded_ == 0) waiting_since_ = sim_now();
    ++demanded_;
    if (Miss* under_way = find(line.key)) {
      under_way->waiters.push(waiter);
      ++under_way->demands;
      return;
    }
    Miss* miss = open(line, dma);
    miss->waiters.push(waiter);
    miss->demands = 1;
    miss->resume(t);
    if (prefetch_ > 0) fetch_ahead(line, t, dma);
  }
  void fetch(std::uint64_t key, std::uint64_t address, Time t, pcie::DmaIf& dma, Waiter* waiter) {
    fetch(LineFetch{key, address, Entry::kLineBytes, 0, key}, t, dma, waiter);
  }

  /// Fetches a line that nobody waits for yet, when it is neither here nor on its way and nothing
  /// else waits for a miss-status register. Returns whether it does.
  bool prefetch(const LineFetch& line, Time t, pcie::DmaIf& dma) {
    if (cache_.contains(line.key) || find(line.key) != nullptr) return false;
    if (!registers_.take()) return false;
    if (!budget_.take()) {
      registers_.give(sim_now());
      return false;
    }
    ++prefetches_;
    start(*open(line, dma), t);
    return true;
  }

  /// As prefetch(), for a request that is known to come: it is its look-up, made early, and the
  /// miss is counted as that request's, unless the line has to go before (the request may never
  /// come: its queue pair may fail).
  void expect(const LineFetch& line, Time t, pcie::DmaIf& dma) {
    if (prefetch(line, t, dma)) expected_.insert(line.key);
  }

  /// Puts an entry in that the device made itself and returns it; what must give way is written
  /// back.
  Entry& fill(std::uint64_t key, Time t, pcie::DmaIf& dma) {
    if constexpr (WritesBack<Entry>::value) {
      std::optional<typename SetAssocCache<Entry>::Line> evicted;
      Entry& entry = cache_.insert(key, &evicted);
      if (evicted) expected_.erase(evicted->key);
      if (evicted && evicted->value.dirty) write_back(evicted->value, t, dma);
      entry.dirty = false;
      return entry;
    } else {
      if (expected_.empty()) return cache_.insert(key);
      std::optional<typename SetAssocCache<Entry>::Line> evicted;
      Entry& entry = cache_.insert(key, &evicted);
      if (evicted) expected_.erase(evicted->key);
      return entry;
    }
  }

  void invalidate(std::uint64_t key) {
    cache_.invalidate(key);
    expected_.erase(key);
    if (first_level_ != nullptr) first_level_->invalidate(key);
    if (Miss* miss = find(key)) miss->stale = true;
  }

  /// Empties it; nothing is written back.
  void forget_all() {
    cache_.invalidate_all();
    expected_.clear();
    if (first_level_ != nullptr) first_level_->invalidate_all();
  }

  const std::string& name() const { return name_; }
  SetAssocCache<Entry>& cache() { return cache_; }
  /// Null when there is none.
  SetAssocCache<Entry>* first_level() { return first_level_.get(); }
  std::size_t outstanding() const { return outstanding_.size(); }
  std::uint64_t prefetches() const { return prefetches_; }
  /// Of the misses of cache(): those that found a fetch of their line under way, and waited for it.
  std::uint64_t joined() const { return joined_; }
  std::uint64_t write_backs() const { return write_backs_; }
  void reset_statistics() {
    cache_.reset_statistics();
    if (first_level_ != nullptr) first_level_->reset_statistics();
    prefetches_ = write_backs_ = joined_ = 0;
    waiting_since_ = sim_now();
  }

  void dma_done(std::uint64_t token) override {
    const Time now = sim_now();
    Miss* miss = find(token);
    if (miss == nullptr) return;
    if (miss->directories > 0) {
      --miss->directories;
      start_next(*miss, now);
    } else if (miss->stale) {  // read before the invalidation, perhaps
      start(*miss, now);
    } else {
      outstanding_.erase(token);
      arrive(*miss, now);
    }
  }

  void dma_failed(const pcie::DmaFault& fault) override {
    Miss* lost = find(fault.token);
    if (lost == nullptr) return;
    Miss& miss = *lost;
    const Time now = sim_now();
    if (miss.stale) {  // what was lost is of no use any more
      start(miss, now);
      return;
    }
    outstanding_.erase(fault.token);
    if (miss.demands == 0) {  // fetched ahead: who needs it will ask for it
      expected_.erase(fault.token);
      close(miss, now);
      return;
    }
    end_stall(miss, now);
    if (fault_client_ != nullptr) {
      Entry& entry = fill(miss.line.key, now, *miss.dma);
      if constexpr (WritesBack<Entry>::value) entry.address = miss.line.address;
      fault_client_->line_unreadable(miss.line, now);
      miss.waiters.resume_all(now);
    } else {
      miss.waiters.fail_all(now);
    }
    close(miss, now);
  }

 private:
  struct Miss : public Waiter {
    LineFetch line;
    std::array<std::uint8_t, Entry::kLineBytes> bytes{};
    WaitList waiters;
    ContextCache* cache = nullptr;
    pcie::DmaIf* dma = nullptr;
    std::uint32_t demands = 0;      ///< waiters; 0: fetched ahead only
    std::uint32_t directories = 0;  ///< reads still to be made before the line's
    bool has_register = false;
    bool stale = false;  ///< invalidated while its read was under way

    /// Starts as soon as there is a miss-status register and a place among all fetches.
    void resume(Time now) override {
      if (!has_register) has_register = cache->registers_.take();
      if (!has_register) {
        cache->registers_.wait(this);
      } else if (cache->budget_.take()) {
        cache->start(*this, now);
      } else {
        cache->budget_.wait(this);
      }
    }
  };

  Miss* find(std::uint64_t key) {
    const auto found = outstanding_.find(key);
    return found == outstanding_.end() ? nullptr : found->second;
  }

  Miss* open(const LineFetch& line, pcie::DmaIf& dma) {
    Miss* miss = misses_.take();
    miss->line = line;
    miss->cache = this;
    miss->dma = &dma;
    miss->demands = 0;
    miss->has_register = false;
    outstanding_.emplace(line.key, miss);
    return miss;
  }

  void fetch_ahead(const LineFetch& line, Time t, pcie::DmaIf& dma) {
    LineFetch ahead = line;
    for (std::uint32_t i = 0; i < prefetch_ && ahead.key < line.last_key; ++i) {
      ++ahead.key;
      ahead.address += line.bytes;
      prefetch(ahead, t, dma);
    }
  }

  void start(Miss& miss, Time t) {
    miss.stale = false;
    miss.directories = miss.line.directories;
    start_next(miss, t);
  }

  void start_next(Miss& miss, Time t) {
    // Of a directory only the time matters: the tables in memory are laid out flat.
    std::uint8_t* into = miss.directories > 0 ? nullptr : miss.bytes.data();
    miss.dma->dma_read(t, miss.line.address, miss.line.bytes, into, purpose_, this, miss.line.key);
  }

  void end_stall(const Miss& miss, Time now) {
    if (miss.demands == 0) return;
    demanded_ -= miss.demands;
    unit_.add_stall(cause_, now - waiting_since_);
    waiting_since_ = now;  // others may still wait
  }

  void close(Miss& miss, Time now) {
    misses_.give(&miss);
    registers_.give(now);
    budget_.give(now);
  }

  void arrive(Miss& miss, Time now) {
    end_stall(miss, now);
    Entry& entry = fill(miss.line.key, now, *miss.dma);
    entry.load(miss.bytes.data());
    if constexpr (WritesBack<Entry>::value) entry.address = miss.line.address;
    if (first_level_ != nullptr && miss.demands > 0) first_level_->insert(miss.line.key) = entry;
    miss.waiters.resume_all(now);
    close(miss, now);
  }

  void write_back(Entry& entry, Time t, pcie::DmaIf& dma) {
    ++write_backs_;
    // The device's own objects hold the state; memory sees the traffic.
    dma.dma_write(t, entry.address, Entry::kLineBytes, nullptr, purpose_, nullptr, 0);
  }

  std::string name_;
  SetAssocCache<Entry> cache_;
  std::unique_ptr<SetAssocCache<Entry>> first_level_;
  tlm_ext::Purpose purpose_;
  MissBudget& budget_;
  MissBudget registers_;
  std::uint32_t prefetch_;
  Time first_level_miss_;
  stats::StallCause cause_;
  stats::UnitStats& unit_;  ///< whose work waits while a fetch is under way
  LineFaultClient* fault_client_ = nullptr;
  Time waiting_since_{0};
  std::uint64_t demanded_ = 0;  ///< waiters of all misses
  std::uint64_t prefetches_ = 0;
  std::uint64_t joined_ = 0;
  std::uint64_t write_backs_ = 0;
  std::unordered_map<std::uint64_t, Miss*> outstanding_;  ///< by line
  std::unordered_set<std::uint64_t> expected_;  ///< lines fetched early, whose misses are not
                                                ///< counted yet, and that are still here
  Pool<Miss> misses_;
};

}  // namespace rnic::nic
