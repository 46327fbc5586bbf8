// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rnic::testbench {

/// Bytes of a hexadecimal string; blanks are skipped.
inline std::vector<std::uint8_t> from_hex(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  int high = -1;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (high < 0) {
      high = digit;
      continue;
    }
    bytes.push_back(static_cast<std::uint8_t>(high * 16 + digit));
    high = -1;
  }
  return bytes;
}

inline std::string to_hex(const std::uint8_t* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}
inline std::string to_hex(const std::vector<std::uint8_t>& bytes) {
  return to_hex(bytes.data(), bytes.size());
}

/// Reflected CRC, one bit at a time: slow, short, and independent of the model's tables.
inline std::uint32_t bitwise_crc(const std::vector<std::uint8_t>& bytes, std::uint32_t polynomial,
                                 std::uint32_t ones) {
  std::uint32_t crc = ones;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc & 1U) != 0 ? (crc >> 1) ^ polynomial : crc >> 1;
  }
  return ~crc & ones;
}

}  // namespace rnic::testbench
