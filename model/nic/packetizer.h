// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/pool.h"
#include "nic/interfaces.h"
#include "nic/stage.h"

namespace rnic::nic {

/// Puts the headers in front of a payload (PSN, ICRC; iWARP: DDP/RDMAP, MPA, TCP) and hands the
/// frame to the port.
class Packetizer : public sc_core::sc_module, public PacketizeIf {
 public:
  sc_core::sc_export<PacketizeIf> packetizer{"packetizer"};
  sc_core::sc_port<PortIf> port{"port"};
  sc_core::sc_port<CompletionIf> completion{"completion"};

  /// `extra` is a further pipeline of the transport itself (iWARP's TCP engine); null for IB/RoCE.
  Packetizer(const sc_core::sc_module_name& name, const config::NicConfig& config,
             transport::Transport& transport, Pool<TxJob>& jobs, const config::StageConfig* extra);

  void packetize(TxJob* job, Time t) override;

  stats::UnitStats& stats() { return stage_.stats(); }
  std::uint64_t data_packets() const { return data_packets_; }

 private:
  transport::Transport& transport_;
  Pool<TxJob>& jobs_;
  PipelineStage stage_;
  std::unique_ptr<PipelineStage> engine_;
  BitRate crc_rate_;
  std::uint64_t data_packets_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace rnic::nic
