// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "network/frame_checksums.h"
#include "protocol/frame.h"

namespace rnic::network {

/// What goes wrong on a cable.
struct FaultConfig {
  double loss_rate = 0;     ///< probability that a frame is lost, 0..1; link control is spared
  double corrupt_rate = 0;  ///< probability that one of a frame's bits flips, 0..1; likewise
  std::vector<std::uint64_t> drop_list;  ///< data packets to lose, by their number from 1 on
};

/// Loses and damages frames, reproducibly. Kernel-free. Data packets are numbered in the order in
/// which they are put on the cable, both directions together.
class FaultInjector {
 public:
  /// `checksums` is needed for corruption only (ConfigError without); it outlives the injector.
  FaultInjector(const FaultConfig& config, std::uint64_t seed, std::string_view stream,
                const FrameChecksums* checksums);

  /// False when nothing can ever go wrong.
  bool active() const { return active_; }
  /// True: the frame is lost. Otherwise it may come back with a flipped bit.
  bool lose_or_damage(protocol::Frame& frame);

  std::uint64_t lost() const { return lost_; }
  std::uint64_t corrupted() const { return corrupted_; }
  void reset_statistics() { lost_ = corrupted_ = 0; }

 private:
  bool listed();
  void flip_bit(protocol::Frame& frame);

  double loss_rate_;
  double corrupt_rate_;
  std::vector<std::uint64_t> drop_list_;  ///< ascending
  std::size_t next_drop_ = 0;
  std::uint64_t data_packets_ = 0;
  Rng rng_;
  const FrameChecksums* checksums_;
  bool active_;
  std::uint64_t lost_ = 0;
  std::uint64_t corrupted_ = 0;
};

}  // namespace rnic::network
