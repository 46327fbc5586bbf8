// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/tcp_connection.h"

#include "protocol/tcp_header.h"

namespace rnic::transport {
namespace {

/// Sequences start one wrap up, so that looking a little back never goes below zero.
constexpr std::uint64_t kFirstWrap = std::uint64_t{1} << 32;

/// The 64-bit sequence nearest to `near` whose low 32 bits are `wire`.
std::uint64_t extend(std::uint32_t wire, std::uint64_t near) {
  const std::int64_t distance = protocol::tcp_distance(wire, static_cast<std::uint32_t>(near));
  return near + static_cast<std::uint64_t>(distance);
}

}  // namespace

TcpConnection::TcpConnection(const TcpParameters& parameters) : parameters_(parameters) {
  open_receive(0);
  open_send(0);
}

void TcpConnection::open_receive(std::uint32_t sequence) {
  receive_next_ = kFirstWrap + sequence;
  unacknowledged_segments_ = 0;
  duplicates_owed_ = 0;
  ack_now_ = false;
  ack_deadline_ = kTimeNever;
}

void TcpConnection::open_send(std::uint32_t sequence) {
  send_una_ = send_next_ = send_max_ = kFirstWrap + sequence;
  cwnd_ = std::uint64_t{parameters_.initial_cwnd} * parameters_.mss;
  ssthresh_ = ~std::uint64_t{0};
  peer_window_ = parameters_.window;
  acked_in_avoidance_ = 0;
  recover_ = recovery_start_ = send_una_;
  duplicate_acks_ = 0;
  timeouts_ = 0;
  recovering_ = timing_ = sampled_ = false;
  srtt_ = rttvar_ = kTimeZero;
  // RFC 6298 starts at 1 s without a sample; the handshake, which is not simulated, would have
  // been one.
  rto_ = parameters_.min_rto;
  rto_deadline_ = kTimeNever;
}

std::uint64_t TcpConnection::send(std::uint32_t bytes, Time now) {
  const std::uint64_t first = send_next_;
  send_next_ += bytes;
  if (send_next_ > send_max_) {
    if (!timing_) {
      timing_ = true;
      timed_end_ = send_next_;
      timed_at_ = now;
    }
    send_max_ = send_next_;
  }
  if (rto_deadline_ == kTimeNever) rto_deadline_ = now + rto_;
  return first;
}

TcpConnection::AckEvent TcpConnection::on_ack(std::uint32_t acknowledgement, std::uint64_t window,
                                              bool bare, Time now) {
  const std::uint64_t ack = extend(acknowledgement, send_una_);
  if (ack < send_una_ || ack > send_max_) return AckEvent::kNone;
  const bool same_window = window == peer_window_;
  peer_window_ = window;
  if (ack == send_una_) {
    if (!bare || !same_window || send_una_ == send_max_) return AckEvent::kNone;
    if (++duplicate_acks_ != kDuplicateAckThreshold) return AckEvent::kNone;
    // The path keeps order: duplicates for a point reached since recovery began are a new loss.
    if (recovering_ && send_una_ == recovery_start_) return AckEvent::kNone;
    halve();
    cwnd_ = ssthresh_;
    recovering_ = true;
    recover_ = send_max_;
    recovery_start_ = send_una_;
    go_back();
    rto_deadline_ = now + rto_;
    return AckEvent::kFastRetransmit;
  }
  const std::uint64_t acknowledged = ack - send_una_;
  send_una_ = ack;
  send_next_ = std::max(send_next_, send_una_);
  duplicate_acks_ = 0;
  timeouts_ = 0;
  if (timing_ && send_una_ >= timed_end_) {
    timing_ = false;
    sample_rtt(now - timed_at_);
  }
  grow(acknowledged);
  if (recovering_ && send_una_ >= recover_) recovering_ = false;
  rto_deadline_ = send_una_ == send_max_ ? kTimeNever : now + rto_;
  return AckEvent::kAdvanced;
}

void TcpConnection::on_timeout(Time now) {
  if (timeouts_ == 0) halve();  // RFC 5681, equation 4: once for a segment
  ++timeouts_;
  cwnd_ = parameters_.mss;
  recovering_ = true;
  recover_ = send_max_;
  recovery_start_ = send_una_;
  duplicate_acks_ = 0;
  rto_ = std::min(rto_ * 2, kMaxRto);
  rto_deadline_ = now + rto_;
  go_back();
}

void TcpConnection::go_back() {
  send_next_ = send_una_;
  timing_ = false;
  acked_in_avoidance_ = 0;
}

void TcpConnection::halve() {
  ssthresh_ = std::max<std::uint64_t>(flight() / 2, 2 * std::uint64_t{parameters_.mss});
}

void TcpConnection::grow(std::uint64_t acknowledged) {
  const std::uint64_t mss = parameters_.mss;
  if (cwnd_ < ssthresh_) {
    cwnd_ += std::min(acknowledged, mss);
    return;
  }
  acked_in_avoidance_ += acknowledged;
  if (acked_in_avoidance_ < cwnd_) return;
  acked_in_avoidance_ -= cwnd_;
  cwnd_ += mss;
}

void TcpConnection::sample_rtt(Time rtt) {
  if (!sampled_) {
    sampled_ = true;
    srtt_ = rtt;
    rttvar_ = rtt / 2;
  } else {
    const Time error = srtt_ > rtt ? srtt_ - rtt : rtt - srtt_;
    rttvar_ = (rttvar_ * 3 + error) / 4;
    srtt_ = (srtt_ * 7 + rtt) / 8;
  }
  rto_ = std::min(std::max(srtt_ + rttvar_ * 4, parameters_.min_rto), kMaxRto);
}

TcpConnection::Arrival TcpConnection::classify(std::uint32_t sequence) const {
  const std::uint64_t first = extend(sequence, receive_next_);
  if (first == receive_next_) return Arrival::kInOrder;
  return first < receive_next_ ? Arrival::kDuplicate : Arrival::kGap;
}

void TcpConnection::accept(std::uint32_t bytes, Time now) {
  receive_next_ += bytes;
  // What fills a gap is acknowledged at once (RFC 5681, 4.2), in place of duplicates still owed.
  if (duplicates_owed_ > 0) ack_now_ = true;
  duplicates_owed_ = 0;
  if (++unacknowledged_segments_ >= parameters_.delayed_ack) ack_now_ = true;
  if (ack_now_) {
    ack_deadline_ = kTimeNever;
  } else if (ack_deadline_ == kTimeNever) {
    ack_deadline_ = now + parameters_.delayed_ack_time;
  }
}

std::uint64_t TcpConnection::take_ack(bool bare) {
  if (bare && duplicates_owed_ > 0) --duplicates_owed_;
  ack_now_ = false;
  unacknowledged_segments_ = 0;
  ack_deadline_ = kTimeNever;
  return receive_next_;
}

}  // namespace rnic::transport
