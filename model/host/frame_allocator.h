// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "host/range_allocator.h"

namespace rnic::host {

constexpr std::uint64_t kPage4KiB = std::uint64_t{1} << 12;
constexpr std::uint64_t kPage2MiB = std::uint64_t{1} << 21;
constexpr std::uint64_t kPage1GiB = std::uint64_t{1} << 30;

/// The page sizes of an x86-64 page table.
constexpr bool is_page_size(std::uint64_t bytes) {
  return bytes == kPage4KiB || bytes == kPage2MiB || bytes == kPage1GiB;
}

/// Hands out physical page frames. Like a machine that has been up for a while it has no runs of
/// free frames to give: two frames allocated one after the other are not physically consecutive
/// (unless nothing else is left), so a buffer needs a translation entry for each of its pages.
/// Physically contiguous memory comes from a zone of its own: the lowest quarter of the capacity
/// without its first frame, so that no buffer has physical address 0.
class FrameAllocator {
 public:
  /// `bytes`: capacity, a multiple of 4 KiB.
  FrameAllocator(std::uint64_t bytes, const Rng& rng);

  /// A frame of `page_size` (4 KiB, 2 MiB or 1 GiB) aligned to its size; nothing when none is left.
  std::optional<std::uint64_t> allocate(std::uint64_t page_size);
  /// Gives back a frame of allocate(). Small frames do not grow together into larger ones again.
  void release(std::uint64_t frame, std::uint64_t page_size);

  /// `bytes`, rounded up to 4 KiB, in one piece from the contiguous zone. `alignment`: a multiple
  /// of 4 KiB.
  std::optional<std::uint64_t> allocate_contiguous(std::uint64_t bytes, std::uint64_t alignment);
  void release_contiguous(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Pool {
    std::vector<std::uint64_t> free;
    std::uint64_t previous = 0;  // handed out last
  };

  void add_range(std::uint64_t begin, std::uint64_t end);
  std::optional<std::uint64_t> take(Pool& pool, std::uint64_t frame_bytes);
  void split(Pool& larger, std::uint64_t larger_bytes, Pool& smaller, std::uint64_t smaller_bytes);
  Pool& pool_of(std::uint64_t page_size);

  Rng rng_;
  RangeAllocator contiguous_;
  Pool small_;
  Pool large_;
  Pool giant_;
};

}  // namespace rnic::host
