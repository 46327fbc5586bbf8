// SPDX-License-Identifier: Apache-2.0
#include "transport/ethernet_encapsulation.h"

#include <algorithm>
#include <cstring>

#include "protocol/crc.h"
#include "protocol/mpa.h"
#include "protocol/multicast.h"
#include "protocol/tcp_header.h"
#include "protocol/udp.h"

namespace rnic::transport {

using protocol::EthernetHeader;
using protocol::Frame;
using protocol::Ipv4Header;
using protocol::Ipv6Header;
using protocol::VlanTag;

namespace {

// std::array's comparison calls memcmp, which costs more than the rest of an address check.
bool same_mac(const protocol::MacAddress& a, const protocol::MacAddress& b) {
  return protocol::load_be32(a.data()) == protocol::load_be32(b.data()) &&
         protocol::load_be16(a.data() + 4) == protocol::load_be16(b.data() + 4);
}
bool same_gid(const protocol::Gid& a, const protocol::Gid& b) {
  return protocol::load_be64(a.data()) == protocol::load_be64(b.data()) &&
         protocol::load_be64(a.data() + 8) == protocol::load_be64(b.data() + 8);
}

}  // namespace

// Ethernet.

EthernetEncapsulation::EthernetEncapsulation(bool vlan, std::uint16_t ether_type,
                                             std::uint32_t network_bytes)
    : Encapsulation(EthernetHeader::kBytes + (vlan ? VlanTag::kBytes : 0) + network_bytes,
                    protocol::kFcsBytes),
      vlan_(vlan),
      ether_type_(ether_type),
      link_bytes_(EthernetHeader::kBytes + (vlan ? VlanTag::kBytes : 0)) {}

std::uint8_t EthernetEncapsulation::lane_of(const AddressVector& av) const {
  return vlan_ ? av.lane & 7 : 0;
}

std::uint32_t EthernetEncapsulation::wire_bytes(std::uint32_t frame_bytes) const {
  return std::max(frame_bytes, protocol::kEthernetMinFrameBytes) +
         protocol::kEthernetPreambleBytes + protocol::kEthernetGapBytes;
}

void EthernetEncapsulation::write_link(const AddressVector& av, std::uint8_t* out) const {
  EthernetHeader ethernet;
  ethernet.destination = av.destination_mac;
  ethernet.source = av.source_mac;
  ethernet.ether_type = vlan_ ? protocol::kEtherTypeVlan : ether_type_;
  ethernet.encode(out);
  if (!vlan_) return;
  VlanTag tag;
  tag.priority = av.lane;
  tag.vlan_id = av.vlan_id;
  tag.ether_type = ether_type_;
  tag.encode(out + EthernetHeader::kBytes);
}

std::uint32_t EthernetEncapsulation::parse_link(const std::uint8_t* header, std::size_t bytes,
                                                ParsedOuter& outer, std::uint16_t& ether_type) {
  if (bytes < EthernetHeader::kBytes) return 0;
  // Decoded in place: a copy of 6-byte arrays that were just stored stalls on store forwarding.
  const struct {
    protocol::MacAddress& destination;
    protocol::MacAddress& source;
    std::uint16_t& ether_type;
  } fields{outer.destination.mac, outer.source.mac, ether_type};
  EthernetHeader::layout(fields, protocol::Reader(header));
  if (ether_type != protocol::kEtherTypeVlan) return EthernetHeader::kBytes;
  if (bytes < EthernetHeader::kBytes + VlanTag::kBytes) return 0;
  const auto tag = VlanTag::decode(header + EthernetHeader::kBytes);
  outer.lane = tag.priority;
  ether_type = tag.ether_type;
  return EthernetHeader::kBytes + VlanTag::kBytes;
}

std::uint32_t EthernetEncapsulation::link_bytes_of(const std::uint8_t* header) {
  const bool tagged = protocol::load_be16(header + 12) == protocol::kEtherTypeVlan;
  return EthernetHeader::kBytes + (tagged ? VlanTag::kBytes : 0);
}

protocol::Gid EthernetEncapsulation::group_of(const ParsedOuter& outer) const {
  const protocol::Gid group = outer.destination.ipv4 != 0
                                  ? protocol::ipv4_mapped_gid(outer.destination.ipv4)
                                  : outer.destination.gid;
  const bool meant = protocol::is_multicast_gid(group) &&
                     same_mac(outer.destination.mac, protocol::multicast_mac(group));
  return meant ? group : protocol::Gid{};
}

std::uint8_t EthernetEncapsulation::priority_of(const std::uint8_t* header) {
  if (link_bytes_of(header) == EthernetHeader::kBytes) return 0;
  return VlanTag::decode(header + EthernetHeader::kBytes).priority;
}

std::uint32_t EthernetEncapsulation::minimum_pad(const Frame& frame) const {
  const std::uint32_t bytes = frame.frame_bytes();
  return bytes < protocol::kEthernetMinFrameBytes ? protocol::kEthernetMinFrameBytes - bytes : 0;
}

std::uint32_t EthernetEncapsulation::link_crc(const Pieces& pieces) const {
  std::uint32_t crc = 0;
  if (pieces.frame.marker_count > 0) {
    std::vector<std::uint8_t> bytes;
    append_marked(pieces.frame, pieces.header, bytes);
    crc = protocol::crc32(bytes.data(), bytes.size());
  } else {
    crc = protocol::crc32(pieces.header, pieces.frame.header_bytes);
    crc = protocol::crc32(pieces.payload(), pieces.frame.payload_bytes, crc);
    crc = protocol::crc32(nullptr, pieces.frame.pad_bytes, crc);
  }
  crc = protocol::crc32(pieces.inner_crc, pieces.inner_crc_bytes, crc);
  return protocol::crc32(nullptr, minimum_pad(pieces.frame), crc);
}

// RoCEv1.

RoceV1Encapsulation::RoceV1Encapsulation(bool vlan)
    : EthernetEncapsulation(vlan, protocol::kEtherTypeRoceV1, protocol::Grh::kBytes) {}

void RoceV1Encapsulation::write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                                      std::uint8_t* out) const {
  write_link(av, out);
  write_grh(av, inner_bytes, out + link_bytes());
}

ParsedOuter RoceV1Encapsulation::parse_outer(const std::uint8_t* header, std::size_t bytes) const {
  ParsedOuter outer;
  std::uint16_t ether_type = 0;
  const std::uint32_t at = parse_link(header, bytes, outer, ether_type);
  if (at == 0) return outer;
  if (ether_type != protocol::kEtherTypeRoceV1) {
    outer.status = ParseStatus::kOtherProtocol;
    return outer;
  }
  if (bytes < at + protocol::Grh::kBytes || !parse_grh(header + at, outer)) return outer;
  outer.inner_offset = at + protocol::Grh::kBytes;
  outer.status = ParseStatus::kOk;
  return outer;
}

NetworkHeader RoceV1Encapsulation::network_header(const Frame& frame) const {
  return {frame.header + link_bytes_of(frame.header), protocol::Grh::kBytes, 0,
          priority_of(frame.header)};
}

bool RoceV1Encapsulation::addressed_to(const ParsedOuter& outer,
                                       const PortIdentity& identity) const {
  return same_mac(outer.destination.mac, identity.mac) &&
         same_gid(outer.destination.gid, identity.gid);
}

std::uint32_t RoceV1Encapsulation::inner_crc(const Frame& frame) const {
  const std::uint32_t at = link_bytes_of(frame.header);
  return protocol::icrc(protocol::IcrcLayout::kRoceV1, frame.header + at, frame.header_bytes - at,
                        frame.has_payload_data ? frame.payload.data() : nullptr,
                        frame.payload_bytes, frame.pad_bytes);
}

// IP.

IpEncapsulation::IpEncapsulation(bool vlan, bool ipv6, std::uint8_t ip_protocol,
                                 std::uint32_t udp_bytes)
    : EthernetEncapsulation(vlan, ipv6 ? protocol::kEtherTypeIpv6 : protocol::kEtherTypeIpv4,
                            (ipv6 ? Ipv6Header::kBytes : Ipv4Header::kBytes) + udp_bytes),
      vlan_tagged_(vlan),
      ipv6_(ipv6),
      ip_protocol_(ip_protocol) {}

std::uint8_t IpEncapsulation::lane_of(const AddressVector& av) const {
  // Untagged: the class selector of the DSCP, the usual default map.
  return vlan_tagged_ ? av.lane & 7 : static_cast<std::uint8_t>(av.traffic_class >> 5);
}

NetworkHeader IpEncapsulation::network_header(const Frame& frame) const {
  const std::uint8_t* ip = frame.header + link_bytes_of(frame.header);
  const bool version4 = (ip[0] >> 4) == 4;
  return {ip, version4 ? Ipv4Header::kBytes : Ipv6Header::kBytes, 0, priority_of(frame.header)};
}

bool IpEncapsulation::addressed_to(const ParsedOuter& outer, const PortIdentity& identity) const {
  if (!same_mac(outer.destination.mac, identity.mac)) return false;
  // A frame has an IPv4 destination or an IPv6 one; the other is zero.
  if (outer.destination.ipv4 != 0) return outer.destination.ipv4 == identity.ipv4;
  return same_gid(outer.destination.gid, identity.gid);
}

std::uint32_t IpEncapsulation::write_ip(const AddressVector& av, std::uint32_t ip_payload_bytes,
                                        std::uint8_t* out) const {
  write_link(av, out);
  out += link_bytes();
  if (ipv6_) {
    Ipv6Header ip;
    ip.traffic_class = av.traffic_class;
    ip.flow_label = av.flow_label;
    ip.payload_bytes = static_cast<std::uint16_t>(ip_payload_bytes);
    ip.next_header = ip_protocol_;
    ip.hop_limit = av.hop_limit;
    ip.source = av.source_gid;
    ip.destination = av.destination_gid;
    ip.encode(out);
    return link_bytes() + Ipv6Header::kBytes;
  }
  Ipv4Header ip;
  ip.tos = av.traffic_class;
  ip.total_bytes = static_cast<std::uint16_t>(Ipv4Header::kBytes + ip_payload_bytes);
  ip.ttl = av.hop_limit;
  ip.protocol = ip_protocol_;
  ip.source = av.source_ipv4;
  ip.destination = av.destination_ipv4;
  ip.encode_summed(out);
  return link_bytes() + Ipv4Header::kBytes;
}

bool IpEncapsulation::parse_ip(const std::uint8_t* header, std::size_t bytes,
                               ParsedOuter& outer) const {
  std::uint16_t ether_type = 0;
  const std::uint32_t at = parse_link(header, bytes, outer, ether_type);
  if (at == 0) return false;
  const bool tagged = at > EthernetHeader::kBytes;
  bool ours = false;
  std::uint8_t traffic_class = 0;
  if (ether_type == protocol::kEtherTypeIpv4 && bytes >= at + Ipv4Header::kBytes) {
    ours = parse_ipv4(header + at, outer);
    outer.inner_offset = at + Ipv4Header::kBytes;
    traffic_class = header[at + 1];
  } else if (ether_type == protocol::kEtherTypeIpv6 && bytes >= at + Ipv6Header::kBytes) {
    ours = parse_ipv6(header + at, outer);
    outer.inner_offset = at + Ipv6Header::kBytes;
    traffic_class = static_cast<std::uint8_t>(protocol::load_be16(header + at) >> 4);
  } else if (ether_type != protocol::kEtherTypeIpv4 && ether_type != protocol::kEtherTypeIpv6) {
    outer.status = ParseStatus::kOtherProtocol;
  }
  outer.ecn = traffic_class & protocol::kEcnMask;
  if (!tagged) outer.lane = static_cast<std::uint8_t>(traffic_class >> 5);
  return ours;
}

bool IpEncapsulation::ip_checksum_ok(const Frame& frame) const {
  const std::uint32_t at = link_bytes_of(frame.header);
  const bool ipv4 = protocol::load_be16(frame.header + at - 2) == protocol::kEtherTypeIpv4;
  return !ipv4 || Ipv4Header::sum(frame.header + at) == 0;
}

bool IpEncapsulation::parse_ipv4(const std::uint8_t* in, ParsedOuter& outer) const {
  constexpr std::uint8_t kVersion4Words5 = 0x45;
  if (in[0] != kVersion4Words5 || Ipv4Header::sum(in) != 0) return false;
  const auto ip = Ipv4Header::decode(in);
  if (ip.total_bytes < Ipv4Header::kBytes || ip.more_fragments || ip.fragment_offset != 0) {
    return false;
  }
  if (ip.protocol != ip_protocol_) {
    outer.status = ParseStatus::kOtherProtocol;
    return false;
  }
  outer.source.ipv4 = ip.source;
  outer.destination.ipv4 = ip.destination;
  outer.inner_bytes = ip.total_bytes - Ipv4Header::kBytes;
  return true;
}

bool IpEncapsulation::parse_ipv6(const std::uint8_t* in, ParsedOuter& outer) const {
  const auto ip = Ipv6Header::decode(in);
  if (ip.version != 6) return false;
  if (ip.next_header != ip_protocol_) {
    outer.status = ParseStatus::kOtherProtocol;
    return false;
  }
  outer.source.gid = ip.source;
  outer.destination.gid = ip.destination;
  outer.inner_bytes = ip.payload_bytes;
  return true;
}

// RoCEv2.

RoceV2Encapsulation::RoceV2Encapsulation(bool vlan, bool ipv6)
    : IpEncapsulation(vlan, ipv6, protocol::kIpProtocolUdp, protocol::UdpHeader::kBytes) {}

void RoceV2Encapsulation::write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                                      std::uint8_t* out) const {
  const std::uint32_t udp_bytes = protocol::UdpHeader::kBytes + inner_bytes;
  const std::uint32_t at = write_ip(av, udp_bytes, out);
  protocol::UdpHeader udp;
  udp.source_port = av.udp_source_port;
  udp.destination_port = protocol::kRoceV2Port;
  udp.bytes = static_cast<std::uint16_t>(udp_bytes);
  udp.encode(out + at);
}

ParsedOuter RoceV2Encapsulation::parse_outer(const std::uint8_t* header, std::size_t bytes) const {
  ParsedOuter outer;
  if (!parse_ip(header, bytes, outer)) return outer;
  if (bytes < outer.inner_offset + protocol::UdpHeader::kBytes) return outer;
  const auto udp = protocol::UdpHeader::decode(header + outer.inner_offset);
  if (udp.destination_port != protocol::kRoceV2Port) {
    outer.status = ParseStatus::kOtherProtocol;
    return outer;
  }
  constexpr std::uint32_t kLeast =
      protocol::UdpHeader::kBytes + protocol::Bth::kBytes + protocol::kIcrcBytes;
  if (udp.bytes != outer.inner_bytes || udp.bytes < kLeast) return outer;
  outer.inner_offset += protocol::UdpHeader::kBytes;
  outer.inner_bytes -= protocol::UdpHeader::kBytes;
  outer.status = ParseStatus::kOk;
  return outer;
}

std::uint32_t RoceV2Encapsulation::inner_crc(const Frame& frame) const {
  const std::uint32_t at = link_bytes_of(frame.header);
  const bool ipv6 = (frame.header[at] >> 4) == 6;
  return protocol::icrc(
      ipv6 ? protocol::IcrcLayout::kRoceV2Ipv6 : protocol::IcrcLayout::kRoceV2Ipv4,
      frame.header + at, frame.header_bytes - at,
      frame.has_payload_data ? frame.payload.data() : nullptr, frame.payload_bytes,
      frame.pad_bytes);
}

// iWARP.

namespace {

/// Offset of the IP header's end; 0 when the frame is not IP.
std::uint32_t tcp_offset(const std::uint8_t* header, std::uint32_t link_bytes) {
  const std::uint16_t ether_type = protocol::load_be16(header + link_bytes - 2);
  if (ether_type == protocol::kEtherTypeIpv4) return link_bytes + Ipv4Header::kBytes;
  if (ether_type == protocol::kEtherTypeIpv6) return link_bytes + Ipv6Header::kBytes;
  return 0;
}

}  // namespace

TcpEncapsulation::TcpEncapsulation(bool vlan, bool ipv6, bool mpa_crc)
    : IpEncapsulation(vlan, ipv6, protocol::kIpProtocolTcp, 0), mpa_crc_(mpa_crc) {}

void TcpEncapsulation::write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                                   std::uint8_t* out) const {
  write_ip(av, inner_bytes, out);
}

ParsedOuter TcpEncapsulation::parse_outer(const std::uint8_t* header, std::size_t bytes) const {
  ParsedOuter outer;
  if (!parse_ip(header, bytes, outer)) return outer;
  if (bytes < outer.inner_offset + protocol::TcpHeader::kBytes) return outer;
  const std::uint32_t tcp_bytes =
      4U * (header[outer.inner_offset + protocol::TcpHeader::kDataOffsetOffset] >> 4);
  if (tcp_bytes < protocol::TcpHeader::kBytes || tcp_bytes > outer.inner_bytes ||
      outer.inner_offset + tcp_bytes > bytes) {
    return outer;
  }
  outer.status = ParseStatus::kOk;
  return outer;
}

std::uint32_t TcpEncapsulation::inner_crc(const Frame& frame) const {
  if (!mpa_crc_) return 0;
  const std::uint32_t tcp = tcp_offset(frame.header, link_bytes_of(frame.header));
  const std::uint32_t start =
      tcp + 4U * (frame.header[tcp + protocol::TcpHeader::kDataOffsetOffset] >> 4);
  if (start > frame.header_bytes) return 0;  // a corrupted header: no CRC can be right
  if (frame.marker_count > 0) {
    std::vector<std::uint8_t> bytes;
    append_marked(frame, frame.header, bytes);
    return protocol::crc32c(bytes.data() + start, bytes.size() - start);
  }
  std::uint32_t crc = protocol::crc32c(frame.header + start, frame.header_bytes - start);
  crc = protocol::crc32c(frame.has_payload_data ? frame.payload.data() : nullptr,
                         frame.payload_bytes, crc);
  return protocol::crc32c(nullptr, frame.pad_bytes, crc);
}

void TcpEncapsulation::append_marked(const Frame& frame, const std::uint8_t* header,
                                     std::vector<std::uint8_t>& out) const {
  const std::uint32_t tcp = tcp_offset(header, link_bytes_of(header));
  const std::uint32_t start =
      tcp + 4U * (header[tcp + protocol::TcpHeader::kDataOffsetOffset] >> 4);
  if (tcp == 0 || start + protocol::kMpaLengthBytes > frame.header_bytes) {  // a corrupted header
    out.insert(out.end(), frame.header_bytes + frame.payload_bytes + frame.pad_bytes, 0);
    return;
  }
  std::vector<std::uint8_t> ulpdu(header + start + protocol::kMpaLengthBytes,
                                  header + frame.header_bytes);
  if (frame.has_payload_data) {
    ulpdu.insert(ulpdu.end(), frame.payload.data(), frame.payload.data() + frame.payload_bytes);
  } else {
    ulpdu.insert(ulpdu.end(), frame.payload_bytes, 0);
  }
  out.insert(out.end(), header, header + start);
  const std::size_t fpdu = out.size();
  protocol::append_fpdu(out, ulpdu.data(), static_cast<std::uint16_t>(ulpdu.size()), false, true,
                        frame.marker_offset);
  // The length as the header has it, which a fault may have changed.
  std::memcpy(out.data() + fpdu + (frame.marker_offset == 0 ? protocol::kMpaMarkerBytes : 0),
              header + start, protocol::kMpaLengthBytes);
  out.resize(out.size() - protocol::kMpaCrcBytes);
}

std::size_t TcpEncapsulation::tcp_checksum_offset(const Frame& frame) const {
  const std::uint32_t tcp = tcp_offset(frame.header, link_bytes_of(frame.header));
  if (tcp == 0 || tcp + protocol::TcpHeader::kBytes > frame.header_bytes) return 0;
  return tcp + protocol::TcpHeader::kChecksumOffset;
}

std::uint16_t TcpEncapsulation::tcp_checksum(const Pieces& pieces) const {
  const std::uint32_t link = link_bytes_of(pieces.header);
  const std::uint32_t tcp = tcp_offset(pieces.header, link);
  const std::uint32_t header_left = pieces.frame.header_bytes - tcp;
  protocol::InternetChecksum sum;
  // Pseudo header: both addresses end where the TCP header starts.
  const std::uint32_t address_bytes = tcp - link == Ipv4Header::kBytes ? 8 : 32;
  sum.add(pieces.header + tcp - address_bytes, address_bytes);
  sum.add_number(protocol::kIpProtocolTcp);
  sum.add_number(header_left + pieces.frame.payload_bytes + pieces.frame.pad_bytes +
                 pieces.inner_crc_bytes);
  if (pieces.frame.marker_count > 0) {
    std::vector<std::uint8_t> bytes;
    append_marked(pieces.frame, pieces.header, bytes);
    sum.add_number(pieces.frame.marker_bytes());
    sum.add(bytes.data() + tcp, bytes.size() - tcp);
    sum.add(pieces.inner_crc, pieces.inner_crc_bytes);
    return sum.value();
  }
  sum.add(pieces.header + tcp, header_left);
  // Missing payload is zeros, and so is the pad: neither changes the sum, but an odd payload
  // shifts the pad, so that the CRC lands on an even offset again.
  constexpr std::uint8_t kZeros[4] = {};
  if (pieces.payload() != nullptr) {
    sum.add(pieces.payload(), pieces.frame.payload_bytes);
  } else if (pieces.frame.payload_bytes % 2 != 0) {
    sum.add(kZeros, 1);
  }
  if (pieces.frame.pad_bytes % 2 != 0) sum.add(kZeros, 1);
  sum.add(pieces.inner_crc, pieces.inner_crc_bytes);
  return sum.value();
}

}  // namespace rnic::transport
