// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "protocol/tcp_header.h"
#include "transport/tcp/congestion_window.h"
#include "transport/tcp/sequence_ranges.h"

namespace rnic::transport {

/// What an established connection needs to know about its two ends.
struct TcpParameters {
  std::uint32_t mss = 1460;         ///< EMSS: payload bytes of a full segment, options deducted
  std::uint32_t initial_cwnd = 10;  ///< segments (RFC 6928)
  std::uint64_t window = 1U << 20;  ///< receive window, bytes
  std::uint32_t delayed_ack = 2;    ///< segments that one ACK covers at most
  Time delayed_ack_time = microseconds(100);
  Time min_rto = microseconds(10'000);
  bool sack = false;       ///< both ends permitted selective acknowledgement
  Time keepalive_time{0};  ///< see KeepAlive
  Time keepalive_interval{0};
  std::uint32_t keepalive_probes = 0;
  config::CongestionControl congestion_control = config::CongestionControl::kNewReno;
};

/// Both directions of an established TCP connection (RFC 9293) as pure logic: sliding window,
/// cumulative and delayed acknowledgement, congestion window, RTT estimate and retransmission
/// timeout (RFC 6298), fast retransmit and recovery.
///
/// With `sack` the receiver keeps what arrives out of order and tells of it (RFC 2018); the sender
/// finds losses, fills the gaps, and counts what is in the pipe as RFC 6675 does. A partial
/// acknowledgement declares the next gap lost (RFC 6582). A resent segment that is lost again is
/// found by the timer.
///
/// Without it the receiver keeps nothing that arrives out of order, so both kinds of retransmission
/// go back to the first unacknowledged byte: after three duplicate ACKs with a reduced window, at
/// most once for each `recover` point unless the resent segment is lost again. (NewReno's window
/// inflation would clock out segments that such a receiver drops.)
///
/// Sequences are 64-bit inside; the wire has their low 32 bits. What the bytes are is the caller's
/// business: it asks can_send(), takes stream with send(), and resends from send_next() whenever
/// that has gone back.
class TcpConnection {
 public:
  enum class AckEvent : std::uint8_t {
    kNone,            ///< old, a duplicate below the threshold, or for bytes never sent
    kAdvanced,        ///< send_unacknowledged() moved
    kFastRetransmit,  ///< a loss was found; send_next() may have gone back
  };
  enum class Arrival : std::uint8_t { kInOrder, kDuplicate, kGap };

  static constexpr std::uint32_t kDuplicateAckThreshold = 3;
  static constexpr Time kMaxRto = microseconds(60'000'000);  ///< RFC 6298, 2.5: at least 60 s

  TcpConnection() : TcpConnection(TcpParameters{}) {}
  explicit TcpConnection(const TcpParameters& parameters);

  /// Puts the receiving half into ESTABLISHED: the peer's next byte is `sequence`.
  void open_receive(std::uint32_t sequence);
  /// Puts the sending half into ESTABLISHED: its next byte is `sequence`. The peer's window is
  /// taken to be as large as this end's own until its first segment tells.
  void open_send(std::uint32_t sequence);

  // Sender.

  /// A segment of `bytes` fits the congestion window and the peer's window now.
  bool can_send(std::uint32_t bytes) const {
    const std::uint64_t behind = send_next_ + bytes - send_una_;
    if (recovering_ && parameters_.sack) {
      return behind <= peer_window_ && pipe() + bytes <= cwnd_.bytes();
    }
    return behind <= std::min(cwnd_.bytes(), peer_window_);
  }
  /// A segment of `bytes` that cannot be sent would lie beyond the peer's window; else it is the
  /// congestion window that holds it back.
  bool beyond_peer_window(std::uint32_t bytes) const {
    return send_next_ + bytes - send_una_ > peer_window_;
  }
  /// Takes the next `bytes` of the stream; returns the sequence of the first.
  std::uint64_t send(std::uint32_t bytes, Time now);
  /// The next segment was sent before.
  bool retransmitting() const { return send_next_ < send_max_; }
  /// `window` in bytes (scaled); `bare`: the segment carried no data; `options`: its SACK blocks.
  /// send_next() may move in either direction.
  AckEvent on_ack(std::uint32_t acknowledgement, std::uint64_t window, bool bare, Time now,
                  const protocol::TcpOptions* options = nullptr);
  /// The retransmission timer ran out: back to the first unacknowledged byte.
  void on_timeout(Time now);
  /// Takes back what was taken from `sequence` on: it never left and never will.
  void abandon(std::uint64_t sequence) {
    send_next_ = send_max_ = std::max(sequence, send_una_);
    scoreboard_.clear();
    timing_ = false;
  }
  /// Until a round trip has been measured (RFC 6298, 2.1), behind open_send().
  void set_first_rto(Time rto) { rto_ = std::max(rto, parameters_.min_rto); }
  /// A segment of the handshake was answered after `rtt`.
  void handshake_took(Time rtt) { sample_rtt(rtt); }
  /// Stops the retransmission timer: the connection is given up.
  void stop_timer() { rto_deadline_ = kTimeNever; }

  std::uint64_t send_unacknowledged() const { return send_una_; }
  std::uint64_t send_next() const { return send_next_; }
  std::uint64_t send_max() const { return send_max_; }
  std::uint64_t congestion_window() const { return cwnd_.bytes(); }
  std::uint64_t slow_start_threshold() const { return cwnd_.threshold(); }
  bool recovering() const { return recovering_; }
  std::uint64_t peer_window() const { return peer_window_; }
  std::uint32_t timeouts() const { return timeouts_; }  ///< in a row, without progress
  Time rto() const { return rto_; }
  Time smoothed_rtt() const { return srtt_; }
  Time rto_deadline() const { return rto_deadline_; }  ///< kTimeNever: not running

  // Receiver.

  Arrival classify(std::uint32_t sequence) const;

  /// A segment behind a gap that is kept until its turn.
  struct EarlySegment {
    std::uint64_t sequence = 0;
    std::uint32_t bytes = 0;
    bool held = false;          ///< the NIC keeps its frame; else its payload is placed already
    bool last = false;          ///< last of its message
    std::uint32_t payload = 0;  ///< of it, of a placed one
  };
  /// Takes a segment behind a gap; false when it is there already, or beyond the window.
  bool keep_early(std::uint32_t sequence, std::uint32_t bytes, bool held, bool last,
                  std::uint32_t payload = 0);
  /// The kept segment whose turn it is, or null.
  const EarlySegment* early_due() const;
  /// The kept segment that begins with `sequence`, or null.
  const EarlySegment* early_at(std::uint32_t sequence) const;
  /// Forgets the first kept segment.
  void drop_early() { early_.erase(early_.begin()); }
  /// The SACK blocks of an ACK that leaves now: the newest first (RFC 2018, 4).
  void fill_sack(protocol::TcpOptions& options) const;

  /// Takes an in-order segment of `bytes`; every `delayed_ack`-th makes an ACK due at once.
  void accept(std::uint32_t bytes, Time now);
  /// An ACK shall leave soon, with data or without (duplicate segment, end of the delay).
  void request_ack() {
    ack_now_ = true;
    ack_deadline_ = kTimeNever;
  }
  /// An ACK without data shall leave for a segment behind a gap: only such ones count as
  /// duplicates.
  void owe_duplicate_ack() { ++duplicates_owed_; }
  bool ack_due() const { return ack_now_ || duplicates_owed_ > 0; }
  bool duplicate_ack_owed() const { return duplicates_owed_ > 0; }
  /// The acknowledgement number for a segment that leaves now; settles what it acknowledges.
  std::uint64_t take_ack(bool bare);
  Time ack_deadline() const { return ack_deadline_; }  ///< of a delayed ACK; kTimeNever: none

  std::uint64_t receive_next() const { return receive_next_; }
  std::uint64_t receive_window() const { return parameters_.window; }

  Time next_deadline() const { return std::min(rto_deadline_, ack_deadline_); }

 private:
  std::uint64_t flight() const { return (parameters_.sack ? send_max_ : send_next_) - send_una_; }
  std::uint64_t pipe() const {
    return scoreboard_.missing(send_una_, resent_to_) +
           scoreboard_.missing(std::max(lost_to_, resent_to_), send_max_);
  }
  void go_back();
  void sample_rtt(Time rtt);
  AckEvent on_duplicate(bool bare, bool same_window, Time now);
  bool note_sack(const protocol::TcpOptions* options);
  void find_lost();
  void begin_recovery(Time now);
  void choose_next();

  TcpParameters parameters_;

  std::uint64_t send_una_ = 0;
  std::uint64_t send_next_ = 0;
  std::uint64_t send_max_ = 0;
  CongestionWindow cwnd_;
  std::uint64_t peer_window_ = 0;
  std::uint64_t recover_ = 0;         ///< RFC 6582: recovery ends when this is acknowledged
  std::uint64_t recovery_start_ = 0;  ///< send_una_ when it began
  SequenceRanges scoreboard_;         ///< what the peer has of what is not acknowledged
  std::uint64_t lost_to_ = 0;         ///< gaps before it are lost
  std::uint64_t resent_to_ = 0;       ///< gaps before it have been resent
  std::uint32_t duplicate_acks_ = 0;
  std::uint32_t timeouts_ = 0;
  bool recovering_ = false;
  bool fast_ = false;    ///< recovering_: found by acknowledgements, the window stays reduced
  bool timing_ = false;  ///< one segment at a time is timed, never a resent one (Karn)
  bool sampled_ = false;
  std::uint64_t timed_end_ = 0;
  Time timed_at_{0};
  Time srtt_{0};
  Time rttvar_{0};
  Time rto_{0};
  Time rto_deadline_ = kTimeNever;

  std::uint64_t receive_next_ = 0;
  std::vector<EarlySegment> early_;  ///< by sequence
  std::uint64_t newest_early_ = 0;   ///< sequence of the one that came last
  std::uint32_t unacknowledged_segments_ = 0;
  std::uint32_t duplicates_owed_ = 0;
  bool ack_now_ = false;
  Time ack_deadline_ = kTimeNever;
};

}  // namespace rnic::transport
