// SPDX-License-Identifier: Apache-2.0
#include "nic/port.h"

namespace rnic::nic {

Port::Port(const sc_core::sc_module_name& name, const link::LinkPortConfig& config,
           protocol::FramePool& frames)
    : sc_module(name), link("link", config, frames) {
  port.bind(*this);
  link.set_receiver(this);
  link.set_egress_client(this);
}

void Port::send(protocol::Frame* frame, Time ready) { link.send(frame, ready); }

void Port::release(const protocol::Frame& frame, Time when) {
  if (frame.uncounted) return;
  link.release_rx(frame.lane, frame.frame_bytes(), when);
}

void Port::frame_arrived(protocol::Frame* frame, Time now) { pipeline_->frame_arrived(frame, now); }

void Port::frame_sent(std::uint32_t lane, std::uint32_t /*bytes*/, std::uint32_t answers_qpn,
                      Time /*start*/, Time /*end*/) {
  freed_lane_ = lane;
  if (answers_qpn != 0) pipeline_->answer_sent(answers_qpn);
}

void Port::egress_space(Time now) { scheduler->slot_freed(now, freed_lane_); }

}  // namespace rnic::nic
