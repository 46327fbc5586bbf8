// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/physical_memory.h"
#include "host/range_allocator.h"
#include "protocol/mpt.h"
#include "protocol/mtt.h"

namespace rnic::host {

/// Capacities of a device's context tables. Defaults: the mlx4 driver's default profile (2^18 QPs,
/// 2^16 CQs and SRQs, 2^19 MPTs, 2^20 segments of eight MTTs).
struct ContextLayout {
  std::uint32_t qps = 1U << 18;
  std::uint32_t cqs = 1U << 16;
  std::uint32_t srqs = 1U << 16;
  std::uint32_t mpts = 1U << 19;  ///< at most 2^24, what a key can index
  std::uint64_t mtts = std::uint64_t{1} << 23;
  std::uint32_t max_mr = (1U << 19) - 2;  ///< MPT entries in use at once
};

/// An MPT entry's place and the key that stands for this use of it.
struct MptSlot {
  std::uint32_t index;
  std::uint32_t key;
};

/// The device's context memory (ICM): QP, CQ and SRQ contexts, protection and translation tables in
/// physically contiguous host memory, where the driver writes them and the device fetches them by
/// DMA. Pages nobody uses cost nothing.
class ContextMemory {
 public:
  static constexpr std::uint32_t kQpcBytes = 256;
  static constexpr std::uint32_t kCqcBytes = 64;
  static constexpr std::uint32_t kSrqcBytes = 64;
  /// MTT ranges start at a multiple of this, so that two regions never share a 64 B line.
  static constexpr std::uint64_t kMttAlignment = 8;
  /// Keys 0x000 to 0x1ff stand for nothing: 0 is "no key", 0x100 ends a scatter list (mlx5).
  static constexpr std::uint32_t kFirstMpt = 2;

  /// Reserves the tables; throws ConfigError if `memory` has no room for them.
  ContextMemory(PhysicalMemory& memory, const ContextLayout& layout);

  ContextMemory(const ContextMemory&) = delete;
  ContextMemory& operator=(const ContextMemory&) = delete;

  const ContextLayout& layout() const { return layout_; }

  /// Physical addresses of table entries; the index must be inside its table.
  std::uint64_t address_of_qpc(std::uint32_t qpn) const {
    return qpc_base_ + std::uint64_t{qpn} * kQpcBytes;
  }
  std::uint64_t address_of_cqc(std::uint32_t cqn) const {
    return cqc_base_ + std::uint64_t{cqn} * kCqcBytes;
  }
  std::uint64_t address_of_srqc(std::uint32_t srqn) const {
    return srqc_base_ + std::uint64_t{srqn} * kSrqcBytes;
  }
  std::uint64_t address_of_mpt(std::uint32_t index) const {
    return mpt_base_ + std::uint64_t{index} * protocol::MptEntry::kBytes;
  }
  std::uint64_t address_of_mtt(std::uint64_t index) const {
    return mtt_base_ + index * protocol::MttEntry::kBytes;
  }

  /// A free MPT entry; its key's variant byte differs from that of the entry's previous use.
  /// Nothing when `max_mr` entries are in use (ENOMEM).
  std::optional<MptSlot> allocate_mpt();
  void free_mpt(std::uint32_t index);
  std::uint32_t mpts_in_use() const { return mpts_in_use_; }

  /// `count` MTT entries in a row; nothing when no such range is free (ENOMEM).
  std::optional<std::uint64_t> allocate_mtts(std::uint64_t count);
  /// `count` as given to allocate_mtts.
  void free_mtts(std::uint64_t base, std::uint64_t count);
  /// MTT entries that are free, in multiples of kMttAlignment.
  std::uint64_t free_mtt_count() const { return mtts_.free_count(); }

  /// Table entries as the bytes in memory hold them.
  void write_mpt(std::uint32_t index, const protocol::MptEntry& entry);
  protocol::MptEntry read_mpt(std::uint32_t index) const;
  void write_mtt(std::uint64_t index, const protocol::MttEntry& entry);
  void clear_mtts(std::uint64_t base, std::uint64_t count);
  protocol::MttEntry read_mtt(std::uint64_t index) const;

 private:
  std::uint64_t reserve(std::uint64_t entries, std::uint64_t entry_bytes);

  PhysicalMemory& memory_;
  ContextLayout layout_;
  std::uint64_t qpc_base_;
  std::uint64_t cqc_base_;
  std::uint64_t srqc_base_;
  std::uint64_t mpt_base_;
  std::uint64_t mtt_base_;
  RangeAllocator mtts_;
  std::vector<std::uint8_t> variants_;  // next variant byte of each index used so far
  std::vector<std::uint32_t> free_mpts_;
  std::uint32_t mpts_in_use_ = 0;
};

}  // namespace rnic::host
