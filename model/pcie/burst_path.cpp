// SPDX-License-Identifier: Apache-2.0
#include "pcie/burst_path.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic::pcie {

using protocol::TlpClass;
using protocol::TlpCount;

namespace {

/// A write that passes no other.
bool is_strict(const tlm::tlm_generic_payload& payload) {
  return payload.is_write() && !tlm_ext::extension_of(payload).relaxed_ordering;
}

}  // namespace

BurstPath::BurstPath(const sc_core::sc_module_name& name, LinkEnds& ends)
    : sc_module(name), ends_(ends), held_("held", this, &BurstPath::come) {}

tlm::tlm_sync_enum BurstPath::request(Direction direction, tlm::tlm_generic_payload& payload,
                                      Time at, Time& left) {
  const bool waits = in_order_ || held_bytes_ > 0 || is_strict(payload);
  if (direction != Direction::kToHost || !waits) return travel(direction, payload, at, left);
  at = issue_order_.admit(payload, sim_now(), at);
  const std::uint64_t wire_bytes =
      request_tlps(ends_.rules(), payload, tlm_ext::extension_of(payload)).wire_bytes;
  const Lane& lane = ends_.lane(direction);
  held_bytes_ += wire_bytes;
  // As if those that are held as well leave one after another, behind what has been sent.
  left = std::max(at + lane.rate().time_for(wire_bytes),
                  lane.posted_left() + lane.rate().time_for(held_bytes_));
  payload.acquire();
  held_.post(at, {wire_bytes, &payload});
  return tlm::TLM_UPDATED;
}

void BurstPath::come(Held& held) {
  Time left{0};
  held_bytes_ -= held.wire_bytes;
  travel(Direction::kToHost, *held.payload, sim_now(), left);
  held.payload->release();
}

tlm::tlm_sync_enum BurstPath::travel(Direction direction, tlm::tlm_generic_payload& payload,
                                     Time at, Time& left) {
  const TlpClass kind = request_class(payload);
  const tlm_ext::PcieExtension& extension = tlm_ext::extension_of(payload);
  const TlpCount tlps = request_tlps(ends_.rules(), payload, extension);
  Lane& lane = ends_.lane(direction);
  const tlm_ext::Purpose purpose = extension.purpose;
  const bool posted = kind == TlpClass::kPosted;
  const Reservation slot =
      lane.answers_flow_controlled()
          ? lane.send(at, tlps, purpose, attributes_of(payload, extension, kind))
      : posted                 ? lane.occupy_posted(at, tlps, purpose)
      : lane.flow_controlled() ? lane.behind_posted(lane.occupy(at, tlps, purpose),
                                                    attributes_of(payload, extension, kind))
                               : lane.occupy(at, tlps, purpose);
  Time sent = slot.end;
  if (kind == TlpClass::kRead && tlps.tlps > 1) {
    // The first of several read requests starts the stream of completions; later ones travel while
    // the answer to the first is under way.
    const BitRate& rate = lane.rate();
    sent -= rate.time_for(tlps.wire_bytes) - rate.time_for(tlps.wire_bytes / tlps.tlps);
  }
  left = slot.end;
  Time freed{0};
  const tlm::tlm_sync_enum answer =
      ends_.deliver_request(direction, payload, sent + ends_.one_way(), freed);
  const CreditUnits units = credit_units(tlps.tlps, tlps.payload_bytes);
  if (posted && lane.finite(FlowClass::kPosted)) {
    lane.written(freed, units, slot.end - slot.start);
  } else if (!posted && lane.finite(FlowClass::kNonPosted)) {
    lane.drained(freed, FlowClass::kNonPosted, units);
  }
  return answer;
}

tlm::tlm_sync_enum BurstPath::respond(Direction direction, tlm::tlm_generic_payload& payload,
                                      Time at) {
  // A posted write is answered without a packet.
  const Time arrival =
      payload.is_read() ? send_completions(direction, payload, at) + ends_.one_way() : at;
  return ends_.deliver_response(direction, payload, arrival);
}

Time BurstPath::send_completions(Direction direction, const tlm::tlm_generic_payload& payload,
                                 Time at) {
  const TlpCount tlps = completion_tlps(ends_.rules(), payload);
  const tlm_ext::PcieExtension& extension = tlm_ext::extension_of(payload);
  const tlm_ext::Purpose purpose = extension.purpose;
  Lane& lane = ends_.lane(direction);
  if (!lane.flow_controlled()) return lane.occupy_completion(at, tlps, purpose).end;
  const protocol::TlpAttributes attributes =
      attributes_of(payload, extension, TlpClass::kCompletion);
  if (!lane.answers_flow_controlled()) {
    return lane.behind_posted(lane.occupy_completion(at, tlps, purpose), attributes).end;
  }
  if (!lane.finite(FlowClass::kCompletion)) {
    return lane.send(at, tlps, purpose, attributes).end;
  }
  // Credits count packets: each goes for itself, and is taken out of the buffer as it arrives.
  Time left = at;
  protocol::for_each_completion(
      ends_.rules(), payload.get_address(), tlps.payload_bytes, [&](std::uint32_t bytes) {
        const std::uint32_t overhead = ends_.rules().completion_overhead;
        left = lane.send(at, {1, bytes, bytes + overhead}, purpose, attributes).end;
        lane.drained(left + ends_.one_way(), FlowClass::kCompletion, credit_units(1, bytes));
      });
  return left;
}

}  // namespace rnic::pcie
