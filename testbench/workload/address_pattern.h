// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "config/config.h"

namespace rnic::testbench {

/// Which slot of a buffer the next message uses: in order, uniformly at random, or Zipf-distributed
/// (exponent 0.99, as YCSB; slot 0 most popular).
class AddressPattern {
 public:
  AddressPattern(config::Access access, std::uint64_t slots, const Rng& rng);

  std::uint64_t next();

 private:
  config::Access access_;
  std::uint64_t slots_;
  std::uint64_t position_ = 0;
  Rng rng_;
  std::vector<double> cumulative_;  ///< Zipf only
};

}  // namespace rnic::testbench
