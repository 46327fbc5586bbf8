// SPDX-License-Identifier: Apache-2.0
#include "protocol/mpt.h"

#include <cstring>

#include "protocol/byte_order.h"

namespace rnic::protocol {
namespace {

struct Encoder {
  std::uint8_t* out;

  template <class Byte>
  void u8(std::size_t offset, const Byte& value) {
    out[offset] = static_cast<std::uint8_t>(value);
  }
  void u32(std::size_t offset, const std::uint32_t& value) { store_be32(out + offset, value); }
  void u64(std::size_t offset, const std::uint64_t& value) { store_be64(out + offset, value); }
};

struct Decoder {
  const std::uint8_t* in;

  template <class Byte>
  void u8(std::size_t offset, Byte& value) {
    value = static_cast<Byte>(in[offset]);
  }
  void u32(std::size_t offset, std::uint32_t& value) { value = load_be32(in + offset); }
  void u64(std::size_t offset, std::uint64_t& value) { value = load_be64(in + offset); }
};

/// The one description of the entry's 64 bytes; those not named are zero.
template <class Entry, class Io>
void layout(Entry& entry, Io io) {
  io.u8(0, entry.state);
  io.u8(1, entry.type);
  io.u8(2, entry.log2_page_size);
  io.u8(3, entry.zero_based);
  io.u32(4, entry.key);
  io.u32(8, entry.pd);
  io.u32(12, entry.access);
  io.u64(16, entry.start);
  io.u64(24, entry.length);
  io.u64(32, entry.mtt_base);
  io.u32(40, entry.mtt_count);
  io.u32(44, entry.page_offset);
  io.u32(48, entry.qpn);
}

}  // namespace

void MptEntry::encode(std::uint8_t* out) const {
  std::memset(out, 0, kBytes);
  layout(*this, Encoder{out});
}

MptEntry MptEntry::decode(const std::uint8_t* in) {
  MptEntry entry;
  layout(entry, Decoder{in});
  return entry;
}

const char* access_result_name(AccessResult result) {
  switch (result) {
    case AccessResult::kOk:
      return "ok";
    case AccessResult::kBadKey:
      return "bad_key";
    case AccessResult::kInvalidState:
      return "invalid_state";
    case AccessResult::kWrongPd:
      return "wrong_pd";
    case AccessResult::kWrongQp:
      return "wrong_qp";
    case AccessResult::kOutOfBounds:
      return "out_of_bounds";
    case AccessResult::kNoRight:
      return "no_right";
    case AccessResult::kUnreadable:
      return "unreadable";
    case AccessResult::kPageFault:
      return "page_fault";
  }
  return "unknown";
}

AccessResult check_access(const MptEntry& entry, std::uint32_t key, std::uint32_t pd,
                          std::uint64_t va, std::uint64_t length, AccessFlags needed,
                          std::uint32_t qpn) {
  if (entry.key != key || entry.type == MptType::kImplicitChild) return AccessResult::kBadKey;
  if (entry.state != MptState::kValid) return AccessResult::kInvalidState;
  if (entry.pd != pd) return AccessResult::kWrongPd;
  if (entry.type == MptType::kWindowType2 && entry.qpn != qpn) return AccessResult::kWrongQp;
  // Differences, not sums: va + length and start + length may wrap around.
  if (va < entry.start || length > entry.length || va - entry.start > entry.length - length) {
    return AccessResult::kOutOfBounds;
  }
  if ((entry.access & needed) != needed) return AccessResult::kNoRight;
  return AccessResult::kOk;
}

}  // namespace rnic::protocol
