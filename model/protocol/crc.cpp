// SPDX-License-Identifier: Apache-2.0
#include "protocol/crc.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "protocol/ib_headers.h"

namespace rnic::protocol {
namespace {

/// Tables of a reflected CRC that takes eight bytes a step.
template <class Word>
struct SlicedTable {
  Word entries[8][256];
};

template <class Word>
constexpr SlicedTable<Word> make_table(Word reflected_polynomial) {
  SlicedTable<Word> table{};
  for (unsigned i = 0; i < 256; ++i) {
    Word crc = static_cast<Word>(i);
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = (crc & 1U) != 0;
      crc = static_cast<Word>(crc >> 1);
      if (one) crc = static_cast<Word>(crc ^ reflected_polynomial);
    }
    table.entries[0][i] = crc;
  }
  for (unsigned slice = 1; slice < 8; ++slice) {
    for (unsigned i = 0; i < 256; ++i) {
      const Word before = table.entries[slice - 1][i];
      table.entries[slice][i] = static_cast<Word>((before >> 8) ^ table.entries[0][before & 0xFFU]);
    }
  }
  return table;
}

template <class Word>
Word update(const SlicedTable<Word>& table, Word crc, const std::uint8_t* data, std::size_t bytes) {
  for (; bytes >= 8; bytes -= 8, data += 8) {
    const std::uint32_t low = load_le32(data) ^ crc;
    Word next = 0;
    for (unsigned i = 0; i < 4; ++i) {
      next = static_cast<Word>(next ^ table.entries[7 - i][(low >> (8 * i)) & 0xFFU] ^
                               table.entries[3 - i][data[4 + i]]);
    }
    crc = next;
  }
  for (; bytes > 0; --bytes, ++data) {
    crc = static_cast<Word>((crc >> 8) ^ table.entries[0][(crc ^ *data) & 0xFFU]);
  }
  return crc;
}

constexpr auto kCrc32cTable = make_table<std::uint32_t>(0x82F6'3B78U);
constexpr auto kVcrcTable = make_table<std::uint16_t>(0xD008U);

constexpr std::uint8_t kZeros[256] = {};

/// Calls `step(data, bytes)` for the data, or for as many zeros when there is none.
template <class Step>
void for_data_or_zeros(const std::uint8_t* data, std::size_t bytes, Step step) {
  if (data != nullptr) {
    step(data, bytes);
    return;
  }
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, sizeof kZeros);
    step(kZeros, piece);
    bytes -= piece;
  }
}

/// CRC-32 after the eight bytes of ones that stand for RoCE's missing LRH.
std::uint32_t crc_of_dummy_lrh() {
  constexpr std::uint32_t kRegister = 0xDEBB'20E3U;
  return ~kRegister;
}

void mask_ipv6(std::uint8_t* header) {
  header[0] |= 0x0F;
  std::memset(header + 1, 0xFF, 3);
  header[7] = 0xFF;
}

}  // namespace

std::uint32_t crc32(const std::uint8_t* data, std::size_t bytes, std::uint32_t previous) {
  uLong crc = previous;
  for_data_or_zeros(data, bytes, [&crc](const std::uint8_t* piece, std::size_t n) {
    crc = ::crc32_z(crc, piece, n);
  });
  return static_cast<std::uint32_t>(crc);
}

std::uint32_t crc32c(const std::uint8_t* data, std::size_t bytes, std::uint32_t previous) {
  std::uint32_t crc = ~previous;
  for_data_or_zeros(data, bytes, [&crc](const std::uint8_t* piece, std::size_t n) {
    crc = update(kCrc32cTable, crc, piece, n);
  });
  return ~crc;
}

std::uint16_t vcrc(const std::uint8_t* data, std::size_t bytes, std::uint16_t previous) {
  auto crc = static_cast<std::uint16_t>(~previous);
  for_data_or_zeros(data, bytes, [&crc](const std::uint8_t* piece, std::size_t n) {
    crc = update(kVcrcTable, crc, piece, n);
  });
  return static_cast<std::uint16_t>(~crc);
}

void icrc_mask(IcrcLayout layout, std::uint8_t* header) {
  switch (layout) {
    case IcrcLayout::kIbLocal:
      header[0] |= 0xF0;  // VL
      break;
    case IcrcLayout::kIbGlobal:
      std::memset(header, 0xFF, Lrh::kBytes);
      mask_ipv6(header + Lrh::kBytes);
      break;
    case IcrcLayout::kRoceV1:
      mask_ipv6(header);
      break;
    case IcrcLayout::kRoceV2Ipv4:
      header[1] = 0xFF;                   // ToS
      header[8] = 0xFF;                   // TTL
      std::memset(header + 10, 0xFF, 2);  // IPv4 checksum
      std::memset(header + 26, 0xFF, 2);  // UDP checksum
      break;
    case IcrcLayout::kRoceV2Ipv6:
      mask_ipv6(header);
      std::memset(header + 46, 0xFF, 2);  // UDP checksum
      break;
  }
  header[icrc_bth_offset(layout) + Bth::kCongestionOffset] = 0xFF;
}

std::uint32_t icrc(IcrcLayout layout, const std::uint8_t* header, std::size_t header_bytes,
                   const std::uint8_t* payload, std::size_t payload_bytes, std::size_t pad_bytes) {
  std::uint8_t masked[160];
  const std::size_t n = std::min(header_bytes, sizeof masked);
  std::memcpy(masked, header, n);
  icrc_mask(layout, masked);
  const bool has_lrh = layout == IcrcLayout::kIbLocal || layout == IcrcLayout::kIbGlobal;
  std::uint32_t crc = crc32(masked, n, has_lrh ? 0 : crc_of_dummy_lrh());
  crc = crc32(payload, payload_bytes, crc);
  return crc32(nullptr, pad_bytes, crc);
}

}  // namespace rnic::protocol
