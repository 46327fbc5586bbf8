// SPDX-License-Identifier: Apache-2.0
#include "host/context_memory.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace rnic::host {
namespace {

constexpr std::uint32_t kKeyIndices = 1U << 24;

std::uint64_t whole_lines(std::uint64_t mtts) {
  return (mtts + ContextMemory::kMttAlignment - 1) / ContextMemory::kMttAlignment *
         ContextMemory::kMttAlignment;
}

}  // namespace

ContextMemory::ContextMemory(PhysicalMemory& memory, const ContextLayout& layout)
    : memory_(memory),
      layout_(layout),
      qpc_base_(reserve(layout.qps, kQpcBytes)),
      cqc_base_(reserve(layout.cqs, kCqcBytes)),
      srqc_base_(reserve(layout.srqs, kSrqcBytes)),
      mpt_base_(reserve(layout.mpts, protocol::MptEntry::kBytes)),
      mtt_base_(reserve(layout.mtts, protocol::MttEntry::kBytes)),
      mtts_(0, layout.mtts / kMttAlignment * kMttAlignment),
      variants_(kFirstMpt) {
  if (layout.mpts > kKeyIndices) {
    throw ConfigError("context memory: " + std::to_string(layout.mpts) +
                      " MPT entries, a key can index 16777216");
  }
}

std::uint64_t ContextMemory::reserve(std::uint64_t entries, std::uint64_t entry_bytes) {
  const auto base = memory_.allocate_contiguous(entries * entry_bytes);
  if (!base) {
    throw ConfigError("context memory: no room in physical memory for a table of " +
                      std::to_string(entries * entry_bytes) + " bytes");
  }
  return *base;
}

std::optional<MptSlot> ContextMemory::allocate_mpt() {
  if (mpts_in_use_ >= layout_.max_mr) return std::nullopt;
  if (free_mpts_.empty()) {
    if (variants_.size() >= layout_.mpts) return std::nullopt;
    free_mpts_.push_back(static_cast<std::uint32_t>(variants_.size()));
    variants_.push_back(0);
  }
  const std::uint32_t index = free_mpts_.back();
  free_mpts_.pop_back();
  ++mpts_in_use_;
  return MptSlot{index, protocol::make_key(index, variants_[index]++)};
}

void ContextMemory::free_mpt(std::uint32_t index) {
  if (index < kFirstMpt || index >= variants_.size() || mpts_in_use_ == 0) {
    panic("ContextMemory", "a freed MPT entry was allocated");
  }
  free_mpts_.push_back(index);
  --mpts_in_use_;
}

std::optional<std::uint64_t> ContextMemory::allocate_mtts(std::uint64_t count) {
  if (count > layout_.mtts) return std::nullopt;
  return mtts_.allocate(whole_lines(count), kMttAlignment);
}

void ContextMemory::free_mtts(std::uint64_t base, std::uint64_t count) {
  mtts_.release(base, whole_lines(count));
}

void ContextMemory::write_mpt(std::uint32_t index, const protocol::MptEntry& entry) {
  std::array<std::uint8_t, protocol::MptEntry::kBytes> bytes;
  entry.encode(bytes.data());
  memory_.write(address_of_mpt(index), bytes.data(), bytes.size());
}

protocol::MptEntry ContextMemory::read_mpt(std::uint32_t index) const {
  std::array<std::uint8_t, protocol::MptEntry::kBytes> bytes;
  memory_.read(address_of_mpt(index), bytes.data(), bytes.size());
  return protocol::MptEntry::decode(bytes.data());
}

void ContextMemory::clear_mtts(std::uint64_t base, std::uint64_t count) {
  constexpr std::uint64_t kAtOnce = 512;  // a page of them
  const std::uint8_t zeros[kAtOnce * protocol::MttEntry::kBytes] = {};
  while (count > 0) {
    const std::uint64_t part = std::min(count, kAtOnce);
    memory_.write(address_of_mtt(base), zeros, part * protocol::MttEntry::kBytes);
    base += part;
    count -= part;
  }
}

void ContextMemory::write_mtt(std::uint64_t index, const protocol::MttEntry& entry) {
  std::array<std::uint8_t, protocol::MttEntry::kBytes> bytes;
  entry.encode(bytes.data());
  memory_.write(address_of_mtt(index), bytes.data(), bytes.size());
}

protocol::MttEntry ContextMemory::read_mtt(std::uint64_t index) const {
  std::array<std::uint8_t, protocol::MttEntry::kBytes> bytes;
  memory_.read(address_of_mtt(index), bytes.data(), bytes.size());
  return protocol::MttEntry::decode(bytes.data());
}

}  // namespace rnic::host
