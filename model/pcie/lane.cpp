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
      half_packet_(rate_.time_for(config.mps / 2)),
      one_way_(config.one_way()),
      update_latency_(config.update_fc_latency),
      update_interval_(config.update_fc_interval),
      errors_(config.bit_error_rate, seed, name),
      flow_controlled_(std::any_of(credits.begin(), credits.end(),
                                   [](const CreditPool& pool) { return pool.finite(); })),
      answers_flow_controlled_(finite(FlowClass::kNonPosted) || finite(FlowClass::kCompletion)),
      posted_({credit_limits.posted_headers, credit_limits.posted_data}) {}

void Lane::reset_statistics(Time now) {
  unit.reset(now);
  crossings.reset(now);
  replays = 0;
  // Of a wait that was foreseen, what is still to come belongs to the new window.
  if (stalled_until_ > now) unit.add_stall(stats::StallCause::kNoCredit, stalled_until_ - now);
}

Reservation Lane::occupy(Time earliest, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose) {
  Reservation slot = wire_.reserve(earliest, rate_.time_for(tlps.wire_bytes));
  if (errors_.possible()) {
    const std::uint32_t errors = errors_.damaged(tlps.tlps, tlps.wire_bytes * 8 / tlps.tlps);
    if (errors > 0) slot.end = wire_.reserve(slot.end, replay(errors, tlps)).end;
  }
  unit.add_busy(slot.start, slot.end);
  crossings.add(slot, tlps, purpose);
  return slot;
}

Time Lane::replay(std::uint32_t errors, const protocol::TlpCount& tlps) {
  // The Nak comes a round trip after the damaged packet; until then the wire carries in vain.
  const std::uint64_t packet_bytes = tlps.wire_bytes / tlps.tlps;
  const Time once = 2 * one_way_ + rate_.time_for(packet_bytes);
  std::uint64_t all = errors;
  // What is sent again may be damaged again. A link that damages nearly all would retrain and try
  // for ever; so many attempts are time enough for the run to end first.
  constexpr std::uint64_t kAttempts = 100'000;
  for (std::uint32_t again = errors; again > 0 && all < kAttempts;) {
    again = errors_.damaged(again, packet_bytes * 8);
    all += again;
  }
  replays += all;
  return once * static_cast<std::int64_t>(all);
}

/// Completions are reserved when their data are there, many packets of them, and a posted request
/// comes between two of those packets (table 2-40 of the base specification, A5a: it may pass). It
/// leaves when the packet on the wire is over, and behind earlier posted ones; the time that it
/// takes was reserved at the end, where it delays what comes later.
Reservation Lane::pass_completions(Time earliest, Reservation slot) const {
  const Time completions = departed_[static_cast<std::size_t>(FlowClass::kCompletion)];
  if (slot.start <= earliest || completions <= earliest) return slot;
  const Time posted = departed_[static_cast<std::size_t>(FlowClass::kPosted)];
  const Time start = std::max(earliest + half_packet_, posted);
  return start < slot.start ? Reservation{start, start + (slot.end - slot.start)} : slot;
}

Reservation Lane::occupy_posted(Time earliest, const protocol::TlpCount& tlps,
                                tlm_ext::Purpose purpose) {
  Reservation slot = pass_completions(earliest, occupy(earliest, tlps, purpose));
  Time& departed = departed_[static_cast<std::size_t>(FlowClass::kPosted)];
  if (posted_.finite()) {
    const Time wire = slot.end - slot.start;
    const Time start = posted_.ready(slot.start, credit_units(tlps.tlps, tlps.payload_bytes), wire);
    if (start > slot.start) {
      note_wait(slot.start, start);
      slot = {start, start + wire};
      posted_held_until_ = slot.end;
    }
  }
  departed = std::max(departed, slot.end);
  return slot;
}

Reservation Lane::behind_posted(Reservation slot, const protocol::TlpAttributes& attributes) const {
  const protocol::TlpAttributes posted;
  if (slot.start >= posted_held_until_ ||
      protocol::may_pass(attributes, posted) != protocol::Passing::kNo) {
    return slot;
  }
  return {posted_held_until_, posted_held_until_ + (slot.end - slot.start)};
}

void Lane::note_wait(Time from, Time until) {
  from = std::max(from, stalled_until_);
  if (until <= from) return;
  unit.add_stall(stats::StallCause::kNoCredit, until - from);
  stalled_until_ = until;
}

Reservation Lane::occupy_completion(Time earliest, const protocol::TlpCount& tlps,
                                    tlm_ext::Purpose purpose) {
  const Reservation slot = occupy(earliest, tlps, purpose);
  Time& departed = departed_[static_cast<std::size_t>(FlowClass::kCompletion)];
  departed = std::max(departed, slot.end);
  return slot;
}

Reservation Lane::send(Time earliest, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose,
                       const protocol::TlpAttributes& attributes) {
  Reservation slot = occupy(earliest, tlps, purpose);
  const FlowClass which = flow_class(attributes.kind);
  if (which == FlowClass::kPosted) slot = pass_completions(earliest, slot);
  const auto own = static_cast<std::size_t>(which);
  Time start = std::max(slot.start, departed_[own]);  // one class stays in order
  CreditPool& pool = credits[own];
  const CreditUnits need = credit_units(tlps.tlps, tlps.payload_bytes);
  if (which == FlowClass::kPosted && posted_.finite()) {
    start = posted_.ready(start, need, slot.end - slot.start);
  } else if (pool.finite()) {
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
  if (delay > kTimeZero) note_wait(slot.start, start);
  departed_[own] = slot.end + delay;
  return {slot.start + delay, slot.end + delay};
}

Time Lane::returned(Time freed) const {
  Time sent = freed + update_latency_;
  if (update_interval_ > kTimeZero) {
    const std::int64_t interval = update_interval_.count();
    sent = Time{(sent.count() + interval - 1) / interval * interval};
  }
  return sent + one_way_;
}

void Lane::drained(Time freed, FlowClass which, CreditUnits units) {
  credits[static_cast<std::size_t>(which)].give_back(returned(freed), units);
}

void Lane::written(Time freed, CreditUnits units, Time wire) {
  posted_.add(returned(freed), units, wire);
}

}  // namespace rnic::pcie
