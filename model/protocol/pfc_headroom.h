// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bit_rate.h"
#include "base/time.h"
#include "protocol/ethernet.h"

namespace rnic::protocol {

constexpr std::uint64_t kFrameGapBytes = kEthernetPreambleBytes + kEthernetGapBytes;

/// What separates the two ends of a link, as far as pauses are concerned.
struct PausePath {
  BitRate rate;
  Time cable_delay{0};   ///< one way
  Time phy_latency{0};   ///< of one end, each direction
  Time commit_ahead{0};  ///< either end may be committed to frames of its own so far ahead
  Time response{0};      ///< from a pause's arrival until it is obeyed
  std::uint32_t max_frame_bytes = 0;  ///< first header to last trailer byte
};

/// Bytes that may still arrive on a priority behind the frame that made the receiver send a pause
/// (IEEE 802.1Q annex N): what is on the way; one frame of the receiver's that the pause waits for,
/// one of the peer's; and before the pause those of all other priorities.
inline std::uint64_t pfc_headroom(const PausePath& path) {
  constexpr std::uint64_t kPriorities = 8;
  constexpr std::uint64_t kPauseBytes = kEthernetMinFrameBytes + kFrameGapBytes;
  const Time on_the_way =
      2 * path.cable_delay + 4 * path.phy_latency + 2 * path.commit_ahead + path.response;
  const auto bytes =
      static_cast<std::uint64_t>(path.rate.bits_per_second() / 8 * to_seconds(on_the_way)) + 1;
  return bytes + kPriorities * kPauseBytes +
         2 * (std::uint64_t{path.max_frame_bytes} + kFrameGapBytes);
}

/// Bytes that a buffer must have above its pause threshold for `headroom`: the threshold is crossed
/// by a whole frame.
constexpr std::uint64_t above_xoff(std::uint64_t headroom, std::uint32_t max_frame_bytes) {
  return headroom + max_frame_bytes + kFrameGapBytes;
}

}  // namespace rnic::protocol
