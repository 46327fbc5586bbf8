// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transport/iwarp_segment.h"
#include "transport/iwarp_transport.h"
#include "transport/terminate_codes.h"

namespace rnic::transport {

using protocol::RdmapOpcode;
using protocol::SendWqe;
using protocol::TerminateLayer;
using protocol::WcStatus;

namespace {

RdmapOpcode send_opcode(const SendWqe& wqe) {
  if (wqe.opcode == protocol::WqeOpcode::kSendInval) {
    return wqe.solicited ? RdmapOpcode::kSendSolicitedInvalidate : RdmapOpcode::kSendInvalidate;
  }
  return wqe.solicited ? RdmapOpcode::kSendSolicited : RdmapOpcode::kSend;
}

/// Where a READ's data goes; an empty READ needs no place.
protocol::Sge sink_of(const SendWqe& wqe) {
  return wqe.sge_count > 0 ? wqe.sge[0] : protocol::Sge{};
}

}  // namespace

/// iWARP has a message for the work request (see the class comment).
bool IwarpTransport::executable(const SendWqe& wqe) {
  if (wqe.is_read()) return wqe.sge_count <= 1;
  if (wqe.is_send()) return wqe.opcode != protocol::WqeOpcode::kSendImm;
  return wqe.is_write() || wqe.is_atomic();
}

bool IwarpTransport::may_issue(const QueuePair& qp, const SendEntry& entry) {
  if (entry.wqe.fence) {
    // Until their data is in memory, not only until it has arrived: this request may read it.
    const auto ahead = static_cast<std::size_t>(qp.tx_number - qp.sq_base);
    for (std::size_t i = 0; i < ahead; ++i) {
      const SendWqe& before = qp.sq[i].wqe;
      if ((before.is_read() || before.is_atomic()) && !qp.sq[i].finished) return false;
    }
  }
  const bool needs_slot = entry.wqe.is_read() || entry.wqe.is_atomic();
  return !needs_slot || qp.outstanding_reads < qp.max_rd_atomic;
}

void IwarpTransport::issue(QueuePair& qp, SendEntry& entry) const {
  IwarpConnection& c = connection(qp);
  const SendWqe& wqe = entry.wqe;
  DdpMessage message;
  message.entry_number = qp.tx_number;
  message.ends_entry = !(wqe.is_write() && wqe.has_imm());
  if (wqe.is_read() || wqe.is_atomic()) {
    message.opcode = wqe.is_read() ? RdmapOpcode::kReadRequest : RdmapOpcode::kAtomicRequest;
    c.reads.push_back(qp.tx_number);
    ++qp.outstanding_reads;
  } else {
    message.opcode = wqe.is_send() ? send_opcode(wqe) : RdmapOpcode::kWrite;
    message.length = wqe.length;
  }
  if (!is_tagged(message.opcode)) message.msn = c.next_msn[queue_of(message.opcode)]++;
  append(c, message);
  if (!message.ends_entry) {
    message.opcode = wqe.solicited ? RdmapOpcode::kImmediateSolicited : RdmapOpcode::kImmediate;
    message.ends_entry = true;
    message.length = 0;
    message.msn = c.next_msn[queue_of(message.opcode)]++;
    append(c, message);
  }
  entry.first_psn = message.msn;
  entry.responded = 0;
  entry.end_of_stream = c.stream_end;
  entry.issued = true;
}

PlanStatus IwarpTransport::plan_request(QueuePair& qp, Time now, TxPlan& plan) {
  if (!qp.may_send()) return PlanStatus::kNoWqe;
  IwarpConnection& c = connection(qp);
  if (qp.failed || c.closed || !c.setup.done() || !c.gate.may_send()) return PlanStatus::kBlocked;
  if (c.mid_message()) {
    return plan_segment(qp, now, plan) ? PlanStatus::kPlanned : PlanStatus::kBlocked;
  }
  if (qp.state == protocol::QpState::kSqd) return PlanStatus::kBlocked;
  SendEntry* entry = qp.entry(qp.tx_number);
  if (entry == nullptr) return PlanStatus::kNoWqe;
  if (entry->finished || entry->issued) return PlanStatus::kBlocked;  // failed: the queue stops
  if (!executable(entry->wqe)) {
    entry->finished = true;
    entry->status = WcStatus::kLocalQpOperationError;
    qp.retry_deadline = now;  // the timer is what retires an entry without any frame arriving
    return PlanStatus::kDelayed;
  }
  if (!may_issue(qp, *entry) || !c.tcp.can_send(first_segment_bytes(c, entry->wqe))) {
    return PlanStatus::kBlocked;
  }
  if (c.reads.empty()) c.keep_alive.heard(now);
  issue(qp, *entry);
  return plan_segment(qp, now, plan) ? PlanStatus::kPlanned : PlanStatus::kBlocked;
}

Hold IwarpTransport::held_by(const QueuePair& qp, Time /*now*/) const {
  const SendEntry* entry = qp.entry(qp.tx_number);
  if (entry == nullptr || entry->finished || qp.connection == nullptr) return Hold::kNone;
  const IwarpConnection& c = connection(qp);
  if (qp.failed || c.closed || !c.setup.done() || !c.gate.may_send()) return Hold::kNone;
  if (!c.mid_message() && !may_issue(qp, *entry)) {
    const bool needs_slot = entry->wqe.is_read() || entry->wqe.is_atomic();
    const bool slots = needs_slot && qp.outstanding_reads >= qp.max_rd_atomic;
    return slots ? Hold::kReadSlots : Hold::kFence;
  }
  const std::uint32_t bytes = c.mid_message() ? qp.mtu : first_segment_bytes(c, entry->wqe);
  return c.tcp.beyond_peer_window(bytes) ? Hold::kPeerWindow : Hold::kCongestionWindow;
}

std::uint32_t IwarpTransport::first_segment_bytes(const IwarpConnection& c,
                                                  const SendWqe& wqe) const {
  DdpMessage message;
  message.opcode = wqe.is_read()     ? RdmapOpcode::kReadRequest
                   : wqe.is_atomic() ? RdmapOpcode::kAtomicRequest
                   : wqe.is_send()   ? RdmapOpcode::kSend
                                     : RdmapOpcode::kWrite;
  message.length = wqe.is_send() || wqe.is_write() ? wqe.length : 0;
  return segment_bytes(c, message, 0, c.stream_end);
}

void IwarpTransport::describe_request(const SendEntry& entry, const DdpMessage& message,
                                      TxPlan& plan) {
  const SendWqe& wqe = entry.wqe;
  plan.rkey = wqe.rkey;
  plan.address = wqe.remote_address + plan.message_offset;
  plan.imm = wqe.imm_or_rkey;
  plan.solicited = wqe.solicited;
  plan.goes_on = message.opcode == RdmapOpcode::kImmediate ||
                 message.opcode == RdmapOpcode::kImmediateSolicited;
  if (plan.last && message.ends_entry) plan.trace = entry.trace;
  if (message.opcode == RdmapOpcode::kReadRequest) {
    const protocol::Sge sink = sink_of(wqe);
    plan.sink_stag = sink.lkey;
    plan.sink_address = sink.address;
    plan.message_length = wqe.length;
  } else if (message.opcode == RdmapOpcode::kAtomicRequest) {
    plan.syndrome = wqe.opcode == protocol::WqeOpcode::kAtomicCas
                        ? protocol::RdmapAtomicRequest::kCompareSwap
                        : protocol::RdmapAtomicRequest::kFetchAdd;
    plan.swap_or_add = wqe.swap_or_add;
    plan.compare = wqe.compare;
  }
  if (plan.length == 0) return;
  plan.payload = wqe.inline_data ? TxPlan::Payload::kInline : TxPlan::Payload::kLocal;
  if (!wqe.inline_data) {
    plan.piece_count =
        slice_sges(wqe.sge.data(), wqe.sge_count, plan.message_offset, plan.length, plan.pieces);
  }
}

void IwarpTransport::handle_ack(QueuePair& qp, const Segment& in, Time now) {
  IwarpConnection& c = connection(qp);
  const bool bare = in.stream_bytes == 0;
  if (bare) {
    ++counters_.acks_received;
    // A keep-alive probe.
    if (in.tcp.sequence + 1 == static_cast<std::uint32_t>(c.tcp.receive_next())) {
      c.tcp.request_ack();
    }
  }
  const std::uint64_t window = std::uint64_t{in.tcp.window} << window_scale_;
  const std::uint64_t next = c.tcp.send_next();
  const bool resending = c.tcp.retransmitting();
  const auto event = c.tcp.on_ack(in.tcp.acknowledgement, window, bare, now,
                                  in.options.sack_count > 0 ? &in.options : nullptr);
  if (event == TcpConnection::AckEvent::kAdvanced) release_acknowledged(qp);
  if (resending || c.tcp.send_next() != next) seek(c);
}

void IwarpTransport::handle_read_response(QueuePair& qp, const Segment& in, Time now,
                                          RxPlan& plan) {
  IwarpConnection& c = connection(qp);
  SendEntry* entry = c.reads.empty() ? nullptr : qp.entry(c.reads.front());
  if (entry == nullptr || !entry->wqe.is_read()) {
    terminate_stream(qp, TerminateLayer::kRdmap, kRdmapOperation, kUnexpectedOpcode);
    return;
  }
  const SendWqe& wqe = entry->wqe;
  const protocol::Sge sink = sink_of(wqe);
  const std::uint64_t after = std::uint64_t{entry->responded} + in.payload_bytes;
  const bool complete = after == wqe.length;
  if (in.stag != sink.lkey || in.address != sink.address + entry->responded || after > wqe.length ||
      in.control.last != complete) {
    fail(qp, entry, WcStatus::kBadResponseError);
    return;
  }
  take_segment(qp, in.stream_bytes, now);
  plan.action = RxPlan::Action::kReadResponse;
  plan.rkey = in.stag;  // a tagged write of the peer, which needs the right to do it
  plan.entry_number = c.reads.front();
  plan.message_offset = entry->responded;
  plan.message_length = wqe.length;
  plan.length = in.payload_bytes;
  plan.first = entry->responded == 0;
  plan.last = complete;
  entry->responded += in.payload_bytes;
  if (!complete) return;
  entry->placing = true;
  --qp.outstanding_reads;
  c.reads.pop_front();
}

void IwarpTransport::handle_atomic_response(QueuePair& qp, const Segment& in, Time now,
                                            RxPlan& plan) {
  IwarpConnection& c = connection(qp);
  SendEntry* entry = c.reads.empty() ? nullptr : qp.entry(c.reads.front());
  const auto response = protocol::RdmapAtomicResponse::decode(in.rdmap);
  if (entry == nullptr || !entry->wqe.is_atomic() ||
      response.request_id != static_cast<std::uint32_t>(c.reads.front())) {
    fail(qp, entry, WcStatus::kBadResponseError);
    return;
  }
  take_segment(qp, in.stream_bytes, now);
  ++c.expected_msn[protocol::kDdpQueueAtomicResponse];
  plan.action = RxPlan::Action::kAtomicResponse;
  plan.entry_number = c.reads.front();
  plan.original = response.original;
  plan.first = plan.last = true;
  entry->placing = true;
  --qp.outstanding_reads;
  c.reads.pop_front();
}

/// The work request that the peer complains about: by the headers that came back, else the oldest.
SendEntry* IwarpTransport::offender(QueuePair& qp, const Segment& in,
                                    const protocol::RdmapTerminate& terminate) {
  const std::uint32_t length_at = protocol::RdmapTerminate::kBytes;
  const std::uint32_t ddp_at = length_at + (terminate.has_length ? 2 : 0);
  if (!terminate.has_ddp_header || in.rdmap_bytes < ddp_at + protocol::DdpTagged::kBytes) {
    return nullptr;
  }
  const auto control = protocol::DdpControl::decode(in.rdmap + ddp_at);
  if (!control.tagged && in.rdmap_bytes < ddp_at + protocol::DdpUntagged::kBytes) return nullptr;
  const auto tagged = protocol::DdpTagged::decode(in.rdmap + ddp_at);
  const auto untagged =
      control.tagged ? protocol::DdpUntagged{} : protocol::DdpUntagged::decode(in.rdmap + ddp_at);
  for (std::size_t i = 0; i < qp.sq.size() && qp.sq[i].issued; ++i) {
    SendEntry& entry = qp.sq[i];
    if (entry.finished) continue;
    const SendWqe& wqe = entry.wqe;
    if (control.tagged) {
      const std::uint64_t into = tagged.offset - wqe.remote_address;
      if (wqe.is_write() && wqe.rkey == tagged.stag &&
          into < std::max<std::uint64_t>(wqe.length, 1)) {
        return &entry;
      }
    } else if (entry.first_psn == untagged.msn) {
      const bool on_read_queue = wqe.is_read() || wqe.is_atomic();
      const bool untagged_request = on_read_queue || wqe.is_send() || wqe.has_imm();
      if (untagged_request && on_read_queue == (untagged.queue == protocol::kDdpQueueReadRequest)) {
        return &entry;
      }
    }
  }
  return nullptr;
}

/// Ends the connection with `status` at `entry` (null: the oldest unfinished one) and a flush error
/// at what is older; false. The NIC flushes what is younger.
bool IwarpTransport::fail(QueuePair& qp, SendEntry* entry, WcStatus status) {
  for (std::size_t i = 0; i < qp.sq.size(); ++i) {
    SendEntry& older = qp.sq[i];
    const bool found = entry == nullptr ? !older.finished : &older == entry;
    if (older.finished && !found) continue;
    older.status = found ? status : WcStatus::kWrFlushError;
    older.finished = true;
    older.placing = false;
    if (found) break;
  }
  connection(qp).tcp.stop_timer();
  return false;
}

void IwarpTransport::handle_terminate(QueuePair& qp, const Segment& in, Time now) {
  IwarpConnection& c = connection(qp);
  const auto terminate = protocol::RdmapTerminate::decode(in.rdmap);
  WcStatus status = WcStatus::kRemoteOperationError;
  const bool protection =
      (terminate.layer == TerminateLayer::kRdmap && terminate.error_type == kRdmapProtection) ||
      (terminate.layer == TerminateLayer::kDdp && terminate.error_type == kDdpTagged);
  if (protection) {
    status = WcStatus::kRemoteAccessError;
    ++counters_.req_remote_access_errors;
  } else if (terminate.layer == TerminateLayer::kDdp && terminate.error_type == kDdpUntagged &&
             terminate.error_code == kTooLong) {
    status = WcStatus::kRemoteInvalidRequestError;
    ++counters_.req_remote_invalid_request;
  }
  fail(qp, offender(qp, in, terminate), status);
  // Nothing may be outstanding here; the last ACK lets the NIC move the QP to ERR all the same.
  take_segment(qp, in.stream_bytes, now);
  c.tcp.request_ack();
  qp.refusal.reset();
  qp.failed = true;
}

}  // namespace rnic::transport
