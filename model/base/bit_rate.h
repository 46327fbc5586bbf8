// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic {

/// A data rate, in bits per second. Transfer times are computed in 32.32 fixed point so that the
/// result is the same on every machine (no floating-point contraction) and costs one multiply.
class BitRate {
 public:
  constexpr BitRate() = default;
  /// `bits_per_second` must be positive.
  constexpr explicit BitRate(double bits_per_second)
      : bits_per_second_(bits_per_second),
        ps_per_byte_q32_(static_cast<std::uint64_t>(8e12 / bits_per_second * 4294967296.0)) {}

  static constexpr BitRate gbps(double g) { return BitRate(g * 1e9); }

  constexpr double bits_per_second() const { return bits_per_second_; }
  constexpr double to_gbps() const { return bits_per_second_ / 1e9; }
  constexpr bool valid() const { return bits_per_second_ > 0; }

  /// Time to move `bytes`, rounded up to a whole picosecond.
  constexpr Time time_for(std::uint64_t bytes) const {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(ps_per_byte_q32_) * bytes;
    const Wide rounded = product + 0xFFFFFFFFULL;
    return Time{static_cast<std::int64_t>(static_cast<std::uint64_t>(rounded >> 32))};
  }

  friend constexpr bool operator==(const BitRate& a, const BitRate& b) {
    return a.bits_per_second_ == b.bits_per_second_;
  }

 private:
  double bits_per_second_ = 0;
  std::uint64_t ps_per_byte_q32_ = 0;
};

}  // namespace rnic
