// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/path_migration.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"
#include "transport/selective_repeat.h"
#include "transport/work_check.h"

namespace rnic::transport {

using protocol::OpcodeKind;
using protocol::psn_add;
using protocol::psn_distance;

namespace {

bool is_read_or_atomic(OpcodeKind kind) {
  return kind == OpcodeKind::kReadRequest || kind == OpcodeKind::kAtomic;
}

/// PSNs that a request takes: a READ takes those of its response.
std::uint32_t psns_of(std::uint32_t length, std::uint32_t mtu) {
  return std::max<std::uint32_t>(1, (length + mtu - 1) / mtu);
}

/// The executed READ or atomic whose PSNs include `psn`, or null.
const ResponderResource* find_resource(const QueuePair& qp, std::uint32_t psn) {
  for (std::size_t i = qp.resources.size(); i-- > 0;) {
    const ResponderResource& resource = qp.resources[i];
    const std::int32_t offset = psn_distance(psn, resource.psn);
    if (offset >= 0 && offset < static_cast<std::int32_t>(resource.psn_count)) return &resource;
  }
  return nullptr;
}

/// Packets of the answer to `resource`'s request that have been planned: all, if it is over.
std::uint32_t answered_packets(const QueuePair& qp, const ResponderResource& resource) {
  for (std::size_t i = 0; i < qp.responses.size(); ++i) {
    const ResponseEntry& response = qp.responses[i];
    const bool original = response.kind == ResponseEntry::Kind::kReadResponse && !response.repeated;
    if (original && response.psn == resource.psn) return response.sent / qp.mtu;
  }
  return resource.psn_count;
}

/// Of a READ or an atomic.
bool is_answer(const ResponseEntry& entry) {
  return entry.kind == ResponseEntry::Kind::kReadResponse ||
         entry.kind == ResponseEntry::Kind::kAtomicResponse;
}

/// Behind the last PSN of an answer to a READ or an atomic.
std::uint32_t end_of(const ResponseEntry& answer, std::uint32_t mtu) {
  const bool read = answer.kind == ResponseEntry::Kind::kReadResponse;
  return psn_add(answer.psn, read ? psns_of(answer.length, mtu) : 1);
}

void remember(QueuePair& qp, const RxPlan& plan, bool atomic) {
  if (qp.resources.size() >= qp.max_dest_rd_atomic) qp.resources.pop_front();
  ResponderResource resource;
  resource.psn = plan.psn;
  resource.psn_count = atomic ? 1 : psns_of(plan.message_length, qp.mtu);
  resource.rkey = plan.rkey;
  resource.length = plan.message_length;
  resource.address = plan.address;
  resource.original = plan.original;
  resource.atomic = atomic;
  resource.pending = plan.deferred;
  qp.resources.push_back(resource);
}

}  // namespace

void RcTransport::connect(QueuePair& qp) {
  qp.msn = 0;
  qp.receives_posted = std::numeric_limits<std::uint32_t>::max();
  qp.sequence_nak_sent = false;
  qp.failed = false;
  qp.reads_in_service = 0;
  qp.inbound = InboundMessage{};
  qp.next_ack_at = kTimeZero;
  qp.responses.clear();
  qp.resources.clear();
  qp.cnp_due = false;
  qp.next_cnp_at = kTimeZero;
  if (config_.dcqcn.reacts) qp.rate = std::make_unique<DcqcnReactionPoint>(config_.dcqcn);
  if (config_.selective_repeat) qp.connection = std::make_unique<SelectiveRepeat>();
}

void RcTransport::receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) {
  plan = RxPlan{};
  const Incoming in = decode(frame);
  if (frame.ecn_marked) note_congestion(qp, now);
  if (in.info.transport != protocol::BthTransport::kRc) {
    handle_cnp(qp, in, now);
    return;
  }
  if (!pkeys_match(in.bth.pkey, qp.av.pkey)) return;
  if (qp.migration != nullptr) note_migration(qp, in.bth.migration, frame, encapsulation_);
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
  if (qp.failed) return;  // a fatal NAK is on its way
  const std::int32_t gap = psn_distance(in.bth.psn, qp.expected_psn);
  if (gap > 0) {
    ++counters_.out_of_sequence;
    if (config_.selective_repeat) {
      handle_early(qp, in, now, plan);
      return;
    }
    if (!qp.sequence_nak_sent && config_.sequence_nak) {
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
  if (config_.selective_repeat) forget_early(qp, in.bth.psn);
  qp.inbound_before = qp.inbound;
  plan.psn = in.bth.psn;
  plan.ack_request = in.bth.ack_request;
  const bool no_resource =
      is_read_or_atomic(in.info.kind) && qp.reads_in_service >= qp.max_dest_rd_atomic;
  if (!sequence_ok(qp, in) || no_resource || !length_ok(qp, in)) {
    refuse(qp, plan, Refusal::kInvalidRequest, now);
    return;
  }
  fill_request(qp, in, plan);
}

bool RcTransport::sequence_ok(const QueuePair& qp, const Incoming& in) {
  using Kind = InboundMessage::Kind;
  const bool is_send = in.info.kind == OpcodeKind::kSend;
  const bool starts = in.info.starts_message();
  if (starts) return qp.inbound.kind == Kind::kNone;
  return qp.inbound.kind == (is_send ? Kind::kSend : Kind::kWrite);
}

bool RcTransport::length_ok(const QueuePair& qp, const Incoming& in) {
  if (in.info.has_reth && in.reth.dma_length > kMaxMessageBytes) return false;
  if (in.bth.pad_count != protocol::pad_to_word(in.payload_bytes)) return false;
  if (in.info.kind == OpcodeKind::kAtomic && in.atomic.va % sizeof(std::uint64_t) != 0)
    return false;
  if (is_read_or_atomic(in.info.kind)) return in.payload_bytes == 0;
  if (in.info.first || in.info.middle) {
    if (in.payload_bytes != qp.mtu) return false;
  } else if (in.payload_bytes > qp.mtu || (in.info.last && in.payload_bytes == 0)) {
    return false;
  }
  const bool starts = in.info.starts_message();
  const std::uint64_t after = std::uint64_t{starts ? 0 : qp.inbound.received} + in.payload_bytes;
  if (in.info.kind == OpcodeKind::kSend) return after <= kMaxMessageBytes;
  const std::uint32_t announced = starts ? in.reth.dma_length : qp.inbound.length;
  return in.info.ends_message() ? after == announced : after < announced;
}

void RcTransport::fill_request(QueuePair& qp, const Incoming& in, RxPlan& plan) {
  using Kind = InboundMessage::Kind;
  plan.opcode = static_cast<std::uint8_t>(in.bth.opcode);
  plan.first = in.info.first || in.info.only;
  plan.last = in.info.last || in.info.only;
  plan.has_imm = in.info.has_immdt;
  plan.invalidates = in.info.has_ieth;
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
      psn_count = psns_of(in.reth.dma_length, qp.mtu);
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
  if (!is_read_or_atomic(in.info.kind)) {
    if (in.bth.ack_request) push_ack(qp, psn_add(qp.expected_psn, protocol::kPsnMask), now);
    return;
  }
  const ResponderResource* resource = find_resource(qp, in.bth.psn);
  if (resource == nullptr || resource->atomic != (in.info.kind == OpcodeKind::kAtomic)) return;
  if (resource->atomic) {
    repeat_atomic(qp, *resource, now);
    return;
  }
  // Re-read memory and answer again, from where the requester misses data (9.7.5.1.3).
  const std::uint64_t skip =
      static_cast<std::uint64_t>(psn_distance(in.bth.psn, resource->psn)) * qp.mtu;
  if (in.reth.rkey != resource->rkey || in.reth.va != resource->address + skip ||
      skip + in.reth.dma_length > resource->length) {
    return;
  }
  plan.action = RxPlan::Action::kReadRequest;
  plan.first = plan.last = true;
  plan.duplicate = true;
  plan.psn = in.bth.psn;
  plan.address = in.reth.va;
  plan.rkey = in.reth.rkey;
  plan.message_length = in.reth.dma_length;
  if (!config_.selective_repeat) return;
  // It would overtake the rest of the first answer, which is still to come: only what has left.
  const std::uint64_t answered = std::uint64_t{answered_packets(qp, *resource)} * qp.mtu;
  if (skip >= answered) {
    plan = RxPlan{};
  } else if (skip + plan.message_length > answered) {
    plan.message_length = static_cast<std::uint32_t>(answered - skip);
  }
}

void RcTransport::repeat_atomic(QueuePair& qp, const ResponderResource& resource, Time now) {
  RxPlan plan;
  plan.action = RxPlan::Action::kAtomicRequest;
  plan.duplicate = true;
  plan.psn = resource.psn;
  plan.original = resource.original;
  plan.deferred = resource.pending;  // the first answer, to come, will find the requester elsewhere
  push_read_response(qp, plan, now, nullptr);
}

/// Go-back-N: who asks again takes nothing from behind the gap. So answers go on from there, in the
/// order of their PSNs: one that has got beyond it goes back, those behind it begin anew when it is
/// their turn, and one that is still to come says it all.
void RcTransport::answer_again(QueuePair& qp, ResponseEntry& response) {
  std::size_t at = 0;
  while (at < qp.responses.size() &&
         (!is_answer(qp.responses[at]) ||
          psn_distance(end_of(qp.responses[at], qp.mtu), response.psn) <= 0)) {
    ++at;
  }
  if (at < qp.responses.size()) {
    ResponseEntry& waiting = qp.responses[at];
    const std::int32_t ahead = psn_distance(response.psn, waiting.psn);
    if (ahead >= 0) {
      const std::uint32_t skip = static_cast<std::uint32_t>(ahead) * qp.mtu;
      if (waiting.sent <= skip) return;
      response.length = std::max(response.length, waiting.length - skip);
      response.repeated = waiting.repeated;
      response.trace = waiting.trace;
      waiting = response;
      return;
    }
    waiting.sent = 0;
  }
  qp.responses.push_back(response);
  for (std::size_t i = qp.responses.size() - 1; i > at; --i) {
    std::swap(qp.responses[i], qp.responses[i - 1]);
  }
}

void RcTransport::push_read_response(QueuePair& qp, const RxPlan& plan, Time now,
                                     stats::MessageTrace* trace) {
  // A waiting ACK must not hold up an answer.
  if (!qp.responses.empty()) qp.responses.back().ready = std::min(qp.responses.back().ready, now);
  ResponseEntry response;
  const bool read = plan.action == RxPlan::Action::kReadRequest;
  response.kind = read ? ResponseEntry::Kind::kReadResponse : ResponseEntry::Kind::kAtomicResponse;
  response.psn = plan.psn;
  response.msn = qp.msn;
  response.syndrome = protocol::kAckUnlimitedCredit;
  response.rkey = plan.rkey;
  response.address = plan.address;
  response.length = plan.message_length;
  response.original = plan.original;
  response.repeated = plan.duplicate;
  response.pending = plan.deferred;
  response.ready = now;
  response.trace = trace;
  if (!plan.duplicate) ++qp.reads_in_service;
  if (plan.duplicate && !config_.selective_repeat) {
    answer_again(qp, response);
    return;
  }
  qp.responses.push_back(response);
  if (config_.selective_repeat && plan.duplicate && read) answer_next(qp);
}

void RcTransport::accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) {
  if (plan.action == RxPlan::Action::kReadRequest ||
      plan.action == RxPlan::Action::kAtomicRequest) {
    const bool read = plan.action == RxPlan::Action::kReadRequest;
    if (!plan.duplicate) {
      qp.msn = (qp.msn + 1) & protocol::kPsnMask;
      ++(read ? counters_.rx_read_requests : counters_.rx_atomic_requests);
      remember(qp, plan, !read);
    }
    push_read_response(qp, plan, now, trace);
    if (config_.selective_repeat) execute_placed(qp, now);
    return;
  }
  if (plan.out_of_order) {
    const auto placed = SelectiveRepeat::of(qp).early.find(plan.psn);
    if (placed != SelectiveRepeat::of(qp).early.end()) {
      placed->second.state = SelectiveRepeat::Early::State::kPlaced;
    }
    push_sack(qp, plan.psn, now);
    return;
  }
  if (plan.last) {
    qp.msn = (qp.msn + 1) & protocol::kPsnMask;
    ++(plan.action == RxPlan::Action::kWrite ? counters_.rx_write_requests
                                             : counters_.rx_send_requests);
  }
  if (plan.ack_request) push_ack(qp, plan.psn, now);
  if (config_.selective_repeat) execute_placed(qp, now);
}

void RcTransport::answer_atomic(QueuePair& qp, const RxPlan& plan, Time now) {
  for (std::size_t i = 0; i < qp.responses.size(); ++i) {
    ResponseEntry& response = qp.responses[i];
    if (!response.pending || response.psn != plan.psn) continue;
    response.pending = false;
    response.original = plan.original;
    response.ready = now;
  }
  for (std::size_t i = qp.resources.size(); i-- > 0;) {
    ResponderResource& resource = qp.resources[i];
    if (!resource.pending || resource.psn != plan.psn) continue;
    resource.pending = false;
    resource.original = plan.original;
    return;
  }
}

void RcTransport::push_ack(QueuePair& qp, std::uint32_t psn, Time now) {
  // What leaves before this packet is executed says nothing of it.
  if (!qp.responses.empty() && qp.responses.back().kind == ResponseEntry::Kind::kAck &&
      qp.responses.back().ready >= now) {
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
  // A NAK acknowledges what is before it: an ACK that still waits would say nothing more.
  ResponseEntry* waiting = qp.responses.empty() ? nullptr : &qp.responses.back();
  if (waiting != nullptr && waiting->kind == ResponseEntry::Kind::kAck) {
    waiting->kind = ResponseEntry::Kind::kNak;
    waiting->syndrome = syndrome;
    waiting->psn = psn;
    waiting->msn = qp.msn;
    waiting->ready = now;
    return;
  }
  ResponseEntry response;
  response.kind = ResponseEntry::Kind::kNak;
  response.syndrome = syndrome;
  response.psn = psn;
  response.msn = qp.msn;
  response.ready = now;
  qp.responses.push_back(response);
}

void RcTransport::refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) {
  if (plan.out_of_order) {
    forget_early(qp, plan.psn);  // it is refused at its turn, should it still be wrong then
    return;
  }
  qp.expected_psn = plan.psn;
  qp.inbound = qp.inbound_before;
  qp.refusal = why;
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

/// What was to be answered before it still is; nothing behind it.
void RcTransport::refuse_atomic(QueuePair& qp, const RxPlan& plan, Time now) {
  while (!qp.responses.empty() && psn_distance(qp.responses.back().psn, plan.psn) >= 0) {
    qp.responses.pop_back();
  }
  refuse_answer(qp, plan.psn, Refusal::kOperational, now);
}

/// A request refused meanwhile, whose NAK has not left, comes behind it and is forgotten.
void RcTransport::refuse_response(QueuePair& qp, const TxPlan& plan, Refusal why, Time now) {
  qp.responses.clear();
  qp.reads_in_service = 0;
  refuse_answer(qp, plan.psn, why, now);
}

void RcTransport::refuse_answer(QueuePair& qp, std::uint32_t psn, Refusal why, Time now) {
  qp.refusal = why;
  const bool rights = why == Refusal::kRemoteAccess;
  if (rights) ++counters_.resp_remote_access_errors;
  push_nak(qp, psn,
           protocol::nak_syndrome(rights ? protocol::NakCode::kRemoteAccess
                                         : protocol::NakCode::kRemoteOperational),
           now);
  qp.failed = true;
}

void RcTransport::plan_read_response(QueuePair& qp, ResponseEntry& response, TxPlan& plan) {
  using protocol::BthOpcode;
  const std::uint32_t length = std::min(qp.mtu, response.length - response.sent);
  const bool first = response.sent == 0;
  plan.last = response.sent + length == response.length;
  const BthOpcode ending = first ? BthOpcode::kReadRespOnly : BthOpcode::kReadRespLast;
  const BthOpcode going_on = first ? BthOpcode::kReadRespFirst : BthOpcode::kReadRespMiddle;
  plan.opcode = static_cast<std::uint8_t>(plan.last ? ending : going_on);
  plan.psn = psn_add(response.psn, response.sent / qp.mtu);
  plan.payload = length > 0 ? TxPlan::Payload::kRemote : TxPlan::Payload::kNone;
  plan.length = length;
  plan.address = response.address + response.sent;
  plan.rkey = response.rkey;
  plan.message_offset = response.sent;
  plan.message_length = response.length;
  response.sent += length;
}

/// Credits of an acknowledgement that leaves now.
std::uint8_t RcTransport::credit_syndrome(const QueuePair& qp) const {
  constexpr std::uint32_t kShared = std::numeric_limits<std::uint32_t>::max();
  if (!config_.end_to_end_credits || qp.receives_posted == kShared) {
    return protocol::kAckUnlimitedCredit;
  }
  return protocol::ack_syndrome(protocol::credit_code(qp.receives_posted));
}

bool RcTransport::plan_response(QueuePair& qp, Time now, TxPlan& plan) {
  if (!response_due(qp)) return false;
  if (qp.cnp_due) {
    plan_cnp(qp, plan);
    return true;
  }
  using Kind = ResponseEntry::Kind;
  // Of ACKs that had to wait here the newest says it all.
  while (qp.responses.size() > 1 && qp.responses.front().kind == Kind::kAck &&
         qp.responses[1].kind == Kind::kAck && qp.responses[1].ready <= now) {
    qp.responses.pop_front();
  }
  ResponseEntry& response = qp.responses.front();
  plan = TxPlan{};
  plan.is_response = true;
  plan.not_before = response.ready;
  plan.psn = response.psn;
  plan.msn = response.msn;
  plan.syndrome = response.kind == Kind::kNak ? response.syndrome : credit_syndrome(qp);
  plan.sack_psn = response.sack_psn;
  plan.last = true;
  switch (response.kind) {
    case Kind::kReadResponse:
      plan_read_response(qp, response, plan);
      break;
    case Kind::kAtomicResponse:
      plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kAtomicAcknowledge);
      plan.swap_or_add = response.original;
      break;
    case Kind::kAck:
    case Kind::kNak:
      plan.frame_class = protocol::FrameClass::kAck;
      plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kAcknowledge);
      ++counters_.acks_sent;
      qp.next_ack_at = std::max(now, response.ready) + config_.ack_gap;
      qp.responses.pop_front();
      // One that was pushed before this one left keeps the distance, too, unless data wait behind.
      if (config_.ack_gap > kTimeZero && qp.responses.size() == 1 &&
          qp.responses.front().kind == Kind::kAck) {
        qp.responses.front().ready = std::max(qp.responses.front().ready, qp.next_ack_at);
      }
      return true;
  }
  if (!plan.last) return true;
  plan.trace = response.trace;
  plan.ends_answer = !response.repeated;
  qp.responses.pop_front();
  return true;
}

}  // namespace rnic::transport
