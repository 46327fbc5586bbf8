// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace rnic::stats {

/// Why a unit could not go on although it had work.
enum class StallCause : std::uint8_t {
  kNoCredit,        ///< IB link credits, or PCIe flow-control credits
  kPaused,          ///< Ethernet PFC
  kNoTag,           ///< PCIe read tags used up
  kContext,         ///< waiting for a QP context
  kTranslation,     ///< waiting for an MPT or MTT entry
  kWqe,             ///< waiting for a WQE
  kWindow,          ///< transport window, outstanding READs, fence
  kDownstreamFull,  ///< the next queue is full
  kCount
};

const char* stall_cause_name(StallCause cause);

/// What a unit reports: how long it was busy, stalled and by what, and how full its queue was.
/// Plain counters; `window_start` moves when warm-up ends.
class UnitStats {
 public:
  explicit UnitStats(std::string name) : name_(std::move(name)) {}

  void add_busy(Time duration) { busy_ += duration; }
  /// Busy from `start` to `end`. A reservation: both may lie ahead of the present.
  void add_busy(Time start, Time end) {
    busy_ += end - start;
    if (start > stretch_end_) stretch_start_ = start;
    if (end > stretch_end_) stretch_end_ = end;
  }
  void add_stall(StallCause cause, Time duration) {
    stalled_[static_cast<std::size_t>(cause)] += duration;
  }
  /// Records that the queue's length is `occupancy` from `now` on.
  void set_occupancy(Time now, std::uint64_t occupancy) {
    if (now > occupancy_since_) {
      occupancy_integral_ +=
          occupancy_ * static_cast<std::uint64_t>((now - occupancy_since_).count());
      occupancy_since_ = now;
    }
    occupancy_ = occupancy;
    if (occupancy > occupancy_max_) occupancy_max_ = occupancy;
  }

  void reset(Time now) {
    busy_ = kTimeZero;
    carried_ = ahead(now);
    for (auto& s : stalled_) s = kTimeZero;
    set_occupancy(now, occupancy_);
    occupancy_integral_ = 0;
    occupancy_since_ = now;
    occupancy_max_ = occupancy_;
  }

  const std::string& name() const { return name_; }
  /// All that was added since the window began.
  Time busy() const { return busy_; }
  /// Of the window that ends at `now`: with what was reserved for it before it began, without what
  /// is reserved beyond its end.
  Time busy_in_window(Time now) const { return busy_ + carried_ - ahead(now); }
  Time stalled(StallCause cause) const { return stalled_[static_cast<std::size_t>(cause)]; }
  std::uint64_t occupancy_max() const { return occupancy_max_; }
  double occupancy_mean(Time window_start, Time now) const {
    if (now <= window_start) return 0;
    const double tail =
        static_cast<double>(occupancy_) * static_cast<double>((now - occupancy_since_).count());
    return (static_cast<double>(occupancy_integral_) + tail) /
           static_cast<double>((now - window_start).count());
  }

 private:
  /// Reserved beyond `now`. Work that piles up ahead does so without gaps.
  Time ahead(Time now) const {
    return stretch_end_ > now ? stretch_end_ - std::max(now, stretch_start_) : kTimeZero;
  }

  std::string name_;
  Time busy_{0};
  Time carried_{0};        ///< reserved for this window before it began
  Time stretch_start_{0};  ///< the last stretch of reservations without a gap
  Time stretch_end_{0};
  Time stalled_[static_cast<std::size_t>(StallCause::kCount)]{};
  std::uint64_t occupancy_ = 0;
  std::uint64_t occupancy_max_ = 0;
  Time occupancy_since_{0};
  std::uint64_t occupancy_integral_ = 0;  ///< entries x ps
};

}  // namespace rnic::stats
