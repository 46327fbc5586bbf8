// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "protocol/mpa.h"
#include "protocol/opcode.h"
#include "transport/iwarp_segment.h"
#include "transport/iwarp_transport.h"
#include "transport/terminate_codes.h"

namespace rnic::transport {

using protocol::RdmapOpcode;
using protocol::TerminateLayer;

namespace {

bool is_send(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kSend || opcode == RdmapOpcode::kSendInvalidate ||
         opcode == RdmapOpcode::kSendSolicited || opcode == RdmapOpcode::kSendSolicitedInvalidate;
}

bool invalidates(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kSendInvalidate || opcode == RdmapOpcode::kSendSolicitedInvalidate;
}

bool is_immediate(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kImmediate || opcode == RdmapOpcode::kImmediateSolicited;
}

/// What a WRITE brings: the immediate behind it tells how much that was.
void count_write(IwarpConnection& c, std::uint32_t payload, bool last) {
  c.write_bytes += payload;
  if (!last) return;
  c.last_write = c.write_bytes;
  c.write_bytes = 0;
}

}  // namespace

void IwarpTransport::describe_response(DdpMessage& message, TxPlan& plan) {
  ResponseEntry& response = message.response;
  plan.is_response = true;
  plan.not_before = response.ready;
  if (plan.last) {
    // Once: when the segment is resent, the requester may be done with the trace.
    plan.trace = response.trace;
    response.trace = nullptr;
  }
  plan.sink_stag = response.sink_stag;
  if (message.opcode == RdmapOpcode::kAtomicResponse) {
    plan.swap_or_add = response.original;
    return;
  }
  plan.sink_address = response.sink_address + plan.message_offset;
  plan.rkey = response.rkey;
  plan.address = response.address + plan.message_offset;
  if (plan.length > 0) plan.payload = TxPlan::Payload::kRemote;
}

DdpMessage IwarpTransport::response_message(const ResponseEntry& response) {
  DdpMessage message;
  message.is_response = true;
  message.response = response;
  message.msn = response.msn;
  if (response.kind == ResponseEntry::Kind::kReadResponse) {
    message.opcode = RdmapOpcode::kReadResponse;
    message.length = response.length;
  } else {
    message.opcode = RdmapOpcode::kAtomicResponse;
  }
  return message;
}

void IwarpTransport::receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) {
  plan = RxPlan{};
  if (qp.connection == nullptr) return;
  IwarpConnection& c = connection(qp);
  Segment in;
  if (c.closed || (config_.handshake && receive_setup(qp, frame, now))) return;
  if (qp.failed && !c.terminate_pending) return;
  if (!decode(frame, in)) {
    if (in.tcp.rst) handle_reset(qp, in, plan);
    return;
  }
  if (qp.failed) {  // answers go out before the terminate message: only their ACKs are of interest
    handle_ack(qp, in, now);
    update_deadline(qp);
    return;
  }
  if (in.tcp.fin) c.fin_received = true;
  c.keep_alive.heard(now);
  const TcpConnection::EarlySegment* due = c.tcp.early_due();
  const bool again = due != nullptr && static_cast<std::uint32_t>(due->sequence) == in.tcp.sequence;
  if (again) {
    c.tcp.drop_early();  // the frame that was held, or a copy of it
  }
  handle_ack(qp, in, now);
  if (in.stream_bytes > 0) handle_data(qp, in, now, plan);
  update_deadline(qp);
}

void IwarpTransport::handle_data(QueuePair& qp, const Segment& in, Time now, RxPlan& plan) {
  IwarpConnection& c = connection(qp);
  switch (c.tcp.classify(in.tcp.sequence)) {
    case TcpConnection::Arrival::kGap:
      ++counters_.out_of_sequence;
      if (config_.sack) {
        handle_early(qp, in, plan);
      } else {
        c.tcp.owe_duplicate_ack();
      }
      return;
    case TcpConnection::Arrival::kDuplicate:
      ++counters_.duplicate_request;
      c.tcp.request_ack();
      return;
    case TcpConnection::Arrival::kInOrder:
      break;
  }
  c.arriving_bytes = in.stream_bytes;
  c.arriving_ulpdu_bytes = in.ulpdu_bytes;
  c.arriving_ddp_bytes = static_cast<std::uint16_t>(
      std::min<std::size_t>(c.arriving_ddp.size(), rdmap_header_bytes(in.control.opcode)));
  std::memcpy(c.arriving_ddp.data(), in.ddp, c.arriving_ddp_bytes);
  if (in.has_timestamp) c.timestamp_recent = in.timestamp;
  if (c.gate.awaits()) {
    receive_ready(qp, in, now);
    return;
  }
  if (c.ready_read && in.control.opcode == RdmapOpcode::kReadResponse && in.payload_bytes == 0) {
    c.ready_read = false;
    take_segment(qp, in.stream_bytes, now);
    return;
  }
  plan.opcode = static_cast<std::uint8_t>(in.control.opcode);
  plan.last = in.control.last;
  plan.length = in.payload_bytes;
  if (!in.control.tagged) {
    handle_untagged(qp, in, now, plan);
    return;
  }
  if (in.control.opcode == RdmapOpcode::kReadResponse) {
    handle_read_response(qp, in, now, plan);
    return;
  }
  if (in.control.opcode != RdmapOpcode::kWrite) {
    terminate_stream(qp, TerminateLayer::kRdmap, kRdmapOperation, kUnexpectedOpcode);
    return;
  }
  // Every tagged segment is placed, and therefore checked, on its own.
  plan.action = RxPlan::Action::kWrite;
  plan.first = true;
  plan.rkey = in.stag;
  plan.address = in.address;
  plan.message_length = in.payload_bytes;
}

/// A segment behind a gap. Only what is complete in itself can be done before its turn.
void IwarpTransport::handle_early(QueuePair& qp, const Segment& in, RxPlan& plan) {
  TcpConnection& tcp = connection(qp).tcp;
  if (tcp.early_at(in.tcp.sequence) != nullptr) {
    tcp.owe_duplicate_ack();
    return;
  }
  plan.psn = in.tcp.sequence;
  plan.last = in.control.last;
  plan.length = in.payload_bytes;
  if (in.control.opcode != RdmapOpcode::kWrite || !in.control.tagged) {
    if (tcp.keep_early(in.tcp.sequence, in.stream_bytes, true, plan.last)) {
      plan.action = RxPlan::Action::kHold;
    }
    tcp.owe_duplicate_ack();
    return;
  }
  plan.action = RxPlan::Action::kWrite;
  plan.out_of_order = true;
  plan.first = true;
  plan.rkey = in.stag;
  plan.address = in.address;
  plan.message_length = in.payload_bytes;
}

/// Moves on by a segment whose turn it was, and by the placed ones that follow it.
void IwarpTransport::take_segment(QueuePair& qp, std::uint32_t bytes, Time now) {
  TcpConnection& tcp = connection(qp).tcp;
  tcp.accept(bytes, now);
  for (auto due = tcp.early_due(); due != nullptr && !due->held; due = tcp.early_due()) {
    if (due->last) ++counters_.rx_write_requests;
    count_write(connection(qp), due->payload, due->last);
    tcp.accept(due->bytes, now);
    tcp.drop_early();
  }
}

bool IwarpTransport::holds(const QueuePair& qp, std::uint32_t sequence) const {
  const IwarpConnection* c = connection_of(qp);
  if (c == nullptr || c->closed || qp.failed) return false;
  const TcpConnection::EarlySegment* segment = c->tcp.early_at(sequence);
  return segment != nullptr && segment->held;
}

bool IwarpTransport::hold_over(const QueuePair& qp, std::uint32_t sequence) const {
  const IwarpConnection* c = connection_of(qp);
  return static_cast<std::uint32_t>(c->tcp.receive_next()) == sequence && holds(qp, sequence);
}

void IwarpTransport::handle_untagged(QueuePair& qp, const Segment& in, Time now, RxPlan& plan) {
  const IwarpConnection& c = connection(qp);
  const RdmapOpcode opcode = in.control.opcode;
  if (is_tagged(opcode)) {
    terminate_stream(qp, TerminateLayer::kRdmap, kRdmapOperation, kUnexpectedOpcode);
    return;
  }
  if (in.queue != queue_of(opcode)) {
    terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kBadQueue);
    return;
  }
  if (opcode == RdmapOpcode::kTerminate) {
    handle_terminate(qp, in, now);
    return;
  }
  if (in.msn != c.expected_msn[in.queue]) {
    terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kBadMsn);
    return;
  }
  if (in.offset != (is_send(opcode) ? c.expected_offset : 0)) {
    terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kBadOffset);
    return;
  }
  if (is_send(opcode) || is_immediate(opcode)) {
    fill_send(qp, in, plan);
  } else if (opcode == RdmapOpcode::kAtomicResponse) {
    handle_atomic_response(qp, in, now, plan);
  } else {
    fill_read_request(qp, in, plan);
  }
}

void IwarpTransport::fill_send(QueuePair& qp, const Segment& in, RxPlan& plan) {
  const RdmapOpcode opcode = in.control.opcode;
  plan.first = in.offset == 0;
  plan.message_offset = in.offset;
  plan.solicited = opcode == RdmapOpcode::kSendSolicited ||
                   opcode == RdmapOpcode::kSendSolicitedInvalidate ||
                   opcode == RdmapOpcode::kImmediateSolicited;
  if (!is_immediate(opcode)) {
    plan.action = RxPlan::Action::kSend;
    plan.invalidates = plan.last && invalidates(opcode);
    plan.imm = in.invalidate_stag;
    return;
  }
  if (connection(qp).expected_offset != 0) {  // inside a SEND
    terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kBadOffset);
    return;
  }
  // To the NIC the end of a WRITE that brings nothing more than the immediate.
  plan.action = RxPlan::Action::kWrite;
  plan.has_imm = true;
  plan.imm = protocol::RdmapImmediate::decode(in.rdmap).imm;
  plan.written_before = connection(qp).last_write;
}

void IwarpTransport::fill_read_request(QueuePair& qp, const Segment& in, RxPlan& plan) {
  if (qp.reads_in_service >= qp.max_dest_rd_atomic) {
    qp.refusal = Refusal::kInvalidRequest;
    terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kNoBuffer);
    return;
  }
  plan.first = plan.last = true;
  if (in.control.opcode == RdmapOpcode::kReadRequest) {
    const auto request = protocol::RdmapReadRequest::decode(in.rdmap);
    plan.action = RxPlan::Action::kReadRequest;
    plan.rkey = request.source_stag;
    plan.address = request.source_offset;
    plan.message_length = request.length;
    plan.sink_stag = request.sink_stag;
    plan.sink_address = request.sink_offset;
    return;
  }
  const auto request = protocol::RdmapAtomicRequest::decode(in.rdmap);
  plan.action = RxPlan::Action::kAtomicRequest;
  // The NIC's atomic unit knows the two operations by their BTH opcodes.
  plan.opcode =
      static_cast<std::uint8_t>(request.operation == protocol::RdmapAtomicRequest::kCompareSwap
                                    ? protocol::BthOpcode::kCompareSwap
                                    : protocol::BthOpcode::kFetchAdd);
  plan.rkey = request.stag;
  plan.address = request.offset;
  plan.swap_or_add = request.swap_or_add;
  plan.compare = request.compare;
  plan.sink_stag = request.request_id;
}

void IwarpTransport::accept(QueuePair& qp, const RxPlan& plan, Time now,
                            stats::MessageTrace* trace) {
  IwarpConnection& c = connection(qp);
  if (plan.out_of_order) {
    const std::uint32_t header = rdmap_header_bytes(RdmapOpcode::kWrite);
    const std::uint32_t bytes = stream_bytes(plan.psn - c.peer_sequence, header + plan.length);
    c.tcp.keep_early(plan.psn, bytes, false, plan.last, plan.length);
    c.tcp.owe_duplicate_ack();
    update_deadline(qp);
    return;
  }
  if (plan.action == RxPlan::Action::kWrite && !plan.has_imm) {
    count_write(c, plan.length, plan.last);
  }
  take_segment(qp, c.arriving_bytes, now);
  c.arriving_bytes = 0;
  switch (plan.action) {
    case RxPlan::Action::kReadRequest:
    case RxPlan::Action::kAtomicRequest: {
      const bool read = plan.action == RxPlan::Action::kReadRequest;
      ++(read ? counters_.rx_read_requests : counters_.rx_atomic_requests);
      ResponseEntry response;
      response.kind =
          read ? ResponseEntry::Kind::kReadResponse : ResponseEntry::Kind::kAtomicResponse;
      response.msn = read ? c.expected_msn[protocol::kDdpQueueReadRequest]
                          : c.next_msn[protocol::kDdpQueueAtomicResponse]++;
      ++c.expected_msn[protocol::kDdpQueueReadRequest];
      response.rkey = plan.rkey;
      response.address = plan.address;
      response.length = plan.message_length;
      response.sink_stag = plan.sink_stag;
      response.sink_address = plan.sink_address;
      response.original = plan.original;
      response.pending = plan.deferred;
      response.ready = now;
      response.trace = trace;
      qp.responses.push_back(response);
      ++qp.reads_in_service;
      break;
    }
    case RxPlan::Action::kSend:
      c.expected_offset = plan.last ? 0 : c.expected_offset + plan.length;
      if (plan.last) {
        ++c.expected_msn[protocol::kDdpQueueSend];
        ++counters_.rx_send_requests;
      }
      break;
    case RxPlan::Action::kWrite:
      if (plan.has_imm) {
        ++c.expected_msn[protocol::kDdpQueueSend];
      } else if (plan.last) {
        ++counters_.rx_write_requests;
      }
      break;
    default:
      break;
  }
  update_deadline(qp);
}

void IwarpTransport::answer_atomic(QueuePair& qp, const RxPlan& plan, Time now) {
  for (std::size_t i = 0; i < qp.responses.size(); ++i) {
    ResponseEntry& response = qp.responses[i];
    if (!response.pending || response.sink_stag != plan.sink_stag) continue;  // the request's id
    response.pending = false;
    response.original = plan.original;
    response.ready = now;
    return;
  }
}

/// Queues the terminate message for the segment that arrived last.
void IwarpTransport::terminate_stream(QueuePair& qp, TerminateLayer layer, std::uint8_t error_type,
                                      std::uint8_t error_code) {
  IwarpConnection& c = connection(qp);
  const bool has_headers = layer == TerminateLayer::kDdp ||
                           (layer == TerminateLayer::kRdmap && error_type != kRdmapCatastrophic);
  protocol::RdmapTerminate terminate;
  terminate.layer = layer;
  terminate.error_type = error_type;
  terminate.error_code = error_code;
  terminate.has_length = terminate.has_ddp_header = has_headers;
  terminate.has_read_header =
      has_headers &&
      c.arriving_ddp_bytes == protocol::DdpUntagged::kBytes + protocol::RdmapReadRequest::kBytes;
  terminate.encode(c.terminate.data());
  std::uint32_t at = protocol::RdmapTerminate::kBytes;
  if (has_headers) {
    protocol::store_be16(c.terminate.data() + at, c.arriving_ulpdu_bytes);
    at += 2;
    const auto control = protocol::DdpControl::decode(c.arriving_ddp.data());
    const std::uint32_t ddp = terminate.has_read_header ? c.arriving_ddp_bytes
                              : control.tagged          ? protocol::DdpTagged::kBytes
                                                        : protocol::DdpUntagged::kBytes;
    std::memcpy(c.terminate.data() + at, c.arriving_ddp.data(), ddp);
    at += ddp;
  }
  c.terminate_bytes = static_cast<std::uint16_t>(at);
  c.terminate_pending = true;
  qp.failed = true;  // the NIC moves the QP to ERR once the message is on its way
  update_deadline(qp);
}

/// A key that does not allow the request. What a tagged segment names is DDP's to check (RFC 5041,
/// 7.1), which knows no rights; what a READ or atomic names is RDMAP's (RFC 5040, 7).
void IwarpTransport::terminate_for_key(QueuePair& qp, const RxPlan& plan) {
  using protocol::AccessResult;
  const bool tagged = plan.action == RxPlan::Action::kWrite && !plan.has_imm &&
                      plan.fault != AccessResult::kNoRight && plan.fault != AccessResult::kOk;
  std::uint8_t code = plan.invalidates ? kCannotInvalidate : kUnspecified;
  switch (plan.fault) {
    case AccessResult::kBadKey:
    case AccessResult::kInvalidState:
      code = kInvalidStag;
      break;
    case AccessResult::kOutOfBounds:
      code = kOutOfBounds;
      break;
    case AccessResult::kNoRight:
      code = kAccessRights;
      break;
    case AccessResult::kWrongPd:
    case AccessResult::kWrongQp:
      code = tagged ? kTaggedNotAssociated : kStagNotAssociated;
      break;
    case AccessResult::kOk:
    case AccessResult::kPageFault:
    case AccessResult::kUnreadable:
      break;
  }
  if (tagged) {
    terminate_stream(qp, TerminateLayer::kDdp, kDdpTagged, code);
  } else {
    terminate_stream(qp, TerminateLayer::kRdmap, kRdmapProtection, code);
  }
}

void IwarpTransport::refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time /*now*/) {
  if (plan.out_of_order) return;  // it is refused at its turn, should it still be wrong then
  qp.refusal = why;
  IwarpConnection& c = connection(qp);
  c.arriving_bytes = 0;
  switch (why) {
    case Refusal::kReceiverNotReady:
      terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kNoBuffer);
      return;
    case Refusal::kInvalidRequest:
      // Of a SEND: longer than its RECV. Of the others: an operation the QP does not allow.
      if (plan.action == RxPlan::Action::kSend) {
        terminate_stream(qp, TerminateLayer::kDdp, kDdpUntagged, kTooLong);
      } else {
        terminate_stream(qp, TerminateLayer::kRdmap, kRdmapProtection, kAccessRights);
      }
      return;
    case Refusal::kRemoteAccess:
      ++counters_.resp_remote_access_errors;
      terminate_for_key(qp, plan);
      return;
    case Refusal::kOperational:
      terminate_stream(qp, TerminateLayer::kRdmap, kRdmapOperation, kUnspecified);
      return;
  }
}

void IwarpTransport::refuse_atomic(QueuePair& qp, const RxPlan& plan, Time now) {
  qp.responses.clear();
  refuse(qp, plan, Refusal::kOperational, now);
}

void IwarpTransport::refuse_response(QueuePair& qp, const TxPlan& plan, Refusal why, Time /*now*/) {
  IwarpConnection& c = connection(qp);
  if (qp.failed && !c.terminate_pending) return;  // its terminate message is on the way
  const bool rights = why == Refusal::kRemoteAccess;
  if (rights) ++counters_.resp_remote_access_errors;
  qp.refusal = why;
  qp.responses.clear();
  // The terminate message takes the place in the stream of the segment that never left, and of all
  // behind it.
  c.tcp.abandon(plan.stream);
  c.cursor = c.messages.size();
  c.cursor_offset = 0;
  protocol::DdpUntagged ddp;
  ddp.control = {false, true, 1, 1, RdmapOpcode::kReadRequest};
  ddp.queue = protocol::kDdpQueueReadRequest;
  ddp.msn = plan.msn;
  ddp.encode(c.arriving_ddp.data());
  protocol::RdmapReadRequest{plan.sink_stag, plan.sink_address - plan.message_offset,
                             plan.message_length, plan.rkey, plan.address - plan.message_offset}
      .encode(c.arriving_ddp.data() + protocol::DdpUntagged::kBytes);
  c.arriving_ddp_bytes = rdmap_header_bytes(RdmapOpcode::kReadRequest);
  c.arriving_ulpdu_bytes = c.arriving_ddp_bytes;
  terminate_stream(qp, TerminateLayer::kRdmap, rights ? kRdmapProtection : kRdmapOperation,
                   kUnspecified);
}

}  // namespace rnic::transport
