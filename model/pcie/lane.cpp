// SPDX-License-Identifier: Apache-2.0
#include "pcie/lane.h"

#include <algorithm>

#include "base/error.h"

namespace rnic::pcie {
namespace {

CreditPools pools(const config::PcieCredits& c) {
  return {CreditPool({c.posted_headers, c.posted_data}),
          CreditPool({c.nonposted_headers, c.nonposted_data}),
          CreditPool({c.completion_headers, c.completion_data})};
}

}  // namespace

Lane::Lane(const std::string& name, const config::PcieConfig& config,
           const config::PcieCredits& credit_limits, std::uint64_t seed)
    : unit(name),
      credits(pools(credit_limits)),
      rate_(protocol::tlp_rate(config.gen, config.lanes, config.mps, config.dllp_overhead)),
      one_way_(config.one_way()),
      update_latency_(config.update_fc_latency),
      update_interval_(config.update_fc_interval),
      errors_(config.bit_error_rate, seed, name),
      flow_controlled_(std::any_of(credits.begin(), credits.end(),
                                   [](const CreditPool& pool) { return pool.finite(); })) {}

void Lane::reset_statistics(Time now) {
  unit.reset(now);
  by_purpose.fill(TlpCounter{});
  replays = 0;
  // Of a wait that was foreseen, what is still to come belongs to the new window.
  if (stalled_until_ > now) unit.add_stall(stats::StallCause::kNoCredit, stalled_until_ - now);
}

Reservation Lane::occupy(Time earliest, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose) {
  Reservation slot = wire_.reserve(earliest, rate_.time_for(tlps.wire_bytes));
  if (errors_.possible()) {
    const std::uint32_t errors = errors_.strikes(tlps.wire_bytes * 8);
    if (errors > 0) slot.end = wire_.reserve(slot.end, replay(errors, tlps)).end;
  }
  unit.add_busy(slot.start, slot.end);
  by_purpose[static_cast<std::size_t>(purpose)].add(tlps.tlps, tlps.payload_bytes, tlps.wire_bytes);
  return slot;
}

Time Lane::replay(std::uint32_t errors, const protocol::TlpCount& tlps) {
  // The Nak comes a round trip after the damaged packet; until then the wire carries in vain.
  const std::uint64_t packet_bytes = tlps.wire_bytes / tlps.tlps;
  const Time once = 2 * one_way_ + rate_.time_for(packet_bytes);
  std::uint64_t all = errors;
  for (std::uint32_t again = errors; again > 0;) {  // what is sent again may be damaged again
    again = errors_.strikes(std::uint64_t{again} * packet_bytes * 8);
    all += again;
  }
  replays += all;
  return once * static_cast<std::int64_t>(all);
}

Reservation Lane::send(Time earliest, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose,
                       const protocol::TlpAttributes& attributes) {
  const Reservation slot = occupy(earliest, tlps, purpose);
  const FlowClass which = flow_class(attributes.kind);
  const auto own = static_cast<std::size_t>(which);
  Time start = std::max(slot.start, departed_[own]);  // one class stays in order
  CreditPool& pool = credits[own];
  if (pool.finite()) {
    const CreditUnits need = credit_units(tlps.tlps, tlps.payload_bytes);
    start = pool.ready(start, need);
    if (start == kTimeNever) panic(unit.name(), "a receiver keeps its buffers for ever");
    pool.consume(need);
  }
  // Behind an earlier posted write that still waits, unless an attribute lets it pass.
  const protocol::TlpAttributes posted;
  if (protocol::may_pass(attributes, posted) == protocol::Passing::kNo) {
    start = std::max(start, departed_[static_cast<std::size_t>(FlowClass::kPosted)]);
  }
  const Time delay = start - slot.start;
  if (delay > kTimeZero) {
    const Time since = std::max(slot.start, stalled_until_);
    if (start > since) {
      unit.add_stall(stats::StallCause::kNoCredit, start - since);
      stalled_until_ = start;
    }
  }
  departed_[own] = slot.end + delay;
  return {slot.start + delay, slot.end + delay};
}

void Lane::drained(Time freed, FlowClass which, CreditUnits units) {
  Time sent = freed + update_latency_;
  if (update_interval_ > kTimeZero) {
    const std::int64_t interval = update_interval_.count();
    sent = Time{(sent.count() + interval - 1) / interval * interval};
  }
  credits[static_cast<std::size_t>(which)].give_back(sent + one_way_, units);
}

}  // namespace rnic::pcie
