// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/pool.h"
#include "nic/dc_unit.h"
#include "nic/interfaces.h"
#include "nic/send_turns.h"
#include "nic/stage.h"

namespace rnic::nic {

/// Picks the queue pair that sends its next packet: responses (acknowledgements, READ data) and
/// requests in turn; among queue pairs of a kind as SendTurns has it. A bounded number
/// of packets is in flight between here and the wire; a full transmit path stops the picking.
class SqScheduler : public sc_core::sc_module, public SchedulerIf {
 public:
  sc_core::sc_export<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<ContextIf> contexts{"contexts"};
  sc_core::sc_port<WqeFetchIf> wqes{"wqes"};
  sc_core::sc_port<KeyIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> keys{"keys"};
  sc_core::sc_port<TransmitIf> transmit{"transmit"};
  sc_core::sc_port<TimerIf> timer{"timer"};
  sc_core::sc_port<CompletionIf> completion{"completion"};

  /// `limits_rates`: the transport's congestion control sets rates of queue pairs.
  SqScheduler(const sc_core::sc_module_name& name, const config::NicConfig& config,
              transport::Transport& transport, protocol::FramePool& frames, Pool<TxJob>& jobs,
              bool limits_rates = false);

  void activate(QpContext& qp, Time t) override;
  void slot_freed(Time t, std::uint32_t lane) override;
  Time idle_time() const override;

  /// Who connects send queues to the peer of their next message; null: all stay connected.
  void set_connections(DcUnit* connections) {
    connections_ = connections;
    holds_back_ |= connections != nullptr;
  }
  stats::UnitStats& stats() { return stage_.stats(); }
  void reset_statistics(Time now);
  /// How long queue pairs could not send what they had, for this reason; all of them together.
  Time held(transport::Hold reason) const { return held_[static_cast<std::size_t>(reason)]; }
  std::uint32_t slots_in_use() const {
    std::uint32_t used = 0;
    for (const std::uint32_t free : slots_free_) used += slots_ - free;
    return used;
  }

 private:
  /// A queue pair parked until its context is on chip.
  struct ContextWait : public Waiter {
    SqScheduler* scheduler = nullptr;
    QpContext* qp = nullptr;
    bool response = false;
    std::uint32_t lane = 0;  ///< where a place is kept for its packet
    void resume(Time now) override;
  };

  /// Lanes have places of their own, so that one that is paused or waits for credits does not keep
  /// the others from sending.
  struct Parked {
    QpContext* qp = nullptr;
    bool response = false;
  };

  void park_blocked(SendTurns& list, bool response, Time now) {
    if (!list.empty() && full(transmit_lane(*list.front()))) {
      park_all_blocked(list, response, now);
    }
  }
  void park_all_blocked(SendTurns& list, bool response, Time now);
  /// A place is free again, with room for `bytes` of payload; whether somebody waited for it.
  bool give_slot(std::uint32_t lane, std::uint32_t bytes);
  void take_slot(std::uint32_t lane, std::uint32_t bytes) {
    --slots_free_[lane];
    taken_[lane] += bytes;
    if (no_room(lane)) full_lanes_ |= 1U << lane;
  }
  bool full(std::uint32_t lane) const { return (full_lanes_ >> lane & 1U) != 0; }
  bool no_room(std::uint32_t lane) const {
    return slots_free_[lane] == 0 || (buffer_ != 0 && taken_[lane] >= buffer_);
  }
  void run();
  static bool request_due(const QpContext& qp);
  bool pick();
  static Time earliest_pick(const QpContext& qp, bool response);
  void end_stall(Time now);
  void serve(QpContext& qp, bool response, Time t, bool again);
  void serve_response(QpContext& qp, Time t);
  /// The queue stands at an operation on keys, which takes no packet.
  bool key_operation(QpContext& qp, Time t);
  void serve_request(QpContext& qp, Time t);
  void start(QpContext& qp, TxJob* job, Time t);
  void retire_failed(QpContext& qp, Time t);
  bool out_of_read_slots(QpContext& qp);
  void begin_hold(QpContext& qp);
  void end_hold(QpContext& qp);
  void mark_pick(QpContext& qp, const transport::TxPlan& plan) const;
  void enqueue(QpContext& qp, bool response, Time from);
  void wake(int&);
  void response_due(QpContext*& qp);
  bool postpone_response(QpContext& qp);
  bool postpone_request(QpContext& qp);
  void request_due_later(QpContext*& qp);
  ContextRole role_of(QpContext& qp, bool response) const;
  void note_granule(QpContext& qp, TxJob& job);
  void close_granule(QpContext& qp, Time t);

  transport::Transport& transport_;
  protocol::FramePool& frames_;
  Pool<TxJob>& jobs_;
  Pool<ContextWait> waits_;
  ContextWait* next_wait_ = nullptr;  ///< for the next queue pair that has to wait
  PipelineStage stage_;
  bool by_role_;  ///< whether it matters if a context is needed for a READ
  bool answers_need_context_;
  BitRate request_rate_;
  Time message_time_;
  bool request_engine_;  ///< one of the two limits the requests of a queue pair
  bool holds_back_;      ///< something may hold requests back that could be sent
  BitRate read_rate_;    ///< nic.read_engine_rate, and nic.read_engine_time
  Time read_time_;
  bool read_engine_;  ///< whether either is set
  std::uint64_t granule_;
  std::vector<QpContext*> open_granules_;
  DcUnit* connections_ = nullptr;
  std::uint32_t slots_;  ///< of each lane
  std::array<std::uint32_t, kTransmitLanes> slots_free_;
  std::uint64_t buffer_;  ///< payload of the packets on a lane; 0: unlimited
  std::array<std::uint64_t, kTransmitLanes> taken_{};
  /// Of the packets on each lane. They leave in another order now and then; the sum is what counts.
  std::array<Ring<std::uint32_t>, kTransmitLanes> under_way_;
  std::uint32_t lanes_seen_ = 0;  ///< bit i: some queue pair uses lane i
  std::uint32_t full_lanes_ = 0;
  std::array<Ring<Parked>, kTransmitLanes> parked_;  ///< in turn, but their lane is full
  MessageLimit messages_;
  Time look_ahead_;  ///< picks made early at most, so that a late rival waits no longer
  SendTurns responses_;
  SendTurns requests_;
  bool response_turn_ = true;
  bool running_ = false;
  Time wake_at_ = kTimeNever;
  Time full_since_ = kTimeNever;
  Time idle_since_ = kTimeNever;
  Time idle_before_{0};  ///< sum of the idle times that are over
  std::array<Time, static_cast<std::size_t>(transport::Hold::kCount)> held_{};
  Time counted_from_{0};
  EventQueue<SqScheduler, int> wake_;
  EventQueue<SqScheduler, QpContext*> later_;  ///< responses that may not be sent yet
  EventQueue<SqScheduler, QpContext*> paced_;  ///< requests whose engine is busy
};

}  // namespace rnic::nic
