// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Packet sequence numbers: 24 bits, modulo 2^24 (IBTA vol 1, 9.7.2).
namespace rnic::protocol {

inline constexpr std::uint32_t kPsnMask = 0xFF'FFFF;

constexpr std::uint32_t psn_add(std::uint32_t psn, std::uint32_t count) {
  return (psn + count) & kPsnMask;
}

constexpr std::uint32_t psn_sub(std::uint32_t psn, std::uint32_t count) {
  return (psn - count) & kPsnMask;
}

/// a - b, in [-2^23, 2^23): negative when a is older than b.
constexpr std::int32_t psn_distance(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t d = (a - b) & kPsnMask;
  return static_cast<std::int32_t>(d) - ((d & 0x80'0000U) != 0 ? 0x100'0000 : 0);
}

constexpr bool psn_before(std::uint32_t a, std::uint32_t b) { return psn_distance(a, b) < 0; }

}  // namespace rnic::protocol
