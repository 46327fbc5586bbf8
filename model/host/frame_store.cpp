// SPDX-License-Identifier: Apache-2.0
#include "host/frame_store.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace rnic::host {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{2} << 20;  // a huge page of x86-64

struct Chunks {
  std::uint8_t* next = nullptr;
  std::uint8_t* end = nullptr;
  std::vector<std::uint8_t*> free;

  void grow() {
    next = static_cast<std::uint8_t*>(std::aligned_alloc(kChunkBytes, kChunkBytes));
    if (next == nullptr) throw std::bad_alloc();
    end = next + kChunkBytes;
#ifdef MADV_HUGEPAGE
    madvise(next, kChunkBytes, MADV_HUGEPAGE);  // a hint: refused, small pages serve as well
#endif
  }
};

Chunks& chunks() {
  static auto* chunks = new Chunks;  // outlives every memory, those of static objects included
  return *chunks;
}

}  // namespace

FrameStore::Frame FrameStore::take() {
  Chunks& from = chunks();
  std::uint8_t* frame = nullptr;
  if (!from.free.empty()) {
    frame = from.free.back();
    from.free.pop_back();
  } else {
    if (from.next == from.end) from.grow();
    frame = from.next;
    from.next += kFrameBytes;
  }
  std::memset(frame, 0, kFrameBytes);
  return Frame(frame);
}

void FrameStore::give(std::uint8_t* frame) { chunks().free.push_back(frame); }

}  // namespace rnic::host
