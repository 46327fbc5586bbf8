// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "nic/context_cache.h"
#include "nic/interfaces.h"
#include "nic/stage.h"

namespace rnic::nic {

/// What context memory holds of a QP; the cache needs to know only that the line was read.
struct QpcLine {
  static constexpr std::uint32_t kLineBytes = 256;
  void load(const std::uint8_t*) {}
};

/// Queue pair contexts on chip: set-associative, misses are DMA reads of 256 B of context memory.
/// The state itself lives in QpContext; this unit decides when it may be used.
class QpContextCache : public sc_core::sc_module, public ContextIf {
 public:
  sc_core::sc_export<ContextIf> contexts{"contexts"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  QpContextCache(const sc_core::sc_module_name& name, const config::NicConfig& config,
                 std::uint64_t seed, std::uint64_t qpc_base, MissBudget& budget);

  bool acquire(QpContext& qp, ContextRole role, Time& t, Waiter* waiter, bool again) override;

  ContextCache<QpcLine>& cache() { return cache_; }
  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  std::uint64_t qpc_base_;
  PipelineStage stage_;
  ContextCache<QpcLine> cache_;
};

}  // namespace rnic::nic
