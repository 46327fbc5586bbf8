// SPDX-License-Identifier: Apache-2.0
#include "pcie/bit_errors.h"

#include <cmath>

namespace rnic::pcie {

BitErrors::BitErrors(double rate, std::uint64_t seed, std::string_view stream)
    : rate_(rate), rng_(seed, stream) {
  if (possible()) bits_left_ = rng_.exponential(1 / rate_);
}

std::uint32_t BitErrors::damaged(std::uint64_t packets, std::uint64_t bits) {
  std::uint32_t count = 0;
  const auto each = static_cast<double>(bits);
  double left = each * static_cast<double>(packets);
  while (left > bits_left_) {
    left -= bits_left_;
    // Where the next error lies does not depend on the last one: on from the packet's end.
    left = each * std::floor(left / each);
    bits_left_ = rng_.exponential(1 / rate_);
    ++count;
  }
  bits_left_ -= left;
  return count;
}

}  // namespace rnic::pcie
