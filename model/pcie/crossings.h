// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/rate_server.h"
#include "base/ring.h"
#include "base/time.h"
#include "protocol/tlp.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// Packets of one kind.
struct TlpCounter {
  std::uint64_t tlps = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;  ///< headers, framing and CRC included

  void add(const TlpCounter& more) {
    tlps += more.tlps;
    payload_bytes += more.payload_bytes;
    wire_bytes += more.wire_bytes;
  }
  void take(const TlpCounter& less) {
    tlps -= less.tlps;
    payload_bytes -= less.payload_bytes;
    wire_bytes -= less.wire_bytes;
  }
};

/// By purpose.
using TlpCounters = std::array<TlpCounter, tlm_ext::kPurposeCount>;

/// All purposes together.
TlpCounter sum(const TlpCounters& counters);

/// What crosses a wire that is reserved ahead: a packet counts in the window in which it begins,
/// whenever it was handed over.
class Crossings {
 public:
  /// Packets back to back in `slot` of the wire. Slots may come in any order.
  void add(const Reservation& slot, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose) {
    counters_[static_cast<std::size_t>(purpose)].add(
        {tlps.tlps, tlps.payload_bytes, tlps.wire_bytes});
    if (ahead_.size() == room_) make_room();
    ahead_.push_back({slot, static_cast<std::uint32_t>(tlps.tlps),
                      static_cast<std::uint32_t>(tlps.payload_bytes),
                      static_cast<std::uint32_t>(tlps.wire_bytes), purpose});
  }

  /// A window begins at `now`.
  void reset(Time now);

  /// Of the window, what was handed over so far: also what begins later.
  const TlpCounters& handed_over() const { return counters_; }
  /// Of the window that ends at `now`, which is the present.
  TlpCounters by(Time now) const;

 private:
  /// 32 bytes each: every packet adds some.
  struct Burst {
    Reservation slot{};
    std::uint32_t tlps = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t wire_bytes = 0;
    tlm_ext::Purpose purpose{};

    /// Those that begin at `now` or later.
    TlpCounter later_than(Time now) const;
  };

  void make_room();

  TlpCounters counters_{};
  Ring<Burst> ahead_;      ///< all that may end in the future
  std::size_t room_ = 32;  ///< of ahead_, before a look which of it has passed
};

}  // namespace rnic::pcie
