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
/// times. Units hand requests over a little ahead of their arrival, and not always in that order:
/// what arrives later is nothing to wait for. Kernel-free.
class WriteOrder {
 public:
  /// When a request arrives, and when memory could serve it if nothing else were on the way.
  struct Request {
    Time now;  ///< of the call; requests of later calls arrive at this instant or later
    Time arrival;
    Time instant;
  };

  /// When a strictly ordered write is visible: it passes no other write, relaxed or not.
  Time strict(const Request& request) {
    while (!coming_.empty() && coming_.front().arrival <= request.now) {
      strict_ = std::max(strict_, coming_.front().visible);
      coming_.pop_front();
    }
    const Time visible = std::max(request.instant, settled(request.arrival));
    coming_.push_back({request.arrival, visible});
    return visible;
  }

  /// Likewise of a relaxed write of `bytes` bytes to `address`, which passes all others but those
  /// to the same bytes: a memory controller keeps the order of accesses to a line.
  Time relaxed(const Request& request, std::uint64_t address, std::uint32_t bytes) {
    while (!under_way_.empty() && under_way_.front().visible <= request.now) {
      under_way_.pop_front();
    }
    const Time instant = request.instant < relaxed_
                             ? behind_overlapping(request, request.instant, address, bytes)
                             : request.instant;
    under_way_.push_back({address, address + bytes, request.arrival, instant});
    relaxed_ = std::max(relaxed_, instant);
    last_arrival_ = std::max(last_arrival_, request.arrival);
    return instant;
  }

  /// When a read samples memory: it pushes what is strictly ordered, and must not miss what changes
  /// the bytes that it reads. (A read that is to push relaxed writes to other places needs a strict
  /// one before it.)
  Time read(const Request& request, std::uint64_t address, std::uint32_t bytes) const {
    return behind_overlapping(request, std::max(request.instant, strict_before(request.arrival)),
                              address, bytes);
  }

  /// All writes that arrive by `arrival` are visible by then.
  Time settled(Time arrival) const {
    return std::max(strict_before(arrival), relaxed_before(arrival));
  }

 private:
  struct Strict {
    Time arrival{0};
    Time visible{0};
  };
  struct Relaxed {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Time arrival{0};
    Time visible{0};
  };

  Time strict_before(Time arrival) const {
    Time visible = strict_;
    for (std::size_t i = 0; i < coming_.size(); ++i) {
      if (coming_[i].arrival <= arrival) visible = std::max(visible, coming_[i].visible);
    }
    return visible;
  }

  Time relaxed_before(Time arrival) const {
    if (last_arrival_ <= arrival) return relaxed_;
    Time visible{0};
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      const Relaxed& write = under_way_[i];
      if (write.arrival <= arrival) visible = std::max(visible, write.visible);
    }
    return visible;
  }

  /// `instant`, or when the last earlier relaxed write to some of these bytes is visible.
  Time behind_overlapping(const Request& request, Time instant, std::uint64_t address,
                          std::uint32_t bytes) const {
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      const Relaxed& write = under_way_[i];
      if (write.begin < address + bytes && address < write.end &&
          write.arrival <= request.arrival) {
        instant = std::max(instant, write.visible);
      }
    }
    return instant;
  }

  Time strict_{0};           ///< when those strict writes are visible that have arrived
  Ring<Strict> coming_;      ///< strict; some may have arrived since
  Time relaxed_{0};          ///< all relaxed ones are visible by then
  Time last_arrival_{0};     ///< of a relaxed one
  Ring<Relaxed> under_way_;  ///< relaxed; those that are visible already may be among them
};

}  // namespace rnic::host
