// SPDX-License-Identifier: Apache-2.0
#include "base/page.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace rnic {

struct Page::Store {
  std::uint8_t* next = nullptr;
  std::uint8_t* end = nullptr;
  std::vector<std::uint8_t*> free;

  static Store& instance() {
    static auto* store = new Store;  // outlives every memory, those of static objects included
    return *store;
  }

  void grow() {
    next = static_cast<std::uint8_t*>(std::aligned_alloc(kChunkBytes, kChunkBytes));
    if (next == nullptr) throw std::bad_alloc();
    end = next + kChunkBytes;
#ifdef MADV_HUGEPAGE
    madvise(next, kChunkBytes, MADV_HUGEPAGE);  // a hint: refused, small pages serve as well
#endif
    std::memset(next, 0, kBytes);  // nobody holds any
    next += kBytes;
  }
};

/// A page that nobody else holds, its bytes undefined.
std::uint8_t* Page::take() {
  Store& from = Store::instance();
  std::uint8_t* bytes = nullptr;
  if (!from.free.empty()) {
    bytes = from.free.back();
    from.free.pop_back();
  } else {
    if (from.next == from.end) from.grow();
    bytes = from.next;
    from.next += kBytes;
  }
  holders(bytes) = 1;
  return bytes;
}

void Page::give(std::uint8_t* bytes) { Store::instance().free.push_back(bytes); }

Page Page::zeros() {
  Page page;
  page.bytes_ = take();
  std::memset(page.bytes_, 0, kBytes);
  return page;
}

void Page::copy() {
  std::uint8_t* own = take();
  std::memcpy(own, bytes_, kBytes);
  reset();
  bytes_ = own;
}

}  // namespace rnic
