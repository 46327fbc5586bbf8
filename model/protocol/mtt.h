// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_order.h"

namespace rnic::protocol {

/// What one child of an implicit on-demand region covers: 1 GiB, as in mlx5.
inline constexpr std::uint32_t kImplicitChildLog2 = 30;

/// Memory translation table entry: the physical address of one page of a memory region, with the
/// device's rights in the low bits that the alignment leaves free (READ = 1, WRITE = 2, as mlx5).
/// An entry without rights is not present. Eight bytes, big-endian.
struct MttEntry {
  static constexpr std::uint32_t kBytes = 8;
  static constexpr std::uint64_t kReadBit = 1;
  static constexpr std::uint64_t kWriteBit = 2;
  static constexpr std::uint64_t kAddressMask = ~std::uint64_t{0xFFF};

  std::uint64_t address = 0;  ///< multiple of 4 KiB
  bool readable = false;
  bool writable = false;

  bool present() const { return readable || writable; }

  /// Entry of an implicit region: the key of the child that covers its gigabyte.
  static MttEntry of_child(std::uint32_t key) { return {std::uint64_t{key} << 12, true, true}; }
  std::uint32_t child_key() const { return static_cast<std::uint32_t>(address >> 12); }

  void encode(std::uint8_t* out) const {
    store_be64(out,
               (address & kAddressMask) | (readable ? kReadBit : 0) | (writable ? kWriteBit : 0));
  }
  static MttEntry decode(const std::uint8_t* in) {
    const std::uint64_t word = load_be64(in);
    return {word & kAddressMask, (word & kReadBit) != 0, (word & kWriteBit) != 0};
  }
};

}  // namespace rnic::protocol
