// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::protocol {

/// Operand of compare-and-swap and fetch-and-add (IBTA vol 1, 9.4.5): 8 bytes at an address that
/// 8 divides, in memory as the host's CPU stores an integer (little-endian here).
inline constexpr std::uint32_t kAtomicBytes = 8;

inline std::uint64_t load_operand(const std::uint8_t* p) {
  std::uint64_t value = 0;
  for (std::uint32_t i = kAtomicBytes; i-- > 0;) value = (value << 8) | p[i];
  return value;
}

inline void store_operand(std::uint8_t* p, std::uint64_t value) {
  for (std::uint32_t i = 0; i < kAtomicBytes; ++i, value >>= 8) {
    p[i] = static_cast<std::uint8_t>(value);
  }
}

/// What memory holds after the operation when it held `original` before.
constexpr std::uint64_t atomic_result(bool compare_swap, std::uint64_t original,
                                      std::uint64_t swap_or_add, std::uint64_t compare) {
  if (!compare_swap) return original + swap_or_add;
  return original == compare ? swap_or_add : original;
}

}  // namespace rnic::protocol
