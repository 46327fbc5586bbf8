// SPDX-License-Identifier: Apache-2.0
#include "pcie/bit_errors.h"

namespace rnic::pcie {

BitErrors::BitErrors(double rate, std::uint64_t seed, std::string_view stream)
    : rate_(rate), rng_(seed, stream) {
  if (possible()) bits_left_ = rng_.exponential(1 / rate_);
}

std::uint32_t BitErrors::strikes(std::uint64_t bits) {
  std::uint32_t count = 0;
  auto left = static_cast<double>(bits);
  while (left > bits_left_) {
    left -= bits_left_;
    bits_left_ = rng_.exponential(1 / rate_);
    ++count;
  }
  bits_left_ -= left;
  return count;
}

}  // namespace rnic::pcie
