// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/pool.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// Fetches a packet's payload from host memory: each scatter/gather piece is translated and read by
/// DMA. Reads of several packets overlap; packets of one QP leave in order.
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

  /// `move_bytes` false leaves payload bytes out (sim.payload=none); timing is the same.
  PayloadGather(const sc_core::sc_module_name& name, transport::Transport& transport,
                protocol::FramePool& frames, Pool<TxJob>& jobs, bool move_bytes);

  void gather(TxJob* job, Time t) override;
  void close_granule(QpContext& qp, Time t) override;
  void translated(Translation& request, Time t) override;
  void dma_done(std::uint64_t token) override;
  void dma_failed(const pcie::DmaFault& fault) override;

  stats::UnitStats& stats() { return stats_; }

 private:
  static TxJob* job_of(Translation& translation);
  void next_piece(TxJob* job, Time t);
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
  bool move_bytes_;
  std::uint64_t in_flight_ = 0;
  stats::UnitStats stats_;
};

}  // namespace rnic::nic
