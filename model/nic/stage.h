// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "base/rate_server.h"
#include "config/nic_config.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// The NIC's clock: cycles to time, and the next edge for what arrives from another clock domain.
class Clock {
 public:
  explicit Clock(double hertz) : period_(static_cast<std::int64_t>(1e12 / hertz)) {}

  Time period() const { return period_; }
  Time cycles(std::uint32_t n) const { return period_ * static_cast<std::int64_t>(n); }
  Time next_edge(Time t) const {
    const std::int64_t p = period_.count();
    return Time{(t.count() + p - 1) / p * p};
  }

 private:
  Time period_;
};

/// A pipelined unit: what enters at t leaves `latency` after its start, and starts follow each
/// other by at least `interval` (initiation interval). Pure next-free arithmetic.
class PipelineStage {
 public:
  PipelineStage(std::string name, const config::StageConfig& config, const Clock& clock)
      : latency_(clock.cycles(config.latency)),
        interval_(clock.cycles(config.interval)),
        stats_(std::move(name)) {}

  /// Time at which a request that arrives at `t` leaves.
  Time pass(Time t) {
    const Reservation slot = server_.reserve(t, interval_);
    stats_.add_busy(slot.start, slot.end);
    return slot.start + latency_;
  }

  /// Keeps the unit busy for `duration` more, for a request that would leave at `t`; returns when
  /// it leaves then.
  Time occupy(Time t, Time duration) {
    // Right behind what it has begun already.
    const Reservation slot = server_.reserve_last(duration);
    stats_.add_busy(slot.start, slot.end);
    return std::max(t + duration, slot.end);
  }

  /// When a request that arrives at `t` would start.
  Time start_of(Time t) const { return server_.start_of(t, interval_); }
  Time interval() const { return interval_; }
  Time latency() const { return latency_; }
  stats::UnitStats& stats() { return stats_; }

 private:
  Time latency_;
  Time interval_;
  PipelineServer server_;
  stats::UnitStats stats_;
};

/// What a message keeps a stage busy besides the stage's own interval, so that it takes at most
/// `rate` messages a microsecond; 0: no limit.
inline Time message_gap(double rate, const config::StageConfig& stage, const Clock& clock) {
  if (!(rate > 0)) return kTimeZero;
  return std::max(kTimeZero, from_ns(1e3 / rate) - clock.cycles(stage.interval));
}

}  // namespace rnic::nic
