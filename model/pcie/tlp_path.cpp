// SPDX-License-Identifier: Apache-2.0
#include "pcie/tlp_path.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic::pcie {

using protocol::TlpClass;

TlpPath::TlpPath(const sc_core::sc_module_name& name, LinkEnds& ends)
    : sc_module(name),
      ends_(ends),
      entering_("entering", this, &TlpPath::enter),
      arriving_("arriving", this, &TlpPath::arrive),
      wakes_("wakes", this, &TlpPath::woken) {}

tlm::tlm_sync_enum TlpPath::request(Direction direction, tlm::tlm_generic_payload& payload, Time at,
                                    Time& left) {
  payload.acquire();
  if (direction == Direction::kToHost) at = issue_order_.admit(payload, sim_now(), at);
  const TlpClass kind = request_class(payload);
  const protocol::TlpRules& rules = ends_.rules();
  const std::uint32_t overhead = rules.request_overhead_at(payload.get_address());
  Tlp tlp;
  const tlm_ext::PcieExtension& extension = tlm_ext::extension_of(payload);
  tlp.attributes = attributes_of(payload, extension, kind);
  tlp.transaction = &payload;
  const protocol::TlpCount all = request_tlps(rules, payload, extension);
  std::uint64_t address = payload.get_address();
  std::uint32_t rest =
      kind == TlpClass::kRead ? operand_bytes(extension) : payload.get_data_length();
  for (std::uint64_t i = 0; i < all.tlps; ++i) {
    tlp.payload_bytes = protocol::first_write(rules, address, rest);
    tlp.wire_bytes = tlp.payload_bytes + overhead;
    tlp.last = i + 1 == all.tlps;
    entering_.post(at, {direction, tlp});
    address += tlp.payload_bytes;
    rest -= tlp.payload_bytes;
  }
  const Time wire = ends_.lane(direction).rate().time_for(all.wire_bytes);
  left = std::max(way(direction).forecast.reserve(at, wire).end, expected_departure(direction));
  return tlm::TLM_UPDATED;
}

Time TlpPath::expected_departure(Direction direction) const {
  if (way(direction).starved_since == kTimeNever) return kTimeZero;
  const auto packets = static_cast<std::int64_t>(waiting(direction) + entering_.size());
  return sim_now() + way(direction).pace * packets;
}

tlm::tlm_sync_enum TlpPath::respond(Direction direction, tlm::tlm_generic_payload& payload,
                                    Time at) {
  if (!payload.is_read()) return ends_.deliver_response(direction, payload, at);
  payload.acquire();
  const protocol::TlpCount all = completion_tlps(ends_.rules(), payload);
  Tlp tlp;
  tlp.attributes = attributes_of(payload, tlm_ext::extension_of(payload), TlpClass::kCompletion);
  tlp.transaction = &payload;
  std::uint64_t sent = 0;
  protocol::for_each_completion(ends_.rules(), payload.get_address(), all.payload_bytes,
                                [&](std::uint32_t bytes) {
                                  tlp.payload_bytes = bytes;
                                  tlp.wire_bytes = bytes + ends_.rules().completion_overhead;
                                  tlp.last = ++sent == all.tlps;
                                  entering_.post(at, {direction, tlp});
                                });
  return tlm::TLM_ACCEPTED;
}

void TlpPath::enter(Moving& entering) {
  way(entering.direction).queues.push(entering.tlp);
  kick(entering.direction);
}

void TlpPath::kick(Direction direction) {
  Way& way_of = way(direction);
  const Time now = sim_now();
  if (way_of.queues.empty()) return;
  if (way_of.wire_free > now) {
    wake(direction, way_of.wire_free);
    return;
  }
  Lane& lane = ends_.lane(direction);
  const std::optional<FlowClass> next = way_of.queues.pick(now, lane.credits);
  if (next) {
    transmit(direction, *next);
    note_stall(way_of, lane);
    if (!way_of.queues.empty()) wake(direction, way_of.wire_free);
    return;
  }
  // All are blocked: until the next UpdateFC, or until a packet frees a buffer.
  note_stall(way_of, lane);
  Time update = kTimeNever;
  for (const CreditPool& pool : lane.credits) {
    // What has come before has been looked at, by those that it is for.
    if (pool.next_update() > now) update = std::min(update, pool.next_update());
  }
  if (update != kTimeNever) wake(direction, update);
}

void TlpPath::reset_statistics(Time now) {
  for (Way& way_of : ways_) {
    if (way_of.starved_since != kTimeNever) way_of.starved_since = now;
  }
}

void TlpPath::note_stall(Way& way_of, Lane& lane) {
  const Time now = sim_now();
  if (way_of.starved_since != kTimeNever) {
    lane.unit.add_stall(stats::StallCause::kNoCredit, now - way_of.starved_since);
  }
  way_of.starved_since = way_of.queues.starved(now, lane.credits) ? now : kTimeNever;
}

void TlpPath::transmit(Direction direction, FlowClass which) {
  Way& way_of = way(direction);
  Lane& lane = ends_.lane(direction);
  const Tlp tlp = way_of.queues.front(which);
  way_of.queues.pop(which);
  CreditPool& pool = lane.credits[static_cast<std::size_t>(which)];
  if (pool.finite()) pool.consume(tlp.units());
  const Reservation slot = lane.occupy(sim_now(), {1, tlp.payload_bytes, tlp.wire_bytes},
                                       tlm_ext::extension_of(*tlp.transaction).purpose);
  way_of.wire_free = slot.end;
  constexpr std::int64_t kMemory = 16;  // packets
  if (way_of.last_sent != kTimeNever) {
    way_of.pace += (slot.start - way_of.last_sent - way_of.pace) / kMemory;
  }
  way_of.last_sent = way_of.queues.empty() ? kTimeNever : slot.start;
  arriving_.post(slot.end + ends_.one_way(), {direction, tlp});
}

void TlpPath::wake(Direction direction, Time at) {
  Way& way_of = way(direction);
  if (way_of.wake_at <= at) return;
  way_of.wake_at = at;
  wakes_.post(at, direction);
}

void TlpPath::woken(Direction& direction) {
  Way& way_of = way(direction);
  if (way_of.wake_at != sim_now()) return;  // an earlier wake took its place
  way_of.wake_at = kTimeNever;
  kick(direction);
}

void TlpPath::arrive(Moving& arriving) {
  const Time now = sim_now();
  const Tlp tlp = arriving.tlp;
  tlm::tlm_generic_payload& payload = *tlp.transaction;
  const FlowClass which = flow_class(tlp.attributes.kind);
  const bool completion = which == FlowClass::kCompletion;
  Time freed = now;
  if (tlp.last && !completion) ends_.deliver_request(arriving.direction, payload, now, freed);
  Lane& lane = ends_.lane(arriving.direction);
  if (lane.finite(which)) {
    lane.drained(freed, which, tlp.units());
    kick(arriving.direction);
  }
  if (!tlp.last) return;
  if (completion) ends_.deliver_response(arriving.direction, payload, now);
  payload.release();
}

}  // namespace rnic::pcie
