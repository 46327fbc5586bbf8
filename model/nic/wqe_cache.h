// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "nic/context_cache.h"
#include "nic/qp_context.h"
#include "protocol/wqe.h"

namespace rnic::nic {

/// A WQE on chip; what it says is kept in the queue pair, the cache decides when it may be used.
struct WqeLine {
  static constexpr std::uint32_t kLineBytes = protocol::kMaxWqeBlocks * protocol::kWqeBlockBytes;
  void load(const std::uint8_t*) {}
};

/// Work requests that the device keeps between fetch and use: READs and atomics that wait for their
/// answer, or RECVs fetched ahead. When more are held than there is room for, the one that must
/// give way is read from its ring again when its turn comes.
class WqeCache : public sc_core::sc_module {
 public:
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  /// Where a WQE is on chip and in host memory.
  struct Place {
    std::uint64_t key;
    std::uint64_t address;
    std::uint32_t bytes;
    std::uint64_t ring = 0;        ///< where the ring begins
    std::uint32_t ring_bytes = 0;  ///< 0: a WQE is read alone, whatever nic.wqe_cache.refetch says
  };
  /// The place of a send work request.
  static Place of_send(const QpContext& qp, const protocol::SendWqe& wqe);

  WqeCache(const sc_core::sc_module_name& name, const config::CacheConfig& config,
           std::uint64_t seed, tlm_ext::Purpose purpose, MissBudget& budget);

  /// The WQE has come on chip and will be needed again.
  void hold(const Place& place) { cache_.fill(place.key, sim_now(), *dma.operator->()); }
  /// It will not be needed any more.
  void release(const Place& place) { cache_.invalidate(place.key); }
  /// True: it is on chip. False: it is being fetched again, `waiter` is resumed and asks `again`.
  bool acquire(const Place& place, Time t, Waiter* waiter, bool again);

  /// The queue pair that sent the work request of that line.
  static std::uint32_t sender_of(const LineFetch& line) {
    return static_cast<std::uint32_t>(line.key >> 16);
  }

  ContextCache<WqeLine>& cache() { return cache_; }
  stats::UnitStats& stats() { return stats_; }

 private:
  /// What is read for a WQE: itself, or the aligned piece of its ring that it begins in.
  LineFetch fetch_of(const Place& place) const;

  stats::UnitStats stats_;
  ContextCache<WqeLine> cache_;
  std::uint32_t refetch_;
};

}  // namespace rnic::nic
