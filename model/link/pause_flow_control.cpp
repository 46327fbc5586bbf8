// SPDX-License-Identifier: Apache-2.0
#include "link/pause_flow_control.h"

#include <algorithm>

namespace rnic::link {

using protocol::PfcFrame;

PauseFlowControl::PauseFlowControl(const LinkPortConfig& config, ControlChannel& channel)
    : channel_(channel),
      lanes_(kPriorities, Lane(config.rx_buffer)),
      rate_(config.rate),
      xoff_(config.pfc_xoff),
      xon_(config.pfc_xon),
      quanta_(config.pause_quanta),
      mac_(config.mac) {}

void PauseFlowControl::settle(Gate& gate, Time now) {
  const Time end = std::min(now, gate.until);
  if (end > gate.since) gate.total += end - gate.since;
  gate.since = std::max(gate.since, now);
}

void PauseFlowControl::apply_orders(Time now) {
  while (!orders_.empty() && orders_.front().at <= now) {
    const Order& order = orders_.front();
    for (std::uint32_t i = 0; i < kPriorities; ++i) {
      if (((order.enable >> i) & 1U) == 0) continue;
      settle(gates_[i], order.at);
      gates_[i].until = order.at + rate_.time_for(std::uint64_t{order.time[i]} * kQuantumBytes);
    }
    orders_.pop_front();
  }
}

bool PauseFlowControl::may_send(std::uint32_t lane, std::uint32_t /*bytes*/, Time now) {
  apply_orders(now);
  return gates_[lane].until <= now;
}

Time PauseFlowControl::next_change(Time now) const {
  Time next = orders_.empty() ? kTimeNever : orders_.front().at;
  for (const Gate& gate : gates_) {
    if (gate.until > now) next = std::min(next, gate.until);
  }
  return next;
}

bool PauseFlowControl::admit(const protocol::Frame& frame, Time now) {
  Lane& lane = lanes_[frame.lane];
  const bool fits = lane.buffer.take(frame.frame_bytes(), now);
  if (!lane.pausing && lane.buffer.occupied() >= xoff_) {
    lane.pausing = true;
    tell(frame.lane, quanta_, now);
    watch(lane);
  }
  return fits;
}

void PauseFlowControl::release(std::uint32_t lane_index, std::uint32_t bytes, Time when,
                               Time /*now*/) {
  Lane& lane = lanes_[lane_index];
  lane.buffer.release(bytes, when);
  if (lane.pausing) watch(lane);
}

void PauseFlowControl::watch(const Lane& lane) {
  channel_.wake_at(std::min(lane.renew_at, lane.buffer.next_release()));
}

void PauseFlowControl::wake(Time now) {
  for (std::uint32_t i = 0; i < kPriorities; ++i) {
    Lane& lane = lanes_[i];
    if (!lane.pausing) continue;
    lane.buffer.settle(now);
    if (lane.buffer.occupied() <= xon_) {
      lane.pausing = false;
      tell(i, 0, now);
      continue;
    }
    if (lane.renew_at <= now) tell(i, quanta_, now);
    watch(lane);
  }
}

void PauseFlowControl::tell(std::uint32_t lane, std::uint16_t quanta, Time now) {
  PfcFrame pause;
  pause.source = mac_;
  pause.enable = static_cast<std::uint8_t>(1U << lane);
  pause.time[lane] = quanta;
  lanes_[lane].renew_at = now + rate_.time_for(std::uint64_t{quanta} * kQuantumBytes) / 2;
  protocol::Frame* frame = channel_.take_control_frame();
  pause.encode(frame->header);
  frame->header_bytes = PfcFrame::kBytes;
  frame->trailer_bytes = protocol::kFcsBytes;
  frame->lane = static_cast<std::uint8_t>(lane);
  frame->wire_bytes = protocol::kEthernetMinFrameBytes + protocol::kEthernetPreambleBytes +
                      protocol::kEthernetGapBytes;
  channel_.send_control(frame, now);
}

void PauseFlowControl::control_received(const protocol::Frame& frame, Time arrival) {
  const PfcFrame pause = PfcFrame::decode(frame.header);
  if (pause.is_pfc()) orders_.push_back(Order{arrival, pause.enable, pause.time});
}

Time PauseFlowControl::paused(std::uint32_t lane, Time now) {
  apply_orders(now);
  settle(gates_[lane], now);
  return gates_[lane].total;
}

std::uint64_t PauseFlowControl::highest_fill() const {
  std::uint64_t highest = 0;
  for (const Lane& lane : lanes_) highest = std::max(highest, lane.buffer.highest());
  return highest;
}

void PauseFlowControl::reset_statistics(Time now) {
  apply_orders(now);
  for (Gate& gate : gates_) {
    settle(gate, now);
    gate.total = kTimeZero;
  }
  for (Lane& lane : lanes_) {
    lane.buffer.settle(now);
    lane.buffer.reset_highest();
  }
}

}  // namespace rnic::link
