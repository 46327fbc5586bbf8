// SPDX-License-Identifier: Apache-2.0
#include "network/cable.h"

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::network {

using protocol::Frame;

Cable::Cable(const sc_core::sc_module_name& name, Time delay, const FaultConfig& faults,
             std::uint64_t seed, protocol::FramePool& frames, const FrameChecksums* checksums)
    : sc_module(name),
      delay_(delay),
      frames_(frames),
      injector_(faults, seed, this->name(), checksums) {
  for (End& end : ends_) end.cable = this;
  ends_[0].onward = &to_b;
  ends_[1].onward = &to_a;
  from_a.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(ends_[0]));
  from_b.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(ends_[1]));
  to_a.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(ends_[0]));
  to_b.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(ends_[1]));
}

void Cable::connect(link::LinkPort& a, link::LinkPort& b) {
  a.tx.bind(from_a);
  b.tx.bind(from_b);
  to_a.bind(a.rx);
  to_b.bind(b.rx);
}

tlm::tlm_sync_enum Cable::End::nb_transport_fw(Frame& frame, tlm::tlm_phase& phase,
                                               sc_core::sc_time& delay) {
  if (cable->injector_.active() && cable->injector_.lose_or_damage(frame)) {
    cable->frames_.give(&frame);
    return tlm::TLM_COMPLETED;
  }
  delay += to_sc_time(cable->delay_);
  return (*onward)->nb_transport_fw(frame, phase, delay);
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
