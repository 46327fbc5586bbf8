// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/path_migration.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"
#include "transport/selective_repeat.h"

namespace rnic::transport {

using protocol::BthOpcode;
using protocol::psn_add;
using protocol::psn_before;
using protocol::psn_distance;
using protocol::WcStatus;

namespace {

/// The largest PSN window a requester may open (IBTA vol 1, 9.7.2): half the PSN space.
constexpr std::int32_t kMaxPsnWindow = 1 << 23;

std::uint32_t packets_of(std::uint32_t length, std::uint32_t mtu) {
  return std::max<std::uint32_t>(1, (length + mtu - 1) / mtu);
}

/// Nothing more is to be sent or received for it.
bool done(const SendEntry& entry) {
  return entry.placing || (entry.finished && entry.status == WcStatus::kSuccess);
}

/// BTH opcode of a SEND or WRITE packet by its place in the message.
BthOpcode segment_opcode(const protocol::SendWqe& wqe, bool first, bool last) {
  if (wqe.is_send()) {
    if (first && last) {
      if (wqe.opcode == protocol::WqeOpcode::kSendInval) return BthOpcode::kSendOnlyInv;
      return wqe.has_imm() ? BthOpcode::kSendOnlyImm : BthOpcode::kSendOnly;
    }
    if (first) return BthOpcode::kSendFirst;
    if (!last) return BthOpcode::kSendMiddle;
    if (wqe.opcode == protocol::WqeOpcode::kSendInval) return BthOpcode::kSendLastInv;
    return wqe.has_imm() ? BthOpcode::kSendLastImm : BthOpcode::kSendLast;
  }
  if (first && last) return wqe.has_imm() ? BthOpcode::kWriteOnlyImm : BthOpcode::kWriteOnly;
  if (first) return BthOpcode::kWriteFirst;
  if (!last) return BthOpcode::kWriteMiddle;
  return wqe.has_imm() ? BthOpcode::kWriteLastImm : BthOpcode::kWriteLast;
}

}  // namespace

void RcTransport::start_sending(QueuePair& qp, Time /*now*/) {
  qp.una_psn = qp.next_psn;
  qp.max_sent_psn = qp.next_psn;
  qp.outstanding_reads = 0;
  qp.implied_nak = false;
  qp.quick_retries = RetransmissionTimers::first(qp.retry_count);
  qp.retries_left = qp.retry_count;
  qp.rnr_retries_left = qp.rnr_retry;
  qp.retry_deadline = kTimeNever;
  qp.rnr_until = kTimeZero;
  qp.resend_due = false;
  qp.next_ssn = 1;
  qp.credit_limit = qp.credit_wait = 0;
  qp.credit_limited = config_.end_to_end_credits;  // until an ACK says that there is no limit
  if (!config_.selective_repeat) return;
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  sr.arrived.reset();
  sr.executed = sr.sacked_end = sr.answered_end = qp.next_psn;
  sr.recovering = false;
}

/// Whether a request packet with `psn` may leave. Of a READ the request counts, not its answer:
/// that is what a responder may have to keep until its turn.
bool RcTransport::window_open(const QueuePair& qp, std::uint32_t psn) const {
  if (config_.window == 0) return true;
  std::uint32_t in_flight = (psn - qp.una_psn) & protocol::kPsnMask;
  if (in_flight < config_.window) return true;
  if (qp.outstanding_reads == 0) return false;
  for (std::size_t i = 0; i < qp.sq.size() && qp.sq[i].issued; ++i) {
    const SendEntry& entry = qp.sq[i];
    const std::int32_t left = psn_distance(psn_add(entry.first_psn, entry.psn_count), qp.una_psn);
    if (!entry.answered_by_response() || left <= 0) continue;
    in_flight -= std::min(static_cast<std::uint32_t>(left), entry.psn_count);
    if (entry.responded < entry.psn_count) ++in_flight;
  }
  return in_flight < config_.window;
}

/// Whether a message that takes a RECV may be begun. One beyond the limit may: its answer tells of
/// RECVs that were posted meanwhile, by an ACK or by an RNR NAK.
bool RcTransport::credit_for(const QueuePair& qp, const SendEntry& entry) {
  if (!entry.wqe.is_send() && !(entry.wqe.is_write() && entry.wqe.has_imm())) return true;
  return psn_distance(qp.next_ssn, psn_add(qp.credit_limit, 1)) <= 0;
}

/// What an acknowledgement of this or an earlier message says about RECVs.
void RcTransport::note_credits(QueuePair& qp, const Incoming& in) const {
  if (!config_.end_to_end_credits || !qp.credit_limited) return;
  if (protocol::syndrome_kind(in.aeth.syndrome) != protocol::AethKind::kAck) return;
  const std::uint8_t code = protocol::syndrome_value(in.aeth.syndrome);
  if (code == protocol::kUnlimitedCreditCode) {
    qp.credit_limited = false;
    return;
  }
  const std::uint32_t limit = psn_add(in.aeth.msn, protocol::credits_of_code(code));
  if (psn_distance(limit, qp.credit_limit) > 0) qp.credit_limit = limit;
}

bool RcTransport::fence_passed(const QueuePair& qp, const SendEntry& entry) const {
  const bool waits = config_.atomic_waits && entry.wqe.is_atomic();
  if (!entry.wqe.fence && !waits) return true;
  const auto ahead = static_cast<std::size_t>(qp.tx_number - qp.sq_base);
  for (std::size_t i = 0; i < ahead; ++i) {
    const bool kept = qp.sq[i].answered_by_response() ? entry.wqe.fence : waits;
    if (kept && !qp.sq[i].finished) return false;
  }
  return true;
}

bool RcTransport::may_issue(const QueuePair& qp, const SendEntry& entry) const {
  if (!fence_passed(qp, entry)) return false;
  if (entry.answered_by_response() && qp.outstanding_reads >= qp.max_rd_atomic) return false;
  const std::uint32_t packets = packets_of(entry.wqe.length, qp.mtu);
  if (entry.answered_by_response() && !window_open(qp, qp.next_psn)) return false;
  return psn_distance(qp.next_psn, qp.una_psn) + static_cast<std::int32_t>(packets) < kMaxPsnWindow;
}

void RcTransport::issue(QueuePair& qp, SendEntry& entry) {
  entry.first_psn = qp.next_psn;
  entry.psn_count = entry.wqe.is_atomic() ? 1 : packets_of(entry.wqe.length, qp.mtu);
  entry.responded = entry.requested = 0;
  entry.sacked = false;
  entry.holds_slot = entry.answered_by_response();
  entry.issued = true;
  qp.next_psn = psn_add(qp.next_psn, entry.psn_count);
  // A message that takes no RECV moves the limit along.
  const bool takes_recv = entry.wqe.is_send() || (entry.wqe.is_write() && entry.wqe.has_imm());
  if (!takes_recv) qp.credit_limit = psn_add(qp.credit_limit, 1);
  qp.next_ssn = psn_add(qp.next_ssn, 1);
  if (entry.answered_by_response()) ++qp.outstanding_reads;
}

PlanStatus RcTransport::plan_request(QueuePair& qp, Time now, TxPlan& plan) {
  if (!qp.may_send()) return PlanStatus::kNoWqe;
  if (now < qp.rnr_until) return PlanStatus::kDelayed;
  if (qp.resend_due) {
    const bool planned = plan_resend(qp, now, plan);
    if (qp.retry_deadline == kTimeNever) restart_timer(qp, now);
    if (planned) return PlanStatus::kPlanned;
  }
  SendEntry* entry = qp.entry(qp.tx_number);
  while (entry != nullptr && done(*entry)) {
    entry = qp.entry(++qp.tx_number);  // after a rewind: answered or acknowledged meanwhile
    qp.tx_offset = 0;
  }
  if (entry == nullptr) return PlanStatus::kNoWqe;
  if (entry->finished) return PlanStatus::kBlocked;  // failed locally: the queue stops here
  if (!entry->issued) {
    if (qp.state == protocol::QpState::kSqd || !may_issue(qp, *entry)) return PlanStatus::kBlocked;
    if (qp.credit_limited && !credit_for(qp, *entry)) {
      if (qp.credit_wait != qp.next_ssn) ++counters_.credit_waits;
      qp.credit_wait = qp.next_ssn;
      return PlanStatus::kBlocked;
    }
    issue(qp, *entry);
  }
  const bool answered = entry->answered_by_response();
  if (!answered && !window_open(qp, psn_add(entry->first_psn, qp.tx_offset / qp.mtu))) {
    return PlanStatus::kBlocked;
  }
  plan = TxPlan{};
  plan.entry_number = qp.tx_number;
  if (answered) {
    if (!plan_next_read(qp, *entry, plan)) return PlanStatus::kBlocked;
  } else {
    plan_segment(qp, *entry, qp.tx_offset, plan);
    qp.tx_offset += plan.length;
  }
  if (plan.last) {
    ++qp.tx_number;
    qp.tx_offset = 0;
  }
  if (qp.retry_deadline == kTimeNever) restart_timer(qp, now);
  return PlanStatus::kPlanned;
}

/// In the order in which plan_request() asks.
Hold RcTransport::held_by(const QueuePair& qp, Time now) const {
  const bool refused = qp.rnr_until > now;
  if (refused && qp.resend_due) return Hold::kReceiverNotReady;  // all else has been sent
  const SendEntry* entry = qp.entry(qp.tx_number);
  if (entry == nullptr || entry->finished) return Hold::kNone;
  if (refused) return Hold::kReceiverNotReady;
  if (entry->issued) return entry->answered_by_response() ? Hold::kReadSlots : Hold::kWindow;
  if (!fence_passed(qp, *entry)) return Hold::kFence;
  if (entry->answered_by_response() && qp.outstanding_reads >= qp.max_rd_atomic) {
    return Hold::kReadSlots;
  }
  if (may_issue(qp, *entry) && qp.credit_limited && !credit_for(qp, *entry)) {
    return Hold::kReceiveCredits;
  }
  return Hold::kWindow;
}

/// Response packets that one request of a READ or an atomic asks for at most. The pieces of a long
/// READ are counted from its start, also when a lost part is asked for again.
std::uint32_t RcTransport::packets_per_request(const QueuePair& qp, const SendEntry& entry) const {
  if (config_.read_segment == 0 || !entry.wqe.is_read()) return entry.psn_count;
  return std::max<std::uint32_t>(1, config_.read_segment / qp.mtu);
}

/// Asks for what is next of a READ, as far as one request may; false: it has to wait for a slot.
bool RcTransport::plan_next_read(QueuePair& qp, SendEntry& entry, TxPlan& plan) {
  const std::uint32_t per_request = packets_per_request(qp, entry);
  const std::uint32_t skip = std::max(entry.responded, qp.tx_offset / qp.mtu);
  const std::uint32_t end = std::min(entry.psn_count, (skip / per_request + 1) * per_request);
  if (end > entry.requested) {
    if (entry.requested > 0) {  // a request beyond the first, which issue() has counted
      if (qp.outstanding_reads >= qp.max_rd_atomic) return false;
      ++qp.outstanding_reads;
      // The responder's MSN counts requests.
      qp.next_ssn = psn_add(qp.next_ssn, 1);
      qp.credit_limit = psn_add(qp.credit_limit, 1);
    }
    entry.requested = end;
  }
  plan_read(qp, entry, skip, end - skip, plan);
  qp.tx_offset = end * qp.mtu;
  plan.last = end == entry.psn_count;
  if (!plan.last) plan.trace = nullptr;  // the last one tells of the READ
  if (skip >= per_request) plan.message_offset = skip * qp.mtu;
  return true;
}

/// Asks for `packets` response packets of a READ from the `skip`-th on, as a request of its own
/// (IBTA 9.7.5.1.2).
void RcTransport::plan_read(QueuePair& qp, const SendEntry& entry, std::uint32_t skip,
                            std::uint32_t packets, TxPlan& plan) {
  const protocol::SendWqe& wqe = entry.wqe;
  plan.psn = psn_add(entry.first_psn, skip);
  plan.address = wqe.remote_address + std::uint64_t{skip} * qp.mtu;
  plan.message_length = std::min(wqe.length - skip * qp.mtu, packets * qp.mtu);
  plan.rkey = wqe.rkey;
  plan.last = true;
  plan.ack_request = true;
  plan.trace = entry.trace;
  plan.opcode = static_cast<std::uint8_t>(BthOpcode::kReadRequest);
  if (wqe.is_atomic()) {
    plan.opcode = static_cast<std::uint8_t>(wqe.opcode == protocol::WqeOpcode::kAtomicCas
                                                ? BthOpcode::kCompareSwap
                                                : BthOpcode::kFetchAdd);
    plan.swap_or_add = wqe.swap_or_add;
    plan.compare = wqe.compare;
  }
  note_sent(qp, plan, packets);
}

void RcTransport::plan_segment(QueuePair& qp, const SendEntry& entry, std::uint32_t offset,
                               TxPlan& plan) {
  const protocol::SendWqe& wqe = entry.wqe;
  const std::uint32_t length = std::min(qp.mtu, wqe.length - offset);
  const bool first = offset == 0;
  const bool last = offset + length == wqe.length;
  const std::uint32_t packet = offset / qp.mtu;
  plan.psn = psn_add(entry.first_psn, packet);
  plan.opcode = static_cast<std::uint8_t>(segment_opcode(wqe, first, last));
  plan.length = length;
  plan.message_offset = offset;
  plan.message_length = wqe.length;
  plan.rkey = wqe.rkey;
  plan.address = wqe.remote_address;
  plan.imm = wqe.imm_or_rkey;
  plan.last = last;
  // The packet that closes the window asks, too: nothing would open it again.
  plan.ack_request = last || (packet + 1) % config_.ack_every == 0 ||
                     !window_open(qp, psn_add(plan.psn, 1)) || begins_tail(qp, entry, packet);
  plan.solicited = last && wqe.solicited;
  if (last) plan.trace = entry.trace;
  if (length > 0) {
    plan.payload = wqe.inline_data ? TxPlan::Payload::kInline : TxPlan::Payload::kLocal;
    if (!wqe.inline_data) {
      plan.piece_count = slice_sges(wqe.sge.data(), wqe.sge_count, offset, length, plan.pieces);
    }
  }
  note_sent(qp, plan, 1);
}

void RcTransport::note_sent(QueuePair& qp, TxPlan& plan, std::uint32_t psn_count) {
  const std::uint32_t end = psn_add(plan.psn, psn_count);
  if (psn_distance(plan.psn, qp.max_sent_psn) < 0) {
    plan.retransmission = true;
    ++counters_.retransmitted_packets;
  }
  if (psn_distance(end, qp.max_sent_psn) > 0) qp.max_sent_psn = end;
}

void RcTransport::restart_timer(QueuePair& qp, Time now) {
  // The timer rests during an RNR wait; the first packet behind it starts it again.
  const bool runs =
      qp.timeout_exponent != 0 && now >= qp.rnr_until && psn_distance(qp.next_psn, qp.una_psn) > 0;
  qp.retry_deadline =
      runs ? now + timers_of(qp).interval(qp.timeout_exponent, qp.quick_retries) : kTimeNever;
  if (config_.selective_repeat) SelectiveRepeat::of(qp).short_timer = only_a_tail(qp);
}

const RetransmissionTimers& RcTransport::timers_of(const QueuePair& qp) const {
  return config_.selective_repeat && only_a_tail(qp) ? tail_timers_ : config_.timers;
}

void RcTransport::advance(QueuePair& qp, std::uint32_t una_psn, Time now) {
  if (psn_distance(una_psn, qp.una_psn) <= 0) return;
  qp.una_psn = una_psn;
  qp.implied_nak = false;
  qp.retries_left = qp.retry_count;
  qp.rnr_retries_left = qp.rnr_retry;
  qp.quick_retries = RetransmissionTimers::first(qp.retry_count);
  restart_timer(qp, now);
}

bool RcTransport::acknowledge_up_to(QueuePair& qp, std::uint32_t psn, Time now) {
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    if (!entry.issued || psn_distance(entry.first_psn, psn) > 0) break;
    if (!entry.answered_by_response()) {
      const std::uint32_t last_psn = psn_add(entry.first_psn, entry.psn_count - 1);
      if (psn_distance(last_psn, psn) > 0) break;
      entry.finished = true;
      continue;
    }
    if (entry.responded == entry.psn_count) continue;
    const std::uint32_t missing = psn_add(entry.first_psn, entry.responded);
    if (psn_distance(missing, psn) > 0) break;
    // The responder is past a READ that has no (complete) answer: it was lost (9.7.5.2.5).
    advance(qp, missing, now);
    if (qp.implied_nak) return false;
    qp.implied_nak = true;  // answers to what was sent before will keep telling the same
    ++counters_.implied_nak_seq_err;
    if (spend_retry(qp)) {
      rewind(qp, missing);
      restart_timer(qp, now);
    }
    return false;
  }
  advance(qp, psn_add(psn, 1), now);
  return true;
}

void RcTransport::handle_ack(QueuePair& qp, const Incoming& in, Time now) {
  ++counters_.acks_received;
  note_credits(qp, in);
  if (config_.selective_repeat) {
    selective_ack(qp, in, now);
    hasten_timer(qp, now);
    return;
  }
  if (!outstanding(qp, in.bth.psn)) return;
  switch (protocol::syndrome_kind(in.aeth.syndrome)) {
    case protocol::AethKind::kAck:
      acknowledge_up_to(qp, in.bth.psn, now);
      return;
    case protocol::AethKind::kRnrNak:
    case protocol::AethKind::kNak:
      handle_nak(qp, in, now);
      return;
    case protocol::AethKind::kReserved:
      return;
  }
}

void RcTransport::handle_rnr_nak(QueuePair& qp, const Incoming& in, Time now) {
  ++counters_.rnr_nak_retry_err;
  constexpr std::uint32_t kInfinite = 7;
  if (qp.rnr_retry != kInfinite) {
    if (qp.rnr_retries_left == 0) {
      fail(qp, WcStatus::kRnrRetryExceededError);
      return;
    }
    --qp.rnr_retries_left;
  }
  if (!config_.selective_repeat) rewind(qp, in.bth.psn);
  qp.rnr_until = now + config_.timers.rnr_wait(protocol::syndrome_value(in.aeth.syndrome));
  qp.retry_deadline = kTimeNever;
}

void RcTransport::handle_nak(QueuePair& qp, const Incoming& in, Time now) {
  const std::uint32_t psn = in.bth.psn;
  // Everything before is acknowledged, unless a READ among it must be repeated first.
  if (psn != qp.una_psn && !acknowledge_up_to(qp, psn_add(psn, protocol::kPsnMask), now)) return;
  if (protocol::syndrome_kind(in.aeth.syndrome) == protocol::AethKind::kRnrNak) {
    handle_rnr_nak(qp, in, now);
    return;
  }
  switch (static_cast<protocol::NakCode>(protocol::syndrome_value(in.aeth.syndrome))) {
    case protocol::NakCode::kPsnSequence:
      ++counters_.packet_seq_err;
      if (spend_retry(qp)) {
        rewind(qp, psn);
        restart_timer(qp, now);
      }
      return;
    case protocol::NakCode::kInvalidRequest:
      ++counters_.req_remote_invalid_request;
      fail(qp, WcStatus::kRemoteInvalidRequestError);
      return;
    case protocol::NakCode::kRemoteAccess:
      ++counters_.req_remote_access_errors;
      fail(qp, WcStatus::kRemoteAccessError);
      return;
    case protocol::NakCode::kRemoteOperational:
      fail(qp, WcStatus::kRemoteOperationError);
      return;
    default:  // reserved, or of reliable datagrams
      return;
  }
}

bool RcTransport::outstanding(const QueuePair& qp, std::uint32_t psn) {
  return psn_distance(psn, qp.una_psn) >= 0 && psn_distance(psn, qp.max_sent_psn) < 0;
}

SendEntry* RcTransport::oldest_unanswered(QueuePair& qp, std::uint64_t& number) {
  for (std::size_t i = 0; i < qp.sq.size() && qp.sq[i].issued; ++i) {
    SendEntry& entry = qp.sq[i];
    if (!entry.answered_by_response() || entry.responded == entry.psn_count) continue;
    number = qp.sq_base + i;
    return &entry;
  }
  return nullptr;
}

WcStatus RcTransport::judge_response(const QueuePair& qp, const SendEntry& entry,
                                     const Incoming& in) const {
  const bool atomic = in.info.kind == protocol::OpcodeKind::kAtomicAck;
  if (atomic != entry.wqe.is_atomic()) return WcStatus::kBadResponseError;
  if (atomic) return in.payload_bytes == 0 ? WcStatus::kSuccess : WcStatus::kLocalLengthError;
  const std::uint32_t per_request = packets_per_request(qp, entry);
  // Later packets may open a new response: that to a request for the missing part.
  if (entry.responded % per_request == 0 && !in.info.starts_message()) {
    return WcStatus::kBadResponseError;
  }
  const std::uint32_t left = entry.wqe.length - entry.responded * qp.mtu;
  const bool ends =
      entry.responded + 1 == entry.psn_count || (entry.responded + 1) % per_request == 0;
  const bool length_right =
      in.payload_bytes == std::min(qp.mtu, left) && in.info.ends_message() == ends;
  return length_right ? WcStatus::kSuccess : WcStatus::kLocalLengthError;
}

void RcTransport::handle_read_response(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan) {
  if (in.info.has_aeth) note_credits(qp, in);
  if (config_.selective_repeat) {
    selective_read_response(qp, in, now, plan);
    hasten_timer(qp, now);
    return;
  }
  const std::uint32_t psn = in.bth.psn;
  if (!outstanding(qp, psn)) return;
  std::uint64_t number = 0;
  SendEntry* entry = oldest_unanswered(qp, number);
  if (entry == nullptr) return;
  const std::uint32_t expected = psn_add(entry->first_psn, entry->responded);
  const std::int32_t gap = psn_distance(psn, expected);
  if (gap < 0) return;  // not of this READ: a leftover of an earlier one
  if (gap > 0) {
    acknowledge_up_to(qp, psn_add(psn, protocol::kPsnMask), now);  // finds what is missing
    return;
  }
  if (psn != qp.una_psn) acknowledge_up_to(qp, psn_add(psn, protocol::kPsnMask), now);
  if (const WcStatus status = judge_response(qp, *entry, in); status != WcStatus::kSuccess) {
    fail(qp, status);
    return;
  }
  plan.action =
      entry->wqe.is_atomic() ? RxPlan::Action::kAtomicResponse : RxPlan::Action::kReadResponse;
  plan.psn = psn;
  plan.message_offset = entry->responded * qp.mtu;
  plan.length = in.payload_bytes;
  plan.original = in.atomic_ack.original;
  plan.entry_number = number;
  ++entry->responded;
  plan.last = entry->responded == entry->psn_count;
  if (plan.last) entry->placing = true;
  if (plan.last || entry->responded % packets_per_request(qp, *entry) == 0) --qp.outstanding_reads;
  advance(qp, psn_add(psn, 1), now);
}

void RcTransport::rewind(QueuePair& qp, std::uint32_t psn) {
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    if (!entry.issued) return;
    const std::int32_t packet = psn_distance(psn, entry.first_psn);
    if (packet < 0 || packet >= static_cast<std::int32_t>(entry.psn_count)) continue;
    qp.tx_number = qp.sq_base + i;
    qp.tx_offset = entry.answered_by_response() ? 0 : static_cast<std::uint32_t>(packet) * qp.mtu;
    return;
  }
}

bool RcTransport::spend_retry(QueuePair& qp) {
  if (qp.retries_left == 0) {
    if (!migrate(qp)) {
      fail(qp, WcStatus::kRetryExceededError);
      return false;
    }
    qp.retries_left = qp.retry_count;
    return true;
  }
  --qp.retries_left;
  return true;
}

/// An expiry of the regular timer costs a retry. Those of the adaptive phase cost one together, and
/// the regular timer then runs retry_count - 1 times.
bool RcTransport::spend_timeout(QueuePair& qp) {
  const RetransmissionTimers& timers = timers_of(qp);
  if (!timers.quick(qp.timeout_exponent, qp.quick_retries)) return spend_retry(qp);
  ++qp.quick_retries;
  if (timers.quick(qp.timeout_exponent, qp.quick_retries)) return true;
  constexpr std::uint8_t kCost = 2;  // its own, and the last regular expiry gives up
  if (qp.retries_left < kCost) {
    qp.retries_left = 0;
    return spend_retry(qp);
  }
  qp.retries_left = static_cast<std::uint8_t>(qp.retries_left - kCost);
  return true;
}

void RcTransport::fail(QueuePair& qp, WcStatus status) {
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    if (done(entry)) continue;
    if (!entry.finished) entry.status = status;  // else it has failed locally already
    entry.finished = true;
    qp.tx_number = qp.sq_base + i;
    break;
  }
  qp.retry_deadline = kTimeNever;
  qp.resend_due = false;
}

bool RcTransport::timeout(QueuePair& qp, Time now) {
  if (config_.selective_repeat && SelectiveRepeat::of(qp).short_timer && !only_a_tail(qp)) {
    restart_timer(qp, now);  // more was sent since
    return true;
  }
  ++counters_.local_ack_timeout_err;
  if (!spend_timeout(qp)) return false;
  if (config_.selective_repeat) return selective_timeout(qp, now);
  qp.implied_nak = false;
  rewind(qp, qp.una_psn);
  restart_timer(qp, now);
  return true;
}

}  // namespace rnic::transport
