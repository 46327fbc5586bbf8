// SPDX-License-Identifier: Apache-2.0
#include "host/physical_memory.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rnic::host {

PhysicalMemory::PhysicalMemory(std::uint64_t bytes, const Rng& rng)
    : size_(bytes), frames_(bytes, rng) {
  if (bytes == 0 || bytes % kFrameBytes != 0) {
    throw ConfigError("physical memory of " + std::to_string(bytes) +
                      " bytes: must be a positive multiple of 4096");
  }
  regions_.resize((bytes + kRegionBytes - 1) / kRegionBytes);
}

void PhysicalMemory::drop_bytes(Slot& slot) {
  if (!slot.page) return;
  slot.page.reset();
  --resident_frames_;
}

bool PhysicalMemory::read_across(std::uint64_t pa, void* into, std::size_t bytes) const {
  if (!contains(pa, bytes)) return false;
  auto* to = static_cast<std::uint8_t*>(into);
  while (bytes > 0) {
    const std::size_t chunk = std::min<std::size_t>(bytes, kFrameBytes - pa % kFrameBytes);
    read(pa, to, chunk);
    pa += chunk;
    to += chunk;
    bytes -= chunk;
  }
  return true;
}

bool PhysicalMemory::write_across(std::uint64_t pa, const void* from, std::size_t bytes) {
  if (!contains(pa, bytes)) return false;
  const auto* source = static_cast<const std::uint8_t*>(from);
  bool watched = false;
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t offset = (pa + done) % kFrameBytes;
    const std::size_t chunk = std::min<std::size_t>(bytes - done, kFrameBytes - offset);
    Slot& slot = slot_of(pa + done);
    std::memcpy(own_bytes(slot) + offset, source + done, chunk);
    watched = watched || slot.watched;
    done += chunk;
  }
  // Last, so that a watcher sees all bytes of the write.
  if (watched) notify(pa, bytes);
  if (observer_ != nullptr) observer_->memory_written(pa, static_cast<std::uint32_t>(bytes));
  return true;
}

bool PhysicalMemory::fill(std::uint64_t pa, std::uint8_t value, std::uint64_t bytes) {
  if (!contains(pa, bytes)) return false;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t offset = (pa + done) % kFrameBytes;
    const std::uint64_t chunk = std::min(bytes - done, kFrameBytes - offset);
    Slot& slot = slot_of(pa + done);
    if (slot.page || value != 0) std::memset(own_bytes(slot) + offset, value, chunk);
    done += chunk;
  }
  return touch(pa, bytes);
}

bool PhysicalMemory::touch(std::uint64_t pa, std::uint64_t bytes) {
  if (!contains(pa, bytes)) return false;
  if (bytes > 0 && !frame_watches_.empty()) notify(pa, bytes);
  return true;
}

PhysicalMemory::WatchId PhysicalMemory::watch(std::uint64_t pa, std::uint64_t bytes,
                                              MemoryWatcher* watcher) {
  if (bytes == 0 || !contains(pa, bytes) || watcher == nullptr) {
    panic("PhysicalMemory", "a watch needs a watcher and a non-empty range inside memory");
  }
  if (free_watches_.empty()) {
    free_watches_.push_back(static_cast<std::uint32_t>(watches_.size()));
    watches_.emplace_back();
  }
  const std::uint32_t index = free_watches_.back();
  free_watches_.pop_back();
  Watch& watch = watches_[index];
  watch.pa = pa;
  watch.end = pa + bytes;
  watch.watcher = watcher;
  for (std::uint64_t frame = pa / kFrameBytes; frame <= (watch.end - 1) / kFrameBytes; ++frame) {
    frame_watches_[frame].push_back(index);
    slot_of(frame * kFrameBytes).watched = true;
  }
  return (WatchId{watch.generation} << 32) | index;
}

void PhysicalMemory::unwatch(WatchId id) {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= watches_.size()) return;
  Watch& watch = watches_[index];
  if (watch.watcher == nullptr || watch.generation != id >> 32) return;
  for (std::uint64_t frame = watch.pa / kFrameBytes; frame <= (watch.end - 1) / kFrameBytes;
       ++frame) {
    const auto list = frame_watches_.find(frame);
    auto& indices = list->second;
    indices.erase(std::find(indices.begin(), indices.end(), index));
    if (indices.empty()) {
      frame_watches_.erase(list);
      slot_of(frame * kFrameBytes).watched = false;
    }
  }
  watch.watcher = nullptr;
  ++watch.generation;
  free_watches_.push_back(index);
}

void PhysicalMemory::collect_notices(std::uint64_t pa, std::uint64_t end) {
  for (std::uint64_t frame = pa / kFrameBytes; frame <= (end - 1) / kFrameBytes; ++frame) {
    const auto list = frame_watches_.find(frame);
    if (list == frame_watches_.end()) continue;
    for (const std::uint32_t index : list->second) {
      const Watch& watch = watches_[index];
      const std::uint64_t first = std::max(watch.pa, pa);
      const std::uint64_t last = std::min(watch.end, end);
      // A watch over several frames is told once a write: in the frame where the overlap starts.
      if (first >= last || first / kFrameBytes != frame) continue;
      notices_.push_back(
          {index, watch.generation, first, static_cast<std::uint32_t>(last - first)});
    }
  }
}

void PhysicalMemory::notify(std::uint64_t pa, std::uint64_t bytes) {
  const std::size_t base = notices_.size();
  collect_notices(pa, pa + bytes);
  const std::size_t end = notices_.size();
  for (std::size_t i = base; i < end; ++i) {
    const Notice notice = notices_[i];
    const Watch& watch = watches_[notice.watch];
    if (watch.watcher == nullptr || watch.generation != notice.generation) continue;
    watch.watcher->memory_written(notice.pa, notice.bytes);
  }
  notices_.resize(base);
}

void PhysicalMemory::scrub(std::uint64_t pa, std::uint64_t bytes) {
  for (std::uint64_t at = pa; at < pa + bytes;) {
    auto& region = regions_[at / kRegionBytes];
    if (region == nullptr) {
      at = (at / kRegionBytes + 1) * kRegionBytes;
      continue;
    }
    drop_bytes((*region)[at / kFrameBytes % kFramesPerRegion]);
    at += kFrameBytes;
  }
}

void PhysicalMemory::free_frame(std::uint64_t pa, std::uint64_t page_size) {
  scrub(pa, page_size);
  frames_.release(pa, page_size);
}

void PhysicalMemory::free_contiguous(std::uint64_t pa, std::uint64_t bytes) {
  frames_.release_contiguous(pa, bytes);
  scrub(pa, bytes);
}

PageImage PhysicalMemory::take_image(std::uint64_t pa, std::uint64_t bytes) {
  PageImage image;
  for (std::uint64_t offset = 0; offset < bytes;) {
    const std::uint64_t at = pa + offset;
    auto& region = regions_[at / kRegionBytes];
    if (region == nullptr) {
      offset = (at / kRegionBytes + 1) * kRegionBytes - pa;
      continue;
    }
    Slot& slot = (*region)[at / kFrameBytes % kFramesPerRegion];
    if (slot.page) {
      image.emplace_back(offset, std::move(slot.page));
      --resident_frames_;
    }
    offset += kFrameBytes;
  }
  return image;
}

void PhysicalMemory::put_image(std::uint64_t pa, PageImage&& image) {
  for (auto& [offset, bytes] : image) {
    Slot& slot = slot_of(pa + offset);
    drop_bytes(slot);
    slot.page = std::move(bytes);
    ++resident_frames_;
  }
}

}  // namespace rnic::host
