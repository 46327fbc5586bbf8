// SPDX-License-Identifier: Apache-2.0
#include "link/pause_flow_control.h"

#include <algorithm>

#include "base/timeline.h"

namespace rnic::link {

using protocol::PauseFrame;
using protocol::PfcFrame;

PauseFlowControl::PauseFlowControl(const LinkPortConfig& config, ControlChannel& channel)
    : channel_(channel),
      lanes_(kPriorities, Lane(config.rx_buffer)),
      rate_(config.rate),
      xoff_(config.pfc_xoff),
      xon_(config.pfc_xon),
      quanta_(config.pause_quanta),
      response_(config.pause_response),
      lossless_(config.flow_control == config::FlowControl::kPause ? 1 : config.lossless_lanes),
      global_(config.flow_control == config::FlowControl::kPause),
      mac_(config.mac) {}

void PauseFlowControl::link_up() {
  // Pauses of before a failure of the cable are void.
  orders_.clear();
  for (Gate& gate : gates_) {
    settle(gate, sim_now());
    gate.until = std::min(gate.until, sim_now());
  }
  for (std::uint32_t i = 0; i < kPriorities; ++i) {
    if (lanes_[i].pausing) tell(i, quanta_, sim_now());
  }
}

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
  return gates_[index(lane)].until <= now;
}

Time PauseFlowControl::next_change(Time now) const {
  Time next = orders_.empty() ? kTimeNever : orders_.front().at;
  for (const Gate& gate : gates_) {
    if (gate.until > now) next = std::min(next, gate.until);
  }
  return next;
}

bool PauseFlowControl::admit(const protocol::Frame& frame, Time now) {
  const std::uint32_t which = index(frame.lane);
  Lane& lane = lanes_[which];
  const bool fits = lane.buffer.take(frame.frame_bytes(), now);
  if (!lane.pausing && lane.buffer.occupied() >= xoff_ && ((lossless_ >> which) & 1U) != 0) {
    lane.pausing = true;
    tell(which, quanta_, now);
    watch(lane);
  }
  return fits;
}

void PauseFlowControl::release(std::uint32_t lane_index, std::uint32_t bytes, Time when,
                               Time /*now*/) {
  Lane& lane = lanes_[index(lane_index)];
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
  lanes_[lane].renew_at = now + rate_.time_for(std::uint64_t{quanta} * kQuantumBytes) / 2;
  protocol::Frame* frame = channel_.take_control_frame();
  if (global_) {
    PauseFrame pause;
    pause.source = mac_;
    pause.time = quanta;
    pause.encode(frame->header);
  } else {
    PfcFrame pause;
    pause.source = mac_;
    pause.enable = static_cast<std::uint8_t>(1U << lane);
    pause.time[lane] = quanta;
    pause.encode(frame->header);
  }
  frame->header_bytes = PfcFrame::kBytes;
  frame->trailer_bytes = protocol::kFcsBytes;
  frame->lane = static_cast<std::uint8_t>(lane);
  frame->wire_bytes = protocol::kEthernetMinFrameBytes + protocol::kEthernetPreambleBytes +
                      protocol::kEthernetGapBytes;
  channel_.send_control(frame, now);
}

void PauseFlowControl::control_received(const protocol::Frame& frame, Time arrival) {
  const Time at = arrival + response_;
  if (global_) {
    const PauseFrame pause = PauseFrame::decode(frame.header);
    if (pause.is_pause()) orders_.push_back(Order{at, 1, {pause.time}});
    return;
  }
  const PfcFrame pause = PfcFrame::decode(frame.header);
  if (pause.is_pfc()) orders_.push_back(Order{at, pause.enable, pause.time});
}

Time PauseFlowControl::paused(std::uint32_t lane, Time now) {
  apply_orders(now);
  if (global_ && lane != 0) return kTimeZero;  // one gate for all, counted once
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
