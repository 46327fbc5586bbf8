// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic::config {

struct PcieConfig {
  std::uint32_t gen;
  std::uint32_t lanes;
  std::uint32_t mps;
  std::uint32_t mrrs;
  std::uint32_t rcb;
  std::uint32_t read_tags;
  bool relaxed_ordering;
  Time latency;          ///< one way through both ends' PHY, data-link and transaction layers
  double dllp_overhead;  ///< share of raw bandwidth taken by DLLPs and SKP sets
};

}  // namespace rnic::config
