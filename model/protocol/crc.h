// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Checksums of the wire. All are sent least significant byte first: store_le32(), store_le16().
namespace rnic::protocol {

inline void store_le16(std::uint8_t* p, std::uint16_t v) {
  p[0] = static_cast<std::uint8_t>(v);
  p[1] = static_cast<std::uint8_t>(v >> 8);
}
inline void store_le32(std::uint8_t* p, std::uint32_t v) {
  p[0] = static_cast<std::uint8_t>(v);
  p[1] = static_cast<std::uint8_t>(v >> 8);
  p[2] = static_cast<std::uint8_t>(v >> 16);
  p[3] = static_cast<std::uint8_t>(v >> 24);
}
inline std::uint16_t load_le16(const std::uint8_t* p) {
  return static_cast<std::uint16_t>(p[0] | (p[1] << 8));
}
inline std::uint32_t load_le32(const std::uint8_t* p) {
  return std::uint32_t{p[0]} | (std::uint32_t{p[1]} << 8) | (std::uint32_t{p[2]} << 16) |
         (std::uint32_t{p[3]} << 24);
}

/// CRC-32 of Ethernet's FCS and of the ICRC. `previous` is the result over the bytes before, 0 at
/// the start; a null `data` stands for zero bytes.
std::uint32_t crc32(const std::uint8_t* data, std::size_t bytes, std::uint32_t previous = 0);

/// CRC-32C (Castagnoli) of MPA; `previous` and null `data` as in crc32().
std::uint32_t crc32c(const std::uint8_t* data, std::size_t bytes, std::uint32_t previous = 0);

/// InfiniBand's 16-bit CRC, polynomial 0x100B: VCRC over LRH .. ICRC, LPCRC over a link packet;
/// `previous` and null `data` as in crc32().
std::uint16_t vcrc(const std::uint8_t* data, std::size_t bytes, std::uint16_t previous = 0);
inline std::uint16_t lpcrc(const std::uint8_t* link_packet) { return vcrc(link_packet, 4); }

/// What stands before the BTH decides which bits the ICRC must not see.
enum class IcrcLayout : std::uint8_t {
  kIbLocal,     ///< LRH, BTH
  kIbGlobal,    ///< LRH, GRH, BTH
  kRoceV1,      ///< GRH, BTH
  kRoceV2Ipv4,  ///< IPv4, UDP, BTH
  kRoceV2Ipv6,  ///< IPv6, UDP, BTH
};

/// Bytes of `layout` before the BTH.
constexpr std::uint32_t icrc_bth_offset(IcrcLayout layout) {
  switch (layout) {
    case IcrcLayout::kIbLocal:
      return 8;
    case IcrcLayout::kIbGlobal:
      return 48;
    case IcrcLayout::kRoceV1:
      return 40;
    case IcrcLayout::kRoceV2Ipv4:
      return 28;
    case IcrcLayout::kRoceV2Ipv6:
      return 48;
  }
  return 0;
}

/// Sets the fields that may change on the way to ones (IBTA vol 1, 7.8.1; annexes A16 and A17).
void icrc_mask(IcrcLayout layout, std::uint8_t* header);

/// Invariant CRC. `header` runs from the first byte of `layout` to the last before the payload, at
/// most 160 bytes; a null `payload` stands for zeros.
std::uint32_t icrc(IcrcLayout layout, const std::uint8_t* header, std::size_t header_bytes,
                   const std::uint8_t* payload, std::size_t payload_bytes, std::size_t pad_bytes);

}  // namespace rnic::protocol
