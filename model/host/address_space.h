// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "host/physical_memory.h"
#include "host/status.h"

namespace rnic::host {

/// A process's virtual memory: mappings with 4 KiB, 2 MiB or 1 GiB pages that get a frame at first
/// touch, and page pinning. A page that is not pinned may change its frame at any time (migration,
/// swap), so a physical address is only good for DMA while its page is pinned.
///
/// Addresses of one call must lie in one mapping; unmapped addresses give EFAULT.
class AddressSpace {
 public:
  /// No mapping reaches it.
  static constexpr std::uint64_t kEnd = 0x7FFF'FFFF'F000;
  /// A memlock limit that is never reached.
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  /// `page_size`: of mappings that do not name one. `memlock_limit`: bytes that may be pinned
  /// (RLIMIT_MEMLOCK of a process without CAP_IPC_LOCK); 0 forbids pinning with EPERM, as Linux
  /// does. `rng` chooses the victims of reclaim().
  AddressSpace(PhysicalMemory& memory, std::uint64_t page_size, std::uint64_t memlock_limit,
               const Rng& rng);

  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Reserves `bytes`, rounded up to whole pages, of demand-zero memory; returns its virtual
  /// address, aligned to the page size and never 0. Virtual addresses are not reused. Throws
  /// ConfigError for 0 bytes, a page size that does not exist, or an exhausted address range.
  std::uint64_t map(std::uint64_t bytes, std::uint64_t page_size);
  std::uint64_t map(std::uint64_t bytes) { return map(bytes, page_size_); }

  /// Maps `bytes` of a device's memory that starts at bus address `pa`, a multiple of 4 KiB: pages
  /// that are always there, do not move and are not given back.
  std::uint64_t map_device(std::uint64_t pa, std::uint64_t bytes);

  /// Ends the mapping that starts at `va`. EBUSY while a page of it is pinned (Linux would keep the
  /// frames until the unpin; here the owner of the pin has to go first).
  Status unmap(std::uint64_t va);

  /// Physical address behind `va`, if its page is in a frame now.
  std::optional<std::uint64_t> translate(std::uint64_t va) const;
  /// Size of the page around `va`, bytes; 0 when `va` is not mapped.
  std::uint64_t page_size_at(std::uint64_t va) const;

  /// The CPU's loads and stores; they fault pages in. EFAULT, or ENOMEM when physical memory is
  /// exhausted.
  Status read(std::uint64_t va, void* into, std::size_t bytes);
  Status write(std::uint64_t va, const void* from, std::size_t bytes);

  /// Pins the pages of [va, va + bytes): each gets a frame that it keeps until it has been unpinned
  /// as often as pinned. Every call counts its 4 KiB pages against the limit, pages that are pinned
  /// already included (as ib_umem does): ENOMEM when the sum would exceed the limit. EINVAL for no
  /// bytes or an overflow. A call that fails changes nothing.
  Status pin(std::uint64_t va, std::uint64_t bytes);
  /// Bytes of pages that the latest pin() found not resident: they were cleared first.
  std::uint64_t cleared_bytes() const { return cleared_bytes_; }
  /// Undoes one pin() of the same range. EINVAL when a page of it is not pinned.
  Status unpin(std::uint64_t va, std::uint64_t bytes);
  /// Bytes that count against the limit.
  std::uint64_t pinned_bytes() const { return pinned_bytes_; }
  std::uint64_t memlock_limit() const { return memlock_limit_; }

  /// Moves the page around `va` to another frame, as compaction and NUMA balancing do. EBUSY when
  /// pinned, EFAULT when not in a frame, ENOMEM when no frame is free.
  Status migrate(std::uint64_t va);
  /// Writes the page around `va` to swap and frees its frame; the next touch brings it back, in
  /// another frame. EBUSY and EFAULT as above.
  Status swap_out(std::uint64_t va);
  /// Memory pressure: swaps out up to `pages` randomly chosen pages that are not pinned; returns
  /// how many.
  std::size_t reclaim(std::size_t pages);

 private:
  static constexpr std::uint64_t kNotResident = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kPagesPerTable = 512;

  struct Page {
    std::uint64_t frame = kNotResident;
    std::uint32_t pins = 0;
    bool swapped = false;
  };
  using PageTable = std::array<Page, kPagesPerTable>;

  struct Mapping {
    std::uint64_t start;
    std::uint64_t bytes;
    std::uint64_t page_size;
    bool device = false;                             // the frames are a device's
    std::vector<std::unique_ptr<PageTable>> tables;  // exist once a page of theirs is touched

    std::uint64_t page_index(std::uint64_t va) const { return (va - start) / page_size; }
    const Page* find_page(std::uint64_t index) const;
    Page& page(std::uint64_t index);
  };

  const Mapping* find_mapping(std::uint64_t va, std::uint64_t bytes) const;
  Mapping* find_mapping(std::uint64_t va, std::uint64_t bytes);
  Page* find_page(std::uint64_t va);
  bool make_resident(Mapping& mapping, std::uint64_t index);
  void swap_out_page(Mapping& mapping, std::uint64_t index);
  template <class Step>
  Status for_each_chunk(std::uint64_t va, std::size_t bytes, Step&& step);

  PhysicalMemory& memory_;
  std::uint64_t page_size_;
  std::uint64_t memlock_limit_;
  Rng rng_;
  std::uint64_t next_va_;
  std::uint64_t pinned_bytes_ = 0;
  std::uint64_t cleared_bytes_ = 0;
  std::map<std::uint64_t, Mapping> mappings_;
  mutable const Mapping* last_mapping_ = nullptr;      // most accesses hit the same buffer
  std::unordered_map<std::uint64_t, PageImage> swap_;  // by page address
};

/// Bytes of the 4 KiB pages that [va, va + bytes) touches; what pinning the range counts. The range
/// must not be empty nor wrap around.
constexpr std::uint64_t page_span(std::uint64_t va, std::uint64_t bytes) {
  return ((va + bytes - 1) / kPage4KiB - va / kPage4KiB + 1) * kPage4KiB;
}

}  // namespace rnic::host
