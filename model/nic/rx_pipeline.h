// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/event_queue.h"
#include "base/pool.h"
#include "nic/interfaces.h"
#include "nic/multicast_groups.h"
#include "nic/stage.h"
#include "nic/wqe_cache.h"

namespace rnic::nic {

/// Where the receive pipeline counts what it throws away.
struct RxDrops {
  std::uint64_t not_mine = 0;     ///< another station's address, or no such queue pair
  std::uint64_t link_crc = 0;     ///< FCS or VCRC wrong
  std::uint64_t ip_checksum = 0;  ///< IPv4 header
  std::uint64_t tcp_checksum = 0;
  std::uint64_t inner_crc = 0;  ///< ICRC or MPA CRC
  std::uint64_t silent = 0;     ///< ignored by a NIC that was told to be silent
  std::uint64_t bad_state = 0;  ///< the QP does not receive in its state

  std::uint64_t bad_checksum() const { return link_crc + ip_checksum + tcp_checksum + inner_crc; }
};

/// Receive side, up to the responder: parse, checksum, is it mine, QP context, connection state
/// machine. Frames of one QP are handled in order; one that waits for a context or a translation
/// holds back only its own QP.
class RxPipeline : public sc_core::sc_module, public RxPipelineIf, public LineFaultClient {
 public:
  sc_core::sc_export<RxPipelineIf> pipeline{"pipeline"};
  sc_core::sc_port<ContextIf> contexts{"contexts"};
  sc_core::sc_port<ResponderIf> responder{"responder"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<CompletionIf> completion{"completion"};
  sc_core::sc_port<TimerIf> timer{"timer"};
  sc_core::sc_port<PortIf> port{"port"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};

  /// `extra` is a further pipeline of the transport itself (iWARP's TCP engine); null for IB/RoCE.
  RxPipeline(const sc_core::sc_module_name& name, const config::NicConfig& config,
             transport::Transport& transport, const transport::Encapsulation& encapsulation,
             const QpTable& queue_pairs, protocol::FramePool& frames,
             const config::StageConfig* extra);

  /// A frame's last bit is in. The pipeline owns it from here.
  void frame_arrived(protocol::Frame* frame, Time now);

  void executed(RxJob* job, Time t, Time next) override;
  void retire(RxJob* job) override;
  void release_buffer(RxJob* job, Time t) override;

  /// The last packet of what queue pair `qpn` answers to a READ or atomic is on the wire.
  void answer_sent(std::uint32_t qpn) {
    if (QpContext* qp = queue_pairs_.find(qpn)) transport::Transport::answer_sent(*qp);
  }

  /// Goes on with a job whose context or WQE has arrived.
  void resume(RxJob* job, Time now);

  void line_unreadable(const LineFetch& line, Time now) override;

  /// Where WQEs that wait for their answer are cached; without a call all are on chip.
  void set_wqe_cache(WqeCache* cache);

  /// Which queue pairs get what is sent to a group; without a call there are no groups.
  void set_multicast_groups(const MulticastGroups& groups) { groups_ = &groups; }

  /// From `from` on, all that arrives is ignored.
  void fall_silent(Time from) { silent_from_ = from; }

  const RxDrops& drops() const { return drops_; }
  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  void take(QpContext& qp, protocol::Frame* frame, Time t);
  bool take_for_group(protocol::Frame* frame, Time t);
  void drop(protocol::Frame* frame, std::uint64_t& counter, Time t);
  std::uint64_t& counter_of(transport::TrailerStatus status);
  void process(RxJob* job, Time t, bool again);
  void hold(RxJob* job, Time t);
  static void leave_queue(RxJob* job);
  void go_on(QpContext& qp, Time t, Time next);
  RxJob* take_early(QpContext& qp);
  ContextRole role_of(const RxJob& job) const;
  /// Whether the WQE that the frame answers is on chip; if not, the job is resumed when it is.
  bool wqe_here(RxJob* job, Time t, bool again);
  void run_queue(QpContext& qp, Time t);
  void expect_next(const QpContext& qp, Time t);
  void turn_comes(RxJob*& job);

  transport::Transport& transport_;
  const transport::Encapsulation& encapsulation_;
  const QpTable& queue_pairs_;
  protocol::FramePool& frames_;
  Pool<RxJob> jobs_;
  bool by_role_;  ///< what a context access is for matters
  bool answers_need_context_;
  bool looks_ahead_;  ///< translations are looked up before their turn
  WqeCache* wqe_cache_ = nullptr;
  const MulticastGroups* groups_ = nullptr;
  Clock clock_;
  PipelineStage stage_;
  BitRate crc_rate_;
  Time gap_time_;
  std::unique_ptr<PipelineStage> engine_;
  RxDrops drops_;
  Time silent_from_ = kTimeNever;
  EventQueue<RxPipeline, RxJob*> turns_;  ///< of frames behind others of their queue pair
};

}  // namespace rnic::nic
