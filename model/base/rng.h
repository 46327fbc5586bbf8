// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace rnic {

/// Random numbers from one seed with a stream per name (a unit's full name), so that adding a unit
/// does not shift another's numbers. xoshiro256**, seeded by splitmix64; identical everywhere,
/// unlike the distributions of <random>.
class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view stream);

  std::uint64_t next();
  /// Uniform in [0, bound); bound 0 gives 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Exponential with the given mean.
  double exponential(double mean);

 private:
  std::uint64_t state_[4];
};

}  // namespace rnic
