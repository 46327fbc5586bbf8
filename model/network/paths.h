// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bit_rate.h"
#include "base/mix.h"
#include "base/rate_server.h"
#include "base/time.h"
#include "config/link_config.h"

namespace rnic::network {

/// What a network of several paths is made of.
struct PathConfig {
  std::uint32_t count = 1;  ///< at least 1
  BitRate rate;             ///< of one path
  Time skew{0};             ///< each path is longer by this than the one before
  config::PathChoice choice = config::PathChoice::kPinned;
  std::uint64_t salt = 0;  ///< kHashed: what the devices on the way mix into their hash
};

/// What a frame's bytes say about its way.
struct PathHint {
  std::uint32_t flow = 0;  ///< the same for all that must stay in order
  bool any_path = false;   ///< its sender does not mind that others overtake it
};

/// One direction of a network of parallel paths, each a queue of its own that passes on whole
/// frames at its rate. Queues are as long as they must be; what they hold is no port's receive
/// buffer. Kernel-free.
class Paths {
 public:
  explicit Paths(const PathConfig& config)
      : config_(config), paths_(config.count, RateServer(config.rate)) {}

  /// When a frame whose last bit enters the network at `arrival` leaves it.
  Time cross(const PathHint& hint, std::uint32_t wire_bytes, Time arrival) {
    const std::size_t path = choose(hint, arrival);
    const Time out = paths_[path].reserve(arrival, wire_bytes).end;
    return out + config_.skew * static_cast<std::int64_t>(path);
  }

  /// Whether a frame that leaves at `out` comes before one that was sent earlier. To be asked once
  /// a frame, in the order of sending.
  bool overtook(Time out) {
    const bool earlier = out < last_out_;
    last_out_ = std::max(last_out_, out);
    return earlier;
  }

 private:
  /// As likely one path as another, as ECMP and link aggregation choose by the header fields that
  /// differ between connections.
  std::size_t hashed(std::uint32_t flow) const {
    return static_cast<std::size_t>(mix64(mix64(config_.salt) + flow * kMixStep) % paths_.size());
  }

  /// A flow keeps its path, by its number or its hash. What may take any takes the one that is free
  /// first, of equal ones the shortest.
  std::size_t choose(const PathHint& hint, Time arrival) const {
    const bool any = config_.choice == config::PathChoice::kSpray ||
                     (config_.choice == config::PathChoice::kAdaptive && hint.any_path);
    if (config_.choice == config::PathChoice::kHashed) return hashed(hint.flow);
    if (!any) return hint.flow % paths_.size();
    std::size_t best = 0;
    for (std::size_t i = 1; i < paths_.size() && paths_[best].server().free_at() > arrival; ++i) {
      if (paths_[i].server().free_at() < paths_[best].server().free_at()) best = i;
    }
    return best;
  }

  PathConfig config_;
  std::vector<RateServer> paths_;
  Time last_out_{0};
};

}  // namespace rnic::network
