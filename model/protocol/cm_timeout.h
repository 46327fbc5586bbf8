// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace rnic::protocol {

/// Time-out code that a connection manager gives a queue pair (IBTA vol 1, 12.7.34): both arguments
/// are exponents of 4.096 us x 2^n. The path both ways and the responder's delay add up, so the
/// larger exponent counts one more when the other is as large or next to it.
constexpr std::uint32_t cm_ack_timeout(std::uint32_t packet_life_time, std::uint32_t ack_delay) {
  constexpr std::uint32_t kMost = 31;
  const std::uint32_t both_ways = packet_life_time + 1;
  const std::uint32_t larger = std::max(both_ways, ack_delay);
  const std::uint32_t smaller = std::min(both_ways, ack_delay);
  return std::min(larger + (smaller + 1 >= larger ? 1 : 0), kMost);
}

}  // namespace rnic::protocol
