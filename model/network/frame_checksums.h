// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/fault_list.h"
#include "protocol/frame.h"

namespace rnic::network {

/// How this network's frames are protected, and what they are: what only their format tells.
class FrameChecksums {
 public:
  virtual ~FrameChecksums() = default;
  /// Computes deferred checksums as the sender would have; `checksums_deferred` becomes false.
  virtual void materialize(protocol::Frame& frame) const = 0;
  /// The frame's checksums fit its bytes.
  virtual bool intact(const protocol::Frame& frame) const = 0;
  /// Makes the link CRC fit the bytes as they are, and only that.
  virtual void reseal(protocol::Frame& frame) const = 0;
  /// The kinds that a frame is of; link control is of none.
  virtual config::FrameKinds kinds_of(const protocol::Frame& frame) const = 0;
};

}  // namespace rnic::network
