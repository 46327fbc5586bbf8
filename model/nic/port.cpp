// SPDX-License-Identifier: Apache-2.0
#include "nic/port.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "protocol/multicast.h"
#include "stats/stage.h"

namespace rnic::nic {

namespace {

/// From and to one address: the MAC addresses of Ethernet, the LIDs of InfiniBand.
bool to_itself(const protocol::Frame& frame, bool ethernet) {
  constexpr std::size_t kDlid = 2;  // in the LRH
  constexpr std::size_t kSlid = 6;
  constexpr std::size_t kMacBytes = 6;
  const std::uint8_t* h = frame.header;
  return ethernet ? std::memcmp(h, h + kMacBytes, kMacBytes) == 0
                  : std::memcmp(h + kDlid, h + kSlid, 2) == 0;
}

/// To a group: the group bit of Ethernet addresses, or a multicast LID.
bool to_group(const protocol::Frame& frame, bool ethernet) {
  constexpr std::size_t kDlid = 2;
  return ethernet ? (frame.header[0] & 1) != 0
                  : protocol::is_multicast_lid(protocol::load_be16(frame.header + kDlid));
}

}  // namespace

Port::Port(const sc_core::sc_module_name& name, const config::NicConfig& nic,
           config::Protocol protocol, const link::LinkPortConfig& config,
           protocol::FramePool& frames)
    : sc_module(name),
      link("link", config, frames),
      frames_(frames),
      ethernet_(protocol != config::Protocol::kIb),
      loopback_latency_(nic.loopback_latency),
      loopback_(nic.loopback_rate),
      loopback_cut_through_(config.cut_through),
      loopback_stats_(std::string(this->name()) + ".loopback"),
      leaving_("leaving", this, &Port::leave),
      coming_back_("coming_back", this, &Port::come_back) {
  if (loopback_cut_through_.granule > 0 &&
      nic.loopback_rate.bits_per_second() > loopback_cut_through_.rate.bits_per_second()) {
    loopback_cut_through_.rate = nic.loopback_rate;
  }
  port.bind(*this);
  link.set_receiver(this);
  link.set_egress_client(this);
}

void Port::send(protocol::Frame* frame, Time ready) {
  if (to_itself(*frame, ethernet_)) {
    turn_around(frame, ready);
    return;
  }
  if (groups_ != nullptr && !groups_->empty() && to_group(*frame, ethernet_)) {
    copy_for_own_members(*frame, ready);
  }
  link.send(frame, ready);
}

void Port::turn_around(protocol::Frame* frame, Time ready) {
  const Reservation slot = loopback_.reserve(std::max(ready, sim_now()), frame->frame_bytes());
  loopback_stats_.add_busy(slot.start, slot.end);
  frame->uncounted = true;  // takes no receive buffer of the link
  if (frame->trace != nullptr) frame->trace->mark(stats::Stage::kSerialize, slot.end);
  leaving_.post(slot.start, frame);
  coming_back_.post(slot.end + loopback_latency_ - loopback_cut_through_.lead(frame->payload_bytes),
                    frame);
}

/// No switch sends a frame back: members of the group behind this port get theirs inside the NIC.
void Port::copy_for_own_members(const protocol::Frame& frame, Time ready) {
  protocol::Frame* copy = frames_.take();
  protocol::copy_frame(frame, *copy);
  copy->uncounted = true;
  const Reservation slot = loopback_.reserve(std::max(ready, sim_now()), copy->frame_bytes());
  loopback_stats_.add_busy(slot.start, slot.end);
  coming_back_.post(slot.end + loopback_latency_ - loopback_cut_through_.lead(copy->payload_bytes),
                    copy);
}

void Port::reset_statistics(Time now) {
  link.reset_statistics(now);
  loopback_stats_.reset(now);
}

void Port::leave(protocol::Frame*& frame) {
  if (frame->answers_qpn != 0) pipeline_->answer_sent(frame->answers_qpn);
  scheduler->slot_freed(sim_now(), frame->lane);
}

void Port::come_back(protocol::Frame*& frame) {
  const Time now = sim_now();
  if (frame->trace != nullptr) frame->trace->mark(stats::Stage::kPropagate, now);
  pipeline_->frame_arrived(frame, now);
}

void Port::release(const protocol::Frame& frame, Time when) {
  if (frame.uncounted) return;
  link.release_rx(frame.lane, frame.frame_bytes(), when);
}

void Port::frame_arrived(protocol::Frame* frame, Time now) { pipeline_->frame_arrived(frame, now); }

void Port::link_lost(Time now) {
  state_ = protocol::PortState::kDown;
  if (events.size() > 0) events->raise({protocol::EventType::kPortError, kNumber}, now);
}

void Port::link_regained(Time now) {
  state_ = protocol::PortState::kActive;
  if (events.size() > 0) events->raise({protocol::EventType::kPortActive, kNumber}, now);
}

void Port::frame_sent(std::uint32_t lane, std::uint32_t /*bytes*/, std::uint32_t answers_qpn,
                      Time /*start*/, Time /*end*/) {
  freed_lane_ = lane;
  if (answers_qpn != 0) pipeline_->answer_sent(answers_qpn);
}

void Port::egress_space(Time now) { scheduler->slot_freed(now, freed_lane_); }

}  // namespace rnic::nic
