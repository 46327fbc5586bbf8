// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tlm>

#include "base/ring.h"
#include "base/time.h"

namespace rnic::pcie {

/// The order in which a device issues requests, where they wait for their time before they come to
/// the link: its units hand them over a little ahead, and a later one may be due sooner. What PCIe
/// keeps in order must not change places meanwhile (base specification 6.0, 2.4.1, table of
/// ordering rules): a strictly ordered write passes no other, and nothing passes a write to the
/// same bytes.
class IssueOrder {
 public:
  /// When `request`, handed over at `now` and due at `due`, may come: then, or behind what it must
  /// not pass.
  Time admit(const tlm::tlm_generic_payload& request, Time now, Time due);

 private:
  struct Write {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Time comes{0};
  };

  /// When the last write to some of these bytes comes; kTimeZero: none waits.
  Time overlapping(std::uint64_t begin, std::uint64_t end) const;

  Ring<Write> writes_;  ///< that wait; some may have come already
  Time last_{0};        ///< all of them have come by then
};

}  // namespace rnic::pcie
