// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "nic/address_book.h"
#include "nic/interfaces.h"
#include "nic/stage.h"
#include "pcie/dma.h"
#include "stats/instruments.h"

namespace rnic::nic {

/// Executes what arrived: checks keys and rights, finds the buffer (remote region, RECV, or the
/// local buffer of a READ), writes the payload to memory, completes. One message is answered or
/// refused as the transport's rules say; the connection's order is kept by the receive pipeline.
class Responder : public sc_core::sc_module,
                  public ResponderIf,
                  public AtomicClient,
                  public TranslationClient,
                  public KeyClient,
                  public pcie::DmaClient {
 public:
  sc_core::sc_export<ResponderIf> responder{"responder"};
  sc_core::sc_export<AtomicClient> atomic_client{"atomic_client"};
  sc_core::sc_port<RxPipelineIf> pipeline{"pipeline"};
  sc_core::sc_port<TranslationIf> translation{"translation"};
  sc_core::sc_port<RecvQueueIf> recv_queues{"recv_queues"};
  sc_core::sc_port<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<CompletionIf> completion{"completion"};
  sc_core::sc_port<AtomicIf> atomics{"atomics"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<KeyIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> keys{"keys"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  Responder(const sc_core::sc_module_name& name, const config::NicConfig& config,
            transport::Transport& transport, bool move_bytes);

  void execute(RxJob* job, Time t) override;
  void expect(const RxJob& job, Time t) override;
  void release_kept(QpContext& qp, Time t) override;
  void translated(Translation& request, Time t) override;
  void key_invalidated(RxJob* job, bool allowed, Time t) override;
  void dma_done(std::uint64_t token) override;
  void dma_failed(const pcie::DmaFault& fault) override;
  void atomic_failed(QpContext& qp, const transport::RxPlan& plan, Time t) override;
  void atomic_done(QpContext& qp, const transport::RxPlan& plan, stats::MessageTrace* trace,
                   Time t) override;

  /// Goes on with a job that waited for a RECV.
  void resume(RxJob* job, Time now);

  stats::UnitStats& stats() { return stage_.stats(); }
  /// Instrumentation: meters of what arrives; may stay null.
  void set_instruments(stats::Instruments* instruments) { instruments_ = instruments; }
  /// WRITEs with immediate of requesters that are not in `book` are refused.
  void set_address_book(const AddressBook* book) { address_book_ = book; }

 private:
  void begin(RxJob* job, Time t);
  void expect_rest(const RxJob& job, Time t);
  template <typename Elements>
  void expect_elements(const Elements& elements, std::uint32_t count, bool for_peer, Time t);
  void need_recv(RxJob* job, Time t, bool again);
  void lose_queue_pair(RxJob* job, Time t);
  void place_in_recv(RxJob* job, Time t);
  void slice_datagram(RxJob* job, const protocol::RecvWqe& recv);
  const std::uint8_t* source_of(const RxJob& job) const;
  void abandon(RxJob* job, Time t);
  void place_response(RxJob* job, Time t);
  void start_atomic(RxJob* job, Time t);
  void check_remote(RxJob* job, Time t);
  void remote_checked(RxJob* job, Time t);
  void write_remote(RxJob* job, Time t);
  void write_piece(RxJob* job, Time t);
  void next_piece(RxJob* job, Time t);
  void write_segments(RxJob* job, Time t);
  Time write_segment(RxJob& job, const BusSegment& segment, Time t);
  Time follower_start(const RxJob& job) const;
  bool keeps(const RxJob& job) const;
  void keep(RxJob* job, Time t);
  static Time in_order(QpContext& qp, Time t);
  void placed(RxJob* job, Time t, Time next);
  void accept(RxJob* job, Time t);
  void finish(RxJob* job, Time t, Time next);
  void meter_delivery(const RxJob& job, std::uint32_t data, Time t);
  protocol::Cqe completion_of(const RxJob& job) const;
  void complete_recv(RxJob* job, Time t);
  void report_immediate(RxJob* job, Time t);
  void refuse(RxJob* job, transport::Refusal why, Time t);
  /// One atomic less is under way; what waited for the last one goes on.
  void end_atomic(QpContext& qp, Time t);
  void fail_recv(RxJob* job, protocol::WcStatus status, transport::Refusal why, Time t);
  static bool access_granted(const RxJob& job);
  /// What the requester's own READ or atomic asked for.
  static bool is_response(const transport::RxPlan& plan) {
    using Action = transport::RxPlan::Action;
    return plan.action == Action::kReadResponse || plan.action == Action::kAtomicResponse;
  }
  static bool is_datagram(const RxJob& job) { return job.qp->type == protocol::QpType::kUd; }

  transport::Transport& transport_;
  bool move_bytes_;
  bool drops_long_messages_;  ///< of UC and UD
  bool atomics_in_turn_;
  bool looks_ahead_;                           ///< translations are looked up before their turn
  MessageLimit messages_;                      ///< of requests
  Time read_response_time_;                    ///< nic.read_response_time
  std::uint64_t forward_granule_;              ///< bytes; 0: each packet is written on its own
  std::uint64_t keeping_room_;                 ///< bytes that may wait for their granule, all QPs
  bool unsolicited_;                           ///< immediate data of WRITEs take no RECV
  const AddressBook* address_book_ = nullptr;  ///< null: whoever sends immediate data is answered
  PipelineStage stage_;
  stats::Instruments* instruments_ = nullptr;
};

}  // namespace rnic::nic
