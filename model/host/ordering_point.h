// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/rate_server.h"
#include "base/time.h"
#include "config/pcie_config.h"
#include "protocol/tlp.h"
#include "stats/unit_stats.h"

namespace rnic::host {

/// Where a root complex puts posted writes into the order that all its agents see. A strictly
/// ordered write TLP takes a while to get there, and only so many do so at once; relaxed ones need
/// no such place, but may cost the platform something else. Which of the two is faster is a
/// property of the platform. Kernel-free.
class OrderingPoint {
 public:
  OrderingPoint(const std::string& root_complex, const config::PcieConfig& config)
      : strict_unit_(root_complex + ".strict_order"),
        relaxed_unit_(root_complex + ".relaxed_order"),
        strict_time_(config.ordering_time),
        strict_interval_(config.ordering_time / config.ordering_overlap),
        relaxed_interval_(config.relaxed_time) {
    rules_.mps = config.mps;
  }

  /// Does it take any time?
  static bool matters(const config::PcieConfig& config) {
    return config.ordering_time > kTimeZero || config.relaxed_time > kTimeZero;
  }

  /// When a write whose last packet comes at `at`, `stream` after its first, is in order with all
  /// of them.
  Time admit(Time at, Time stream, std::uint64_t address, std::uint32_t bytes, bool relaxed) {
    const auto packets =
        static_cast<std::int64_t>(protocol::write_tlps(rules_, address, bytes).tlps);
    if (relaxed) {
      const Reservation slot = relaxed_.reserve(at - stream, relaxed_interval_ * packets);
      relaxed_unit_.add_busy(slot.start, slot.end);
      return std::max(at + relaxed_interval_, slot.end);
    }
    const Reservation slot = strict_.reserve(at - stream, strict_interval_ * packets);
    strict_unit_.add_busy(slot.start, slot.end);
    return std::max(at, slot.end - strict_interval_) + strict_time_;
  }

  /// How busy it is with strictly ordered writes, and with relaxed ones.
  const stats::UnitStats& strict_unit() const { return strict_unit_; }
  const stats::UnitStats& relaxed_unit() const { return relaxed_unit_; }
  void reset_statistics(Time now) {
    strict_unit_.reset(now);
    relaxed_unit_.reset(now);
  }

 private:
  stats::UnitStats strict_unit_;
  stats::UnitStats relaxed_unit_;
  protocol::TlpRules rules_;
  Time strict_time_;
  Time strict_interval_;
  Time relaxed_interval_;
  Server strict_;
  Server relaxed_;
};

}  // namespace rnic::host
