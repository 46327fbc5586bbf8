// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/memory_port.h"

namespace rnic::testbench {

/// Host memory for tests: a plain array from address 0; everything beyond is a fault.
class FakeMemory : public host::MemoryPort {
 public:
  explicit FakeMemory(std::size_t bytes) : bytes_(bytes) {}

  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    ++reads;
    if (!contains(address, bytes)) return false;
    std::memcpy(into, &bytes_[address], bytes);
    return true;
  }
  bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    ++writes;
    if (!contains(address, bytes)) return false;
    std::memcpy(&bytes_[address], from, bytes);
    return true;
  }
  bool touch(std::uint64_t address, std::size_t bytes) override {
    ++touches;
    return contains(address, bytes);
  }

  bool contains(std::uint64_t address, std::size_t bytes) const {
    return bytes <= bytes_.size() && address <= bytes_.size() - bytes;
  }
  /// Byte i becomes i x 7 + i / 256: neighbours and pages differ.
  void fill_pattern() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = pattern(i);
  }
  static std::uint8_t pattern(std::size_t i) { return static_cast<std::uint8_t>(i * 7 + i / 256); }
  std::uint8_t& operator[](std::size_t i) { return bytes_[i]; }

  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t touches = 0;

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace rnic::testbench
