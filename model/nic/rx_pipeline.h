// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/pool.h"
#include "nic/interfaces.h"
#include "nic/stage.h"
#include "nic/wqe_cache.h"

namespace rnic::nic {

/// Where the receive pipeline counts what it throws away.
struct RxDrops {
  std::uint64_t not_mine = 0;  ///< another station's address, or no such queue pair
  std::uint64_t bad_checksum = 0;
  std::uint64_t bad_state = 0;  ///< the QP does not receive in its state
};

/// Receive side, up to the responder: parse, checksum, is it mine, QP context, connection state
/// machine. Frames of one QP are handled in order; one that waits for a context or a translation
/// holds back only its own QP.
class RxPipeline : public sc_core::sc_module, public RxPipelineIf {
 public:
  sc_core::sc_export<RxPipelineIf> pipeline{"pipeline"};
  sc_core::sc_port<ContextIf> contexts{"contexts"};
  sc_core::sc_port<ResponderIf> responder{"responder"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<CompletionIf> completion{"completion"};
  sc_core::sc_port<TimerIf> timer{"timer"};
  sc_core::sc_port<PortIf> port{"port"};

  /// `extra` is a further pipeline of the transport itself (iWARP's TCP engine); null for IB/RoCE.
  RxPipeline(const sc_core::sc_module_name& name, const config::NicConfig& config,
             transport::Transport& transport, const transport::Encapsulation& encapsulation,
             const QpTable& queue_pairs, protocol::FramePool& frames,
             const config::StageConfig* extra);

  /// A frame's last bit is in. The pipeline owns it from here.
  void frame_arrived(protocol::Frame* frame, Time now);

  void executed(RxJob* job, Time t) override;
  void retire(RxJob* job) override;

  /// Goes on with a job whose context or WQE has arrived.
  void resume(RxJob* job, Time now);

  /// Where WQEs that wait for their answer are cached; null: all are on chip.
  void set_wqe_cache(WqeCache* cache) { wqe_cache_ = cache; }

  const RxDrops& drops() const { return drops_; }
  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  void drop(protocol::Frame* frame, std::uint64_t& counter, Time t);
  void process(RxJob* job, Time t, bool again);
  ContextRole role_of(const RxJob& job) const;
  /// Whether the WQE that the frame answers is on chip; if not, the job is resumed when it is.
  bool wqe_here(RxJob* job, Time t, bool again);
  void run_queue(QpContext& qp, Time t);

  transport::Transport& transport_;
  const transport::Encapsulation& encapsulation_;
  const QpTable& queue_pairs_;
  protocol::FramePool& frames_;
  Pool<RxJob> jobs_;
  bool by_role_;  ///< what a context access is for matters
  WqeCache* wqe_cache_ = nullptr;
  Clock clock_;
  PipelineStage stage_;
  std::unique_ptr<PipelineStage> engine_;
  RxDrops drops_;
};

}  // namespace rnic::nic
