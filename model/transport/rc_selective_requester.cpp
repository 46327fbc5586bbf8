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
  bool of_request = true;  ///< a READ's, too, until it is executed
  std::uint32_t end() const { return psn_add(psn, packets); }
};

/// What may be resent: whatever has not arrived, or only what goes one way.
enum class RcTransport::Missing : std::uint8_t { kAny, kRequests, kResponses };

namespace {

using Repetition = SelectiveRepeat::Repetition;
using Run = SelectiveRepeat::Run;

std::uint32_t later(std::uint32_t a, std::uint32_t b) { return psn_before(a, b) ? b : a; }
std::uint32_t sooner(std::uint32_t a, std::uint32_t b) { return psn_before(a, b) ? a : b; }

std::uint32_t end_of(const SendEntry& entry) { return psn_add(entry.first_psn, entry.psn_count); }

bool holds_psn(const Run& run, std::uint32_t psn) {
  return !psn_before(psn, run.from) && psn_before(psn, run.to);
}

/// The responder has executed the request that `entry`'s responses answer.
bool request_executed(const SelectiveRepeat& sr, const SendEntry& entry) {
  return psn_before(entry.first_psn, sr.executed);
}

/// `run` is to be resent once more; true if the oldest packet that is not acknowledged is in it:
/// that costs a retry.
bool lose(QueuePair& qp, const Run& run) {
  SelectiveRepeat::of(qp).again.push_back(run);
  return holds_psn(run, qp.una_psn);
}

/// What `repetition` asked for has begun to arrive.
void note_answer(SelectiveRepeat& sr, const Repetition& repetition, Time now) {
  constexpr int kForget = 8;  // a longest time counts less with each answer
  sr.answer_time = std::max(now - repetition.at, sr.answer_time - sr.answer_time / kForget);
}

/// Whether an answer is later than others have been. No proof of a loss: a repetition goes ahead of
/// what waits at the responder, so that a full set of READs may leave nothing to be sent behind it,
/// and nothing to prove it by.
bool overdue(const SelectiveRepeat& sr, const Repetition& repetition, Time now) {
  constexpr int kPatience = 2;
  return sr.answer_time > kTimeZero && now - repetition.at > kPatience * sr.answer_time;
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

/// What is before it has been overtaken by more than several paths explain.
std::uint32_t RcTransport::overtaken_end(const SelectiveRepeat& sr) const {
  return psn_add(sr.sacked_end, protocol::kPsnMask + 1 - config_.reorder_tolerance);
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
  sr.requests.looked_at = later(sr.requests.looked_at, una);
  sr.responses.looked_at = later(sr.responses.looked_at, una);
}

void RcTransport::begin_recovery(QueuePair& qp) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  sr.recovering = true;
  sr.recovery_end = qp.max_sent_psn;
  sr.requests = sr.responses = SelectiveRepeat::Way{qp.una_psn, {}};
  sr.again.clear();
  qp.resend_due = true;
}

/// Finds out whether something is known to be lost that is not being resent already. `counter`
/// counts the way in which a loss was noticed.
void RcTransport::find_losses(QueuePair& qp, std::uint64_t& counter, Time now) {
  if (now < qp.rnr_until) return;  // the responder takes nothing in order; look again afterwards
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  bool oldest_again = false;
  if (!sr.recovering) {
    Gap gap;
    if (!gap_at(qp, qp.una_psn, overtaken_end(sr), Missing::kRequests, gap) &&
        !gap_at(qp, qp.una_psn, sr.answered_end, Missing::kResponses, gap)) {
      return;
    }
    begin_recovery(qp);
    oldest_again = true;
  } else {
    const std::size_t known = sr.again.size();
    oldest_again = find_lost_requests(qp);
    oldest_again |= find_lost_responses(qp, now);
    qp.resend_due = qp.resend_due || !sr.again.empty() ||
                    psn_before(sr.requests.looked_at, overtaken_end(sr)) ||
                    psn_before(sr.responses.looked_at, sr.answered_end);
    if (sr.again.size() == known) return;
  }
  ++counter;
  if (oldest_again) spend_retry(qp);
}

/// Repeated request packets that did not arrive although what was sent behind them did.
bool RcTransport::find_lost_requests(QueuePair& qp) const {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  std::vector<Repetition>& sent = sr.requests.repetitions;
  const auto came = [&](const Repetition& repetition) {
    const std::uint32_t psn = repetition.run.from;
    if (psn_before(psn, sr.executed) || sr.arrived.test(psn)) return true;
    std::uint64_t number = 0;
    const SendEntry* entry = entry_of(qp, psn, number);
    return entry == nullptr || entry->sacked;
  };
  std::size_t behind = 0;  // one that came and everything sent before it
  for (std::size_t i = sent.size(); i-- > 0 && behind == 0;) {
    if (came(sent[i])) behind = i + 1;
  }
  bool oldest = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (came(sent[i])) continue;
    if (i < behind || psn_before(sent[i].mark, overtaken_end(sr))) {
      oldest |= lose(qp, sent[i].run);
    } else {
      sent[kept++] = sent[i];
    }
  }
  sent.resize(kept);
  return oldest;
}

/// Of answers that were asked for again: what is missing before the newest that came.
bool RcTransport::find_lost_responses(QueuePair& qp, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  std::vector<Repetition>& asked = sr.responses.repetitions;
  const auto came = [&](std::uint32_t psn) {
    return psn_before(psn, qp.una_psn) || sr.arrived.test(psn);
  };
  const auto some_came = [&](const Run& run) {
    for (std::uint32_t psn = run.from; psn != run.to; psn = psn_add(psn, 1)) {
      if (came(psn)) return true;
    }
    return false;
  };
  bool oldest = false;
  bool behind = false;  // something came that was asked for later
  std::size_t kept = asked.size();
  for (std::size_t i = asked.size(); i-- > 0;) {
    Run run = asked[i].run;
    const bool proven = behind || psn_before(asked[i].mark, sr.answered_end);
    const bool late = !proven && overdue(sr, asked[i], now);
    if (some_came(run)) {
      behind = true;
      note_answer(sr, asked[i], now);
    }
    if (proven || late) {
      // A guess costs no retry, and the next one is made later.
      if (late) sr.answer_time = now - asked[i].at;
      const bool holds_oldest = lose(qp, run);
      oldest |= proven && holds_oldest;
      continue;
    }
    // What is behind the newest that came may still come.
    std::uint32_t rest = run.to;
    while (rest != run.from && !came(psn_add(rest, protocol::kPsnMask))) {
      rest = psn_add(rest, protocol::kPsnMask);
    }
    if (rest != run.from) {
      std::uint32_t first = run.from;
      while (first != rest && came(first)) first = psn_add(first, 1);
      if (first != rest) oldest |= lose(qp, Run{first, rest});
    }
    if (rest != run.to) asked[--kept] = Repetition{Run{rest, run.to}, asked[i].mark, asked[i].at};
  }
  asked.erase(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(kept));
  return oldest;
}

/// The first of `missing` in [psn, end) that has not arrived.
bool RcTransport::gap_at(QueuePair& qp, std::uint32_t psn, std::uint32_t end, Missing missing,
                         Gap& gap) {
  const SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  for (psn = later(psn, qp.una_psn); psn_before(psn, end); psn = psn_add(psn, 1)) {
    if (sr.arrived.test(psn)) continue;
    gap.entry = entry_of(qp, psn, gap.number);
    if (gap.entry == nullptr) return false;
    const SendEntry& entry = *gap.entry;
    const bool answered = entry.answered_by_response();
    gap.of_request = !answered || !request_executed(sr, entry);
    const bool wanted =
        missing == Missing::kAny || (missing == Missing::kRequests) == gap.of_request;
    if (!answered) {
      if (!wanted || psn_before(psn, sr.executed)) continue;
      gap.psn = psn;
      gap.packets = 1;
      return true;
    }
    if (!wanted || (missing == Missing::kRequests && entry.sacked)) {
      psn = psn_add(end_of(entry), protocol::kPsnMask);
      continue;
    }
    if (gap.of_request) {  // before its request is executed all of a READ is missing
      gap.psn = entry.first_psn;
      gap.packets = entry.psn_count;
      return true;
    }
    const std::uint32_t run_end = sooner(end, end_of(entry));
    std::uint32_t next = psn_add(psn, 1);
    while (psn_before(next, run_end) && !sr.arrived.test(next)) next = psn_add(next, 1);
    gap.psn = psn;
    gap.packets = static_cast<std::uint32_t>(psn_distance(next, psn));
    return true;
  }
  return false;
}

bool RcTransport::next_gap(QueuePair& qp, Gap& gap) const {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  for (; !sr.again.empty(); sr.again.pop_front()) {
    Run& run = sr.again.front();
    if (!gap_at(qp, run.from, run.to, Missing::kAny, gap)) continue;
    run.from = gap.end();
    return true;
  }
  // What is missing although something behind it has arrived.
  const std::uint32_t end = overtaken_end(sr);
  if (gap_at(qp, sr.requests.looked_at, end, Missing::kRequests, gap)) return true;
  sr.requests.looked_at = later(sr.requests.looked_at, end);
  if (gap_at(qp, sr.responses.looked_at, sr.answered_end, Missing::kResponses, gap)) return true;
  sr.responses.looked_at = later(sr.responses.looked_at, sr.answered_end);
  qp.resend_due = false;
  return false;
}

/// `gap` is being resent: from now on its loss shows by what is sent behind it and arrives.
void RcTransport::note_resent(QueuePair& qp, const Gap& gap, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  SelectiveRepeat::Way& way = gap.of_request ? sr.requests : sr.responses;
  const std::uint32_t end = gap.of_request ? psn_add(gap.psn, 1) : gap.end();
  way.repetitions.push_back(Repetition{Run{gap.psn, end}, qp.max_sent_psn, now});
  // Behind READs whose requests were repeated, and are executed by now, nothing is looked at yet:
  // what their answers lack shows by what comes behind it.
  Gap skipped;
  if (gap.of_request || !gap_at(qp, way.looked_at, gap.psn, Missing::kResponses, skipped)) {
    way.looked_at = later(way.looked_at, gap.end());
  }
  sr.recovery_end = later(sr.recovery_end, gap.end());
}

bool RcTransport::plan_resend(QueuePair& qp, Time now, TxPlan& plan) {
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
  note_resent(qp, gap, now);
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
  // The refused packet and, after the wait, what is missing behind it.
  sr.again.push_back(Run{in.bth.psn, psn_add(in.bth.psn, 1)});
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

/// Whether so little is under way that nothing may tell of its loss (IRN: fewer than RTO_low's N =
/// 3 packets). Of a READ that the responder has not executed the request is under way; what it
/// keeps until its turn is not.
bool RcTransport::only_a_tail(const QueuePair& qp) {
  constexpr std::uint32_t kFew = SelectiveRepeat::kFew;
  const SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  auto missing = static_cast<std::uint32_t>(psn_distance(qp.max_sent_psn, qp.una_psn));
  missing -= std::min(missing, sr.arrived.marks());
  if (missing <= kFew) return true;
  if (qp.outstanding_reads == 0) return false;
  for (std::size_t i = 0; i < qp.sq.size() && qp.sq[i].issued; ++i) {
    const SendEntry& entry = qp.sq[i];
    if (!entry.answered_by_response() || request_executed(sr, entry)) continue;
    if (!psn_before(entry.first_psn, qp.max_sent_psn)) continue;
    missing -= entry.psn_count - (entry.sacked ? 0 : 1);
  }
  return missing <= kFew;
}

/// Whether nothing will come behind the message whose `packet`-th packet is sent, and so few of it
/// that they are a tail. Each of them asks for its acknowledgement, as IRN's all do: else the loss
/// of the last one's leaves a whole message that seems to be under way, with the long timer.
bool RcTransport::begins_tail(const QueuePair& qp, const SendEntry& entry,
                              std::uint32_t packet) const {
  if (!config_.selective_repeat || config_.tail_start == kTimeZero) return false;
  return packet + 1 + SelectiveRepeat::kFew >= entry.psn_count &&
         &entry == &qp.sq[qp.sq.size() - 1];
}

/// Nothing but a tail is under way any more: the timer that runs may be too long for it.
void RcTransport::hasten_timer(QueuePair& qp, Time now) {
  if (SelectiveRepeat::of(qp).short_timer || qp.retry_deadline == kTimeNever) return;
  if (!only_a_tail(qp)) return;
  const Time running = qp.retry_deadline;
  restart_timer(qp, now);
  qp.retry_deadline = std::min(qp.retry_deadline, running);
}

bool RcTransport::selective_timeout(QueuePair& qp, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  begin_recovery(qp);
  std::uint64_t number = 0;
  const SendEntry* oldest = entry_of(qp, qp.una_psn, number);
  // It may have been held and then refused, by an RNR NAK that was lost.
  if (oldest != nullptr && !oldest->answered_by_response()) sr.arrived.clear(qp.una_psn);
  sr.again.push_back(Run{qp.una_psn, qp.max_sent_psn});  // whatever is not known to have arrived
  // Of a READ that has not been executed the request is repeated. Its answer is the first one, and
  // has gaps as any other.
  sr.requests.looked_at = qp.max_sent_psn;
  restart_timer(qp, now);
  return true;
}

}  // namespace rnic::transport
