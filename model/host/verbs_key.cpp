// SPDX-License-Identifier: Apache-2.0
// Memory windows and regions that work requests register: what the kernel does for them. Their keys
// change in the device (nic/key_unit).
#include <algorithm>

#include "host/verbs.h"
#include "protocol/mpt.h"
#include "protocol/mtt.h"

namespace rnic::host::verbs {

using protocol::MptEntry;
using protocol::MptState;
using protocol::MptType;

std::optional<MemoryWindow> Context::alloc_mw(Core& core, std::uint32_t pd, MwType type) {
  enter_kernel(core);
  if (!pd_exists(pd)) return std::nullopt;
  const auto slot = context_memory_.allocate_mpt();
  if (!slot) return std::nullopt;
  MptEntry entry;
  entry.state = MptState::kFree;
  entry.type = type == MwType::kType1 ? MptType::kWindowType1 : MptType::kWindowType2;
  entry.key = slot->key;
  entry.pd = pd;
  context_memory_.write_mpt(slot->index, entry);
  use_pd(pd);
  windows_.insert(slot->index);
  return MemoryWindow{type, pd, slot->key};
}

/// A window that is bound lies where the region's entries are.
bool Context::has_windows(const MemoryRegion& region) const {
  return std::any_of(windows_.begin(), windows_.end(), [&](std::uint32_t index) {
    const MptEntry window = context_memory_.read_mpt(index);
    return window.state == MptState::kValid && window.mtt_base >= region.mtt_base &&
           window.mtt_base < region.mtt_base + region.mtt_count;
  });
}

Status Context::dealloc_mw(Core& core, const MemoryWindow& window) {
  const std::uint32_t index = protocol::key_index(window.rkey);
  MptEntry entry = context_memory_.read_mpt(index);
  if (entry.state == MptState::kInvalid) return Status::kEinval;
  entry.state = MptState::kInvalid;
  enter_kernel(core);
  context_memory_.write_mpt(index, entry);
  MemoryRegion keys;
  keys.lkey = keys.rkey = window.rkey;
  drop_cached_key(core, keys);
  context_memory_.free_mpt(index);
  windows_.erase(index);
  leave_pd(window.pd);
  return Status::kOk;
}

Status Context::bind_mw(Core& core, QueuePair& qp, const MwBind& bind, std::uint64_t wr_id,
                        std::uint32_t flags) {
  if (bind.window == nullptr || bind.window->type != MwType::kType1) return Status::kEinval;
  SendWr wr;
  wr.wr_id = wr_id;
  wr.opcode = WrOpcode::kBindMw;
  wr.flags = flags;
  wr.bind = bind;
  wr.bind.rkey = next_key(bind.window->rkey);
  return post_send(core, qp, &wr, 1);
}

std::optional<FastRegion> Context::alloc_fast_mr(Core& core, std::uint32_t pd,
                                                 std::uint32_t max_pages) {
  enter_kernel(core);
  if (!pd_exists(pd)) return std::nullopt;
  const auto mtts = context_memory_.allocate_mtts(max_pages);
  if (!mtts) return std::nullopt;
  const auto slot = context_memory_.allocate_mpt();
  if (!slot) {
    context_memory_.free_mtts(*mtts, max_pages);
    return std::nullopt;
  }
  MptEntry entry;
  entry.state = MptState::kFree;
  entry.type = MptType::kFastRegion;
  entry.key = slot->key;
  entry.pd = pd;
  entry.mtt_base = *mtts;
  entry.mtt_count = max_pages;
  context_memory_.write_mpt(slot->index, entry);
  use_pd(pd);
  FastRegion region;
  region.pd = pd;
  region.key = slot->key;
  region.max_pages = max_pages;
  region.mtt_base = *mtts;
  region.page_list = allocate_ring(std::uint64_t{max_pages} * protocol::MttEntry::kBytes);
  return region;
}

Status Context::map_fast_mr(Core& core, FastRegion& region, std::uint64_t va,
                            std::uint64_t length) {
  if (length == 0 || va + length < va || page_span(va, length) / kPage4KiB > region.max_pages) {
    return Status::kEinval;
  }
  const Status pinned = space_.pin(va, length);
  if (pinned != Status::kOk) return pinned;
  if (region.length > 0) space_.unpin(region.va, region.length);
  region.va = va;
  region.length = length;
  const std::uint64_t pages = page_span(va, length) / kPage4KiB;
  for (std::uint64_t i = 0; i < pages; ++i) {
    const std::uint64_t page = va / kPage4KiB * kPage4KiB + i * kPage4KiB;
    std::uint8_t bytes[protocol::MttEntry::kBytes];
    protocol::MttEntry{space_.translate(page).value(), true, true}.encode(bytes);
    memory_.write(region.page_list + i * sizeof bytes, bytes, sizeof bytes);
  }
  core.spend(memory_config_.odp_page_cost * static_cast<std::int64_t>(pages));
  return Status::kOk;
}

Status Context::dealloc_fast_mr(Core& core, FastRegion& region) {
  const std::uint32_t index = protocol::key_index(region.key);
  MptEntry entry = context_memory_.read_mpt(index);
  if (entry.state == MptState::kInvalid) return Status::kEinval;
  entry.state = MptState::kInvalid;
  enter_kernel(core);
  context_memory_.write_mpt(index, entry);
  MemoryRegion keys;
  keys.lkey = keys.rkey = region.key;
  keys.mtt_base = region.mtt_base;
  keys.mtt_count = region.max_pages;
  drop_cached_key(core, keys);
  context_memory_.free_mpt(index);
  context_memory_.free_mtts(region.mtt_base, region.max_pages);
  if (region.length > 0) space_.unpin(region.va, region.length);
  leave_pd(region.pd);
  return Status::kOk;
}

}  // namespace rnic::host::verbs
