// SPDX-License-Identifier: Apache-2.0
#include "link/link_port.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::link {

using protocol::Frame;
using protocol::FrameClass;

LinkPort::LinkPort(const sc_core::sc_module_name& name, const LinkPortConfig& config,
                   protocol::FramePool& frames)
    : sc_module(name),
      config_(resolve(config)),
      frames_(frames),
      flow_(make_flow_control(config_, *this)),
      arbiter_(make_arbiter(config_)),
      lanes_(config_.lanes),
      lane_wire_bytes_(config_.lanes),
      unit_(this->name()),
      tx_alarm_("tx_alarm", this, &LinkPort::pump),
      flow_alarm_("flow_alarm", this, &LinkPort::flow_wake),
      arrivals_("arrivals", this, &LinkPort::arrived),
      late_arrivals_("late_arrivals", this, &LinkPort::arrived) {
  tx.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(*this));
  rx.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(*this));
}

// --- transmit side ---

bool LinkPort::idle_until(Time ready, Time now) const {
  return queued_ == 0 && control_.empty() && free_at_ <= ready &&
         ready - now <= config_.commit_ahead;
}

void LinkPort::send(Frame* frame, Time ready) {
  const Time now = sim_now();
  ready = std::max(ready, now);
  const std::uint32_t lane = frame->lane;
  if (lane >= lanes_.size()) panic(name(), "a frame was sent on a lane that does not exist");
  if (idle_until(ready, now) && may_send(lane, frame->frame_bytes(), now)) {
    transmit_data(frame, ready, now);
    return;
  }
  Ring<Waiting>& queue = lanes_[lane];
  if (frame->frame_class == FrameClass::kData && !can_send(lane)) {
    panic(name(), "a data frame was sent to a full transmit queue");
  }
  if (!queue.empty()) ready = std::max(ready, queue.back().ready);
  queue.push_back(Waiting{frame, ready});
  occupied_lanes_ |= 1U << lane;
  unit_.set_occupancy(now, ++queued_);
  if (free_at_ > now) {
    tx_alarm_.set(std::max(ready, free_at_));  // all that wait longer have set it
  } else {
    pump(now);
  }
}

bool LinkPort::may_send(std::uint32_t lane, std::uint32_t bytes, Time now) {
  return down_ || flow_->may_send(lane, bytes, now);
}

void LinkPort::lose_link(Time now) {
  down_ = true;
  pump(now);
  receiver_->link_lost(now);
}

void LinkPort::regain_link(Time now) {
  down_ = false;
  receiver_->link_regained(now);
}

void LinkPort::pump(Time now) {
  while (free_at_ <= now && send_next(now)) {
  }
  schedule(now);
}

bool LinkPort::send_next(Time now) {
  if (!control_.empty() && control_.front().ready <= now) {
    Frame* frame = control_.front().frame;
    control_.pop_front();
    transmit_control(frame, now, now);
    return true;
  }
  std::uint32_t eligible = 0;
  bool gated = false;
  for (std::uint32_t rest = occupied_lanes_; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(rest));
    const Waiting& head = lanes_[lane].front();
    if (head.ready > now) continue;
    if (may_send(lane, head.frame->frame_bytes(), now)) {
      eligible |= 1U << lane;
    } else {
      gated = true;
    }
  }
  if (eligible == 0) {
    if (gated && stalled_since_ == kTimeNever) stalled_since_ = now;
    return false;
  }
  const std::uint32_t lane = arbiter_->pick(eligible);
  Ring<Waiting>& queue = lanes_[lane];
  Frame* frame = queue.front().frame;
  queue.pop_front();
  if (queue.empty()) occupied_lanes_ &= ~(1U << lane);
  unit_.set_occupancy(now, --queued_);
  transmit_data(frame, now, now);
  return true;
}

void LinkPort::schedule(Time now) {
  Time next = control_.empty() ? kTimeNever : control_.front().ready;
  bool waits_for_flow = false;
  for (std::uint32_t rest = occupied_lanes_; rest != 0; rest &= rest - 1) {
    const Time ready = lanes_[static_cast<std::uint32_t>(__builtin_ctz(rest))].front().ready;
    if (ready > now || free_at_ > now) {
      next = std::min(next, ready);
    } else {
      waits_for_flow = true;
    }
  }
  if (waits_for_flow) next = std::min(next, flow_->next_change(now));
  if (next != kTimeNever) tx_alarm_.set(std::max(next, free_at_));
}

Time LinkPort::serialize(Frame& frame, Time start) {
  const Time end = start + config_.rate.time_for(frame.wire_bytes);
  free_at_ = end;
  unit_.add_busy(start, end);
  sent_.wire_bytes += frame.wire_bytes;
  return end;
}

void LinkPort::put_on_wire(Frame& frame, Time end, Time now) {
  if (tap_ != nullptr) tap_->frame_passed(frame, TapDirection::kSent, end);
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = to_sc_time(end + config_.phy_latency - now);
  tx->nb_transport_fw(frame, phase, delay);
}

void LinkPort::transmit_data(Frame* frame, Time start, Time now) {
  if (stalled_since_ != kTimeNever) {
    unit_.add_stall(flow_->cause(), start - stalled_since_);
    stalled_since_ = kTimeNever;
  }
  const std::uint32_t lane = frame->lane;
  const std::uint32_t bytes = frame->frame_bytes();
  const std::uint32_t answers_qpn = frame->answers_qpn;
  const Time end = serialize(*frame, start);
  arbiter_->sent(lane, bytes);
  lane_wire_bytes_[lane] += frame->wire_bytes;
  ++sent_.frames;
  if (frame->frame_class == FrameClass::kData) {
    ++sent_.data_packets;
    sent_.payload_bytes += frame->payload_bytes;
  }
  if (frame->trace != nullptr) {
    frame->trace->mark(config_.wait_stage, start);
    frame->trace->mark(stats::Stage::kSerialize, end);
  }
  put_on_wire(*frame, end, now);  // the frame is the peer's from here on
  flow_->sent(lane, bytes, start);
  if (client_ != nullptr) {
    client_->frame_sent(lane, bytes, answers_qpn, start, end);
    client_->egress_space(start);
  }
}

Frame* LinkPort::take_control_frame() {
  Frame* frame = frames_.take();
  frame->frame_class = FrameClass::kLinkControl;
  frame->pad_bytes = 0;
  frame->marker_count = 0;
  frame->payload_bytes = 0;
  frame->checksums_deferred = true;
  frame->has_payload_data = false;
  frame->ecn_marked = false;
  frame->uncounted = false;
  frame->trace = nullptr;
  frame->sequence = 0;
  return frame;
}

void LinkPort::send_control(Frame* frame, Time ready) {
  const Time now = sim_now();
  ready = std::max(ready, now);
  if (idle_until(ready, now)) {
    transmit_control(frame, ready, now);
    return;
  }
  control_.push_back(Waiting{frame, ready});
  for (std::size_t i = control_.size() - 1; i > 0 && control_[i - 1].ready > ready; --i) {
    std::swap(control_[i - 1], control_[i]);
  }
  tx_alarm_.set(std::max({ready, free_at_, now}));
}

void LinkPort::transmit_control(Frame* frame, Time start, Time now) {
  flow_->stamp(*frame);
  ++sent_.control_frames;
  const Time end = serialize(*frame, start);
  put_on_wire(*frame, end, now);
}

void LinkPort::send_training(Frame* frame) {
  if (tap_ != nullptr) tap_->frame_passed(*frame, TapDirection::kSent, sim_now());
  frame->wire_bytes = 0;  // no line time, not counted
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  tx->nb_transport_fw(*frame, phase, delay);
}

// --- receive side ---

tlm::tlm_sync_enum LinkPort::nb_transport_fw(Frame& frame, tlm::tlm_phase& phase,
                                             sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_REQ) panic(name(), "a cable only carries BEGIN_REQ");
  const Time now = sim_now();
  const Time arrival = now + from_sc_time(delay) + config_.phy_latency;
  received_.wire_bytes += frame.wire_bytes;
  if (tap_ != nullptr) tap_->frame_passed(frame, TapDirection::kReceived, arrival);
  if (frame.frame_class != FrameClass::kLinkControl) {
    if (frame.lane >= lanes_.size()) panic(name(), "a frame arrived on a lane that does not exist");
    if (frame.uncounted) {
      late_arrivals_.post(arrival, &frame);
      return tlm::TLM_COMPLETED;
    }
    flow_->expect(frame);
    arrivals_.post(std::max(now, arrival - config_.cut_through.lead(frame.payload_bytes)), &frame);
    return tlm::TLM_COMPLETED;
  }
  // Link control is read when somebody asks for its effect, so it takes no event of its own.
  if (frame.wire_bytes != 0) ++received_.control_frames;
  flow_->control_received(frame, arrival);
  frames_.give(&frame);
  if (queued_ != 0) {
    const Time change = flow_->next_change(now);
    if (change != kTimeNever) tx_alarm_.set(std::max(change, free_at_));
  }
  return tlm::TLM_COMPLETED;
}

void LinkPort::arrived(Frame*& frame) {
  const Time now = sim_now();
  if (frame->trace != nullptr) frame->trace->mark(stats::Stage::kPropagate, now);
  ++received_.frames;
  if (!frame->uncounted && !flow_->admit(*frame, now)) {
    ++dropped_;
    frames_.give(frame);
    return;
  }
  if (frame->frame_bytes() > config_.largest_accepted) {
    ++oversize_;
    if (!frame->uncounted) flow_->release(frame->lane, frame->frame_bytes(), now, now);
    frames_.give(frame);
    return;
  }
  if (frame->frame_class == FrameClass::kData) {
    ++received_.data_packets;
    received_.payload_bytes += frame->payload_bytes;
  }
  receiver_->frame_arrived(frame, now);
}

void LinkPort::release_rx(std::uint32_t lane, std::uint32_t bytes, Time when) {
  const Time now = sim_now();
  flow_->release(lane, bytes, std::max(when, now), now);
}

tlm::tlm_sync_enum LinkPort::nb_transport_bw(Frame& /*frame*/, tlm::tlm_phase& /*phase*/,
                                             sc_core::sc_time& /*delay*/) {
  panic(name(), "a cable does not answer");
}
void LinkPort::b_transport(Frame& /*frame*/, sc_core::sc_time& /*delay*/) {
  panic(name(), "frames travel by non-blocking transport");
}
bool LinkPort::get_direct_mem_ptr(Frame& /*frame*/, tlm::tlm_dmi& /*dmi*/) { return false; }
unsigned LinkPort::transport_dbg(Frame& /*frame*/) { return 0; }
void LinkPort::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

// --- statistics ---

Time LinkPort::paused(Time now) {
  Time total{0};
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) total += flow_->paused(lane, now);
  return total;
}

void LinkPort::reset_statistics(Time now) {
  unit_.reset(now);
  if (stalled_since_ != kTimeNever) stalled_since_ = std::max(stalled_since_, now);
  sent_ = received_ = PortCounters{};
  std::fill(lane_wire_bytes_.begin(), lane_wire_bytes_.end(), 0);
  dropped_ = oversize_ = 0;
  flow_->reset_statistics(now);
}

}  // namespace rnic::link
