// SPDX-License-Identifier: Apache-2.0
#include "host/memory_registrar.h"

#include <algorithm>

#include "protocol/mpt.h"
#include "protocol/mtt.h"

namespace rnic::host {
namespace {

unsigned log2_floor(std::uint64_t value) {
  return 63U - static_cast<unsigned>(__builtin_clzll(value));
}

std::uint64_t mtts_needed(std::uint64_t offset, std::uint64_t length, std::uint64_t page_size) {
  return (offset + length + page_size - 1) / page_size;
}

/// Largest page one MTT entry may stand for (Linux, ib_umem_find_best_pgsz): device address and
/// physical address agree in the low bits at every discontinuity, and no larger than it takes to
/// cover the region with one. A power of two from 4 KiB to 1 GiB.
template <class Runs>
std::uint64_t best_page_size(const Runs& runs, std::uint64_t device_address, std::uint64_t length) {
  std::uint64_t mask = kPage1GiB;
  const std::uint64_t changing = (device_address + length - 1) ^ device_address;
  if (changing != 0) mask |= (std::uint64_t{1} << log2_floor(changing)) << 1;
  if (changing == 0) mask |= kPage4KiB;
  std::uint64_t at = device_address;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    mask |= runs[i].pa ^ at;
    at += runs[i].bytes;
    if (i + 1 < runs.size()) mask |= at;
  }
  return std::max(mask & (0 - mask), kPage4KiB);
}

}  // namespace

MemoryRegistrar::MemoryRegistrar(ContextMemory& context, const config::MemoryConfig& config,
                                 KeyPolicy policy)
    : context_(context),
      reg_call_cost_(config.reg_call_cost),
      reg_page_cost_(config.reg_page_cost),
      reg_zero_cost_(config.reg_zero_cost),
      dereg_call_cost_(config.dereg_call_cost),
      dereg_page_cost_(config.dereg_page_cost),
      policy_(policy) {}

bool MemoryRegistrar::arguments_valid(const MemoryRegion& region, bool zero_based) const {
  if (!protocol::registration_flags_valid(region.access)) return false;
  if (region.length == 0 || region.va + region.length < region.va) return false;
  if (zero_based) return true;
  if (region.iova + region.length < region.iova) return false;
  return (region.iova ^ region.va) % kPage4KiB == 0;
}

std::vector<MemoryRegistrar::Run> MemoryRegistrar::collect_runs(const AddressSpace& space,
                                                                MemoryRegion& region) const {
  std::vector<Run> runs;
  const std::uint64_t os_page = space.page_size_at(region.va);
  for (std::uint64_t done = 0; done < region.length;) {
    const std::uint64_t va = region.va + done;
    const std::uint64_t chunk = std::min(region.length - done, os_page - va % os_page);
    const std::uint64_t pa = space.translate(va).value();
    if (!runs.empty() && runs.back().pa + runs.back().bytes == pa) {
      runs.back().bytes += chunk;
    } else {
      runs.push_back({pa, chunk});
    }
    ++region.npages;
    done += chunk;
  }
  return runs;
}

void MemoryRegistrar::write_mtts(const MemoryRegion& region, const std::vector<Run>& runs) {
  const bool writable = (region.access & protocol::kAccessWriteIntent) != 0;
  std::uint64_t index = region.mtt_base;
  const std::uint64_t end = region.mtt_base + region.mtt_count;
  for (const Run& run : runs) {
    const std::uint64_t first = run.pa / region.page_size * region.page_size;
    for (std::uint64_t pa = first; pa < run.pa + run.bytes && index < end; pa += region.page_size) {
      context_.write_mtt(index++, {pa, true, writable});
    }
  }
}

void MemoryRegistrar::write_mpts(const MemoryRegion& region, bool zero_based) {
  protocol::MptEntry entry;
  entry.state = protocol::MptState::kValid;
  entry.type = region.implicit ? protocol::MptType::kImplicit : protocol::MptType::kRegion;
  entry.log2_page_size = static_cast<std::uint8_t>(log2_floor(region.page_size));
  entry.zero_based = zero_based;
  entry.key = region.rkey;
  entry.pd = region.pd;
  entry.access = region.access;
  entry.start = region.iova;
  entry.length = region.length;
  entry.mtt_base = region.mtt_base;
  entry.mtt_count = static_cast<std::uint32_t>(region.mtt_count);
  const std::uint64_t first_byte = zero_based ? region.va : region.iova;
  entry.page_offset = static_cast<std::uint32_t>(first_byte % region.page_size);
  context_.write_mpt(protocol::key_index(region.rkey), entry);
  if (region.lkey != region.rkey) {
    entry.key = region.lkey;
    entry.access &= ~protocol::kAccessRemoteMask;
    context_.write_mpt(protocol::key_index(region.lkey), entry);
  }
}

bool MemoryRegistrar::allocate_tables(MemoryRegion& region) {
  const auto mtt_base = context_.allocate_mtts(region.mtt_count);
  if (!mtt_base) return false;
  const auto remote = context_.allocate_mpt();
  auto local = remote;
  if (remote && policy_ == KeyPolicy::kDistinct) local = context_.allocate_mpt();
  if (!remote || !local) {
    if (remote) context_.free_mpt(remote->index);
    context_.free_mtts(*mtt_base, region.mtt_count);
    return false;
  }
  region.mtt_base = *mtt_base;
  region.rkey = remote->key;
  region.lkey = local->key;
  return true;
}

bool MemoryRegistrar::write_tables(MemoryRegion& region, const std::vector<Run>& runs,
                                   bool zero_based) {
  const std::uint64_t first_byte = zero_based ? region.va : region.iova;
  region.page_size = best_page_size(runs, first_byte, region.length);
  region.mtt_count = mtts_needed(first_byte % region.page_size, region.length, region.page_size);
  if (!allocate_tables(region)) return false;
  write_mtts(region, runs);
  write_mpts(region, zero_based);
  return true;
}

RegistrationResult MemoryRegistrar::reg_implicit(MemoryRegion& region) {
  RegistrationResult result;
  result.cost = reg_call_cost_;
  region.implicit = true;
  region.page_size = kPage1GiB;
  region.mtt_count = AddressSpace::kEnd / kPage1GiB + 1;
  if (!allocate_tables(region)) {
    result.status = Status::kEnomem;
    return result;
  }
  context_.clear_mtts(region.mtt_base, region.mtt_count);
  write_mpts(region, false);
  result.region = region;
  return result;
}

std::optional<MemoryRegion> MemoryRegistrar::make_child(const MemoryRegion& implicit,
                                                        std::uint64_t address) {
  const std::uint64_t number = address >> protocol::kImplicitChildLog2;
  if (number >= implicit.mtt_count) return std::nullopt;
  MemoryRegion child = implicit;
  child.implicit = false;
  child.va = child.iova = number << protocol::kImplicitChildLog2;
  child.length = std::uint64_t{1} << protocol::kImplicitChildLog2;
  child.page_size = kPage4KiB;
  child.mtt_count = child.length / child.page_size;
  const auto slot = context_.allocate_mpt();
  if (!slot) return std::nullopt;
  const auto mtts = context_.allocate_mtts(child.mtt_count);
  if (!mtts) {
    context_.free_mpt(slot->index);
    return std::nullopt;
  }
  child.lkey = child.rkey = slot->key;
  child.mtt_base = *mtts;
  context_.clear_mtts(child.mtt_base, child.mtt_count);
  write_mpts(child, false);
  protocol::MptEntry entry = context_.read_mpt(slot->index);
  entry.type = protocol::MptType::kImplicitChild;
  context_.write_mpt(slot->index, entry);
  context_.write_mtt(implicit.mtt_base + number, protocol::MttEntry::of_child(slot->key));
  return child;
}

void MemoryRegistrar::drop_child(const MemoryRegion& child) {
  invalidate(child.lkey);
  context_.free_mtts(child.mtt_base, child.mtt_count);
}

RegistrationResult MemoryRegistrar::reg_on_demand(AddressSpace& space, MemoryRegion& region,
                                                  bool zero_based) {
  RegistrationResult result;
  result.cost = reg_call_cost_;
  region.page_size = space.page_size_at(region.va);
  if (region.page_size == 0) {
    result.status = Status::kEfault;
    return result;
  }
  region.mtt_count = mtts_needed(region.va % region.page_size, region.length, region.page_size);
  if (!allocate_tables(region)) {
    result.status = Status::kEnomem;
    return result;
  }
  for (std::uint64_t i = 0; i < region.mtt_count; ++i) context_.write_mtt(region.mtt_base + i, {});
  write_mpts(region, zero_based);
  result.region = region;
  return result;
}

MemoryRegistrar::Populated MemoryRegistrar::entries_of(const MemoryRegion& region,
                                                       std::uint64_t address,
                                                       std::uint64_t bytes) const {
  Populated out;
  const std::uint64_t start = std::max(address, region.iova);
  const std::uint64_t end = std::min(address + bytes, region.iova + region.length);
  if (start >= end) return out;
  const std::uint64_t offset = region.va % region.page_size;
  const std::uint64_t first = (start - region.iova + offset) / region.page_size;
  const std::uint64_t last = (end - 1 - region.iova + offset) / region.page_size;
  out.first_mtt = region.mtt_base + first;
  out.count = static_cast<std::uint32_t>(last - first + 1);
  return out;
}

std::uint32_t MemoryRegistrar::missing(const MemoryRegion& region, std::uint64_t address,
                                       std::uint64_t bytes) const {
  const Populated range = entries_of(region, address, bytes);
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < range.count; ++i) {
    if (!context_.read_mtt(range.first_mtt + i).present()) ++count;
  }
  return count;
}

MemoryRegistrar::Populated MemoryRegistrar::populate(AddressSpace& space,
                                                     const MemoryRegion& region,
                                                     std::uint64_t address, std::uint64_t bytes) {
  Populated range = entries_of(region, address, bytes);
  const bool writable = (region.access & protocol::kAccessWriteIntent) != 0;
  const std::uint64_t first_page = region.va / region.page_size;
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const std::uint64_t mtt = range.first_mtt + i;
    if (context_.read_mtt(mtt).present()) continue;
    const std::uint64_t va = (first_page + mtt - region.mtt_base) * region.page_size;
    std::uint8_t touched = 0;
    if (space.read(va, &touched, 1) != Status::kOk) {  // faults the page in
      range.failed = true;
      continue;
    }
    context_.write_mtt(mtt, {space.translate(va).value(), true, writable});
    ++range.mapped;
  }
  return range;
}

Status MemoryRegistrar::change_rights(MemoryRegion& region, std::uint32_t pd,
                                      protocol::AccessFlags access) {
  constexpr protocol::AccessFlags kFixed = protocol::kAccessZeroBased | protocol::kAccessOnDemand;
  if (!is_valid(region.rkey) || !protocol::registration_flags_valid(access) ||
      (access & kFixed) != (region.access & kFixed)) {
    return Status::kEinval;
  }
  // The device's own right to write goes with the pages' mapping.
  constexpr protocol::AccessFlags kWrite = protocol::kAccessWriteIntent;
  if ((access & kWrite) != 0 && (region.access & kWrite) == 0 && !region.implicit) {
    for (std::uint64_t i = 0; i < region.mtt_count; ++i) {
      protocol::MttEntry entry = context_.read_mtt(region.mtt_base + i);
      entry.writable = entry.readable;
      context_.write_mtt(region.mtt_base + i, entry);
    }
  }
  region.pd = pd;
  region.access = access;
  write_mpts(region, (access & protocol::kAccessZeroBased) != 0);
  return Status::kOk;
}

RegistrationResult MemoryRegistrar::change_translation(AddressSpace& space,
                                                       const MemoryRegion& region, std::uint64_t va,
                                                       std::uint64_t length) {
  RegistrationResult result;
  result.cost = reg_call_cost_;
  const bool zero_based = (region.access & protocol::kAccessZeroBased) != 0;
  MemoryRegion changed = region;
  changed.va = va;
  changed.length = length;
  changed.iova = zero_based ? 0 : va;
  changed.npages = 0;
  if (!is_valid(region.rkey) || (region.access & protocol::kAccessOnDemand) != 0 ||
      !arguments_valid(changed, zero_based)) {
    result.status = Status::kEinval;
    return result;
  }
  result.status = space.pin(va, length);
  if (result.status != Status::kOk) return result;
  const std::vector<Run> runs = collect_runs(space, changed);
  changed.page_size = best_page_size(runs, va, length);
  changed.mtt_count = mtts_needed(va % changed.page_size, length, changed.page_size);
  const auto mtt_base = context_.allocate_mtts(changed.mtt_count);
  if (!mtt_base) {
    space.unpin(va, length);
    result.status = Status::kEnomem;
    return result;
  }
  changed.mtt_base = *mtt_base;
  write_mtts(changed, runs);
  write_mpts(changed, zero_based);
  context_.free_mtts(region.mtt_base, region.mtt_count);
  space.unpin(region.va, region.length);
  result.region = changed;
  result.cost +=
      pin_cost(space, changed.npages) + dereg_page_cost_ * static_cast<std::int64_t>(region.npages);
  return result;
}

RegistrationResult MemoryRegistrar::reg_mr(AddressSpace& space, std::uint32_t pd, std::uint64_t va,
                                           std::uint64_t length, protocol::AccessFlags access,
                                           std::uint64_t iova, bool zero_based) {
  RegistrationResult result;
  result.cost = reg_call_cost_;
  zero_based = zero_based || (access & protocol::kAccessZeroBased) != 0;
  MemoryRegion region;
  region.va = va;
  region.length = length;
  region.iova = zero_based ? 0 : iova;
  region.pd = pd;
  region.access = access;
  const bool whole_space = va == 0 && length == kWholeSpace && iova == 0;
  if (whole_space && (access & protocol::kAccessOnDemand) != 0 && !zero_based &&
      protocol::registration_flags_valid(access)) {
    return reg_implicit(region);
  }
  if (!arguments_valid(region, zero_based)) {
    result.status = Status::kEinval;
    return result;
  }
  if ((access & protocol::kAccessOnDemand) != 0) return reg_on_demand(space, region, zero_based);
  result.status = space.pin(va, length);
  if (result.status != Status::kOk) return result;
  const std::vector<Run> runs = collect_runs(space, region);
  if (!write_tables(region, runs, zero_based)) {
    space.unpin(va, length);
    result.status = Status::kEnomem;
    return result;
  }
  result.region = region;
  result.cost += pin_cost(space, region.npages);
  return result;
}

Time MemoryRegistrar::pin_cost(const AddressSpace& space, std::uint64_t pages) const {
  return reg_page_cost_ * static_cast<std::int64_t>(pages) +
         reg_zero_cost_ * static_cast<std::int64_t>(space.cleared_bytes() / kPage4KiB);
}

bool MemoryRegistrar::is_valid(std::uint32_t key) const {
  const std::uint32_t index = protocol::key_index(key);
  if (index >= context_.layout().mpts) return false;
  const protocol::MptEntry entry = context_.read_mpt(index);
  return entry.key == key && entry.state == protocol::MptState::kValid;
}

void MemoryRegistrar::invalidate(std::uint32_t key) {
  const std::uint32_t index = protocol::key_index(key);
  protocol::MptEntry entry = context_.read_mpt(index);
  entry.state = protocol::MptState::kInvalid;
  context_.write_mpt(index, entry);
  context_.free_mpt(index);
}

DeregistrationResult MemoryRegistrar::dereg_mr(AddressSpace& space, const MemoryRegion& region) {
  DeregistrationResult result;
  result.cost = dereg_call_cost_;
  if (!is_valid(region.lkey) || !is_valid(region.rkey)) {
    result.status = Status::kEinval;
    return result;
  }
  // The keys first: a page must never be unpinned while the device may still reach it.
  invalidate(region.lkey);
  if (region.rkey != region.lkey) invalidate(region.rkey);
  context_.free_mtts(region.mtt_base, region.mtt_count);
  if ((region.access & protocol::kAccessOnDemand) == 0) {
    result.status = space.unpin(region.va, region.length);
  }
  result.cost += dereg_page_cost_ * static_cast<std::int64_t>(region.npages);
  return result;
}

}  // namespace rnic::host
