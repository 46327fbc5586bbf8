// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "host/frame_allocator.h"

namespace rnic::host {

/// Where the simulator keeps the bytes of physical frames: 4 KiB each, aligned to 4 KiB, cut from
/// chunks of 2 MiB for which huge pages are asked. A simulation's payload is far larger than any
/// cache, and its frames are scattered: with small pages most accesses would miss the TLB of the
/// machine that simulates. All hosts of a process share it, so that a host costs no more than the
/// frames it writes; what is given back is used again, and nothing goes back to the system before
/// the process ends.
struct FrameStore {
  static constexpr std::size_t kFrameBytes = kPage4KiB;

  struct Return {
    void operator()(std::uint8_t* frame) const { give(frame); }
  };
  using Frame = std::unique_ptr<std::uint8_t[], Return>;

  /// A frame of zeros. Throws std::bad_alloc when the system has no memory left.
  static Frame take();

 private:
  static void give(std::uint8_t* frame);
};

}  // namespace rnic::host
