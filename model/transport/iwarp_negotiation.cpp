// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transport/iwarp_segment.h"
#include "transport/iwarp_transport.h"
#include "transport/terminate_codes.h"

/// Enhanced MPA set-up (RFC 6581, 9): READ limits, and the message by which the initiator lets a
/// peer-to-peer responder send.
namespace rnic::transport {

using protocol::MpaEnhanced;
using protocol::RdmapOpcode;

namespace {

bool among(config::ReadyMessage which, config::ReadyMessage set) {
  return set == which || set == config::ReadyMessage::kAny;
}

std::uint16_t reads(std::uint32_t count) {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(count, MpaEnhanced::kNoNegotiation - 1));
}

RdmapOpcode opcode_of(ReadyToReceive kind) {
  switch (kind) {
    case ReadyToReceive::kSend:
      return RdmapOpcode::kSend;
    case ReadyToReceive::kRead:
      return RdmapOpcode::kReadRequest;
    default:
      return RdmapOpcode::kWrite;
  }
}

}  // namespace

/// What this end asks for in its request, or could agree to in its reply.
MpaEnhanced IwarpTransport::own_terms(const QueuePair& qp, bool initiator) const {
  const config::ReadyMessage set = initiator ? config_.mpa_rtr : config_.mpa_rtr_accept;
  MpaEnhanced own;
  own.ird = reads(qp.max_dest_rd_atomic);
  own.ord = reads(qp.max_rd_atomic);
  own.peer_to_peer = config_.mpa_rtr != config::ReadyMessage::kNone;
  own.rtr_send = among(config::ReadyMessage::kSend, set);
  own.rtr_write = among(config::ReadyMessage::kWrite, set);
  own.rtr_read = among(config::ReadyMessage::kRead, set);
  return own;
}

/// The peer's MPA frame has come for the first time, or again; `terms` is its enhanced part.
void IwarpTransport::negotiate(QueuePair& qp, SetupSegment segment, const std::uint8_t* terms) {
  IwarpConnection& c = connection(qp);
  const auto peer = MpaEnhanced::decode(terms);
  if (segment == SetupSegment::kRequest) {
    if (c.initiator) return;
    c.enhanced = answer(peer, own_terms(qp, false));
    qp.max_rd_atomic = c.enhanced.ord;
    MpaAgreement agreement;
    agreement.ready = common_ready(peer, c.enhanced);
    agreement.accepted = !peer.peer_to_peer || agreement.ready != ReadyToReceive::kNone;
    c.gate = ReadyGate(agreement);
    return;
  }
  if (!c.initiator) return;
  const MpaAgreement agreement = agree(c.enhanced, peer);
  qp.max_rd_atomic = agreement.ord;
  if (!agreement.accepted) {
    terminate_stream(qp, protocol::TerminateLayer::kLlp, kLlpMpa, kNoMatchingReady);
  } else if (agreement.ready != ReadyToReceive::kNone) {
    send_ready(qp, agreement.ready);
  }
}

/// Puts the ready-to-receive message at the start of the stream.
void IwarpTransport::send_ready(QueuePair& qp, ReadyToReceive agreed) const {
  IwarpConnection& c = connection(qp);
  ReadyToReceive kind = agreed;
  if (config_.mpa_rtr_sent == config::ReadyMessage::kSend) kind = ReadyToReceive::kSend;
  if (config_.mpa_rtr_sent == config::ReadyMessage::kWrite) kind = ReadyToReceive::kWrite;
  if (config_.mpa_rtr_sent == config::ReadyMessage::kRead) kind = ReadyToReceive::kRead;
  DdpMessage message;
  message.is_response = true;  // of no work request
  message.opcode = opcode_of(kind);
  if (!is_tagged(message.opcode)) message.msn = c.next_msn[queue_of(message.opcode)]++;
  c.ready_read = kind == ReadyToReceive::kRead;
  append(c, message);
}

/// The first FPDU of the initiator arrived at a peer-to-peer responder.
void IwarpTransport::receive_ready(QueuePair& qp, const Segment& in, Time now) {
  IwarpConnection& c = connection(qp);
  ReadyToReceive kind = ReadyToReceive::kNone;
  if (in.payload_bytes == 0) {
    if (in.control.opcode == RdmapOpcode::kWrite) kind = ReadyToReceive::kWrite;
    if (in.control.opcode == RdmapOpcode::kSend) kind = ReadyToReceive::kSend;
    if (in.control.opcode == RdmapOpcode::kReadRequest &&
        protocol::RdmapReadRequest::decode(in.rdmap).length == 0) {
      kind = ReadyToReceive::kRead;
    }
  }
  if (!c.gate.first_message(kind)) {
    terminate_stream(qp, protocol::TerminateLayer::kLlp, kLlpMpa, kNoMatchingReady);
    return;
  }
  take_segment(qp, in.stream_bytes, now);
  c.tcp.request_ack();
  if (kind == ReadyToReceive::kWrite) return;
  ++c.expected_msn[queue_of(in.control.opcode)];
  if (kind == ReadyToReceive::kSend) return;
  DdpMessage response;
  response.is_response = true;
  response.opcode = RdmapOpcode::kReadResponse;
  response.msn = in.msn;
  append(c, response);
}

}  // namespace rnic::transport
