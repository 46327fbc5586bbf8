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
/// open. Requests are served in the order of the times that they ask for, of equal times in the
/// order of the calls. A gap that is too short for a request is a part of its service, the rest
/// follows in the next ones: what is free is used, whatever the order of the calls. A request
/// counts as begun its duration before it has been served.
class PipelineServer {
 public:
  /// Occupies the unit for `duration`, not before `earliest`.
  [[gnu::always_inline]] Reservation reserve(Time earliest, Time duration) {
    if (earliest < free_at_) {
      return gaps_[newest_].to > earliest ? reserve_between(earliest, duration)
                                          : reserve_last(duration);
    }
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
    Time left = duration;
    for (std::uint32_t later = later_than(earliest); later > 0; --later) {
      const Gap& gap = gaps_[(newest_ - later + 1) % kGaps];
      const Time start = std::max(earliest, gap.from);
      if (gap.to - start >= left) return start + left - duration;
      left -= std::max(kTimeZero, gap.to - start);
    }
    return free_at_ + left - duration;
  }

 private:
  static constexpr std::uint32_t kGaps = 16;  ///< a power of two

  struct Gap {
    Time from{0};
    Time to{0};
  };

  /// Gaps that end after `earliest`; they are in the order of time.
  std::uint32_t later_than(Time earliest) const {
    std::uint32_t later = 0;
    while (later < kGaps && gaps_[(newest_ - later) % kGaps].to > earliest) ++later;
    return later;
  }

  [[gnu::noinline]] Reservation reserve_between(Time earliest, Time duration) {
    Time left = duration;
    for (std::uint32_t later = later_than(earliest); later > 0; --later) {
      Gap& gap = gaps_[(newest_ - later + 1) % kGaps];
      const Time start = std::max(earliest, gap.from);
      if (gap.to <= start) continue;
      if (gap.to - start >= left) {
        take(gap, start, left);
        return {start + left - duration, start + left};
      }
      left -= gap.to - start;
      gap.to = start;
    }
    free_at_ += left;
    return {free_at_ - duration, free_at_};
  }

  /// What is left of the gap on one side stays open: the longer part.
  static void take(Gap& gap, Time start, Time duration) {
    const Time end = start + duration;
    if (start - gap.from > gap.to - end) {
      gap.to = start;
    } else {
      gap.from = end;
    }
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
