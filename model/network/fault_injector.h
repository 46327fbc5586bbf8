// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "network/frame_checksums.h"
#include "protocol/frame.h"

namespace rnic::network {

/// What goes wrong on a cable. Rates are probabilities (0..1) of each frame that is not link
/// control; lists name data packets by their number from 1 on.
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
  std::vector<std::uint64_t> drop_list;
  std::vector<std::uint64_t> corrupt_list;
  std::vector<std::uint64_t> duplicate_list;
  std::vector<std::uint64_t> reorder_list;
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

/// Loses, damages, repeats and delays frames, reproducibly. Kernel-free. Data packets are numbered
/// in the order in which they are put on the cable, both directions together. Each kind of fault
/// draws from a stream of its own, so that one does not shift the places of the others.
class FaultInjector {
 public:
  static constexpr std::size_t kDirections = 2;

  /// `checksums` is needed for corruption only (ConfigError without); it outlives the injector.
  FaultInjector(const FaultConfig& config, std::uint64_t seed, std::string_view stream,
                const FrameChecksums* checksums);

  /// False when nothing can ever go wrong.
  bool active() const { return active_; }
  /// Decides what happens to `frame`, which may come back with a flipped bit.
  Fate judge(protocol::Frame& frame, std::size_t direction);

  Time reorder_delay() const { return reorder_delay_; }
  const FaultCounters& counters() const { return counters_; }
  void reset_statistics() { counters_ = {}; }

 private:
  /// One kind of fault: by probability and by number.
  class Cause {
   public:
    Cause(double rate, std::vector<std::uint64_t> list, std::uint64_t seed, std::string_view stream,
          const char* kind);
    bool possible() const { return rate_ > 0 || !list_.empty(); }
    /// `number` of a data packet; 0 for other frames.
    bool strikes(std::uint64_t number);
    Rng& rng() { return rng_; }

   private:
    double rate_;
    std::vector<std::uint64_t> list_;  ///< ascending
    std::size_t next_ = 0;
    Rng rng_;
  };

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
  std::uint64_t data_packets_ = 0;
  const FrameChecksums* checksums_;
  bool active_;
  FaultCounters counters_;
};

}  // namespace rnic::network
