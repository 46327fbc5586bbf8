// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace rnic::host {

/// Which lines of physical memory a CPU's last-level cache holds: tags without data or time.
///
/// Lines of 64 B in sectors of 1 KiB that share a tag, so that a DMA of a page costs four look-ups
/// instead of 64; capacity counts sectors, hence sparse accesses fill it sooner than in hardware.
/// Device writes may allocate in the first `io_ways` ways only (DDIO), everything else in all;
/// device reads allocate nothing. LRU.
class LastLevelCache {
 public:
  static constexpr std::uint32_t kLineBytes = 64;
  static constexpr std::uint32_t kSectorBytes = 1024;

  /// What an access found and did, in lines.
  struct Outcome {
    std::uint32_t hits = 0;
    std::uint32_t misses = 0;
    std::uint32_t missed_partial = 0;  ///< lines written in part that were not there
    std::uint32_t written_back = 0;    ///< dirty lines that had to leave
  };

  /// `bytes`: at least one sector a way; rounded down to whole sets.
  LastLevelCache(std::uint64_t bytes, std::uint32_t ways, std::uint32_t io_ways);

  Outcome device_read(std::uint64_t address, std::uint64_t bytes);
  /// With DDIO: hits are updated in place, misses allocate in the I/O ways.
  Outcome device_write(std::uint64_t address, std::uint64_t bytes);
  /// Without DDIO: lines leave the cache, for the write goes to memory.
  Outcome device_write_around(std::uint64_t address, std::uint64_t bytes);
  /// The CPU wrote or read these bytes: all their lines are there afterwards.
  Outcome cpu_access(std::uint64_t address, std::uint64_t bytes, bool dirty);

  std::uint64_t capacity() const { return sectors_.size() * kSectorBytes; }

 private:
  struct Sector {
    std::uint64_t tag = kNone;
    std::uint64_t last_use = 0;
    std::uint16_t present = 0;
    std::uint16_t dirty = 0;
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Sector* find(std::uint64_t tag);
  /// The sector of `tag`, made in the first `ways` ways of its set if need be.
  Sector& allocate(std::uint64_t tag, std::uint32_t ways, Outcome& outcome);
  Sector* set_of(std::uint64_t tag);

  std::uint32_t ways_;
  std::uint32_t io_ways_;
  std::uint64_t sets_;
  std::uint64_t clock_ = 0;
  std::vector<Sector> sectors_;
};

}  // namespace rnic::host
