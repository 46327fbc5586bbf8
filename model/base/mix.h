// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic {

/// 2^64 over the golden ratio: the step of splitmix64's sequence.
inline constexpr std::uint64_t kMixStep = 0x9E37'79B9'7F4A'7C15U;

/// Spreads what differs in a few bits over all 64 (the finalizer of splitmix64: Steele et al., Fast
/// splittable pseudorandom number generators, OOPSLA 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9U;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBU;
  return x ^ (x >> 31);
}

}  // namespace rnic
