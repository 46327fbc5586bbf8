// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/access.h"

namespace rnic::protocol {

/// A key is the index of its MPT entry (24 bits) above a variant byte that changes whenever the
/// index is used again, so that a stale key does not match.
constexpr std::uint32_t make_key(std::uint32_t index, std::uint8_t variant) {
  return (index << 8) | variant;
}
constexpr std::uint32_t key_index(std::uint32_t key) { return key >> 8; }
constexpr std::uint8_t key_variant(std::uint32_t key) { return static_cast<std::uint8_t>(key); }

enum class MptState : std::uint8_t { kInvalid = 0, kFree = 1, kValid = 2 };
enum class MptType : std::uint8_t {
  kRegion = 0,
  kWindowType1 = 1,
  kWindowType2 = 2,
  kFastRegion = 3,     ///< registered by work requests
  kImplicit = 4,       ///< the whole address space, on demand; its MTT entries name children
  kImplicitChild = 5,  ///< 1 GiB of such a region; no request may name it
};

/// Memory protection table entry: what a key stands for. 64 bytes in context memory, big-endian;
/// an entry of zeros is invalid.
struct MptEntry {
  static constexpr std::uint32_t kBytes = 64;

  MptState state = MptState::kInvalid;
  MptType type = MptType::kRegion;
  std::uint8_t log2_page_size = 12;  ///< of the pages its MTT entries describe
  bool zero_based = false;           ///< addresses are offsets from the region's start
  std::uint32_t key = 0;
  std::uint32_t pd = 0;
  AccessFlags access = 0;
  std::uint64_t start = 0;     ///< first address as requests name it (IOVA; 0 if zero-based)
  std::uint64_t length = 0;    ///< bytes
  std::uint64_t mtt_base = 0;  ///< index of the first MTT entry
  std::uint32_t mtt_count = 0;
  std::uint32_t page_offset = 0;  ///< bytes between the first MTT entry's page and `start`
  std::uint32_t qpn = 0;          ///< the only queue pair that may use it (type 2 windows)

  void encode(std::uint8_t* out) const;
  static MptEntry decode(const std::uint8_t* in);

  std::uint64_t page_size() const { return std::uint64_t{1} << log2_page_size; }
};

/// Where an address lies: index of the MTT entry and offset in the page that it describes.
struct MttLocation {
  std::uint64_t index;
  std::uint64_t offset;
};

/// `va` must lie in the entry's range.
inline MttLocation locate(const MptEntry& entry, std::uint64_t va) {
  const std::uint64_t distance = va - entry.start + entry.page_offset;
  return {entry.mtt_base + (distance >> entry.log2_page_size), distance & (entry.page_size() - 1)};
}

enum class AccessResult : std::uint8_t {
  kOk,
  kBadKey,        ///< another key's entry, or a stale variant byte
  kInvalidState,  ///< freed, invalidated or unbound
  kWrongPd,
  kWrongQp,  ///< a type 2 window of another queue pair
  kOutOfBounds,
  kNoRight,
  kPageFault,   ///< allowed, but a page is not in memory; the driver has been told
  kUnreadable,  ///< the device could not read its own tables
};

/// snake_case name for messages and counters.
const char* access_result_name(AccessResult result);

/// Decides whether a request of protection domain `pd` may use [va, va + length) through `key` with
/// the rights `needed`; the first failing check in hardware order is the answer. `qpn` matters for
/// type 2 windows only. Ranges that wrap around are out of bounds; an empty range may also lie at
/// the end of the region.
AccessResult check_access(const MptEntry& entry, std::uint32_t key, std::uint32_t pd,
                          std::uint64_t va, std::uint64_t length, AccessFlags needed,
                          std::uint32_t qpn = 0);

}  // namespace rnic::protocol
