// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ring.h"
#include "base/time.h"

namespace rnic::host {

/// In which order the posted writes of one way into memory become visible, and what a read finds of
/// them (PCIe base specification 6.0, 2.4.1, table of ordering rules). Takes and gives absolute
/// times. Kernel-free.
class WriteOrder {
 public:
  /// When a strictly ordered write is visible that memory could take at `instant`: it passes no
  /// other write, relaxed or not.
  Time strict(Time instant) {
    strict_ = std::max({instant, strict_, relaxed_});
    return strict_;
  }

  /// Likewise of a relaxed write of `bytes` bytes to `address`, which passes all others but those
  /// to the same bytes: a memory controller keeps the order of accesses to a line.
  Time relaxed(Time now, Time instant, std::uint64_t address, std::uint32_t bytes) {
    while (!under_way_.empty() && under_way_.front().visible <= now) under_way_.pop_front();
    if (instant < relaxed_) instant = behind_overlapping(instant, address, bytes);
    under_way_.push_back({address, address + bytes, instant});
    relaxed_ = std::max(relaxed_, instant);
    return instant;
  }

  /// When a read that memory could serve at `instant` samples it: it pushes what is strictly
  /// ordered, and must not miss what changes the bytes that it reads. (A read that is to push
  /// relaxed writes to other places needs a strict one before it.)
  Time read(Time instant, std::uint64_t address, std::uint32_t bytes) const {
    return behind_overlapping(std::max(instant, strict_), address, bytes);
  }

  /// All writes so far are visible by then.
  Time settled() const { return std::max(strict_, relaxed_); }

 private:
  struct Relaxed {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Time visible{0};
  };

  /// `instant`, or when the last relaxed write to some of these bytes is visible.
  Time behind_overlapping(Time instant, std::uint64_t address, std::uint32_t bytes) const {
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      const Relaxed& write = under_way_[i];
      if (write.begin < address + bytes && address < write.end) {
        instant = std::max(instant, write.visible);
      }
    }
    return instant;
  }

  Time strict_{0};           ///< when the newest strict write is visible
  Time relaxed_{0};          ///< all relaxed ones are visible by then
  Ring<Relaxed> under_way_;  ///< relaxed; those that are visible already may be among them
};

}  // namespace rnic::host
