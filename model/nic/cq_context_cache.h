// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "nic/context_cache.h"

namespace rnic::nic {

/// A completion queue's context: where its ring is and how far it is filled.
struct CqcLine {
  static constexpr std::uint32_t kLineBytes = 64;
  std::uint64_t address = 0;
  bool dirty = false;
  void load(const std::uint8_t*) {}
};

/// Completion queue contexts on chip. Creating a queue puts its context here; each CQE moves its
/// producer index, so that a context which must give way is written back.
class CqContextCache : public sc_core::sc_module {
 public:
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  CqContextCache(const sc_core::sc_module_name& name, const config::CacheConfig& config,
                 std::uint64_t seed, std::uint64_t cqc_base, MissBudget& budget)
      : sc_module(name),
        cqc_base_(cqc_base),
        stats_(this->name()),
        cache_(std::string(this->name()), config, seed, tlm_ext::Purpose::kCqc, budget,
               stats::StallCause::kContext, stats_) {}

  /// The device has just made the context of `cqn`.
  void created(std::uint32_t cqn, Time t) {
    CqcLine& line = cache_.fill(cqn, t, *dma.operator->());
    line.address = address_of(cqn);
    line.dirty = true;
  }

  /// True: the context may be used, and changed. False: `waiter` is resumed when it is here and
  /// asks `again`.
  bool acquire(std::uint32_t cqn, Time t, Waiter* waiter, bool again) {
    if (CqcLine* line = cache_.lookup(cqn, again)) {
      line->dirty = true;
      return true;
    }
    cache_.fetch(cqn, address_of(cqn), t, *dma.operator->(), waiter);
    return false;
  }

  /// Number of the queue whose context `line` is.
  static std::uint32_t number_of(const LineFetch& line) {
    return static_cast<std::uint32_t>(line.key);
  }

  ContextCache<CqcLine>& cache() { return cache_; }
  stats::UnitStats& stats() { return stats_; }

 private:
  std::uint64_t address_of(std::uint32_t cqn) const {
    return cqc_base_ + std::uint64_t{cqn} * CqcLine::kLineBytes;
  }

  std::uint64_t cqc_base_;
  stats::UnitStats stats_;
  ContextCache<CqcLine> cache_;
};

}  // namespace rnic::nic
