// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"

namespace rnic::transport {

using protocol::OpcodeKind;
using protocol::psn_add;
using protocol::psn_distance;

void RcTransport::connect(QueuePair& qp) {
  qp.msn = 0;
  qp.sequence_nak_sent = false;
  qp.inbound = InboundMessage{};
  qp.responses.clear();
}

void RcTransport::receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) {
  plan = RxPlan{};
  const Incoming in = decode(frame);
  switch (in.info.kind) {
    case OpcodeKind::kAck:
      handle_ack(qp, in, now);
      return;
    case OpcodeKind::kReadResponse:
    case OpcodeKind::kAtomicAck:
      handle_read_response(qp, in, now, plan);
      return;
    default:
      handle_request(qp, in, now, plan);
      return;
  }
}

void RcTransport::handle_request(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan) {
  const std::int32_t gap = psn_distance(in.bth.psn, qp.expected_psn);
  if (gap > 0) {
    ++counters_.out_of_sequence;
    if (!qp.sequence_nak_sent) {
      push_nak(qp, qp.expected_psn, protocol::nak_syndrome(protocol::NakCode::kPsnSequence), now);
      qp.sequence_nak_sent = true;  // one NAK a gap; silence until the expected packet comes
    }
    return;
  }
  if (gap < 0) {
    handle_duplicate(qp, in, now, plan);
    return;
  }
  qp.sequence_nak_sent = false;
  qp.inbound_before = qp.inbound;
  plan.psn = in.bth.psn;
  plan.ack_request = in.bth.ack_request;
  if (!sequence_ok(qp, in)) {
    refuse(qp, plan, Refusal::kInvalidRequest, now);
    return;
  }
  fill_request(qp, in, plan);
}

bool RcTransport::sequence_ok(const QueuePair& qp, const Incoming& in) {
  using Kind = InboundMessage::Kind;
  const bool is_send = in.info.kind == OpcodeKind::kSend;
  const bool is_write = in.info.kind == OpcodeKind::kWrite;
  const bool starts = in.info.first || in.info.only;
  if (starts ? qp.inbound.kind != Kind::kNone
             : qp.inbound.kind != (is_send ? Kind::kSend : Kind::kWrite)) {
    return false;
  }
  if (!is_send && !is_write) return true;
  const bool full = in.payload_bytes == qp.mtu && in.pad_bytes == 0;
  if ((in.info.first || in.info.middle) && !full) return false;
  if (in.payload_bytes > qp.mtu) return false;
  if (!is_write) return true;
  const std::uint32_t announced = starts ? in.reth.dma_length : qp.inbound.length;
  const std::uint32_t before = starts ? 0 : qp.inbound.received;
  const std::uint32_t after = before + in.payload_bytes;
  return in.info.last || in.info.only ? after == announced : after < announced;
}

void RcTransport::fill_request(QueuePair& qp, const Incoming& in, RxPlan& plan) {
  using Kind = InboundMessage::Kind;
  plan.opcode = static_cast<std::uint8_t>(in.bth.opcode);
  plan.first = in.info.first || in.info.only;
  plan.last = in.info.last || in.info.only;
  plan.has_imm = in.info.has_immdt;
  plan.imm = in.imm;
  plan.solicited = in.bth.solicited;
  plan.length = in.payload_bytes;
  std::uint32_t psn_count = 1;
  switch (in.info.kind) {
    case OpcodeKind::kReadRequest:
      plan.action = RxPlan::Action::kReadRequest;
      plan.first = plan.last = true;
      plan.address = in.reth.va;
      plan.rkey = in.reth.rkey;
      plan.message_length = in.reth.dma_length;
      psn_count = std::max<std::uint32_t>(1, (in.reth.dma_length + qp.mtu - 1) / qp.mtu);
      break;
    case OpcodeKind::kAtomic:
      plan.action = RxPlan::Action::kAtomicRequest;
      plan.first = plan.last = true;
      plan.address = in.atomic.va;
      plan.rkey = in.atomic.rkey;
      plan.swap_or_add = in.atomic.swap_or_add;
      plan.compare = in.atomic.compare;
      break;
    default: {
      const bool write = in.info.kind == OpcodeKind::kWrite;
      if (plan.first) {
        qp.inbound = InboundMessage{write ? Kind::kWrite : Kind::kSend, in.reth.rkey, in.reth.va,
                                    in.reth.dma_length, 0};
      }
      plan.action = write ? RxPlan::Action::kWrite : RxPlan::Action::kSend;
      plan.message_offset = qp.inbound.received;
      plan.message_length = qp.inbound.length;
      plan.rkey = qp.inbound.rkey;
      plan.address = qp.inbound.address + qp.inbound.received;
      qp.inbound.received += plan.length;
      if (plan.last) qp.inbound.kind = Kind::kNone;
      break;
    }
  }
  qp.expected_psn = psn_add(qp.expected_psn, psn_count);
}

void RcTransport::handle_duplicate(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan) {
  ++counters_.duplicate_request;
  if (in.info.kind == OpcodeKind::kReadRequest) {
    // Re-read memory and answer again, from where the requester misses data (9.7.5.1.3).
    plan.action = RxPlan::Action::kReadRequest;
    plan.first = plan.last = true;
    plan.duplicate = true;
    plan.psn = in.bth.psn;
    plan.address = in.reth.va;
    plan.rkey = in.reth.rkey;
    plan.message_length = in.reth.dma_length;
    return;
  }
  if (in.info.kind != OpcodeKind::kAtomic && in.bth.ack_request) {
    push_ack(qp, psn_add(qp.expected_psn, protocol::kPsnMask), now);
  }
}

void RcTransport::accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) {
  if (plan.action == RxPlan::Action::kReadRequest ||
      plan.action == RxPlan::Action::kAtomicRequest) {
    const bool read = plan.action == RxPlan::Action::kReadRequest;
    if (!plan.duplicate) {
      qp.msn = (qp.msn + 1) & protocol::kPsnMask;
      ++(read ? counters_.rx_read_requests : counters_.rx_atomic_requests);
    }
    ResponseEntry response;
    response.kind = read ? ResponseEntry::Kind::kReadResponse
                         : ResponseEntry::Kind::kAtomicResponse;
    response.psn = plan.psn;
    response.msn = qp.msn;
    response.syndrome = protocol::kAckUnlimitedCredit;
    response.rkey = plan.rkey;
    response.address = plan.address;
    response.length = plan.message_length;
    response.original = plan.original;
    response.ready = now;
    response.trace = trace;
    qp.responses.push_back(response);
    if (read) ++qp.reads_in_service;
    return;
  }
  if (plan.last) {
    qp.msn = (qp.msn + 1) & protocol::kPsnMask;
    ++(plan.action == RxPlan::Action::kWrite ? counters_.rx_write_requests
                                             : counters_.rx_send_requests);
  }
  if (plan.ack_request) push_ack(qp, plan.psn, now);
}

void RcTransport::push_ack(QueuePair& qp, std::uint32_t psn, Time now) {
  if (!qp.responses.empty() && qp.responses.back().kind == ResponseEntry::Kind::kAck) {
    ResponseEntry& waiting = qp.responses.back();
    if (psn_distance(psn, waiting.psn) > 0) waiting.psn = psn;
    waiting.msn = qp.msn;
    return;
  }
  ResponseEntry response;
  response.kind = ResponseEntry::Kind::kAck;
  response.syndrome = protocol::kAckUnlimitedCredit;
  response.psn = psn;
  response.msn = qp.msn;
  response.ready = std::max(now, qp.next_ack_at);
  qp.responses.push_back(response);
}

void RcTransport::push_nak(QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome, Time now) {
  ResponseEntry response;
  response.kind = ResponseEntry::Kind::kNak;
  response.syndrome = syndrome;
  response.psn = psn;
  response.msn = qp.msn;
  response.ready = now;
  qp.responses.push_back(response);
}

void RcTransport::refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) {
  qp.expected_psn = plan.psn;
  qp.inbound = qp.inbound_before;
  switch (why) {
    case Refusal::kReceiverNotReady:
      ++counters_.rnr_naks_sent;
      push_nak(qp, plan.psn, protocol::rnr_syndrome(static_cast<std::uint8_t>(qp.min_rnr_timer)),
               now);
      qp.sequence_nak_sent = true;  // what follows the refused packet is dropped silently
      return;
    case Refusal::kInvalidRequest:
      push_nak(qp, plan.psn, protocol::nak_syndrome(protocol::NakCode::kInvalidRequest), now);
      break;
    case Refusal::kRemoteAccess:
      ++counters_.resp_remote_access_errors;
      push_nak(qp, plan.psn, protocol::nak_syndrome(protocol::NakCode::kRemoteAccess), now);
      break;
    case Refusal::kOperational:
      push_nak(qp, plan.psn, protocol::nak_syndrome(protocol::NakCode::kRemoteOperational), now);
      break;
  }
  qp.failed = true;  // the NIC moves the QP to ERR once the NAK is on its way
}

void RcTransport::refuse_response(QueuePair& qp, const TxPlan& plan, Time now) {
  qp.responses.clear();
  ++counters_.resp_remote_access_errors;
  push_nak(qp, plan.psn, protocol::nak_syndrome(protocol::NakCode::kRemoteAccess), now);
  qp.failed = true;
}

bool RcTransport::plan_response(QueuePair& qp, Time now, TxPlan& plan) {
  if (qp.responses.empty()) return false;
  ResponseEntry& response = qp.responses.front();
  plan = TxPlan{};
  plan.is_response = true;
  plan.not_before = response.ready;
  plan.psn = response.psn;
  plan.msn = response.msn;
  plan.syndrome = response.syndrome;
  plan.last = true;
  if (response.kind == ResponseEntry::Kind::kReadResponse) {
    const std::uint32_t length = std::min(qp.mtu, response.length - response.sent);
    const bool first = response.sent == 0;
    plan.last = response.sent + length == response.length;
    using protocol::BthOpcode;
    const BthOpcode opcode = first ? (plan.last ? BthOpcode::kReadRespOnly : BthOpcode::kReadRespFirst)
                                   : (plan.last ? BthOpcode::kReadRespLast : BthOpcode::kReadRespMiddle);
    plan.opcode = static_cast<std::uint8_t>(opcode);
    plan.psn = psn_add(response.psn, response.sent / qp.mtu);
    plan.payload = length > 0 ? TxPlan::Payload::kRemote : TxPlan::Payload::kNone;
    plan.length = length;
    plan.address = response.address + response.sent;
    plan.rkey = response.rkey;
    plan.message_offset = response.sent;
    plan.message_length = response.length;
    if (plan.last) plan.trace = response.trace;
    response.sent += length;
    if (plan.last) {
      --qp.reads_in_service;
      qp.responses.pop_front();
    }
    return true;
  }
  plan.frame_class = protocol::FrameClass::kAck;
  plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kAcknowledge);
  if (response.kind == ResponseEntry::Kind::kAtomicResponse) {
    plan.frame_class = protocol::FrameClass::kData;
    plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kAtomicAcknowledge);
    plan.swap_or_add = response.original;
    plan.trace = response.trace;
  } else {
    ++counters_.acks_sent;
    qp.next_ack_at = std::max(now, response.ready) + config_.ack_gap;
  }
  qp.responses.pop_front();
  return true;
}

}  // namespace rnic::transport
