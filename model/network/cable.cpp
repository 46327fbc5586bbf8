// SPDX-License-Identifier: Apache-2.0
#include "network/cable.h"

#include <utility>

#include "base/error.h"
#include "base/sc_time.h"
#include "base/timeline.h"

namespace rnic::network {

using protocol::Frame;

Cable::Cable(const sc_core::sc_module_name& name, Time delay, const FaultConfig& faults,
             std::uint64_t seed, protocol::FramePool& frames, const FrameChecksums* checksums,
             const Outage& outage)
    : sc_module(name),
      delay_(delay),
      frames_(frames),
      outage_(outage),
      down_alarm_("down_alarm", this, &Cable::go_down),
      up_alarm_("up_alarm", this, &Cable::up_again),
      injector_(faults, seed, this->name(), checksums) {
  for (End& end : ends_) end.cable = this;
  ends_[0].onward = &to_b;
  ends_[1].onward = &to_a;
  ends_[1].direction = 1;
  from_a.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(ends_[0]));
  from_b.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(ends_[1]));
  to_a.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(ends_[0]));
  to_b.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(ends_[1]));
}

void Cable::use_paths(const PathConfig& config, PathReader reader) {
  paths_.assign(ends_.size(), Paths(config));
  path_reader_ = std::move(reader);
}

void Cable::connect(link::LinkPort& a, link::LinkPort& b) {
  ports_[0] = &a;
  ports_[1] = &b;
  a.tx.bind(from_a);
  b.tx.bind(from_b);
  to_a.bind(a.rx);
  to_b.bind(b.rx);
}

tlm::tlm_sync_enum Cable::End::nb_transport_fw(Frame& frame, tlm::tlm_phase& phase,
                                               sc_core::sc_time& delay) {
  // Cut off at its end, or sent by a port that knew that its link was down.
  const Time now = sim_now();
  if (cable->outage_.length > kTimeZero &&
      (cable->down(now) || cable->down(now + from_sc_time(delay)))) {
    ++cable->lost_while_down_;
    if (frame.frame_class != protocol::FrameClass::kLinkControl) cable->outage_met_ = true;
    cable->frames_.give(&frame);
    return tlm::TLM_COMPLETED;
  }
  delay += to_sc_time(cable->delay_);
  if (!cable->paths_.empty() && frame.frame_class != protocol::FrameClass::kLinkControl) {
    const Time in = now + from_sc_time(delay);
    Paths& paths = cable->paths_[direction];
    const Time out = paths.cross(cable->path_reader_(frame), frame.wire_bytes, in);
    if (paths.overtook(out)) frame.uncounted = true;
    delay = to_sc_time(out - now);
  }
  if (cable->injector_.active()) {
    const Fate fate = cable->injector_.judge(frame, direction);
    if (fate.lost) {
      cable->frames_.give(&frame);
      return tlm::TLM_COMPLETED;
    }
    if (fate.duplicated) cable->repeat(frame, *this, from_sc_time(delay));
    if (fate.held_back) {
      frame.uncounted = true;
      delay += to_sc_time(cable->injector_.reorder_delay());
    }
  }
  return (*onward)->nb_transport_fw(frame, phase, delay);
}

/// A copy that arrives right behind the original.
void Cable::repeat(const Frame& frame, End& end, Time delay) {
  Frame* copy = frames_.take();
  protocol::copy_frame(frame, *copy);
  copy->uncounted = true;
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time annotated = to_sc_time(delay + picoseconds(1));
  (*end.onward)->nb_transport_fw(*copy, phase, annotated);
}

void Cable::start_of_simulation() {
  if (outage_.length == kTimeZero) return;
  down_alarm_.set(outage_.at);
  up_alarm_.set(outage_.at + outage_.length);
}

void Cable::go_down(Time now) {
  for (link::LinkPort* port : ports_) {
    if (port != nullptr) port->lose_link(now);
  }
}

void Cable::up_again(Time now) {
  // Twice: what one end tells depends on what the other told before.
  for (int round = 0; round < 2; ++round) {
    for (link::LinkPort* port : ports_) {
      if (port != nullptr) port->retrain();
    }
  }
  for (link::LinkPort* port : ports_) {
    if (port != nullptr) port->regain_link(now);
  }
}

tlm::tlm_sync_enum Cable::End::nb_transport_bw(Frame& /*frame*/, tlm::tlm_phase& /*phase*/,
                                               sc_core::sc_time& /*delay*/) {
  panic(cable->name(), "a receiver does not answer a cable");
}
void Cable::End::b_transport(Frame& /*frame*/, sc_core::sc_time& /*delay*/) {
  panic(cable->name(), "frames travel by non-blocking transport");
}
bool Cable::End::get_direct_mem_ptr(Frame& /*frame*/, tlm::tlm_dmi& /*dmi*/) { return false; }
unsigned Cable::End::transport_dbg(Frame& /*frame*/) { return 0; }
void Cable::End::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

}  // namespace rnic::network
