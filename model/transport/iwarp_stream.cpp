// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "protocol/mpa.h"
#include "transport/iwarp_segment.h"
#include "transport/iwarp_transport.h"

namespace rnic::transport {

using protocol::fpdu_bytes;
using protocol::RdmapOpcode;

namespace {

/// Unit of the timestamp option's clock; RFC 7323 leaves it open.
constexpr Time kTimestampTick = microseconds(1);

}  // namespace

std::uint32_t IwarpTransport::capacity(RdmapOpcode opcode) const {
  return mulpdu_ - rdmap_header_bytes(opcode);
}

std::uint32_t IwarpTransport::segment_payload(const DdpMessage& message,
                                              std::uint32_t offset) const {
  return std::min(capacity(message.opcode), message.length - offset);
}

std::uint32_t IwarpTransport::segment_bytes(const IwarpConnection& c, const DdpMessage& message,
                                            std::uint32_t offset, std::uint64_t at) const {
  return stream_bytes(at - c.first_sequence,
                      rdmap_header_bytes(message.opcode) + segment_payload(message, offset));
}

std::uint32_t IwarpTransport::first_segment_bytes(const IwarpConnection& c,
                                                  const ResponseEntry& response) const {
  const std::uint64_t behind = c.stream_end - c.first_sequence;
  if (response.kind == ResponseEntry::Kind::kAtomicResponse) {
    return stream_bytes(behind, rdmap_header_bytes(RdmapOpcode::kAtomicResponse));
  }
  const std::uint32_t payload = std::min(capacity(RdmapOpcode::kReadResponse), response.length);
  return stream_bytes(behind, rdmap_header_bytes(RdmapOpcode::kReadResponse) + payload);
}

/// Puts a message at the end of the stream.
DdpMessage& IwarpTransport::append(IwarpConnection& c, const DdpMessage& message) const {
  const std::uint32_t per_segment = capacity(message.opcode);
  const std::uint32_t before_last = message.length == 0 ? 0 : (message.length - 1) / per_segment;
  DdpMessage& added = c.messages.push_back(message);
  added.start = added.end = c.stream_end;
  if (config_.mpa_markers) {
    for (std::uint32_t i = 0; i < before_last; ++i) {
      added.end += stream_bytes(added.end - c.first_sequence, mulpdu_);
    }
  } else {
    added.end += std::uint64_t{before_last} * fpdu_bytes(mulpdu_);
  }
  added.end += segment_bytes(c, message, before_last * per_segment, added.end);
  c.stream_end = added.end;
  return added;
}

/// The next segment of the message at the cursor; false when the window has no room for it, or its
/// work request has failed.
bool IwarpTransport::plan_segment(QueuePair& qp, Time now, TxPlan& plan) {
  IwarpConnection& c = connection(qp);
  DdpMessage& message = c.messages[c.cursor];
  const std::uint32_t bytes = segment_bytes(c, message, c.cursor_offset, c.tcp.send_next());
  if (!c.tcp.can_send(bytes)) return false;
  const SendEntry* entry = nullptr;
  if (!message.is_response) {
    entry = qp.entry(message.entry_number);
    if (entry == nullptr || entry->status != protocol::WcStatus::kSuccess) return false;
  }
  plan = TxPlan{};
  plan.opcode = static_cast<std::uint8_t>(message.opcode);
  plan.msn = message.msn;
  plan.message_offset = c.cursor_offset;
  plan.message_length = message.length;
  plan.length = segment_payload(message, c.cursor_offset);
  plan.last = c.cursor_offset + plan.length == message.length;
  plan.retransmission = c.tcp.retransmitting();
  if (plan.retransmission) {
    ++counters_.retransmitted_packets;
    ++counters_.tcp_retransmitted_segments;
  }
  if (message.is_response) {
    describe_response(message, plan);
  } else {
    plan.entry_number = message.entry_number;
    describe_request(*entry, message, plan);
  }
  c.cursor_offset += plan.length;
  if (plan.last) {
    c.cursor_offset = 0;
    ++c.cursor;
    if (message.ends_entry && qp.tx_number == message.entry_number) ++qp.tx_number;
    const bool answers = message.opcode == RdmapOpcode::kReadResponse ||
                         message.opcode == RdmapOpcode::kAtomicResponse;
    plan.ends_answer = answers && !plan.retransmission;
  }
  fill_tcp(c, now, false, plan);
  c.tcp.send(bytes, now);
  if (c.tcp.send_next() != plan.stream + bytes) seek(c);  // a gap is filled: on to the next one
  update_deadline(qp);
  return true;
}

void IwarpTransport::fill_tcp(IwarpConnection& c, Time now, bool bare, TxPlan& plan) const {
  plan.stream = c.tcp.send_next();
  plan.stream_ack = c.tcp.take_ack(bare);
  plan.stream_window = static_cast<std::uint32_t>(c.tcp.receive_window());
  if (config_.timestamps) {
    plan.timestamp = static_cast<std::uint32_t>(now / kTimestampTick);
    plan.timestamp_echo = c.timestamp_recent;
  }
}

void IwarpTransport::plan_ack(QueuePair& qp, Time now, TxPlan& plan) {
  IwarpConnection& c = connection(qp);
  plan = TxPlan{};
  plan.is_response = true;
  plan.frame_class = protocol::FrameClass::kAck;
  plan.last = true;
  fill_tcp(c, now, true, plan);
  ++counters_.acks_sent;
  if (qp.failed && !c.terminate_pending) {  // it answers a terminate message
    c.closed = true;
    plan.closes_stream = config_.tear_down;
    if (c.fin_received) ++plan.stream_ack;
  }
  update_deadline(qp);
}

void IwarpTransport::plan_terminate(QueuePair& qp, Time now, TxPlan& plan) {
  IwarpConnection& c = connection(qp);
  plan = TxPlan{};
  plan.is_response = true;
  plan.frame_class = protocol::FrameClass::kConnection;
  plan.opcode = static_cast<std::uint8_t>(RdmapOpcode::kTerminate);
  plan.msn = 1;
  plan.last = true;
  plan.closes_stream = config_.tear_down;
  fill_tcp(c, now, false, plan);
  c.terminate_pending = false;
  c.closed = true;
  update_deadline(qp);
}

/// A segment without data whose sequence number lies before what the peer expects, so that it must
/// be answered (RFC 9293, 3.8.4).
void IwarpTransport::plan_probe(QueuePair& qp, Time now, TxPlan& plan) {
  IwarpConnection& c = connection(qp);
  c.keep_alive.take();
  plan_ack(qp, now, plan);
  plan.stream = c.tcp.send_unacknowledged() - 1;
}

/// A terminate message comes behind the answers to what was asked before its cause: the peer's
/// READs are delivered in order (RFC 5040, 5.5), and nothing is sent behind it (RFC 5040, 7.2).
bool IwarpTransport::answers_first(const QueuePair& qp, const IwarpConnection& c) {
  if (qp.state == protocol::QpState::kRtr) return false;  // it sends no data
  if (!qp.responses.empty()) return true;
  for (std::size_t i = 0; i < c.messages.size(); ++i) {
    if (!c.messages[i].is_response) continue;
    // To be sent, or sent and not acknowledged: it may have to be sent again.
    if (i >= c.cursor || c.messages[i].end <= c.tcp.send_max()) return true;
  }
  return false;
}

/// The queue pair stays out of the error state until then.
bool IwarpTransport::response_owed(const QueuePair& qp) const {
  const IwarpConnection* c = connection_of(qp);
  return c != nullptr && !c->closed && (c->terminate_pending || response_due(qp));
}

bool IwarpTransport::response_due(const QueuePair& qp) const {
  const IwarpConnection* c = connection_of(qp);
  if (c == nullptr) return false;
  if (c->reset_pending) return true;
  if (c->closed || !qp.can_receive()) return false;
  if (c->setup.due()) return true;
  if (!c->setup.done()) return false;
  if (c->terminate_pending && !answers_first(qp, *c)) return true;
  if (c->tcp.ack_due() || c->keep_alive.due()) return true;
  if (qp.state == protocol::QpState::kRtr) return false;  // may answer but not send data
  if (c->mid_message()) {
    const DdpMessage& message = c->messages[c->cursor];
    // A request is continued from here too when a response waits for its end.
    return (message.is_response || c->tcp.retransmitting() || !qp.responses.empty()) &&
           c->tcp.can_send(segment_bytes(*c, message, c->cursor_offset, c->tcp.send_next()));
  }
  return !qp.responses.empty() && !qp.responses.front().pending &&
         c->tcp.can_send(first_segment_bytes(*c, qp.responses.front()));
}

bool IwarpTransport::plan_response(QueuePair& qp, Time now, TxPlan& plan) {
  if (!response_due(qp)) return false;
  IwarpConnection& c = connection(qp);
  if (c.reset_pending) {
    plan_reset(qp, now, plan);
    return true;
  }
  if (c.setup.due()) {
    plan_setup(qp, now, plan);
    return true;
  }
  if (c.terminate_pending && !answers_first(qp, c)) {
    plan_terminate(qp, now, plan);
    return true;
  }
  if (c.tcp.duplicate_ack_owed() || (qp.failed && !c.terminate_pending)) {
    plan_ack(qp, now, plan);
    return true;
  }
  if (c.keep_alive.due()) {
    plan_probe(qp, now, plan);
    return true;
  }
  if (!c.mid_message() && !qp.responses.empty() && qp.state != protocol::QpState::kRtr) {
    const ResponseEntry& response = qp.responses.front();
    if (!response.pending && c.tcp.can_send(first_segment_bytes(c, response))) {
      append(c, response_message(response));
      qp.responses.pop_front();
    }
  }
  if (c.mid_message() && plan_segment(qp, now, plan)) return true;
  if (!c.tcp.ack_due()) return false;
  plan_ack(qp, now, plan);
  return true;
}

/// Puts the cursor where TCP wants to send from, after it went back or was acknowledged past it.
void IwarpTransport::seek(IwarpConnection& c) const {
  c.cursor = 0;
  c.cursor_offset = 0;
  const std::uint64_t at = c.tcp.send_next();
  while (c.mid_message() && c.messages[c.cursor].end <= at) ++c.cursor;
  if (!c.mid_message() || at <= c.messages[c.cursor].start) return;
  const DdpMessage& message = c.messages[c.cursor];
  std::uint32_t segments = 0;
  if (config_.mpa_markers) {
    std::uint64_t start = message.start;
    for (; start < at; ++segments) start += stream_bytes(start - c.first_sequence, mulpdu_);
  } else {
    segments = static_cast<std::uint32_t>((at - message.start) / fpdu_bytes(mulpdu_));
  }
  c.cursor_offset = segments * capacity(message.opcode);
}

/// Forgets messages that have arrived, and finishes the WRITEs and SENDs among them.
void IwarpTransport::release_acknowledged(QueuePair& qp) {
  IwarpConnection& c = connection(qp);
  while (!c.messages.empty() && c.messages.front().end <= c.tcp.send_unacknowledged()) {
    const DdpMessage& message = c.messages.front();
    SendEntry* entry = message.ends_entry ? qp.entry(message.entry_number) : nullptr;
    if (entry != nullptr && !entry->wqe.is_read() && !entry->wqe.is_atomic()) {
      entry->finished = true;
    }
    c.messages.pop_front();
    if (c.cursor > 0) {
      --c.cursor;
    } else {
      c.cursor_offset = 0;
    }
  }
}

}  // namespace rnic::transport
