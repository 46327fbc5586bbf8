// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "protocol/aeth.h"

namespace rnic::transport {

/// How long a requester really waits: the specification's times, and what devices make of them.
struct RetransmissionTimers {
  std::uint32_t min_ack_timeout = 0;  ///< floor of the exponent; 0: none
  double ack_timeout_factor = 1;      ///< 1..4 (IBTA vol 1, 9.7.6.1.3)
  bool adaptive = false;              ///< quick retransmissions first
  Time adaptive_start{0};             ///< first interval; each is twice the one before
  double rnr_factor = 1;              ///< 1 or more

  /// The next expiry after `done` quick retransmissions is one of the adaptive phase, which lasts
  /// while its interval does not exceed the nominal time-out.
  bool quick(std::uint32_t exponent, std::uint32_t done) const {
    return adaptive && exponent != 0 && done < kMostQuick &&
           adaptive_start * (std::int64_t{1} << done) <= protocol::ack_timeout(effective(exponent));
  }

  /// `done` of a new packet: without a retry to spend there is no adaptive phase either.
  static std::uint8_t first(std::uint32_t retry_count) {
    return retry_count == 0 ? kMostQuick : std::uint8_t{0};
  }

  /// Time to the next expiry; `exponent` is not 0.
  Time interval(std::uint32_t exponent, std::uint32_t done) const {
    if (quick(exponent, done)) return adaptive_start * (std::int64_t{1} << done);
    return scaled(protocol::ack_timeout(effective(exponent)), ack_timeout_factor);
  }

  Time rnr_wait(std::uint8_t code) const { return scaled(protocol::rnr_timer(code), rnr_factor); }

 private:
  static constexpr std::uint8_t kMostQuick = 31;

  std::uint32_t effective(std::uint32_t exponent) const {
    return std::max(exponent, min_ack_timeout);
  }
  static Time scaled(Time time, double factor) {
    return factor == 1 ? time
                       : Time{static_cast<Time::rep>(static_cast<double>(time.count()) * factor)};
  }
};

}  // namespace rnic::transport
