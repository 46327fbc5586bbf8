// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "config/fault_list.h"
#include "network/frame_checksums.h"
#include "protocol/frame.h"

namespace rnic::network {

/// What goes wrong on a cable. Rates are probabilities (0..1) of each frame of `frames`; lists name
/// frames by their kind and their number of that kind from 1 on, over the directions that count.
struct FaultConfig {
  double loss_rate = 0;
  double corrupt_rate = 0;  ///< one of the frame's bits flips
  double duplicate_rate = 0;
  double reorder_rate = 0;
  Time reorder_delay = microseconds(1);  ///< how long a reordered frame is held back
  // Bursts of losses (Gilbert 1960, Elliott 1963), each direction on its own.
  double burst_rate = 0;    ///< a frame begins a burst
  double burst_length = 1;  ///< mean frames of a burst, at least 1
  double burst_loss = 1;    ///< a frame in a burst is lost
  config::FrameKinds frames = kinds(config::FrameKind::kAny);  ///< that rates and bursts strike
  std::uint32_t directions = 3;  ///< bit i: direction i of the cable has faults
  std::vector<config::FaultTarget> drop_list;
  std::vector<config::FaultTarget> corrupt_list;
  std::vector<config::FaultTarget> duplicate_list;
  std::vector<config::FaultTarget> reorder_list;
};

/// What happens to one frame.
struct Fate {
  bool lost = false;
  bool duplicated = false;
  bool held_back = false;
};

/// How often what happened.
struct FaultCounters {
  std::uint64_t lost = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
};

/// Loses, damages, repeats and delays frames, reproducibly. Kernel-free. Frames of a kind are
/// numbered in the order in which they are put on the cable. Each kind of fault draws from a stream
/// of its own, so that one does not shift the places of the others.
class FaultInjector {
 public:
  static constexpr std::size_t kDirections = 2;

  /// `checksums` is needed for corruption and to tell kinds apart that FrameClass does not
  /// (ConfigError without); it outlives the injector.
  FaultInjector(const FaultConfig& config, std::uint64_t seed, std::string_view stream,
                const FrameChecksums* checksums);

  /// False when nothing can ever go wrong.
  bool active() const { return active_; }
  /// Decides what happens to `frame`, which may come back with a flipped bit.
  Fate judge(protocol::Frame& frame, std::size_t direction);

  Time reorder_delay() const { return reorder_delay_; }
  const FaultCounters& counters() const { return counters_; }
  /// Frames of a kind so far, in the directions that count; none are counted where nothing can
  /// fail.
  std::uint64_t seen(config::FrameKind kind) const {
    return numbers_[static_cast<std::size_t>(kind)];
  }
  void reset_statistics() { counters_ = {}; }

 private:
  /// How many frames of each kind there have been.
  using Numbers = std::array<std::uint64_t, config::kFrameKinds>;

  /// One kind of fault: by probability and by number.
  class Cause {
   public:
    Cause(double rate, const std::vector<config::FaultTarget>& list, std::uint64_t seed,
          std::string_view stream, const char* kind);
    bool possible() const { return rate_ > 0 || targets_ > 0; }
    /// Whether some target can only be told by the frame's bytes.
    bool looks_inside() const;
    /// A frame of `kinds`, the newest of `numbers`; `by_rate`: it is one of those that rates
    /// strike.
    bool strikes(config::FrameKinds kinds, const Numbers& numbers, bool by_rate);
    Rng& rng() { return rng_; }

   private:
    bool listed(std::size_t kind, std::uint64_t number);

    double rate_;
    std::array<std::vector<std::uint64_t>, config::kFrameKinds> lists_;  ///< ascending
    std::array<std::size_t, config::kFrameKinds> next_{};
    std::size_t targets_;
    Rng rng_;
  };

  config::FrameKinds kinds_of(const protocol::Frame& frame) const;
  bool lost_in_burst(std::size_t direction);
  void flip_bit(protocol::Frame& frame);

  Cause loss_;
  Cause corruption_;
  Cause duplication_;
  Cause reordering_;
  Time reorder_delay_;
  double burst_rate_;
  double burst_end_;
  double burst_loss_;
  Rng burst_rng_;
  std::array<bool, kDirections> in_burst_{};
  config::FrameKinds frames_;
  std::uint32_t directions_;
  Numbers numbers_{};
  const FrameChecksums* checksums_;
  bool active_;
  FaultCounters counters_;
};

}  // namespace rnic::network
