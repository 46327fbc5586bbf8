// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <cmath>

#include "base/mix.h"

namespace rnic {
namespace {

std::uint64_t splitmix64(std::uint64_t& x) {
  x += kMixStep;
  return mix64(x);
}

std::uint64_t rotate_left(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

/// FNV-1a: spreads stream names over the seed space.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return h;
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view stream) {
  std::uint64_t x = seed ^ hash(stream);
  for (auto& word : state_) word = splitmix64(x);
}

std::uint64_t Rng::next() {
  const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  if (bound == 0) return 0;
  __extension__ using Wide = unsigned __int128;
  // Multiply-shift with rejection of the biased low part (Lemire).
  Wide product = static_cast<Wide>(next()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  const std::uint64_t threshold = (0 - bound) % bound;
  while (low < threshold) {
    product = static_cast<Wide>(next()) * bound;
    low = static_cast<std::uint64_t>(product);
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Rng::exponential(double mean) { return -mean * std::log1p(-uniform()); }

}  // namespace rnic
