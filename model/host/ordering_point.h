// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rate_server.h"
#include "base/time.h"
#include "config/pcie_config.h"
#include "protocol/tlp.h"

namespace rnic::host {

/// Where a root complex puts posted writes into the order that all its agents see. A strictly
/// ordered write TLP takes a while to get there, and only so many do so at once; relaxed ones need
/// no such place, but may cost the platform something else. Which of the two is faster is a
/// property of the platform. Kernel-free.
class OrderingPoint {
 public:
  explicit OrderingPoint(const config::PcieConfig& config)
      : strict_time_(config.ordering_time),
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
      return std::max(at + relaxed_interval_, slot.end);
    }
    const Reservation slot = strict_.reserve(at - stream, strict_interval_ * packets);
    return std::max(at, slot.end - strict_interval_) + strict_time_;
  }

 private:
  protocol::TlpRules rules_;
  Time strict_time_;
  Time strict_interval_;
  Time relaxed_interval_;
  Server strict_;
  Server relaxed_;
};

}  // namespace rnic::host
