// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_io.h"
#include "protocol/ethernet.h"
#include "protocol/ip.h"

namespace rnic::protocol {

/// Sets the ECN codepoint of an Ethernet frame's IP header to "congestion experienced", as a switch
/// does (RFC 3168), with the IPv4 checksum that belongs to it. False, and nothing is changed, when
/// the packet is not ECN-capable or no IP packet. ICRC and TCP checksum do not cover the field.
inline bool mark_congestion(std::uint8_t* frame, std::uint32_t header_bytes) {
  constexpr std::uint32_t kTypeAt = 12;
  std::uint32_t ip_at = EthernetHeader::kBytes;
  if (header_bytes < ip_at) return false;
  std::uint16_t type = load_be16(frame + kTypeAt);
  if (type == kEtherTypeVlan) {
    if (header_bytes < ip_at + VlanTag::kBytes) return false;
    type = load_be16(frame + kTypeAt + VlanTag::kBytes);
    ip_at += VlanTag::kBytes;
  }
  std::uint8_t* ip = frame + ip_at;
  if (type == kEtherTypeIpv4 && header_bytes >= ip_at + Ipv4Header::kBytes) {
    if ((ip[1] & kEcnMask) == 0) return false;
    ip[1] |= kEcnCongestion;
    store_be16(ip + Ipv4Header::kChecksumOffset, 0);
    InternetChecksum sum;
    sum.add(ip, Ipv4Header::kBytes);
    store_be16(ip + Ipv4Header::kChecksumOffset, sum.value());
    return true;
  }
  if (type == kEtherTypeIpv6 && header_bytes >= ip_at + Ipv6Header::kBytes) {
    // Version 4 bits, traffic class 8, whose low two bits are the codepoint.
    if ((ip[1] >> 4 & kEcnMask) == 0) return false;
    ip[1] = static_cast<std::uint8_t>(ip[1] | kEcnCongestion << 4);
    return true;
  }
  return false;
}

}  // namespace rnic::protocol
