// SPDX-License-Identifier: Apache-2.0
#include "host/address_space.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rnic::host {
namespace {

// Where x86-64 Linux starts to look for room, and where user addresses end.
constexpr std::uint64_t kFirstAddress = 0x7F00'0000'0000;

}  // namespace

const AddressSpace::Page* AddressSpace::Mapping::find_page(std::uint64_t index) const {
  const PageTable* table = tables[index / kPagesPerTable].get();
  return table == nullptr ? nullptr : &(*table)[index % kPagesPerTable];
}

AddressSpace::Page& AddressSpace::Mapping::page(std::uint64_t index) {
  auto& table = tables[index / kPagesPerTable];
  if (table == nullptr) table = std::make_unique<PageTable>();
  return (*table)[index % kPagesPerTable];
}

AddressSpace::AddressSpace(PhysicalMemory& memory, std::uint64_t page_size,
                           std::uint64_t memlock_limit, const Rng& rng)
    : memory_(memory),
      page_size_(page_size),
      memlock_limit_(memlock_limit),
      rng_(rng),
      next_va_(kFirstAddress) {
  if (!is_page_size(page_size)) {
    throw ConfigError("page size " + std::to_string(page_size) + ": must be 4KiB, 2MiB or 1GiB");
  }
}

std::uint64_t AddressSpace::map(std::uint64_t bytes, std::uint64_t page_size) {
  if (!is_page_size(page_size)) {
    throw ConfigError("page size " + std::to_string(page_size) + ": must be 4KiB, 2MiB or 1GiB");
  }
  const std::uint64_t start = (next_va_ + page_size - 1) / page_size * page_size;
  if (bytes == 0 || start >= kEnd || bytes > kEnd - start - 2 * page_size) {
    throw ConfigError("a mapping of " + std::to_string(bytes) + " bytes does not fit");
  }
  const std::uint64_t pages = (bytes + page_size - 1) / page_size;
  Mapping mapping{start, pages * page_size, page_size, false, {}};
  mapping.tables.resize((pages + kPagesPerTable - 1) / kPagesPerTable);
  // A guard page, so that running over a buffer's end faults instead of hitting the next one.
  next_va_ = start + mapping.bytes + kPage4KiB;
  mappings_.emplace(start, std::move(mapping));
  return start;
}

std::uint64_t AddressSpace::map_device(std::uint64_t pa, std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 1U << 16;  // so that a device's large pages stay large
  next_va_ = (next_va_ + kAlignment - 1) / kAlignment * kAlignment;
  const std::uint64_t start = map(bytes, kPage4KiB);
  Mapping& mapping = mappings_.find(start)->second;
  mapping.device = true;
  for (std::uint64_t index = 0; index < mapping.bytes / kPage4KiB; ++index) {
    mapping.page(index).frame = pa + index * kPage4KiB;
  }
  return start;
}

Status AddressSpace::unmap(std::uint64_t va) {
  const auto it = mappings_.find(va);
  if (it == mappings_.end()) return Status::kEinval;
  Mapping& mapping = it->second;
  for (const auto& table : mapping.tables) {
    if (table == nullptr) continue;
    const bool pinned =
        std::any_of(table->begin(), table->end(), [](const Page& page) { return page.pins > 0; });
    if (pinned) return Status::kEbusy;
  }
  for (std::uint64_t index = 0; index < mapping.bytes / mapping.page_size; ++index) {
    const Page* page = mapping.find_page(index);
    if (page == nullptr || mapping.device) continue;
    if (page->frame != kNotResident) memory_.free_frame(page->frame, mapping.page_size);
    if (page->swapped) swap_.erase(mapping.start + index * mapping.page_size);
  }
  last_mapping_ = nullptr;
  mappings_.erase(it);
  return Status::kOk;
}

const AddressSpace::Mapping* AddressSpace::find_mapping(std::uint64_t va,
                                                        std::uint64_t bytes) const {
  const Mapping* mapping = last_mapping_;
  if (mapping == nullptr || va - mapping->start >= mapping->bytes) {
    auto it = mappings_.upper_bound(va);
    if (it == mappings_.begin()) return nullptr;
    mapping = &(--it)->second;
    if (va - mapping->start >= mapping->bytes) return nullptr;
    last_mapping_ = mapping;
  }
  return bytes <= mapping->bytes - (va - mapping->start) ? mapping : nullptr;
}

AddressSpace::Mapping* AddressSpace::find_mapping(std::uint64_t va, std::uint64_t bytes) {
  const Mapping* mapping = std::as_const(*this).find_mapping(va, bytes);
  return mapping == nullptr ? nullptr : &mappings_.find(mapping->start)->second;
}

AddressSpace::Page* AddressSpace::find_page(std::uint64_t va) {
  Mapping* mapping = find_mapping(va, 1);
  return mapping == nullptr ? nullptr : &mapping->page(mapping->page_index(va));
}

std::optional<std::uint64_t> AddressSpace::translate(std::uint64_t va) const {
  const Mapping* mapping = find_mapping(va, 1);
  if (mapping == nullptr) return std::nullopt;
  const Page* page = mapping->find_page(mapping->page_index(va));
  if (page == nullptr || page->frame == kNotResident) return std::nullopt;
  return page->frame + va % mapping->page_size;
}

std::uint64_t AddressSpace::page_size_at(std::uint64_t va) const {
  const Mapping* mapping = find_mapping(va, 1);
  return mapping == nullptr ? 0 : mapping->page_size;
}

bool AddressSpace::make_resident(Mapping& mapping, std::uint64_t index) {
  Page& page = mapping.page(index);
  if (page.frame != kNotResident) return true;
  const auto frame = memory_.allocate_frame(mapping.page_size);
  if (!frame) return false;
  page.frame = *frame;
  if (page.swapped) {
    const auto saved = swap_.find(mapping.start + index * mapping.page_size);
    memory_.put_image(page.frame, std::move(saved->second));
    swap_.erase(saved);
    page.swapped = false;
  }
  return true;
}

/// Calls `step(pa, done, chunk)` for each piece of the range that lies in one page.
template <class Step>
Status AddressSpace::for_each_chunk(std::uint64_t va, std::size_t bytes, Step&& step) {
  Mapping* mapping = find_mapping(va, bytes);
  if (mapping == nullptr) return Status::kEfault;
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t at = va + done;
    const std::uint64_t index = mapping->page_index(at);
    if (!make_resident(*mapping, index)) return Status::kEnomem;
    const std::uint64_t offset = at % mapping->page_size;
    const std::size_t chunk = std::min<std::size_t>(bytes - done, mapping->page_size - offset);
    step(mapping->page(index).frame + offset, done, chunk);
    done += chunk;
  }
  return Status::kOk;
}

Status AddressSpace::read(std::uint64_t va, void* into, std::size_t bytes) {
  auto* to = static_cast<std::uint8_t*>(into);
  return for_each_chunk(va, bytes, [&](std::uint64_t pa, std::size_t done, std::size_t chunk) {
    memory_.read(pa, to + done, chunk);
  });
}

Status AddressSpace::write(std::uint64_t va, const void* from, std::size_t bytes) {
  const auto* source = static_cast<const std::uint8_t*>(from);
  return for_each_chunk(va, bytes, [&](std::uint64_t pa, std::size_t done, std::size_t chunk) {
    memory_.write(pa, source + done, chunk);
  });
}

Status AddressSpace::pin(std::uint64_t va, std::uint64_t bytes) {
  if (bytes == 0 || va + bytes < va) return Status::kEinval;
  if (memlock_limit_ == 0) return Status::kEperm;
  const std::uint64_t span = page_span(va, bytes);
  if (pinned_bytes_ > memlock_limit_ || span > memlock_limit_ - pinned_bytes_) {
    return Status::kEnomem;
  }
  Mapping* mapping = find_mapping(va, bytes);
  if (mapping == nullptr) return Status::kEfault;
  const std::uint64_t first = mapping->page_index(va);
  const std::uint64_t last = mapping->page_index(va + bytes - 1);
  // Frames first, pins second: a failure leaves nothing to undo but pages that stay resident.
  cleared_bytes_ = 0;
  for (std::uint64_t index = first; index <= last; ++index) {
    const Page* page = mapping->find_page(index);
    if (page == nullptr || page->frame == kNotResident) cleared_bytes_ += mapping->page_size;
    if (!make_resident(*mapping, index)) return Status::kEnomem;
  }
  for (std::uint64_t index = first; index <= last; ++index) ++mapping->page(index).pins;
  pinned_bytes_ += span;
  return Status::kOk;
}

Status AddressSpace::unpin(std::uint64_t va, std::uint64_t bytes) {
  if (bytes == 0 || va + bytes < va) return Status::kEinval;
  Mapping* mapping = find_mapping(va, bytes);
  if (mapping == nullptr) return Status::kEfault;
  const std::uint64_t first = mapping->page_index(va);
  const std::uint64_t last = mapping->page_index(va + bytes - 1);
  for (std::uint64_t index = first; index <= last; ++index) {
    const Page* page = mapping->find_page(index);
    if (page == nullptr || page->pins == 0) return Status::kEinval;
  }
  const std::uint64_t span = page_span(va, bytes);
  if (span > pinned_bytes_) return Status::kEinval;
  for (std::uint64_t index = first; index <= last; ++index) --mapping->page(index).pins;
  pinned_bytes_ -= span;
  return Status::kOk;
}

Status AddressSpace::migrate(std::uint64_t va) {
  Page* page = find_page(va);
  if (page == nullptr || page->frame == kNotResident) return Status::kEfault;
  if (page->pins > 0 || find_mapping(va, 1)->device) return Status::kEbusy;
  const std::uint64_t size = page_size_at(va);
  const auto frame = memory_.allocate_frame(size);
  if (!frame) return Status::kEnomem;
  memory_.put_image(*frame, memory_.take_image(page->frame, size));
  memory_.free_frame(page->frame, size);
  page->frame = *frame;
  return Status::kOk;
}

void AddressSpace::swap_out_page(Mapping& mapping, std::uint64_t index) {
  Page& page = mapping.page(index);
  swap_[mapping.start + index * mapping.page_size] =
      memory_.take_image(page.frame, mapping.page_size);
  memory_.free_frame(page.frame, mapping.page_size);
  page.frame = kNotResident;
  page.swapped = true;
}

Status AddressSpace::swap_out(std::uint64_t va) {
  Mapping* mapping = find_mapping(va, 1);
  if (mapping == nullptr) return Status::kEfault;
  const std::uint64_t index = mapping->page_index(va);
  const Page* page = mapping->find_page(index);
  if (page == nullptr || page->frame == kNotResident) return Status::kEfault;
  if (page->pins > 0 || mapping->device) return Status::kEbusy;
  swap_out_page(*mapping, index);
  return Status::kOk;
}

std::size_t AddressSpace::reclaim(std::size_t pages) {
  std::vector<std::pair<Mapping*, std::uint64_t>> candidates;
  for (auto& [start, mapping] : mappings_) {
    if (mapping.device) continue;
    for (std::uint64_t index = 0; index < mapping.bytes / mapping.page_size; ++index) {
      const Page* page = mapping.find_page(index);
      if (page == nullptr || page->frame == kNotResident || page->pins > 0) continue;
      candidates.emplace_back(&mapping, index);
    }
  }
  const std::size_t count = std::min(pages, candidates.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(candidates[i], candidates[i + rng_.below(candidates.size() - i)]);
    swap_out_page(*candidates[i].first, candidates[i].second);
  }
  return count;
}

}  // namespace rnic::host
