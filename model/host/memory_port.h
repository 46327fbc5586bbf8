// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/page.h"

namespace rnic::host {

/// Host memory as the root complex sees it: bytes by physical address, without time.
class MemoryPort {
 public:
  virtual ~MemoryPort() = default;
  /// Copies `bytes` at `address` to `into`; false: no such memory, nothing copied.
  virtual bool read(std::uint64_t address, void* into, std::size_t bytes) = 0;
  /// Copies `bytes` from `from` to `address`; false: no such memory, nothing copied.
  virtual bool write(std::uint64_t address, const void* from, std::size_t bytes) = 0;
  /// A write whose bytes are not simulated: only whoever watches the range should notice it.
  virtual bool touch(std::uint64_t address, std::size_t bytes) = 0;
  /// The page at `address` itself instead of a copy; a holder of nothing: cannot be lent.
  virtual Page lend(std::uint64_t /*address*/) { return {}; }
  /// A write of a whole page that need not copy it; false: not here, nothing written.
  virtual bool adopt(std::uint64_t /*address*/, const Page& /*page*/) { return false; }
};

/// Makes any class with such members (PhysicalMemory) a MemoryPort.
template <typename Memory>
class MemoryPortOf final : public MemoryPort {
 public:
  explicit MemoryPortOf(Memory& memory) : memory_(memory) {}
  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    return memory_.read(address, into, bytes);
  }
  bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    return memory_.write(address, from, bytes);
  }
  bool touch(std::uint64_t address, std::size_t bytes) override {
    return memory_.touch(address, bytes);
  }
  Page lend(std::uint64_t address) override { return memory_.lend(address); }
  bool adopt(std::uint64_t address, const Page& page) override {
    return memory_.adopt(address, page);
  }

 private:
  Memory& memory_;
};

}  // namespace rnic::host
