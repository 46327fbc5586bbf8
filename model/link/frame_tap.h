// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "protocol/frame.h"

namespace rnic::link {

enum class TapDirection : std::uint8_t { kReceived, kSent };

/// Sees every frame that crosses a port, link control included, as a capture card at its connector
/// would: before the receive buffer takes or loses it, after the transmit queue let it go.
class FrameTap {
 public:
  virtual ~FrameTap() = default;
  /// The last bit of `frame` passes the port at `at`: now or, for what is already on its way,
  /// later. Calls of one port are not in the order of `at`.
  virtual void frame_passed(const protocol::Frame& frame, TapDirection direction, Time at) = 0;
};

}  // namespace rnic::link
