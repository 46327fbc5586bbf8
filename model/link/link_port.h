// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/ring.h"
#include "link/alarm.h"
#include "link/flow_control.h"
#include "link/frame_tap.h"
#include "link/lane_arbiter.h"
#include "link/link_port_config.h"
#include "protocol/frame.h"
#include "stats/unit_stats.h"
#include "tlm/frame_types.h"

namespace rnic::link {

/// Takes what arrives at a port.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  /// The last bit of a frame is in. The receiver owns the frame from now on; it calls
  /// LinkPort::release_rx() when the frame leaves the receive buffer.
  virtual void frame_arrived(protocol::Frame* frame, Time now) = 0;
  /// The cable does not carry anything any more, and does again.
  virtual void link_lost(Time /*now*/) {}
  virtual void link_regained(Time /*now*/) {}
};

/// Whoever feeds a port.
class EgressClient {
 public:
  virtual ~EgressClient() = default;
  /// A frame left the transmit queue: its first bit goes out at `at` (now or a little later). Once
  /// for each frame sent; may call LinkPort::send().
  virtual void egress_space(Time at) = 0;
  /// Details of the same frame, before egress_space(); `answers_qpn` as Frame has it.
  virtual void frame_sent(std::uint32_t /*lane*/, std::uint32_t /*bytes*/,
                          std::uint32_t /*answers_qpn*/, Time /*start*/, Time /*end*/) {}
};

/// What crossed a port in one direction.
struct PortCounters {
  std::uint64_t frames = 0;  ///< without link control
  std::uint64_t data_packets = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;  ///< link control included
  std::uint64_t control_frames = 0;
};

/// One end of a cable: lanes, flow control, serialisation at line rate. An idle port sends by
/// arithmetic alone; a backlogged one costs one kernel event a frame, as does each arrival. Link
/// control goes first, then lanes in turn, each in order.
class LinkPort : public sc_core::sc_module,
                 private tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>,
                 private tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>,
                 private ControlChannel {
 public:
  tlm_ext::FrameInitiatorSocket tx{"tx"};
  tlm_ext::FrameTargetSocket rx{"rx"};

  /// ConfigError when `config` is impossible (see resolve()).
  LinkPort(const sc_core::sc_module_name& name, const LinkPortConfig& config,
           protocol::FramePool& frames);

  /// Must be set before the first frame arrives; both objects outlive the port.
  void set_receiver(FrameReceiver* receiver) { receiver_ = receiver; }
  void set_egress_client(EgressClient* client) { client_ = client; }

  /// Shows every frame to `tap` from now on; null: to nobody. It outlives the port.
  void set_tap(FrameTap* tap) { tap_ = tap; }

  /// The transmit queue of `lane` has room for a data frame.
  bool can_send(std::uint32_t lane) const {
    return config_.egress_frames == 0 || lanes_[lane].size() < config_.egress_frames;
  }
  /// Sends a frame not before `ready`. A lane's frames leave in the order of the calls. A data
  /// frame without can_send() is a broken invariant; acknowledgements are always taken.
  void send(protocol::Frame* frame, Time ready);

  /// `bytes` (Frame::frame_bytes()) of a frame leave the receive buffer of `lane` at `when`.
  void release_rx(std::uint32_t lane, std::uint32_t bytes, Time when);

  const LinkPortConfig& config() const { return config_; }  ///< with derived thresholds
  const stats::UnitStats& unit() const { return unit_; }    ///< transmit side
  const PortCounters& sent() const { return sent_; }
  /// Data frames of `lane`, all byte times of the line.
  std::uint64_t sent_wire_bytes(std::uint32_t lane) const { return lane_wire_bytes_[lane]; }
  const PortCounters& received() const { return received_; }
  /// Frames lost because the receive buffer was full.
  std::uint64_t dropped() const { return dropped_; }
  /// Frames lost because they were longer than the link's MTU allows.
  std::uint64_t oversize() const { return oversize_; }
  /// The cable was down and is up again: both ends tell their state anew.
  void retrain() { flow_->link_up(); }
  /// The receiver is told. Until the link is back, what is sent goes out, whatever the peer
  /// allowed, and is lost: a port in state Down discards it (IBTA vol 1, 7.2; an Ethernet MAC
  /// likewise).
  void lose_link(Time now);
  void regain_link(Time now);
  /// Time for which the peer paused lanes, summed over lanes.
  Time paused(Time now);
  /// Largest fill of a lane's receive buffer, bytes.
  std::uint64_t highest_fill() const { return flow_->highest_fill(); }
  /// Frames waiting to be sent.
  std::uint32_t queued() const { return queued_; }
  void reset_statistics(Time now);

 private:
  struct Waiting {
    protocol::Frame* frame = nullptr;
    Time ready{0};
  };

  // Transport interfaces of the two sockets.
  tlm::tlm_sync_enum nb_transport_fw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  tlm::tlm_sync_enum nb_transport_bw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void b_transport(protocol::Frame& frame, sc_core::sc_time& delay) override;
  bool get_direct_mem_ptr(protocol::Frame& frame, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(protocol::Frame& frame) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64 start, sc_dt::uint64 end) override;

  // ControlChannel.
  protocol::Frame* take_control_frame() override;
  void send_control(protocol::Frame* frame, Time ready) override;
  void send_training(protocol::Frame* frame) override;
  void wake_at(Time at) override { flow_alarm_.set(at); }

  void start_of_simulation() override { flow_->link_up(); }
  bool may_send(std::uint32_t lane, std::uint32_t bytes, Time now);
  void pump(Time now);
  bool send_next(Time now);
  void schedule(Time now);
  bool idle_until(Time ready, Time now) const;
  void transmit_data(protocol::Frame* frame, Time start, Time now);
  void transmit_control(protocol::Frame* frame, Time start, Time now);
  Time serialize(protocol::Frame& frame, Time start);
  void put_on_wire(protocol::Frame& frame, Time end, Time now);
  void arrived(protocol::Frame*& frame);
  void flow_wake(Time now) { flow_->wake(now); }

  LinkPortConfig config_;
  protocol::FramePool& frames_;
  std::unique_ptr<FlowControl> flow_;
  std::unique_ptr<LaneArbiter> arbiter_;
  FrameReceiver* receiver_ = nullptr;
  EgressClient* client_ = nullptr;
  FrameTap* tap_ = nullptr;
  std::vector<Ring<Waiting>> lanes_;
  std::vector<std::uint64_t> lane_wire_bytes_;  ///< of data frames sent
  std::uint32_t occupied_lanes_ = 0;            ///< bit i: lane i has waiting frames
  std::uint32_t queued_ = 0;
  Ring<Waiting> control_;  ///< by `ready`
  Time free_at_{0};        ///< end of the last frame sent
  Time stalled_since_ = kTimeNever;
  stats::UnitStats unit_;
  PortCounters sent_;
  PortCounters received_;
  std::uint64_t dropped_ = 0;
  bool down_ = false;
  std::uint64_t oversize_ = 0;
  Alarm<LinkPort> tx_alarm_;
  Alarm<LinkPort> flow_alarm_;
  DelayLine<LinkPort, protocol::Frame*> arrivals_;
  EventQueue<LinkPort, protocol::Frame*> late_arrivals_;  ///< of frames in no order
};

}  // namespace rnic::link
