// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::link {

/// Chooses the lane whose frame goes next.
class LaneArbiter {
 public:
  virtual ~LaneArbiter() = default;
  /// `eligible` has bit i set when lane i has a frame that may go; it is not zero.
  virtual std::uint32_t pick(std::uint32_t eligible) = 0;
};

/// One frame a lane in turn.
class RoundRobinArbiter : public LaneArbiter {
 public:
  std::uint32_t pick(std::uint32_t eligible) override {
    do {
      last_ = (last_ + 1) % 32;
    } while (((eligible >> last_) & 1U) == 0);
    return last_;
  }

 private:
  std::uint32_t last_ = 31;
};

}  // namespace rnic::link
