// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/rate_server.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// Fetches a packet's payload from host memory: each scatter/gather piece is translated and read by
/// DMA. Reads of several packets overlap; packets of one QP leave in order. Each piece behind a
/// packet's first keeps the unit for nic.sge_time.
class PayloadGather : public sc_core::sc_module,
                      public TransmitIf,
                      public TranslationClient,
                      public pcie::DmaClient {
 public:
  sc_core::sc_export<TransmitIf> transmit{"transmit"};
  sc_core::sc_port<TranslationIf> translation{"translation"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<PacketizeIf> packetizer{"packetizer"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<CompletionIf> completion{"completion"};

  /// `sge_time` is nic.sge_time; `move_bytes` false leaves payload bytes out (sim.payload=none);
  /// timing is the same.
  PayloadGather(const sc_core::sc_module_name& name, transport::Transport& transport,
                protocol::FramePool& frames, Pool<TxJob>& jobs, Time sge_time, bool move_bytes);

  void gather(TxJob* job, Time t) override;
  void close_granule(QpContext& qp, Time t) override;
  void translated(Translation& request, Time t) override;
  void dma_done(std::uint64_t token) override;
  void dma_failed(const pcie::DmaFault& fault) override;

  stats::UnitStats& stats() { return stats_; }

 private:
  static TxJob* job_of(Translation& translation);
  void next_piece(TxJob* job, Time t);
  void take_turn(TxJob* job, Time t);
  void turn_over(TxJob*& job) { next_piece(job, sim_now()); }
  void read_segment(TxJob& job, const BusSegment& segment, Time t);
  void complete(TxJob* job, Time t);
  /// The packet will not be sent: its message, or the message it answers, fails.
  void fail(TxJob* job, transport::Refusal why);
  void refuse(TxJob& job, Time t);
  static bool behind_failure(const TxJob& job);
  static bool granule_incomplete(TxJob& head);
  void release_in_order(QpContext& qp, Time t);

  transport::Transport& transport_;
  protocol::FramePool& frames_;
  Pool<TxJob>& jobs_;
  Time sge_time_;
  bool move_bytes_;
  PipelineServer unit_;  ///< of pieces that take nic.sge_time
  EventQueue<PayloadGather, TxJob*> turns_;
  std::uint64_t in_flight_ = 0;
  stats::UnitStats stats_;
};

}  // namespace rnic::nic
