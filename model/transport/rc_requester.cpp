// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"

namespace rnic::transport {

using protocol::BthOpcode;
using protocol::psn_add;
using protocol::psn_distance;
using protocol::WcStatus;

namespace {

/// The largest PSN window a requester may open (IBTA vol 1, 9.7.2): half the PSN space.
constexpr std::int32_t kMaxPsnWindow = 1 << 23;

std::uint32_t packets_of(std::uint32_t length, std::uint32_t mtu) {
  return std::max<std::uint32_t>(1, (length + mtu - 1) / mtu);
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

void RcTransport::start_sending(QueuePair& qp) {
  qp.una_psn = qp.next_psn;
  qp.max_sent_psn = qp.next_psn;
  qp.retries_left = qp.retry_count;
  qp.rnr_retries_left = qp.rnr_retry;
}

bool RcTransport::may_issue(const QueuePair& qp, const SendEntry& entry) {
  if (entry.wqe.fence && qp.outstanding_reads > 0) return false;
  const bool needs_slot = entry.wqe.is_read() || entry.wqe.is_atomic();
  if (needs_slot && qp.outstanding_reads >= qp.max_rd_atomic) return false;
  const std::uint32_t packets = packets_of(entry.wqe.length, qp.mtu);
  return psn_distance(qp.next_psn, qp.una_psn) + static_cast<std::int32_t>(packets) <
         kMaxPsnWindow;
}

void RcTransport::issue(QueuePair& qp, SendEntry& entry) {
  entry.first_psn = qp.next_psn;
  entry.psn_count = entry.wqe.is_atomic() ? 1 : packets_of(entry.wqe.length, qp.mtu);
  entry.responded = 0;
  entry.issued = true;
  qp.next_psn = psn_add(qp.next_psn, entry.psn_count);
  if (entry.wqe.is_read() || entry.wqe.is_atomic()) ++qp.outstanding_reads;
}

PlanStatus RcTransport::plan_request(QueuePair& qp, Time now, TxPlan& plan) {
  if (qp.state != protocol::QpState::kRts) return PlanStatus::kNoWqe;
  if (now < qp.rnr_until) return PlanStatus::kDelayed;
  SendEntry* entry = qp.entry(qp.tx_number);
  while (entry != nullptr && entry->finished && entry->status == WcStatus::kSuccess) {
    entry = qp.entry(++qp.tx_number);  // a rewind passes READs that were answered meanwhile
    qp.tx_offset = 0;
  }
  if (entry == nullptr) return PlanStatus::kNoWqe;
  if (entry->finished) return PlanStatus::kBlocked;  // failed locally: the queue stops here
  if (!entry->issued) {
    if (!may_issue(qp, *entry)) return PlanStatus::kBlocked;
    issue(qp, *entry);
  }
  plan = TxPlan{};
  plan.entry_number = qp.tx_number;
  plan.message_length = entry->wqe.length;
  plan.rkey = entry->wqe.rkey;
  if (entry->wqe.is_read() || entry->wqe.is_atomic()) {
    plan_read(qp, *entry, plan);
  } else {
    plan_segment(qp, *entry, plan);
  }
  if (qp.retry_deadline == kTimeNever) restart_timer(qp, now);
  return PlanStatus::kPlanned;
}

void RcTransport::plan_read(QueuePair& qp, SendEntry& entry, TxPlan& plan) {
  const protocol::SendWqe& wqe = entry.wqe;
  // A re-issued READ asks only for what is missing, as a request of its own (IBTA 9.7.5.1.2).
  const std::uint32_t skip = entry.responded * qp.mtu;
  plan.psn = psn_add(entry.first_psn, entry.responded);
  plan.address = wqe.remote_address + skip;
  plan.message_length = wqe.length - skip;
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
  ++qp.tx_number;
  qp.tx_offset = 0;
  note_sent(qp, plan, entry.psn_count - entry.responded);
}

void RcTransport::plan_segment(QueuePair& qp, SendEntry& entry, TxPlan& plan) {
  const protocol::SendWqe& wqe = entry.wqe;
  const std::uint32_t offset = qp.tx_offset;
  const std::uint32_t length = std::min(qp.mtu, wqe.length - offset);
  const bool first = offset == 0;
  const bool last = offset + length == wqe.length;
  const std::uint32_t packet = offset / qp.mtu;
  plan.psn = psn_add(entry.first_psn, packet);
  plan.opcode = static_cast<std::uint8_t>(segment_opcode(wqe, first, last));
  plan.length = length;
  plan.message_offset = offset;
  plan.address = wqe.remote_address;
  plan.imm = wqe.imm_or_rkey;
  plan.last = last;
  plan.ack_request = last || (packet + 1) % config_.ack_every == 0;
  plan.solicited = last && wqe.solicited;
  if (last) plan.trace = entry.trace;
  if (length > 0) {
    plan.payload = wqe.inline_data ? TxPlan::Payload::kInline : TxPlan::Payload::kLocal;
    if (!wqe.inline_data) plan.piece_count = slice_sges(wqe.sge.data(), wqe.sge_count, offset, length, plan.pieces);
  }
  qp.tx_offset += length;
  if (last) {
    ++qp.tx_number;
    qp.tx_offset = 0;
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
  const bool outstanding = psn_distance(qp.next_psn, qp.una_psn) > 0;
  qp.retry_deadline = outstanding && qp.timeout_exponent != 0
                          ? now + protocol::ack_timeout(qp.timeout_exponent)
                          : kTimeNever;
}

void RcTransport::acknowledge_up_to(QueuePair& qp, std::uint32_t psn, Time now) {
  bool progress = false;
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    if (!entry.issued || psn_distance(entry.first_psn, psn) > 0) break;
    const std::uint32_t last_psn = psn_add(entry.first_psn, entry.psn_count - 1);
    if (entry.wqe.is_read() || entry.wqe.is_atomic()) {
      if (entry.responded == entry.psn_count) continue;
      // A later acknowledgement passed an unanswered READ: its response was lost (9.7.5.2.5).
      ++counters_.implied_nak_seq_err;
      if (spend_retry(qp)) rewind(qp, psn_add(entry.first_psn, entry.responded));
      return;
    }
    if (psn_distance(last_psn, psn) > 0) break;
    if (!entry.finished) {
      entry.finished = true;
      progress = true;
    }
  }
  const std::uint32_t next_una = psn_add(psn, 1);
  if (psn_distance(next_una, qp.una_psn) > 0) {
    qp.una_psn = next_una;
    progress = true;
  }
  if (!progress) return;
  qp.retries_left = qp.retry_count;
  qp.rnr_retries_left = qp.rnr_retry;
  restart_timer(qp, now);
}

void RcTransport::handle_ack(QueuePair& qp, const Incoming& in, Time now) {
  ++counters_.acks_received;
  const std::uint32_t psn = in.bth.psn;
  const bool outstanding =
      psn_distance(psn, qp.una_psn) >= 0 && psn_distance(psn, qp.max_sent_psn) < 0;
  const auto kind = protocol::syndrome_kind(in.aeth.syndrome);
  if (kind == protocol::AethKind::kAck) {
    if (outstanding) acknowledge_up_to(qp, psn, now);
    return;
  }
  if (outstanding) handle_nak(qp, in, now);
}

void RcTransport::handle_nak(QueuePair& qp, const Incoming& in, Time now) {
  const std::uint32_t psn = in.bth.psn;
  if (psn != qp.una_psn) acknowledge_up_to(qp, psn_add(psn, protocol::kPsnMask), now);
  if (protocol::syndrome_kind(in.aeth.syndrome) == protocol::AethKind::kRnrNak) {
    ++counters_.rnr_nak_retry_err;
    constexpr std::uint32_t kInfinite = 7;
    if (qp.rnr_retry != kInfinite) {
      if (qp.rnr_retries_left == 0) {
        fail(qp, psn, WcStatus::kRnrRetryExceededError);
        return;
      }
      --qp.rnr_retries_left;
    }
    rewind(qp, psn);
    qp.rnr_until = now + protocol::rnr_timer(protocol::syndrome_value(in.aeth.syndrome));
    qp.retry_deadline = kTimeNever;  // the acknowledgement timer rests during an RNR wait
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
      fail(qp, psn, WcStatus::kRemoteInvalidRequestError);
      return;
    case protocol::NakCode::kRemoteAccess:
      ++counters_.req_remote_access_errors;
      fail(qp, psn, WcStatus::kRemoteAccessError);
      return;
    default:
      fail(qp, psn, WcStatus::kRemoteOperationError);
      return;
  }
}

void RcTransport::handle_read_response(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan) {
  const std::uint32_t psn = in.bth.psn;
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    if (!entry.issued) break;
    const bool answered_by_response = entry.wqe.is_read() || entry.wqe.is_atomic();
    if (!answered_by_response || entry.responded == entry.psn_count) continue;
    const std::uint32_t expected = psn_add(entry.first_psn, entry.responded);
    const std::int32_t gap = psn_distance(psn, expected);
    if (gap < 0) return;  // a duplicate of what has been placed
    if (gap > 0) {
      if (qp.tx_number > qp.sq_base + i) {  // not already on the way back
        ++counters_.implied_nak_seq_err;
        if (spend_retry(qp)) rewind(qp, expected);
      }
      return;
    }
    plan.action = entry.wqe.is_atomic() ? RxPlan::Action::kAtomicResponse
                                        : RxPlan::Action::kReadResponse;
    plan.psn = psn;
    plan.message_offset = entry.responded * qp.mtu;
    plan.length = in.payload_bytes;
    plan.original = in.atomic_ack.original;
    plan.entry_number = qp.sq_base + i;
    const std::uint32_t wanted =
        entry.wqe.is_atomic() ? 0 : std::min(qp.mtu, entry.wqe.length - plan.message_offset);
    if (plan.length != wanted) {
      plan.action = RxPlan::Action::kNone;
      fail(qp, psn, WcStatus::kBadResponseError);
      return;
    }
    if (psn != entry.first_psn || entry.responded > 0 || psn != qp.una_psn) {
      acknowledge_up_to(qp, psn_add(psn, protocol::kPsnMask), now);
    }
    ++entry.responded;
    plan.last = entry.responded == entry.psn_count;
    if (plan.last) {
      entry.placing = true;
      --qp.outstanding_reads;
    }
    if (psn_distance(psn_add(psn, 1), qp.una_psn) > 0) qp.una_psn = psn_add(psn, 1);
    qp.retries_left = qp.retry_count;
    restart_timer(qp, now);
    return;
  }
}

void RcTransport::rewind(QueuePair& qp, std::uint32_t psn) {
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    if (!entry.issued) return;
    const std::int32_t packet = psn_distance(psn, entry.first_psn);
    if (packet < 0 || packet >= static_cast<std::int32_t>(entry.psn_count)) continue;
    qp.tx_number = qp.sq_base + i;
    const bool whole = entry.wqe.is_read() || entry.wqe.is_atomic();
    qp.tx_offset = whole ? 0 : static_cast<std::uint32_t>(packet) * qp.mtu;
    return;
  }
}

bool RcTransport::spend_retry(QueuePair& qp) {
  if (qp.retries_left == 0) {
    fail(qp, qp.una_psn, WcStatus::kRetryExceededError);
    return false;
  }
  --qp.retries_left;
  return true;
}

void RcTransport::fail(QueuePair& qp, std::uint32_t psn, WcStatus status) {
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& entry = qp.sq[i];
    const std::uint32_t last_psn = psn_add(entry.first_psn, entry.psn_count - 1);
    if (entry.finished && psn_distance(last_psn, psn) < 0) continue;
    entry.status = status;
    entry.finished = true;
    entry.placing = false;
    qp.tx_number = qp.sq_base + i;
    break;
  }
  qp.retry_deadline = kTimeNever;
}

bool RcTransport::timeout(QueuePair& qp, Time now) {
  ++counters_.local_ack_timeout_err;
  if (!spend_retry(qp)) return false;
  rewind(qp, qp.una_psn);
  restart_timer(qp, now);
  return true;
}

}  // namespace rnic::transport
