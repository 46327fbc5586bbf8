// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/page.h"
#include "base/rng.h"
#include "host/frame_allocator.h"

namespace rnic::host {

/// Told about writes to a watched range of physical memory (how a polling CPU is woken without
/// simulating its polls).
class MemoryWatcher {
 public:
  virtual ~MemoryWatcher() = default;
  /// The part of one write that lies in the watched range; the bytes are in memory already. The
  /// watcher may watch, unwatch, read and write from here.
  virtual void memory_written(std::uint64_t pa, std::uint32_t bytes) = 0;
};

/// Bytes of a run of frames, taken out of memory; offsets are relative to the run's start. Frames
/// never written are absent.
using PageImage = std::vector<std::pair<std::uint64_t, Page>>;

/// A host's physical memory: real bytes in 4 KiB frames that exist once written, so capacity costs
/// nothing. Memory never written reads zero. An access outside the capacity changes nothing and
/// returns false (a DMA fault).
class PhysicalMemory {
 public:
  static constexpr std::uint64_t kFrameBytes = Page::kBytes;
  static constexpr std::uint64_t kDefaultBytes = std::uint64_t{64} << 30;
  using WatchId = std::uint64_t;

  /// `bytes`: capacity, a positive multiple of 4 KiB (ConfigError otherwise). `rng`: scatters the
  /// frames.
  explicit PhysicalMemory(std::uint64_t bytes = kDefaultBytes,
                          const Rng& rng = Rng(1, "host.physical_memory"));

  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  std::uint64_t size() const { return size_; }
  /// True when all of [pa, pa + bytes) exists.
  bool contains(std::uint64_t pa, std::uint64_t bytes) const {
    return bytes <= size_ && pa <= size_ - bytes;
  }

  bool read(std::uint64_t pa, void* into, std::size_t bytes) const {
    const std::uint64_t offset = pa % kFrameBytes;
    if (bytes - 1 >= kFrameBytes - offset || !contains(pa, bytes)) {
      return read_across(pa, into, bytes);
    }
    const Slot* slot = find_slot(pa);
    if (slot != nullptr && slot->page) {
      std::memcpy(into, slot->page.get() + offset, bytes);
    } else {
      std::memset(into, 0, bytes);
    }
    return true;
  }

  bool write(std::uint64_t pa, const void* from, std::size_t bytes) {
    const std::uint64_t offset = pa % kFrameBytes;
    if (bytes - 1 >= kFrameBytes - offset || !contains(pa, bytes)) {
      return write_across(pa, from, bytes);
    }
    Slot& slot = slot_of(pa);
    std::memcpy(own_bytes(slot) + offset, from, bytes);
    if (slot.watched) notify(pa, bytes);
    if (observer_ != nullptr) observer_->memory_written(pa, static_cast<std::uint32_t>(bytes));
    return true;
  }

  /// The frame at `pa` itself, for a reader that will not write; a holder of nothing when `pa` is
  /// not its first byte, or nothing was ever written to it.
  Page lend(std::uint64_t pa) const {
    if (pa % kFrameBytes != 0 || !contains(pa, kFrameBytes)) return {};
    const Slot* slot = find_slot(pa);
    return slot == nullptr ? Page{} : slot->page;
  }
  /// As write() of a whole frame, which becomes `page` instead of a copy of it; false when `pa` is
  /// not the first byte of a frame.
  bool adopt(std::uint64_t pa, const Page& page) {
    if (pa % kFrameBytes != 0 || !contains(pa, kFrameBytes)) return false;
    Slot& slot = slot_of(pa);
    if (!slot.page) ++resident_frames_;
    slot.page = page;
    if (slot.watched) notify(pa, kFrameBytes);
    if (observer_ != nullptr) observer_->memory_written(pa, kFrameBytes);
    return true;
  }

  /// Sets every byte of the range to `value`; watchers are told.
  bool fill(std::uint64_t pa, std::uint8_t value, std::uint64_t bytes);

  /// Tells watchers as a write of the range would, and leaves the bytes alone (for runs that do not
  /// move payload).
  bool touch(std::uint64_t pa, std::uint64_t bytes);

  /// Tells `observer` (null: nobody) about every write anywhere: what caches see.
  void set_observer(MemoryWatcher* observer) { observer_ = observer; }

  /// Calls `watcher` after each write that overlaps [pa, pa + bytes). Costs a list entry for each
  /// frame of the range; writes to frames without a watch pay one flag test. Throws SimulationError
  /// for an empty range or one outside memory.
  WatchId watch(std::uint64_t pa, std::uint64_t bytes, MemoryWatcher* watcher);
  /// Ends a watch; an id that is over already is ignored.
  void unwatch(WatchId id);

  /// A frame aligned to `page_size` (4 KiB, 2 MiB, 1 GiB); see FrameAllocator. Its contents are 0.
  std::optional<std::uint64_t> allocate_frame(std::uint64_t page_size) {
    return frames_.allocate(page_size);
  }
  /// Gives a frame back and scrubs it.
  void free_frame(std::uint64_t pa, std::uint64_t page_size);

  /// Physically contiguous, DMA-coherent memory, for rings and context memory. `alignment`: a
  /// multiple of 4 KiB.
  std::optional<std::uint64_t> allocate_contiguous(std::uint64_t bytes,
                                                   std::uint64_t alignment = kPage4KiB) {
    return frames_.allocate_contiguous(bytes, alignment);
  }
  /// Gives the memory back and scrubs it.
  void free_contiguous(std::uint64_t pa, std::uint64_t bytes);

  /// Moves the contents of whole frames out (they read zero afterwards) and in again elsewhere,
  /// unseen by watchers: what the kernel's page migration and swap do.
  PageImage take_image(std::uint64_t pa, std::uint64_t bytes);
  void put_image(std::uint64_t pa, PageImage&& image);

  /// Simulator memory the contents occupy, bytes (frames written so far).
  std::uint64_t resident_bytes() const { return resident_frames_ * kFrameBytes; }

 private:
  // A region is the second table level: 2,048 frames, 8 MiB.
  static constexpr std::uint64_t kFramesPerRegion = 2048;
  static constexpr std::uint64_t kRegionBytes = kFramesPerRegion * kFrameBytes;

  struct Slot {
    Page page;
    bool watched = false;
  };
  using Region = std::array<Slot, kFramesPerRegion>;

  struct Watch {
    std::uint64_t pa = 0;
    std::uint64_t end = 0;
    MemoryWatcher* watcher = nullptr;  // null: free
    std::uint32_t generation = 0;
  };
  struct Notice {
    std::uint32_t watch;
    std::uint32_t generation;
    std::uint64_t pa;
    std::uint32_t bytes;
  };

  const Slot* find_slot(std::uint64_t pa) const {
    const Region* region = regions_[pa / kRegionBytes].get();
    return region == nullptr ? nullptr : &(*region)[pa / kFrameBytes % kFramesPerRegion];
  }
  Slot& slot_of(std::uint64_t pa) {
    auto& region = regions_[pa / kRegionBytes];
    if (region == nullptr) region = std::make_unique<Region>();
    return (*region)[pa / kFrameBytes % kFramesPerRegion];
  }
  /// The bytes of a frame that is going to be written to.
  std::uint8_t* own_bytes(Slot& slot) {
    if (!slot.page) {
      slot.page = Page::zeros();
      ++resident_frames_;
    }
    slot.page.unshare();
    return slot.page.get();
  }
  void drop_bytes(Slot& slot);
  bool read_across(std::uint64_t pa, void* into, std::size_t bytes) const;
  bool write_across(std::uint64_t pa, const void* from, std::size_t bytes);
  void scrub(std::uint64_t pa, std::uint64_t bytes);
  void notify(std::uint64_t pa, std::uint64_t bytes);
  void collect_notices(std::uint64_t pa, std::uint64_t end);

  std::uint64_t size_;
  MemoryWatcher* observer_ = nullptr;
  FrameAllocator frames_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::uint64_t resident_frames_ = 0;
  std::vector<Watch> watches_;
  std::vector<std::uint32_t> free_watches_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> frame_watches_;
  std::vector<Notice> notices_;  // a stack: a watcher's own writes notify in turn
};

}  // namespace rnic::host
