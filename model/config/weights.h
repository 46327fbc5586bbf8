// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rnic::config {

/// One entry of an arbitration table.
struct LaneWeight {
  std::uint32_t lane = 0;    ///< VL or Ethernet priority
  std::uint32_t weight = 0;  ///< 0..255
  bool strict = false;       ///< before all that have weights
};

/// Reads LANE:WEIGHT,... (or LANE:strict where `key` allows it); empty for `none` and "". Throws
/// ConfigError that names `key`.
std::vector<LaneWeight> parse_vl_weights(const std::string& key, const std::string& text);
std::vector<LaneWeight> parse_ets(const std::string& key, const std::string& text);

}  // namespace rnic::config
