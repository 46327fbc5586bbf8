// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/address_vector.h"
#include "protocol/byte_order.h"

namespace rnic::protocol {

/// Destination queue pair of a datagram to a group (IBTA vol 1, 9.6.1.1.2).
inline constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;

/// Queue pairs of one device in a group at most (mlx5 advertises 240).
inline constexpr std::uint32_t kMostGroupMembers = 240;

/// LIDs of groups (IBTA vol 1, 4.1.3); the permissive LID above them is none.
constexpr bool is_multicast_lid(std::uint16_t lid) { return lid >= 0xC000 && lid < 0xFFFF; }

constexpr bool is_multicast_ipv4(std::uint32_t address) { return address >> 28 == 0xE; }

/// ::ffff:a.b.c.d
inline Gid ipv4_mapped_gid(std::uint32_t address) {
  Gid gid{};
  gid[10] = gid[11] = 0xFF;
  store_be32(gid.data() + 12, address);
  return gid;
}

/// The IPv4 address of a GID that is one, else 0.
inline std::uint32_t mapped_ipv4(const Gid& gid) {
  const bool mapped = load_be64(gid.data()) == 0 && load_be32(gid.data() + 8) == 0xFFFF;
  return mapped ? load_be32(gid.data() + 12) : 0;
}

/// A multicast GID: FF00::/8, or an IPv4 multicast address as RoCEv2 has it.
inline bool is_multicast_gid(const Gid& gid) {
  return gid[0] == 0xFF || is_multicast_ipv4(mapped_ipv4(gid));
}

/// The Ethernet address of a group: 33:33 and the last four bytes of an IPv6 one (RFC 2464, 7),
/// 01:00:5e and the last 23 bits of an IPv4 one (RFC 1112, 6.4).
inline MacAddress multicast_mac(const Gid& group) {
  const std::uint8_t* last = group.data() + 12;
  if (group[0] == 0xFF) return {0x33, 0x33, last[0], last[1], last[2], last[3]};
  return {0x01, 0x00, 0x5E, static_cast<std::uint8_t>(last[1] & 0x7F), last[2], last[3]};
}

/// Makes `av`, whose destination GID is a group's, lead there.
inline void complete_group_address(AddressVector& av) {
  av.destination_mac = multicast_mac(av.destination_gid);
  av.destination_ipv4 = mapped_ipv4(av.destination_gid);
}

}  // namespace rnic::protocol
