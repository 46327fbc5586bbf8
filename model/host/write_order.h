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
/// times. Units hand requests over a little ahead of their arrival, and not in that order: writes
/// keep the order of the calls, which is that in which the device issues them, but a read does not
/// wait for a write that arrives behind it. Kernel-free.
class WriteOrder {
 public:
  struct Request {
    Time now;      ///< of the call; nothing that is told of later arrives sooner
    Time arrival;  ///< at the root complex
    Time instant;  ///< when memory could serve it if nothing else were on the way
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;

    bool overlaps(std::uint64_t begin, std::uint64_t end) const {
      return begin < address + bytes && address < end;
    }
  };

  /// When a strictly ordered write is visible: it passes no other write, relaxed or not.
  Time strict(const Request& write) {
    while (!coming_.empty() && coming_.front().arrival <= write.now) {
      arrived_ = coming_.front().visible;
      coming_.pop_front();
    }
    strict_ = std::max({write.instant, strict_, relaxed_});
    coming_.push_back({write.address, write.address + write.bytes, write.arrival, strict_});
    return strict_;
  }

  /// Likewise of a relaxed write, which passes all others but those to the same bytes: a memory
  /// controller keeps the order of accesses to a line.
  Time relaxed(const Request& write) {
    while (!under_way_.empty() && under_way_.front().visible <= write.now) under_way_.pop_front();
    const Time instant =
        write.instant < relaxed_ ? behind_overlapping(write, write.instant) : write.instant;
    under_way_.push_back({write.address, write.address + write.bytes, instant});
    relaxed_ = std::max(relaxed_, instant);
    return instant;
  }

  /// When a read samples memory: it pushes what is strictly ordered and arrives before it, and must
  /// not miss what changes the bytes that it reads. (A read that is to push relaxed writes to other
  /// places needs a strict one before it.)
  Time read(const Request& read) const {
    return behind_overlapping(read, std::max(read.instant, pushed_by(read)));
  }

  /// All writes so far are visible by then.
  Time settled() const { return std::max(strict_, relaxed_); }

 private:
  struct Strict {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Time arrival{0};
    Time visible{0};  ///< not before those in front of it
  };
  struct Relaxed {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Time visible{0};
  };

  /// When the last strict write is visible that `read` must not pass.
  Time pushed_by(const Request& read) const {
    for (std::size_t i = coming_.size(); i > 0; --i) {
      const Strict& write = coming_[i - 1];
      if (write.arrival <= read.arrival || read.overlaps(write.begin, write.end)) {
        return write.visible;
      }
    }
    return arrived_;
  }

  /// `instant`, or when the last relaxed write to some of these bytes is visible.
  Time behind_overlapping(const Request& request, Time instant) const {
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      const Relaxed& write = under_way_[i];
      if (request.overlaps(write.begin, write.end)) instant = std::max(instant, write.visible);
    }
    return instant;
  }

  Time strict_{0};           ///< when the newest strict write is visible
  Time arrived_{0};          ///< likewise of those that were taken out of `coming_`
  Ring<Strict> coming_;      ///< strict; some may have arrived since
  Time relaxed_{0};          ///< all relaxed ones are visible by then
  Ring<Relaxed> under_way_;  ///< relaxed; those that are visible already may be among them
};

}  // namespace rnic::host
