// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <systemc>

#include "nic/context_cache.h"
#include "nic/interfaces.h"
#include "nic/stage.h"

namespace rnic::nic {

/// What context memory holds of a QP; the cache needs to know only that the line was read.
struct QpcLine {
  static constexpr std::uint32_t kLineBytes = 256;
  std::uint64_t address = 0;
  bool dirty = false;  ///< used since it came: PSNs and the like have moved
  void load(const std::uint8_t*) {}
};

/// Queue pair contexts on chip: set-associative, misses are DMA reads of context memory (256 B, or
/// nic.qpc_cache.fetch), a used context that must give way is written back. The state itself lives
/// in QpContext; this unit decides when it may be used.
///
/// A QP may take one entry whatever is done with it, or one for each half (nic.qpc_layout), and
/// further ones for the state of outstanding READs and atomics (nic.qpc_read_entries) or once both
/// halves are in use (nic.qpc_dual_entries), or then one in a further cache (nic.qpc_dual_cache).
/// Requester and responder share the cache or have half of it each (nic.qpc_cache.split).
///
/// A QP whose context cannot be read fails, with QP_FATAL.
class QpContextCache : public sc_core::sc_module, public ContextIf, public LineFaultClient {
 public:
  sc_core::sc_export<ContextIf> contexts{"contexts"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<CompletionIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> completion{"completion"};

  /// `queue_pairs`: whose contexts they are; null: all reads succeed.
  QpContextCache(const sc_core::sc_module_name& name, const config::NicConfig& config,
                 std::uint64_t seed, std::uint64_t qpc_base, MissBudget& budget,
                 const QpTable* queue_pairs = nullptr);

  bool acquire(QpContext& qp, ContextRole role, Time& t, Waiter* waiter, bool again) override;
  Time pass(Time t) override { return stage_.pass(t); }
  void expect(QpContext& qp, Time t) override;
  void line_unreadable(const LineFetch& line, Time now) override;

  ContextCache<QpcLine>& cache() { return cache_; }
  /// The responder's half; null when both share one.
  ContextCache<QpcLine>* responder_cache() { return responder_cache_.get(); }
  /// Of queue pairs that use both halves; null without nic.qpc_dual_cache.
  ContextCache<QpcLine>* dual_cache() { return dual_cache_.get(); }
  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  bool acquire_part(ContextCache<QpcLine>& cache, std::uint64_t key, const QpContext& qp, Time t,
                    Waiter* waiter, bool again);
  std::uint64_t address_of(const QpContext& qp) const {
    return qpc_base_ + std::uint64_t{qp.qpn} * QpcLine::kLineBytes;
  }
  ContextCache<QpcLine>& cache_of(ContextRole role) {
    return responder_cache_ != nullptr && !is_requester(role) ? *responder_cache_ : cache_;
  }
  bool acquire_parts(QpContext& qp, ContextRole role, Time t, Waiter* waiter, bool again);

  std::uint64_t qpc_base_;
  std::uint32_t fetch_bytes_;
  const QpTable* queue_pairs_;
  bool parted_;  ///< a QP may need several entries
  bool by_role_;
  bool write_back_;
  bool prefetch_;
  std::uint32_t dual_entries_;
  std::uint32_t read_entries_;
  PipelineStage stage_;
  ContextCache<QpcLine> cache_;
  std::unique_ptr<ContextCache<QpcLine>> responder_cache_;
  std::unique_ptr<ContextCache<QpcLine>> dual_cache_;
};

}  // namespace rnic::nic
