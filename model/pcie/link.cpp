// SPDX-License-Identifier: Apache-2.0
#include "pcie/link.h"

#include <string>

#include "base/sc_time.h"

namespace rnic::pcie {
namespace {

tlm_ext::Purpose purpose_of(const tlm::tlm_generic_payload& payload) {
  const auto* extension = payload.get_extension<tlm_ext::PcieExtension>();
  return extension != nullptr ? extension->purpose : tlm_ext::Purpose::kPayload;
}

}  // namespace

Link::Link(const sc_core::sc_module_name& name, const config::PcieConfig& config)
    : sc_core::sc_module(name),
      device_target("device_target"),
      device_initiator("device_initiator"),
      host_initiator("host_initiator"),
      host_target("host_target"),
      rules_(protocol::tlp_rules(config.gen, config.mps, config.mrrs, config.rcb)),
      latency_(config.latency),
      lanes_{Lane{RateServer(protocol::tlp_rate(config.gen, config.lanes, config.mps,
                                                config.dllp_overhead)),
                  stats::UnitStats(std::string(this->name()) + ".to_host")},
             Lane{RateServer(protocol::tlp_rate(config.gen, config.lanes, config.mps,
                                                config.dllp_overhead)),
                  stats::UnitStats(std::string(this->name()) + ".to_device")}} {
  device_end_.link = host_end_.link = this;
  device_end_.is_device = true;
  device_target.bind(device_end_);
  device_initiator.bind(device_end_);
  host_initiator.bind(host_end_);
  host_target.bind(host_end_);
}

TlpCounter Link::total(Direction direction) const {
  TlpCounter sum;
  for (const TlpCounter& counter : lane(direction).by_purpose) {
    sum.tlps += counter.tlps;
    sum.payload_bytes += counter.payload_bytes;
    sum.wire_bytes += counter.wire_bytes;
  }
  return sum;
}

void Link::reset_statistics(Time now) {
  for (Lane& lane : lanes_) {
    lane.server.server().reset_statistics();
    lane.unit.reset(now);
    lane.by_purpose.fill(TlpCounter{});
  }
}

Reservation Link::send(Direction direction, Time earliest, const protocol::TlpCount& tlps,
                       tlm_ext::Purpose purpose) {
  Lane& wire = lane(direction);
  const Reservation slot = wire.server.reserve(earliest, tlps.wire_bytes);
  wire.unit.add_busy(slot.end - slot.start);
  TlpCounter& counter = wire.by_purpose[static_cast<std::size_t>(purpose)];
  counter.tlps += tlps.tlps;
  counter.payload_bytes += tlps.payload_bytes;
  counter.wire_bytes += tlps.wire_bytes;
  return slot;
}

Reservation Link::send_request(bool from_device, Time earliest,
                               const tlm::tlm_generic_payload& payload, Time& arrival) {
  const Direction direction = from_device ? Direction::kToHost : Direction::kToDevice;
  const bool read = payload.is_read();
  const protocol::TlpCount tlps =
      read ? protocol::read_request_tlps(rules_, payload.get_address(), payload.get_data_length())
           : protocol::write_tlps(rules_, payload.get_address(), payload.get_data_length());
  const Reservation slot = send(direction, earliest, tlps, purpose_of(payload));
  // The first of several read requests starts the stream of completions; later ones travel while
  // the answer to the first is under way.
  arrival = latency_ +
            (read ? slot.start + lane(direction).server.rate().time_for(rules_.request_overhead)
                  : slot.end);
  return slot;
}

Time Link::send_response(bool to_device, Time earliest, const tlm::tlm_generic_payload& payload) {
  if (!payload.is_read()) return earliest;
  // An error is answered by one completion without data.
  const bool ok = payload.is_response_ok();
  const protocol::TlpCount tlps =
      ok ? protocol::completion_tlps(rules_, payload.get_address(), payload.get_data_length())
         : protocol::TlpCount{1, 0, rules_.completion_overhead};
  const Direction direction = to_device ? Direction::kToDevice : Direction::kToHost;
  return send(direction, earliest, tlps, purpose_of(payload)).end + latency_;
}

tlm::tlm_sync_enum Link::End::nb_transport_fw(tlm::tlm_generic_payload& payload,
                                              tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_REQ) return tlm::TLM_ACCEPTED;  // END_RESP: nothing to free
  const Time now = sim_now();
  Time arrival{0};
  const Reservation slot =
      link->send_request(is_device, now + from_sc_time(delay), payload, arrival);
  tlm::tlm_phase onward_phase = tlm::BEGIN_REQ;
  sc_core::sc_time onward_delay = to_sc_time(arrival - now);
  const tlm::tlm_sync_enum answer =
      link->onward(is_device)->nb_transport_fw(payload, onward_phase, onward_delay);
  // The sender is free when its last byte has left, whatever the far end still has to do.
  delay = to_sc_time(slot.end - now);
  if (answer == tlm::TLM_COMPLETED) return tlm::TLM_COMPLETED;
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

tlm::tlm_sync_enum Link::End::nb_transport_bw(tlm::tlm_generic_payload& payload,
                                              tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;  // END_REQ: nobody waits for it
  const Time now = sim_now();
  const Time arrival = link->send_response(!is_device, now + from_sc_time(delay), payload);
  sc_core::sc_time onward_delay = to_sc_time(arrival - now);
  OptionalTarget& onward = is_device ? link->host_target : link->device_target;
  return onward->nb_transport_bw(payload, phase, onward_delay);
}

void Link::End::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const Time now = sim_now();
  Time arrival{0};
  link->send_request(is_device, now + from_sc_time(delay), payload, arrival);
  delay = to_sc_time(arrival - now);
  link->onward(is_device)->b_transport(payload, delay);
  delay = to_sc_time(link->send_response(is_device, now + from_sc_time(delay), payload) - now);
}

bool Link::End::get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/, tlm::tlm_dmi& /*dmi*/) {
  return false;
}

unsigned Link::End::transport_dbg(tlm::tlm_generic_payload& payload) {
  return link->onward(is_device)->transport_dbg(payload);
}

void Link::End::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

}  // namespace rnic::pcie
