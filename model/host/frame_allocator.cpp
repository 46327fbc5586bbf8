// SPDX-License-Identifier: Apache-2.0
#include "host/frame_allocator.h"

#include "base/error.h"

namespace rnic::host {
namespace {

// A pool is topped up below this many frames: enough left to choose at random from, few enough that
// the frames of a small simulation stay close together in the sparse memory's tables.
constexpr std::size_t kRefillBelow = 256;

std::uint64_t contiguous_zone_end(std::uint64_t bytes) { return bytes / 4 / kPage4KiB * kPage4KiB; }

std::uint64_t round_up_to_frames(std::uint64_t bytes) {
  return (bytes / kPage4KiB + (bytes % kPage4KiB != 0 ? 1 : 0)) * kPage4KiB;
}

}  // namespace

FrameAllocator::FrameAllocator(std::uint64_t bytes, const Rng& rng)
    : rng_(rng), contiguous_(kPage4KiB, contiguous_zone_end(bytes)) {
  add_range(contiguous_zone_end(bytes), bytes);
}

void FrameAllocator::add_range(std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    std::uint64_t step = kPage4KiB;
    for (const std::uint64_t size : {kPage1GiB, kPage2MiB}) {
      if (begin % size == 0 && end - begin >= size) {
        step = size;
        break;
      }
    }
    pool_of(step).free.push_back(begin);
    begin += step;
  }
}

FrameAllocator::Pool& FrameAllocator::pool_of(std::uint64_t page_size) {
  if (page_size == kPage4KiB) return small_;
  if (page_size == kPage2MiB) return large_;
  if (page_size == kPage1GiB) return giant_;
  panic("FrameAllocator", "a frame has 4 KiB, 2 MiB or 1 GiB");
}

std::optional<std::uint64_t> FrameAllocator::take(Pool& pool, std::uint64_t frame_bytes) {
  if (pool.free.empty()) return std::nullopt;
  std::uint64_t index = rng_.below(pool.free.size());
  if (pool.free[index] == pool.previous + frame_bytes) index = (index + 1) % pool.free.size();
  const std::uint64_t frame = pool.free[index];
  pool.free[index] = pool.free.back();
  pool.free.pop_back();
  pool.previous = frame;
  return frame;
}

void FrameAllocator::split(Pool& larger, std::uint64_t larger_bytes, Pool& smaller,
                           std::uint64_t smaller_bytes) {
  if (smaller.free.size() >= kRefillBelow) return;
  const auto block = take(larger, larger_bytes);
  if (!block) return;
  for (std::uint64_t offset = 0; offset < larger_bytes; offset += smaller_bytes) {
    smaller.free.push_back(*block + offset);
  }
}

std::optional<std::uint64_t> FrameAllocator::allocate(std::uint64_t page_size) {
  Pool& pool = pool_of(page_size);
  if (page_size == kPage2MiB) split(giant_, kPage1GiB, large_, kPage2MiB);
  if (page_size == kPage4KiB && small_.free.size() < kRefillBelow) {
    split(giant_, kPage1GiB, large_, kPage2MiB);
    split(large_, kPage2MiB, small_, kPage4KiB);
  }
  return take(pool, page_size);
}

void FrameAllocator::release(std::uint64_t frame, std::uint64_t page_size) {
  pool_of(page_size).free.push_back(frame);
}

std::optional<std::uint64_t> FrameAllocator::allocate_contiguous(std::uint64_t bytes,
                                                                 std::uint64_t alignment) {
  return contiguous_.allocate(round_up_to_frames(bytes), alignment);
}

void FrameAllocator::release_contiguous(std::uint64_t address, std::uint64_t bytes) {
  contiguous_.release(address, round_up_to_frames(bytes));
}

}  // namespace rnic::host
