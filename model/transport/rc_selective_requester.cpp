// SPDX-License-Identifier: Apache-2.0
// Selective repeat, the half that sends requests: what is missing is found and resent.
#include <algorithm>

#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"
#include "transport/selective_repeat.h"

namespace rnic::transport {

using protocol::psn_add;
using protocol::psn_before;
using protocol::psn_distance;
using protocol::WcStatus;

/// A request packet that is to be resent, or a run of response packets to be asked for again.
struct RcTransport::Gap {
  SendEntry* entry = nullptr;
  std::uint64_t number = 0;  ///< of the entry
  std::uint32_t psn = 0;
  std::uint32_t packets = 1;
};

namespace {

std::uint32_t later(std::uint32_t a, std::uint32_t b) { return psn_before(a, b) ? b : a; }

std::uint32_t end_of(const SendEntry& entry) { return psn_add(entry.first_psn, entry.psn_count); }

/// The responder has executed the request that `entry`'s responses answer.
bool request_executed(const SelectiveRepeat& sr, const SendEntry& entry) {
  return psn_before(entry.first_psn, sr.executed);
}

}  // namespace

SendEntry* RcTransport::entry_of(QueuePair& qp, std::uint32_t psn, std::uint64_t& number) {
  for (std::size_t i = 0; i < qp.sq.size() && qp.sq[i].issued; ++i) {
    if (!psn_before(psn, end_of(qp.sq[i]))) continue;
    if (psn_before(psn, qp.sq[i].first_psn)) return nullptr;
    number = qp.sq_base + i;
    return &qp.sq[i];
  }
  return nullptr;
}

/// `psn` of `entry` has not arrived; whether what is known since says that it was lost.
bool RcTransport::lost(const QueuePair& qp, const SendEntry& entry, std::uint32_t psn) {
  const SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (!entry.answered_by_response()) return psn_before(psn, sr.sacked_end);
  if (request_executed(sr, entry)) return psn_before(psn, sr.answered_end);
  return !entry.sacked && psn_before(entry.first_psn, sr.sacked_end);
}

/// Moves una_psn and finishes entries by what has been executed and answered. A READ gives its
/// responder resource back in order only: the responder overwrites its oldest.
void RcTransport::settle(QueuePair& qp, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  std::uint32_t una = qp.una_psn;
  for (std::size_t i = 0; i < qp.sq.size() && qp.sq[i].issued; ++i) {
    SendEntry& entry = qp.sq[i];
    if (entry.answered_by_response()) {
      una = psn_add(entry.first_psn, entry.responded);
      if (entry.responded < entry.psn_count) break;
      if (entry.holds_slot) --qp.outstanding_reads;
      entry.holds_slot = false;
      continue;
    }
    if (psn_before(sr.executed, end_of(entry))) {
      una = later(entry.first_psn, sr.executed);
      break;
    }
    entry.finished = true;
    una = end_of(entry);
  }
  if (!psn_before(qp.una_psn, una)) return;
  sr.arrived.clear(qp.una_psn, una);
  advance(qp, una, now);
  if (!sr.recovering) return;
  if (!psn_before(una, sr.recovery_end)) {
    sr.recovering = false;
    qp.resend_due = false;
    return;
  }
  sr.resend_from = later(sr.resend_from, una);
}

void RcTransport::begin_recovery(QueuePair& qp) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  sr.recovering = true;
  sr.recovery_end = qp.max_sent_psn;
  sr.resend_from = sr.again_from = sr.again_to = qp.una_psn;
  sr.pass_over = false;
  qp.resend_due = true;
}

/// Finds out whether something is known to be lost that is not being resent already. `counter`
/// counts the way in which a loss was noticed.
void RcTransport::find_losses(QueuePair& qp, std::uint64_t& counter, Time now) {
  if (now < qp.rnr_until) return;  // the responder takes nothing in order; look again afterwards
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  const std::uint32_t limit = later(sr.sacked_end, sr.answered_end);
  if (!sr.recovering) {
    if (!psn_before(qp.una_psn, limit)) return;
    Gap gap;
    if (!gap_at(qp, qp.una_psn, limit, false, gap)) return;
    begin_recovery(qp);
  } else {
    if (sr.pass_over && !psn_before(qp.una_psn, sr.pass_end)) {
      sr.pass_over = false;  // it has brought what it was for
      qp.resend_due = true;
    }
    if (!sr.pass_over || !psn_before(sr.pass_mark, limit)) {
      qp.resend_due = qp.resend_due || psn_before(sr.resend_from, limit);
      return;
    }
    sr.again_from = qp.una_psn;  // the resent packets were lost as well
    sr.again_to = sr.pass_end;
    sr.pass_over = false;
    qp.resend_due = true;
  }
  ++counter;
  spend_retry(qp);
}

/// The first gap in [psn, end). `certain`: whatever has not arrived is lost, without evidence.
bool RcTransport::gap_at(QueuePair& qp, std::uint32_t psn, std::uint32_t end, bool certain,
                         Gap& gap) const {
  const SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  for (psn = later(psn, qp.una_psn); psn_before(psn, end); psn = psn_add(psn, 1)) {
    if (sr.arrived.test(psn)) continue;
    gap.entry = entry_of(qp, psn, gap.number);
    if (gap.entry == nullptr) return false;
    SendEntry& entry = *gap.entry;
    gap.psn = psn;
    gap.packets = 1;
    if (!entry.answered_by_response()) {
      if (psn_before(psn, sr.executed)) continue;
      if (certain || lost(qp, entry, psn)) return true;
      continue;
    }
    if (certain || lost(qp, entry, psn)) {
      // Before its request is executed all of a READ is missing.
      const bool bounded = request_executed(sr, entry) && !certain;
      const std::uint32_t known = bounded ? sr.answered_end : end_of(entry);
      const std::uint32_t run_end = psn_before(known, end_of(entry)) ? known : end_of(entry);
      std::uint32_t next = psn_add(psn, 1);
      while (psn_before(next, run_end) && !sr.arrived.test(next)) next = psn_add(next, 1);
      gap.packets = static_cast<std::uint32_t>(psn_distance(next, psn));
      return true;
    }
    if (!request_executed(sr, entry)) psn = psn_add(end_of(entry), protocol::kPsnMask);
  }
  return false;
}

bool RcTransport::next_gap(QueuePair& qp, Gap& gap) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (psn_before(sr.again_from, sr.again_to)) {
    if (gap_at(qp, sr.again_from, sr.again_to, true, gap)) {
      sr.again_from = psn_add(gap.psn, gap.packets);
      sr.resend_from = later(sr.resend_from, sr.again_from);
      return true;
    }
    sr.again_from = sr.again_to;
  }
  const std::uint32_t limit = later(sr.sacked_end, sr.answered_end);
  if (psn_before(sr.resend_from, limit) && gap_at(qp, sr.resend_from, limit, false, gap)) {
    sr.resend_from = psn_add(gap.psn, gap.packets);
    return true;
  }
  sr.resend_from = later(sr.resend_from, limit);
  if (!sr.pass_over) {
    sr.pass_over = true;
    sr.pass_end = sr.resend_from;
    sr.pass_mark = qp.max_sent_psn;
  }
  qp.resend_due = false;
  return false;
}

bool RcTransport::plan_resend(QueuePair& qp, TxPlan& plan) {
  Gap gap;
  if (!next_gap(qp, gap)) return false;
  const SendEntry& entry = *gap.entry;
  const std::uint32_t skip = static_cast<std::uint32_t>(psn_distance(gap.psn, entry.first_psn));
  plan = TxPlan{};
  plan.entry_number = gap.number;
  if (entry.answered_by_response()) {
    plan_read(qp, entry, skip, gap.packets, plan);
  } else {
    plan_segment(qp, entry, skip * qp.mtu, plan);
  }
  plan.ack_request = true;  // the responder may have it already and say nothing otherwise
  plan.trace = nullptr;     // the first transmission was timed
  return true;
}

void RcTransport::selective_ack(QueuePair& qp, const Incoming& in, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  const std::uint32_t psn = in.bth.psn;
  if (!psn_before(psn, qp.max_sent_psn)) return;
  const bool stale = psn_before(psn, qp.una_psn);
  switch (protocol::syndrome_kind(in.aeth.syndrome)) {
    case protocol::AethKind::kAck:
      if (stale) return;
      sr.executed = later(sr.executed, psn_add(psn, 1));
      sr.answered_end = later(sr.answered_end, psn_add(psn, 1));
      settle(qp, now);
      find_losses(qp, counters_.implied_nak_seq_err, now);
      return;
    case protocol::AethKind::kReserved:
      return;
    case protocol::AethKind::kRnrNak:
    case protocol::AethKind::kNak:
      break;
  }
  sr.executed = later(sr.executed, psn);
  sr.answered_end = later(sr.answered_end, psn);
  // What the responder expects it does not have: a SEND that it held was refused at its turn.
  if (!stale) sr.arrived.clear(psn);
  settle(qp, now);
  const bool sequence = in.aeth.syndrome == protocol::nak_syndrome(protocol::NakCode::kPsnSequence);
  if (!sequence) {
    if (stale) return;
    if (psn != qp.una_psn) {  // a READ before it must be repeated first
      find_losses(qp, counters_.implied_nak_seq_err, now);
    } else if (protocol::syndrome_kind(in.aeth.syndrome) == protocol::AethKind::kRnrNak) {
      selective_rnr_nak(qp, in, now);
    } else {
      handle_nak(qp, in, now);
    }
    return;
  }
  if (stale) return;  // overtaken: what it tells of may have been refused since
  if (outstanding(qp, in.sack_psn)) {
    std::uint64_t number = 0;
    SendEntry* entry = entry_of(qp, in.sack_psn, number);
    if (entry != nullptr && entry->answered_by_response()) entry->sacked = true;
    if (entry != nullptr && !entry->answered_by_response()) {
      sr.arrived.set(in.sack_psn, qp.una_psn);
    }
    sr.sacked_end = later(sr.sacked_end, psn_add(in.sack_psn, 1));
  }
  find_losses(qp, counters_.packet_seq_err, now);
}

void RcTransport::selective_rnr_nak(QueuePair& qp, const Incoming& in, Time now) {
  handle_rnr_nak(qp, in, now);
  if (qp.rnr_until <= now) return;  // that was one too many
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (!sr.recovering) begin_recovery(qp);
  sr.again_from = in.bth.psn;  // the refused packet and, after the wait, what is missing behind it
  sr.again_to = later(sr.again_to, psn_add(in.bth.psn, 1));
  qp.resend_due = true;
}

void RcTransport::selective_read_response(QueuePair& qp, const Incoming& in, Time now,
                                          RxPlan& plan) {
  const std::uint32_t psn = in.bth.psn;
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (!outstanding(qp, psn) || sr.arrived.test(psn)) return;
  std::uint64_t number = 0;
  SendEntry* entry = entry_of(qp, psn, number);
  if (entry == nullptr || !entry->answered_by_response()) return;
  const auto packet = static_cast<std::uint32_t>(psn_distance(psn, entry->first_psn));
  if (packet < entry->responded) return;
  const bool atomic = in.info.kind == protocol::OpcodeKind::kAtomicAck;
  const std::uint32_t bytes = atomic ? 0 : std::min(qp.mtu, entry->wqe.length - packet * qp.mtu);
  if (atomic != entry->wqe.is_atomic() || in.payload_bytes != bytes) {
    fail(qp, atomic != entry->wqe.is_atomic() ? WcStatus::kBadResponseError
                                              : WcStatus::kLocalLengthError);
    return;
  }
  plan.action = atomic ? RxPlan::Action::kAtomicResponse : RxPlan::Action::kReadResponse;
  plan.psn = psn;
  plan.message_offset = packet * qp.mtu;
  plan.length = in.payload_bytes;
  plan.original = in.atomic_ack.original;
  plan.entry_number = number;
  sr.arrived.set(psn, qp.una_psn);
  while (entry->responded < entry->psn_count &&
         sr.arrived.test(psn_add(entry->first_psn, entry->responded))) {
    ++entry->responded;
  }
  // A response says that its request and all before it were executed.
  sr.executed = later(sr.executed, psn_add(entry->first_psn, 1));
  sr.answered_end = later(sr.answered_end, psn_add(psn, 1));
  settle(qp, now);
  plan.last = entry->responded == entry->psn_count;
  if (plan.last) entry->placing = true;
  find_losses(qp, counters_.implied_nak_seq_err, now);
}

bool RcTransport::selective_timeout(QueuePair& qp, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  begin_recovery(qp);
  std::uint64_t number = 0;
  const SendEntry* oldest = entry_of(qp, qp.una_psn, number);
  // It may have been held and then refused, by an RNR NAK that was lost.
  if (oldest != nullptr && !oldest->answered_by_response()) sr.arrived.clear(qp.una_psn);
  sr.again_to = qp.max_sent_psn;  // whatever is not known to have arrived
  sr.resend_from = qp.max_sent_psn;
  restart_timer(qp, now);
  return true;
}

}  // namespace rnic::transport
