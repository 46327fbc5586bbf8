// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic {

/// When a shared resource serves a request.
struct Reservation {
  Time start;
  Time end;
};

/// A resource that serves one request after another, described by next-free arithmetic instead of
/// events: a request starts at max(asked time, end of the one before).
class Server {
 public:
  /// Occupies the resource for `duration`, not before `earliest`.
  Reservation reserve(Time earliest, Time duration) {
    const Time start = std::max(earliest, free_at_);
    free_at_ = start + duration;
    busy_ += duration;
    ++served_;
    return {start, free_at_};
  }

  Time free_at() const { return free_at_; }
  /// Total time reserved since the last reset_statistics().
  Time busy() const { return busy_; }
  std::uint64_t served() const { return served_; }
  void reset_statistics() {
    busy_ = kTimeZero;
    served_ = 0;
  }

 private:
  Time free_at_{0};
  Time busy_{0};
  std::uint64_t served_ = 0;
};

/// A pipelined unit whose requests name times a little ahead, and not always in order: those that
/// have crossed other units ask for later times than those that come straight. Who asks for later
/// must not keep out who asks for sooner, so the newest gaps in front of such reservations stay
/// open. Requests are served in the order of the times that they ask for, as long as a gap takes
/// them; of equal times in the order of the calls.
class PipelineServer {
 public:
  /// Occupies the unit for `duration`, not before `earliest`.
  Reservation reserve(Time earliest, Time duration) {
    if (earliest < free_at_) return reserve_between(earliest, duration);
    if (earliest > free_at_) {
      newest_ = (newest_ + 1) % kGaps;
      gaps_[newest_] = {free_at_, earliest};
    }
    free_at_ = earliest + duration;
    return {earliest, free_at_};
  }

  /// Likewise, behind everything that was reserved before.
  Reservation reserve_last(Time duration) {
    const Time start = free_at_;
    free_at_ += duration;
    return {start, free_at_};
  }

  /// When a request would start.
  Time start_of(Time earliest, Time duration) const {
    if (earliest >= free_at_) return earliest;
    Time start = free_at_;
    for (std::uint32_t i = 0; i < kGaps; ++i) {
      const Gap& gap = gaps_[(newest_ - i) % kGaps];
      if (gap.to <= earliest) break;
      if (gap.fits(earliest, duration)) start = std::max(earliest, gap.from);
    }
    return start;
  }

 private:
  static constexpr std::uint32_t kGaps = 8;  ///< a power of two

  struct Gap {
    Time from{0};
    Time to{0};
    bool fits(Time earliest, Time duration) const {
      return std::max(earliest, from) + duration <= to;
    }
  };

  Reservation reserve_between(Time earliest, Time duration) {
    std::uint32_t later = 0;  // gaps that end after `earliest`; they are in the order of time
    while (later < kGaps && gaps_[(newest_ - later) % kGaps].to > earliest) ++later;
    for (; later > 0; --later) {
      Gap& gap = gaps_[(newest_ - later + 1) % kGaps];
      if (gap.fits(earliest, duration)) return take(gap, earliest, duration);
      // Too short, but a shorter request that comes behind must not pass.
      gap.to = std::max(gap.from, earliest);
    }
    return reserve_last(duration);
  }

  /// What is left of the gap on one side stays open: the longer part.
  static Reservation take(Gap& gap, Time earliest, Time duration) {
    const Time start = std::max(earliest, gap.from);
    const Time end = start + duration;
    if (start - gap.from > gap.to - end) {
      gap.to = start;
    } else {
      gap.from = end;
    }
    return {start, end};
  }

  Time free_at_{0};
  std::uint32_t newest_ = 0;
  std::array<Gap, kGaps> gaps_{};
};

/// A Server whose durations are bytes at a rate: a link direction, a memory channel.
class RateServer {
 public:
  RateServer() = default;
  explicit RateServer(BitRate rate) : rate_(rate) {}

  Reservation reserve(Time earliest, std::uint64_t bytes) {
    return server_.reserve(earliest, rate_.time_for(bytes));
  }

  const BitRate& rate() const { return rate_; }
  Server& server() { return server_; }
  const Server& server() const { return server_; }

 private:
  BitRate rate_;
  Server server_;
};

}  // namespace rnic
