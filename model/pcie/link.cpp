// SPDX-License-Identifier: Apache-2.0
#include "pcie/link.h"

#include <string>

#include "base/sc_time.h"
#include "pcie/burst_path.h"
#include "pcie/tlp_path.h"

namespace rnic::pcie {

Link::Link(const sc_core::sc_module_name& name, const config::PcieConfig& config,
           std::uint64_t seed)
    : sc_core::sc_module(name),
      device_target("device_target"),
      device_initiator("device_initiator"),
      host_initiator("host_initiator"),
      host_target("host_target"),
      rules_(rules_of(config)),
      latency_(config.one_way()),
      lanes_{Lane(std::string(this->name()) + ".to_host", config, config.root_credits, seed),
             Lane(std::string(this->name()) + ".to_device", config, config.device_credits, seed)},
      faults_(config.fault, seed, std::string(this->name()) + ".faults") {
  LinkEnds& ends = *this;
  if (tlp_by_tlp(config)) {
    path_ = std::make_unique<TlpPath>("tlps", ends);
  } else {
    path_ = std::make_unique<BurstPath>("bursts", ends);
  }
  device_end_.link = host_end_.link = this;
  device_end_.is_device = true;
  device_target.bind(device_end_);
  device_initiator.bind(device_end_);
  host_initiator.bind(host_end_);
  host_target.bind(host_end_);
}

void Link::reset_statistics(Time now) {
  for (Lane& lane : lanes_) lane.reset_statistics(now);
  path_->reset_statistics(now);
}

tlm::tlm_sync_enum Link::deliver_request(Direction direction, tlm::tlm_generic_payload& payload,
                                         Time arrival, Time& freed) {
  const Time now = sim_now();
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = to_sc_time(arrival - now);
  const tlm::tlm_sync_enum answer = request_exit(direction)->nb_transport_fw(payload, phase, delay);
  const bool tells = answer == tlm::TLM_UPDATED && phase == tlm::END_REQ;
  freed = tells ? now + from_sc_time(delay) : arrival;
  return answer;
}

tlm::tlm_sync_enum Link::deliver_response(Direction direction, tlm::tlm_generic_payload& payload,
                                          Time arrival) {
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = to_sc_time(arrival - sim_now());
  OptionalTarget& exit = direction == Direction::kToDevice ? device_target : host_target;
  return exit->nb_transport_bw(payload, phase, delay);
}

bool Link::lose_or_poison(tlm::tlm_generic_payload& payload) {
  auto* extension = payload.get_extension<tlm_ext::PcieExtension>();
  if (extension == nullptr || !payload.is_read() || !payload.is_response_ok()) return false;
  extension->fate = faults_.next(
      extension->purpose,
      protocol::read_request_tlps(rules_, payload.get_address(), payload.get_data_length()).tlps);
  return extension->fate == tlm_ext::CompletionFate::kLost;
}

tlm::tlm_sync_enum Link::End::nb_transport_fw(tlm::tlm_generic_payload& payload,
                                              tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_REQ) return tlm::TLM_ACCEPTED;  // END_RESP: nothing to free
  const Time now = sim_now();
  const Direction direction = is_device ? Direction::kToHost : Direction::kToDevice;
  Time left{0};
  const tlm::tlm_sync_enum answer =
      link->path_->request(direction, payload, now + from_sc_time(delay), left);
  // The sender is free when its last byte has left, whatever the far end still has to do.
  delay = to_sc_time(left - now);
  if (answer == tlm::TLM_COMPLETED) return tlm::TLM_COMPLETED;
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

tlm::tlm_sync_enum Link::End::nb_transport_bw(tlm::tlm_generic_payload& payload,
                                              tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;  // END_REQ: nobody waits for it
  const Time at = sim_now() + from_sc_time(delay);
  const Direction direction = is_device ? Direction::kToHost : Direction::kToDevice;
  if (!is_device && link->faults_.possible() && link->lose_or_poison(payload)) {
    return link->deliver_response(direction, payload, at);  // so that the device's timer runs
  }
  return link->path_->respond(direction, payload, at);
}

void Link::End::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const Time now = sim_now();
  const Direction out = is_device ? Direction::kToHost : Direction::kToDevice;
  const Direction back = is_device ? Direction::kToDevice : Direction::kToHost;
  const tlm_ext::PcieExtension& extension = tlm_ext::extension_of(payload);
  const Reservation request = link->lane(out).occupy(
      now + from_sc_time(delay), request_tlps(link->rules_, payload, extension), extension.purpose);
  delay = to_sc_time(request.end + link->latency_ - now);
  link->request_exit(out)->b_transport(payload, delay);
  if (!payload.is_read()) return;
  const Reservation answer = link->lane(back).occupy(
      now + from_sc_time(delay), completion_tlps(link->rules_, payload), extension.purpose);
  delay = to_sc_time(answer.end + link->latency_ - now);
}

bool Link::End::get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/, tlm::tlm_dmi& /*dmi*/) {
  return false;
}

unsigned Link::End::transport_dbg(tlm::tlm_generic_payload& payload) {
  const Direction out = is_device ? Direction::kToHost : Direction::kToDevice;
  return link->request_exit(out)->transport_dbg(payload);
}

void Link::End::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

}  // namespace rnic::pcie
