// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/rng.h"

namespace rnic::pcie {

/// Bit errors of one direction of a link: how many packets the receiver's LCRC (generation 6: the
/// FLIT's CRC, after FEC) finds damaged. The distance between errors is exponential, so that a
/// packet costs a subtraction and not a random number.
class BitErrors {
 public:
  /// `rate`: probability that a bit is damaged; 0: never.
  BitErrors(double rate, std::uint64_t seed, std::string_view stream);

  bool possible() const { return rate_ > 0; }
  /// How many of the next `packets` packets of `bits` each are damaged: by one error or several.
  std::uint32_t damaged(std::uint64_t packets, std::uint64_t bits);

 private:
  double rate_;
  Rng rng_;
  double bits_left_ = 0;  ///< until the next error
};

}  // namespace rnic::pcie
