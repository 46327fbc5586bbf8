// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "link/link_port_config.h"
#include "link/release_queue.h"
#include "protocol/frame.h"
#include "stats/unit_stats.h"

namespace rnic::link {

/// What a flow control asks of its port.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  /// A frame from the pool, prepared as a link-control frame without bytes.
  virtual protocol::Frame* take_control_frame() = 0;
  /// Sends before any data, not before `ready`.
  virtual void send_control(protocol::Frame* frame, Time ready) = 0;
  /// Delivers at once and for free: what link training exchanged before time zero.
  virtual void send_training(protocol::Frame* frame) = 0;
  /// Calls FlowControl::wake() at `at`, unless an earlier call is due: then at that time.
  virtual void wake_at(Time at) = 0;
};

/// How one end of a link keeps its peer from overrunning it, and obeys the peer. Kernel-free. The
/// receive side sees each frame twice: when it is on the way (`expect`) and when its last bit is in
/// (`admit`).
class FlowControl {
 public:
  virtual ~FlowControl() = default;

  /// Before anything is sent.
  virtual void link_up() {}

  /// Transmit side: a frame of `bytes` may start on `lane` at `now`.
  virtual bool may_send(std::uint32_t lane, std::uint32_t bytes, Time now) = 0;
  virtual void sent(std::uint32_t lane, std::uint32_t bytes, Time start) = 0;
  /// When a refused may_send() may be answered otherwise, as far as known; after `now` or never.
  virtual Time next_change(Time now) const = 0;
  virtual stats::StallCause cause() const = 0;

  /// Receive side: a frame is on the way.
  virtual void expect(const protocol::Frame& frame) = 0;
  /// The frame's last bit is in; false: no room, the frame is lost.
  virtual bool admit(const protocol::Frame& frame, Time now) = 0;
  /// `bytes` of a frame leave the receive buffer at `when` (not before `now`).
  virtual void release(std::uint32_t lane, std::uint32_t bytes, Time when, Time now) = 0;

  /// A link-control frame that arrives at `arrival`.
  virtual void control_received(const protocol::Frame& frame, Time arrival) = 0;
  /// A control frame of ours starts now: last chance to fill in values of this instant.
  virtual void stamp(protocol::Frame&) {}
  virtual void wake(Time) {}

  /// Total time for which the peer paused `lane`, until `now`.
  virtual Time paused(std::uint32_t, Time) { return kTimeZero; }
  /// Largest fill of a lane's receive buffer, bytes.
  virtual std::uint64_t highest_fill() const = 0;
  virtual void reset_statistics(Time) {}
};

/// No flow control: what does not fit is lost.
class OpenFlowControl : public FlowControl {
 public:
  explicit OpenFlowControl(const LinkPortConfig& config)
      : buffers_(config.lanes, RxBuffer(config.rx_buffer)) {}

  bool may_send(std::uint32_t, std::uint32_t, Time) override { return true; }
  void sent(std::uint32_t, std::uint32_t, Time) override {}
  Time next_change(Time) const override { return kTimeNever; }
  stats::StallCause cause() const override { return stats::StallCause::kDownstreamFull; }
  void expect(const protocol::Frame&) override {}
  bool admit(const protocol::Frame& frame, Time now) override {
    return buffers_[frame.lane].take(frame.frame_bytes(), now);
  }
  void release(std::uint32_t lane, std::uint32_t bytes, Time when, Time) override {
    buffers_[lane].release(bytes, when);
  }
  void control_received(const protocol::Frame&, Time) override {}
  std::uint64_t highest_fill() const override;
  void reset_statistics(Time now) override;

 private:
  std::vector<RxBuffer> buffers_;
};

/// The flow control that `config` (resolved) asks for.
std::unique_ptr<FlowControl> make_flow_control(const LinkPortConfig& config,
                                               ControlChannel& channel);

}  // namespace rnic::link
