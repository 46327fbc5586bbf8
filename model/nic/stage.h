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

/// Holds the messages that pass a stage to `rate` a microsecond (0: no limit): each keeps the stage
/// busy for longer than its own turn, less what others that are no messages (ACKs, later packets)
/// have taken of that time.
class MessageLimit {
 public:
  MessageLimit(double rate, const config::StageConfig& stage, const Clock& clock)
      : turn_(clock.cycles(stage.interval)),
        gap_(rate > 0 ? std::max(kTimeZero, from_ns(1e3 / rate) - turn_) : kTimeZero) {}

  /// Something else takes a turn.
  void pass_other() { taken_ = std::min(gap_, taken_ + turn_); }

  /// A message, which would leave `stage` at `t`, takes its turn.
  void pass_message(PipelineStage& stage, Time t) {
    if (gap_ > taken_) stage.occupy(t, gap_ - taken_);
    taken_ = kTimeZero;
  }

 private:
  Time turn_;
  Time gap_;       ///< from the end of one message's turn to the next one's
  Time taken_{0};  ///< of the gap, by others
};

}  // namespace rnic::nic
