// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>
#include <vector>

#include "base/pool.h"
#include "nic/interfaces.h"
#include "nic/stage.h"
#include "nic/wqe_cache.h"
#include "pcie/dma.h"
#include "stats/instruments.h"

namespace rnic::nic {

/// A read of a send ring.
struct WqeFetch {
  QpContext* qp = nullptr;
  WqeFetch* next = nullptr;  ///< of the same queue pair, begun later
  bool failed = false;
  bool forsaken = false;  ///< one before it failed, or a reset: nobody waits for it
  std::uint32_t blocks = 0;
  std::uint32_t slot = 0;
  std::uint32_t parts = 0;  ///< reads still to come (two when the ring wraps)
  Time idle{0};             ///< SchedulerIf::idle_time() when it began
  std::vector<std::uint8_t> bytes;
};

/// Reads WQEs from the send ring in host memory, several at a time, and decodes them into the QP's
/// send queue, in order. As many reads of a queue pair are under way as nic.wqe_buffer has room
/// for, beside what waits to be sent. What a read brings of a WQE that it cuts is kept. A BlueFlame
/// write that arrives in order brings its WQE along and needs no read.
class WqeFetcher : public sc_core::sc_module, public WqeFetchIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<WqeFetchIf> wqes{"wqes"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<CompletionIf> completion{"completion"};

  WqeFetcher(const sc_core::sc_module_name& name, const config::NicConfig& config);

  void fetch(QpContext& qp, Time t) override;
  bool blueflame(QpContext& qp, const std::uint8_t* blocks, std::uint32_t count, Time t) override;
  void forsake(QpContext& qp) override;
  void dma_done(std::uint64_t token) override;
  void dma_failed(const pcie::DmaFault& fault) override;

  /// Where READs and atomics are kept from here until their answers; null: unlimited.
  void set_wqe_cache(WqeCache* cache) { cache_ = cache; }

  /// Instrumentation: where decoded WQEs find their traces; may stay null.
  void set_instruments(stats::Instruments* source) { traces_ = source; }
  stats::UnitStats& stats() { return stage_.stats(); }
  std::uint64_t fetches() const { return fetches_; }

 private:
  /// Reads of a queue pair's WQEs that may fail before its ring is given up: the first puts it in
  /// ERR, the others would flush it.
  static constexpr std::uint32_t kReadAttempts = 4;

  void start(QpContext& qp, std::uint32_t first, std::uint32_t blocks, Time t);
  static void keep_cut(QpContext& qp, const std::vector<std::uint8_t>& bytes, std::uint32_t used);
  /// What has come in order goes on to the decoder.
  void take(QpContext& qp, Time now);
  /// Decodes up to `count` blocks; returns how many belong to whole WQEs.
  std::uint32_t decode(QpContext& qp, const std::uint8_t* bytes, std::uint32_t count, Time t);

  static std::size_t waiting(const QpContext& qp);
  bool room_for(const QpContext& qp) const;
  void give(WqeFetch* fetch);
  void read_failed(QpContext& qp, Time now);
  /// A fetch is over that its queue pair has waited for: time in which the scheduler had nothing to
  /// send meanwhile is a stall.
  void count_starvation(const WqeFetch& fetch);

  std::uint32_t prefetch_;
  std::uint32_t buffered_;
  std::uint32_t fetches_of_qp_;  ///< reads under way, while the first of them is in work
  PipelineStage stage_;
  WqeCache* cache_ = nullptr;
  stats::Instruments* traces_ = nullptr;
  Pool<WqeFetch> fetches_pool_;
  std::vector<WqeFetch*> in_flight_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t fetches_ = 0;
  Time idle_counted_{0};  ///< of the scheduler's idle time, up to where stalls have been counted
};

}  // namespace rnic::nic
