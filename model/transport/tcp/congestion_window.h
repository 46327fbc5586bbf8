// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "config/transport_config.h"

namespace rnic::transport {

/// Congestion window of a TCP sender: slow start and NewReno's congestion avoidance (RFC 5681), or
/// CUBIC's (RFC 9438), or none at all. Bytes throughout.
class CongestionWindow {
 public:
  CongestionWindow(config::CongestionControl kind, std::uint32_t mss, std::uint32_t initial)
      : kind_(kind), mss_(mss), initial_(initial) {
    open();
  }

  /// A new connection: the initial window, no threshold.
  void open();
  /// New data was acknowledged outside of a fast recovery. `rtt`: smoothed, 0 when unknown.
  void grow(std::uint64_t acknowledged, Time now, Time rtt);
  /// A loss was found by duplicate acknowledgements with `flight` bytes outstanding: the window is
  /// reduced to the threshold.
  void reduce(std::uint64_t flight);
  /// The retransmission timer ran out. `first`: for the first time for this segment.
  void collapse(std::uint64_t flight, bool first);

  std::uint64_t bytes() const { return cwnd_; }
  std::uint64_t threshold() const { return ssthresh_; }

 private:
  void set_threshold(std::uint64_t flight);
  void grow_newreno(std::uint64_t acknowledged);
  void grow_cubic(std::uint64_t acknowledged, Time now, Time rtt);

  config::CongestionControl kind_;
  std::uint32_t mss_;
  std::uint32_t initial_;  ///< segments
  std::uint64_t cwnd_ = 0;
  std::uint64_t ssthresh_ = 0;
  std::uint64_t acked_in_avoidance_ = 0;  ///< bytes since cwnd last grew by a segment

  // CUBIC, windows in segments.
  double w_max_ = 0;         ///< window before the last reduction
  double estimate_ = 0;      ///< what Reno would have reached
  double fraction_ = 0;      ///< growth below a byte
  Time epoch_ = kTimeNever;  ///< congestion avoidance began
  double k_ = 0;             ///< seconds from there to w_max_
};

}  // namespace rnic::transport
