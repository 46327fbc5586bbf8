// SPDX-License-Identifier: Apache-2.0
#include "huge_heap.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

namespace rnic::testbench {

void prefer_huge_heap() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  constexpr std::size_t kHeap = std::size_t{512} << 20;  // addresses; memory comes when used
  constexpr int kTrimNever = 1 << 30;
  constexpr int kMmaps = 65536;  // the library's default
  // Grows the heap by one large block that is given back to it at once, and stays.
  mallopt(M_TRIM_THRESHOLD, kTrimNever);
  mallopt(M_MMAP_MAX, 0);
  void* block = std::malloc(kHeap);
  mallopt(M_MMAP_MAX, kMmaps);
  if (block == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::size_t bytes = (begin + kHeap - first) / kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(first), bytes, MADV_HUGEPAGE);
  std::free(block);
#endif
}

}  // namespace rnic::testbench
