// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "protocol/mpa.h"
#include "transport/iwarp_segment.h"
#include "transport/iwarp_transport.h"

namespace rnic::transport {

using protocol::MpaConnect;
using protocol::TcpHeader;
using protocol::TcpOptions;

namespace {

/// Connection requests that wait for their queue pair, as a listener's backlog.
constexpr std::size_t kBacklog = 1024;

bool is_frame(SetupSegment segment) {
  return segment == SetupSegment::kRequest || segment == SetupSegment::kReply;
}
bool is_syn(SetupSegment segment) {
  return segment == SetupSegment::kSyn || segment == SetupSegment::kSynAck;
}

}  // namespace

void IwarpTransport::start_setup(QueuePair& qp, Time now) {
  if (!config_.handshake) return;
  IwarpConnection& c = connection(qp);
  c.setup.start(c.initiator, config_.syn_timeout, now + config_.connect_timeout);
  c.tcp.set_first_rto(config_.syn_timeout);
  // The request may have come before this end was ready for it.
  const auto waiting = std::find_if(backlog_.begin(), backlog_.end(),
                                    [&c](const Waiting& w) { return w.key == c.key; });
  if (waiting == backlog_.end()) return;
  open_receive(c, waiting->sequence);
  c.setup.received(SetupSegment::kSyn, SetupAck::kNothing);
  backlog_.erase(waiting);
}

void IwarpTransport::remember_request(const ConnectionKey& key, const protocol::Frame& frame,
                                      std::uint32_t tcp_offset) {
  const auto tcp = TcpHeader::decode(frame.header + tcp_offset);
  if (!config_.handshake || !tcp.syn || tcp.ack) return;
  backlog_.erase(std::remove_if(backlog_.begin(), backlog_.end(),
                                [&key](const Waiting& w) { return w.key == key; }),
                 backlog_.end());
  if (backlog_.size() < kBacklog) backlog_.push_back({key, tcp.sequence});
}

/// Sequence numbers of the set-up lie before the first FPDU's, on both sides.
void IwarpTransport::plan_setup(QueuePair& qp, Time now, TxPlan& plan) {
  IwarpConnection& c = connection(qp);
  plan = TxPlan{};
  plan.is_response = true;
  plan.last = true;
  plan.setup = c.setup.take(now);
  plan.frame_class = plan.setup == SetupSegment::kAck ? protocol::FrameClass::kAck
                                                      : protocol::FrameClass::kConnection;
  fill_tcp(c, now, true, plan);
  const std::uint64_t first = c.first_sequence;
  switch (plan.setup) {
    case SetupSegment::kSyn:
    case SetupSegment::kSynAck:
      plan.stream = first - mpa_bytes_ - 1;
      break;
    case SetupSegment::kRequest:
      c.enhanced = own_terms(qp, true);
      plan.stream = first - mpa_bytes_;
      break;
    case SetupSegment::kReply:
      plan.stream = first - mpa_bytes_;
      break;
    default:
      plan.stream = c.setup.done() ? first : first - mpa_bytes_;
  }
  // receive_next() is behind the peer's MPA frame, which may still be to come.
  const bool peer_frame_came = plan.setup == SetupSegment::kReply || c.setup.done();
  if (!peer_frame_came) plan.stream_ack -= mpa_bytes_;
  update_deadline(qp);
}

void IwarpTransport::build_setup(const QueuePair& qp, const TxPlan& plan,
                                 protocol::Frame& frame) const {
  const IwarpConnection& c = *connection_of(qp);
  std::uint8_t* tcp_at = frame.header + encapsulation_.outer_bytes();
  TcpOptions options;
  if (is_syn(plan.setup)) {
    options.has_mss = true;
    options.mss = static_cast<std::uint16_t>(mss_option_);
    options.has_window_scale = true;
    options.window_scale = window_scale_;
    options.sack_permitted = config_.sack;
  }
  options.has_timestamps = config_.timestamps;
  options.timestamp = plan.timestamp;
  options.timestamp_echo = plan.setup == SetupSegment::kSyn ? 0 : plan.timestamp_echo;
  const std::uint32_t tcp_bytes = TcpHeader::kBytes + options.encode(tcp_at + TcpHeader::kBytes);
  TcpHeader tcp;
  tcp.source_port = c.local_port;
  tcp.destination_port = c.peer_port;
  tcp.sequence = static_cast<std::uint32_t>(plan.stream);
  tcp.syn = is_syn(plan.setup);
  tcp.rst = plan.setup == SetupSegment::kReset;
  tcp.ack = plan.setup != SetupSegment::kSyn;
  tcp.psh = is_frame(plan.setup);
  tcp.acknowledgement = tcp.ack ? static_cast<std::uint32_t>(plan.stream_ack) : 0;
  tcp.header_words = static_cast<std::uint8_t>(tcp_bytes / 4);
  // The scale does not apply to segments with SYN (RFC 7323, 2.2).
  const std::uint32_t window = tcp.syn ? plan.stream_window : plan.stream_window >> window_scale_;
  tcp.window = static_cast<std::uint16_t>(std::min(window, TcpHeader::kMaxWindow));
  tcp.encode(tcp_at);
  std::uint32_t stream_bytes = 0;
  if (is_frame(plan.setup)) {
    MpaConnect mpa;
    mpa.key =
        plan.setup == SetupSegment::kRequest ? MpaConnect::kRequestKey : MpaConnect::kReplyKey;
    mpa.crc = config_.mpa_crc;
    mpa.markers = config_.mpa_markers;
    if (enhanced()) {
      mpa.enhanced = true;
      mpa.revision = 2;
      mpa.private_bytes = protocol::MpaEnhanced::kBytes;
      c.enhanced.encode(tcp_at + tcp_bytes + MpaConnect::kBytes);
    }
    mpa.encode(tcp_at + tcp_bytes);
    stream_bytes = mpa_bytes_;
  }
  encapsulation_.write_outer(qp.av, tcp_bytes + stream_bytes, frame.header);
  frame.header_bytes =
      static_cast<std::uint16_t>(encapsulation_.outer_bytes() + tcp_bytes + stream_bytes);
  frame.payload_bytes = 0;
  frame.pad_bytes = 0;
  frame.marker_count = 0;
  frame.trailer_bytes = static_cast<std::uint8_t>(encapsulation_.link_crc_bytes());
  frame.lane = encapsulation_.lane_of(qp.av);
  frame.wire_bytes = encapsulation_.wire_bytes(frame.frame_bytes());
}

/// What a frame is to the set-up; kNone for everything that comes later.
SetupSegment IwarpTransport::setup_segment(const protocol::Frame& frame) const {
  const std::uint8_t* p = frame.header + encapsulation_.outer_bytes();
  const auto tcp = TcpHeader::decode(p);
  if (tcp.syn) return tcp.ack ? SetupSegment::kSynAck : SetupSegment::kSyn;
  const std::uint32_t start = encapsulation_.outer_bytes() + tcp.header_bytes();
  if (frame.trailer_bytes > encapsulation_.link_crc_bytes() || frame.payload_bytes != 0) {
    return SetupSegment::kNone;  // an FPDU
  }
  if (frame.header_bytes == start) return SetupSegment::kAck;
  if (frame.header_bytes != start + mpa_bytes_) return SetupSegment::kNone;
  const auto mpa = MpaConnect::decode(frame.header + start);
  return mpa.is_request() ? SetupSegment::kRequest
         : mpa.is_reply() ? SetupSegment::kReply
                          : SetupSegment::kNone;
}

/// True when `frame` was the set-up's alone.
bool IwarpTransport::receive_setup(QueuePair& qp, const protocol::Frame& frame, Time now) {
  IwarpConnection& c = connection(qp);
  const SetupSegment segment = setup_segment(frame);
  const bool ours = is_syn(segment) || is_frame(segment);
  if (segment == SetupSegment::kSyn && c.setup.done()) {
    // This end is not ready yet, or the peer has begun anew before this end.
    remember_request(c.key, frame, encapsulation_.outer_bytes());
    return true;
  }
  if (c.setup.done() && !ours) return false;
  const auto tcp = TcpHeader::decode(frame.header + encapsulation_.outer_bytes());
  if (is_syn(segment) && !c.setup.done()) open_receive(c, tcp.sequence);
  const auto first = static_cast<std::uint32_t>(c.first_sequence);
  SetupAck acknowledged = SetupAck::kNothing;
  if (tcp.ack && tcp.acknowledgement == first) acknowledged = SetupAck::kAll;
  if (tcp.ack && tcp.acknowledgement == first - mpa_bytes_) acknowledged = SetupAck::kSyn;
  if (is_frame(segment) && enhanced() && !c.setup.done()) {
    negotiate(
        qp, segment,
        frame.header + encapsulation_.outer_bytes() + tcp.header_bytes() + MpaConnect::kBytes);
  }
  const Time asked = c.setup.asked_at();
  const std::uint32_t steps = c.setup.steps();
  c.setup.received(segment, acknowledged);
  // The handshake measures the round trip (RFC 6298, 2.2), unless something was sent again.
  if (c.setup.steps() != steps && asked != kTimeNever) {
    c.tcp.handshake_took(now - asked);
    c.setup.set_retry(c.tcp.rto());  // MPA's frames are TCP's data
  }
  update_deadline(qp);
  return ours || !c.setup.done();
}

bool IwarpTransport::disconnect(QueuePair& qp) {
  if (qp.connection == nullptr) return false;
  IwarpConnection& c = connection(qp);
  connections_.erase(qp.qpn);
  const bool established = c.setup.done() && (c.setup.started() || !config_.handshake);
  c.reset_pending = config_.tear_down && established && !c.closed;
  c.closed = true;
  return c.reset_pending;
}

/// The last segment of this end.
void IwarpTransport::plan_reset(QueuePair& qp, Time now, TxPlan& plan) {
  IwarpConnection& c = connection(qp);
  c.reset_pending = false;
  plan = TxPlan{};
  plan.is_response = true;
  plan.last = true;
  if (c.fin_received) {  // with a terminate message: the answer closes this direction, too
    plan.frame_class = protocol::FrameClass::kAck;
    plan.closes_stream = true;
    fill_tcp(c, now, true, plan);
    ++plan.stream_ack;
    ++counters_.acks_sent;
    return;
  }
  plan.setup = SetupSegment::kReset;
  plan.frame_class = protocol::FrameClass::kConnection;
  fill_tcp(c, now, true, plan);
  plan.stream = c.tcp.send_max();
}

/// The peer has given the connection up. A reset from outside the window is not the peer's (RFC
/// 9293, 3.10.7.4).
void IwarpTransport::handle_reset(QueuePair& qp, const Segment& in, RxPlan& plan) {
  IwarpConnection& c = connection(qp);
  const auto next = static_cast<std::uint32_t>(c.tcp.receive_next());
  if (in.tcp.sequence - next >= c.tcp.receive_window()) return;
  c.closed = true;
  fail(qp, nullptr, protocol::WcStatus::kWrFlushError);
  update_deadline(qp);
  plan.disconnected = true;
}

}  // namespace rnic::transport
