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

TcpConnection::TcpConnection(const TcpParameters& parameters)
    : parameters_(parameters),
      cwnd_(parameters.congestion_control, parameters.mss, parameters.initial_cwnd) {
  open_receive(0);
  open_send(0);
}

void TcpConnection::open_receive(std::uint32_t sequence) {
  receive_next_ = kFirstWrap + sequence;
  unacknowledged_segments_ = 0;
  duplicates_owed_ = 0;
  ack_now_ = false;
  ack_deadline_ = kTimeNever;
  early_.clear();
}

void TcpConnection::open_send(std::uint32_t sequence) {
  send_una_ = send_next_ = send_max_ = kFirstWrap + sequence;
  cwnd_.open();
  peer_window_ = parameters_.window;
  recover_ = recovery_start_ = lost_to_ = resent_to_ = send_una_;
  scoreboard_.clear();
  duplicate_acks_ = 0;
  timeouts_ = 0;
  recovering_ = fast_ = timing_ = sampled_ = false;
  srtt_ = rttvar_ = kTimeZero;
  // A connection that exists at once has no handshake that could be measured.
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
  if (recovering_ && parameters_.sack && first < send_max_ && first + bytes <= send_max_ &&
      first >= resent_to_ && first < lost_to_) {
    resent_to_ = first + bytes;
    choose_next();
  }
  return first;
}

TcpConnection::AckEvent TcpConnection::on_ack(std::uint32_t acknowledgement, std::uint64_t window,
                                              bool bare, Time now,
                                              const protocol::TcpOptions* options) {
  const std::uint64_t ack = extend(acknowledgement, send_una_);
  if (ack < send_una_ || ack > send_max_) return AckEvent::kNone;
  const bool same_window = window == peer_window_;
  peer_window_ = window;
  if (ack == send_una_) {
    if (!parameters_.sack) return on_duplicate(bare, same_window, now);
    if (!note_sack(options)) return AckEvent::kNone;
    ++duplicate_acks_;  // new information makes an ACK a duplicate (RFC 6675, 2)
    find_lost();
    if (recovering_) {
      choose_next();
      return AckEvent::kNone;
    }
    if (duplicate_acks_ < kDuplicateAckThreshold && lost_to_ <= send_una_) return AckEvent::kNone;
    begin_recovery(now);
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
  if (!fast_) cwnd_.grow(acknowledged, now, srtt_);
  rto_deadline_ = send_una_ == send_max_ ? kTimeNever : now + rto_;
  if (recovering_ && send_una_ >= recover_) {
    recovering_ = fast_ = false;
    if (parameters_.sack) send_next_ = send_max_;
  }
  if (!parameters_.sack) return AckEvent::kAdvanced;
  scoreboard_.drop_before(send_una_);
  note_sack(options);
  if (recovering_) {
    find_lost();
    // A partial acknowledgement: the gap that it ends at is the next loss (RFC 6582).
    lost_to_ = std::max(lost_to_, send_una_ + 1);
    choose_next();
  }
  return AckEvent::kAdvanced;
}

TcpConnection::AckEvent TcpConnection::on_duplicate(bool bare, bool same_window, Time now) {
  if (!bare || !same_window || send_una_ == send_max_) return AckEvent::kNone;
  if (++duplicate_acks_ != kDuplicateAckThreshold) return AckEvent::kNone;
  // The path keeps order: duplicates for a point reached since recovery began are a new loss.
  if (recovering_ && send_una_ == recovery_start_) return AckEvent::kNone;
  cwnd_.reduce(flight());
  recovering_ = true;
  recover_ = send_max_;
  recovery_start_ = send_una_;
  go_back();
  rto_deadline_ = now + rto_;
  return AckEvent::kFastRetransmit;
}

/// True when `options` tell of something that was not known.
bool TcpConnection::note_sack(const protocol::TcpOptions* options) {
  bool news = false;
  if (options == nullptr) return false;
  for (std::uint32_t i = 0; i < options->sack_count; ++i) {
    const std::uint64_t begin = extend(options->sack[i].left, send_una_);
    const std::uint64_t end = extend(options->sack[i].right, send_una_);
    if (begin >= end || begin <= send_una_ || end > send_max_) continue;
    if (scoreboard_.add(begin, end)) news = true;
  }
  return news;
}

/// A gap is lost when three ranges, or more than two segments, have arrived behind it (RFC 6675,
/// IsLost).
void TcpConnection::find_lost() {
  std::uint64_t bytes = 0;
  std::uint32_t ranges = 0;
  for (std::size_t i = scoreboard_.size(); i-- > 0;) {
    bytes += scoreboard_[i].end - scoreboard_[i].begin;
    if (++ranges < kDuplicateAckThreshold &&
        bytes <= (kDuplicateAckThreshold - 1) * std::uint64_t{parameters_.mss}) {
      continue;
    }
    lost_to_ = std::max(lost_to_, scoreboard_[i].begin);
    return;
  }
}

void TcpConnection::begin_recovery(Time now) {
  cwnd_.reduce(flight());
  recovering_ = fast_ = true;
  recover_ = send_max_;
  recovery_start_ = send_una_;
  resent_to_ = send_una_;
  lost_to_ = std::max(lost_to_, send_una_ + 1);
  timing_ = false;
  rto_deadline_ = now + rto_;
  choose_next();
}

/// Puts send_next_ at the first lost gap that has not been resent, else behind everything sent.
void TcpConnection::choose_next() {
  resent_to_ = std::max(resent_to_, send_una_);
  const std::uint64_t gap = scoreboard_.skip(resent_to_);
  send_next_ = gap < lost_to_ ? gap : send_max_;
}

void TcpConnection::on_timeout(Time now) {
  cwnd_.collapse(flight(), timeouts_ == 0);  // RFC 5681, equation 4: once for a segment
  ++timeouts_;
  recovering_ = true;
  fast_ = false;
  recover_ = send_max_;
  recovery_start_ = send_una_;
  duplicate_acks_ = 0;
  rto_ = std::min(rto_ * 2, kMaxRto);
  rto_deadline_ = now + rto_;
  // A peer that has not acknowledged what it reported has thrown it away (RFC 2018, 8).
  if (scoreboard_.skip(send_una_) != send_una_) scoreboard_.clear();
  go_back();
}

void TcpConnection::go_back() {
  send_next_ = resent_to_ = send_una_;
  lost_to_ = send_max_;
  timing_ = false;
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

bool TcpConnection::keep_early(std::uint32_t sequence, std::uint32_t bytes, bool held, bool last,
                               std::uint32_t payload) {
  const std::uint64_t first = extend(sequence, receive_next_);
  if (first + bytes > receive_next_ + parameters_.window) return false;
  const auto at = std::lower_bound(
      early_.begin(), early_.end(), first,
      [](const EarlySegment& segment, std::uint64_t x) { return segment.sequence < x; });
  newest_early_ = first;
  if (at != early_.end() && at->sequence == first) return false;
  early_.insert(at, EarlySegment{first, bytes, held, last, payload});
  return true;
}

const TcpConnection::EarlySegment* TcpConnection::early_due() const {
  return !early_.empty() && early_.front().sequence == receive_next_ ? &early_.front() : nullptr;
}

const TcpConnection::EarlySegment* TcpConnection::early_at(std::uint32_t sequence) const {
  for (const EarlySegment& segment : early_) {
    if (static_cast<std::uint32_t>(segment.sequence) == sequence) return &segment;
  }
  return nullptr;
}

void TcpConnection::fill_sack(protocol::TcpOptions& options) const {
  SequenceRanges ranges;
  for (const EarlySegment& segment : early_) {
    ranges.add(segment.sequence, segment.sequence + segment.bytes);
  }
  const std::uint32_t most =
      protocol::TcpOptions::kMaxSackBlocks - (options.has_timestamps ? 1U : 0U);
  const auto put = [&options](const SequenceRanges::Range& r) {
    options.sack[options.sack_count++] = {static_cast<std::uint32_t>(r.begin),
                                          static_cast<std::uint32_t>(r.end)};
  };
  std::size_t newest = ranges.size();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].begin <= newest_early_ && newest_early_ < ranges[i].end) newest = i;
  }
  if (newest < ranges.size()) put(ranges[newest]);
  for (std::size_t i = 0; i < ranges.size() && options.sack_count < most; ++i) {
    if (i != newest) put(ranges[i]);
  }
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
