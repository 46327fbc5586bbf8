// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/weights.h"
#include "link/link_port_config.h"

namespace rnic::link {

/// Chooses the lane whose frame goes next. Kernel-free.
class LaneArbiter {
 public:
  virtual ~LaneArbiter() = default;
  /// `eligible` has bit i set when lane i has a frame that may go; it is not zero.
  virtual std::uint32_t pick(std::uint32_t eligible) = 0;
  /// A frame of `bytes` goes out on `lane`: picked, or alone on an idle port.
  virtual void sent(std::uint32_t /*lane*/, std::uint32_t /*bytes*/) {}
};

/// One frame a lane in turn.
class RoundRobinArbiter : public LaneArbiter {
 public:
  std::uint32_t pick(std::uint32_t eligible) override {
    const std::uint32_t behind = last_ == 31 ? 0 : eligible >> (last_ + 1) << (last_ + 1);
    last_ = static_cast<std::uint32_t>(__builtin_ctz(behind != 0 ? behind : eligible));
    return last_;
  }

 private:
  std::uint32_t last_ = 31;
};

/// Weighted round robin over the entries of a table; a lane may have several. An entry in turn
/// sends until its weight is used up, rounded up to whole frames, or has nothing to send.
class WeightedTable {
 public:
  /// What an entry sends beyond its weight is forgiven (IBTA vol 1, 7.6.9.2) or taken off its next
  /// turn, which makes shares exact.
  enum class Excess : std::uint8_t { kForgiven, kCarried };

  WeightedTable(const std::vector<config::LaneWeight>& entries, std::uint32_t unit_bytes,
                Excess excess);

  /// Lanes with an entry of positive weight.
  std::uint32_t lanes() const { return lanes_; }
  /// `eligible` has a bit in common with lanes().
  std::uint32_t pick(std::uint32_t eligible);
  /// Only for lanes that pick() gave last.
  void sent(std::uint32_t bytes) { entries_[current_].left -= bytes; }

 private:
  struct Entry {
    std::uint32_t lane;
    std::int64_t weight;  ///< bytes
    std::int64_t left;    ///< of its turn; negative: excess
  };

  void begin_turn();

  std::vector<Entry> entries_;
  std::uint32_t lanes_ = 0;
  std::size_t current_ = 0;
  Excess excess_;
};

/// InfiniBand's VL arbitration (IBTA vol 1, 7.6.9): a high-priority table goes first, but after
/// limit x 4096 bytes of it a waiting low-priority packet gets its turn.
class VlArbiter : public LaneArbiter {
 public:
  static constexpr std::uint32_t kWeightBytes = 64;
  static constexpr std::uint32_t kLimitBytes = 4096;
  static constexpr std::uint32_t kNoLimit = 255;

  explicit VlArbiter(const LinkPortConfig& config);
  std::uint32_t pick(std::uint32_t eligible) override;
  void sent(std::uint32_t lane, std::uint32_t bytes) override;

 private:
  enum class From : std::uint8_t { kNowhere, kHigh, kLow };
  WeightedTable high_;
  WeightedTable low_;
  std::uint32_t limit_;
  std::int64_t high_left_;  ///< bytes that may still pass waiting low-priority packets
  From picked_ = From::kNowhere;
};

/// Enhanced transmission selection (IEEE 802.1Q clause 37): strict priorities first, the highest
/// number before the others; then shares of the bandwidth by weight; then what is not listed, in
/// turn.
class EtsArbiter : public LaneArbiter {
 public:
  /// Bytes of one unit of weight: a few frames for usual weights, so that turns are short.
  static constexpr std::uint32_t kWeightBytes = 256;

  explicit EtsArbiter(const LinkPortConfig& config);
  std::uint32_t pick(std::uint32_t eligible) override;
  void sent(std::uint32_t lane, std::uint32_t bytes) override;

 private:
  std::uint32_t strict_ = 0;
  WeightedTable weighted_;
  RoundRobinArbiter rest_;
  bool picked_weighted_ = false;
};

/// The arbiter that a port's configuration asks for.
std::unique_ptr<LaneArbiter> make_arbiter(const LinkPortConfig& config);

}  // namespace rnic::link
