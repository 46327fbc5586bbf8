// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ring.h"
#include "base/time.h"
#include "pcie/credits.h"

namespace rnic::pcie {

/// Credits of bursts of posted writes, by arithmetic: packet by packet of a burst, a credit is
/// needed when the packet leaves and comes back when the receiver has got rid of it. A burst may
/// therefore begin before the credits for all of its packets are here. Kernel-free; bursts come in
/// the order in which they leave.
class PostedWindow {
 public:
  /// `limit`: what the receiver advertises; 0: infinite.
  explicit PostedWindow(CreditUnits limit = {})
      : headers_{limit.headers, 0}, data_{limit.data, 0} {}

  bool finite() const { return headers_.limit != 0 || data_.limit != 0; }

  /// The earliest instant from `earliest` on at which a burst may begin that takes `wire` to leave.
  Time ready(Time earliest, CreditUnits need, Time wire);
  /// That burst: the credits of its last packet are back at `returned`.
  void add(Time returned, CreditUnits need, Time wire);

 private:
  /// Credits of one kind, numbered since the beginning.
  struct Kind {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;  ///< by all bursts so far

    /// Whether `need` more units take the place of unit `begin`, or of one before.
    bool wants(std::uint64_t begin, std::uint64_t need) const {
      return limit != 0 && begin + limit < used + need;
    }
    /// A burst that is larger than the buffer takes all of it.
    std::uint64_t clamped(std::uint64_t units) const {
      return limit == 0 || units < limit ? units : limit;
    }
  };
  struct Burst {
    Time returned{0};
    Time wire{0};
    std::uint64_t headers_end = 0;
    std::uint64_t data_end = 0;
    std::uint32_t headers = 0;
    std::uint32_t data = 0;
  };

  /// How many of `bursts_`, the oldest first, have credits that such a burst needs again.
  std::size_t wanted_bursts(std::uint64_t headers, std::uint64_t data) const;
  static Time allowed(const Kind& kind, std::uint64_t need, std::uint64_t packets, Time wire,
                      std::uint64_t end, std::uint64_t units, const Burst& before);

  Kind headers_;
  Kind data_;
  Ring<Burst> bursts_;  ///< whose credits are not back yet
};

}  // namespace rnic::pcie
