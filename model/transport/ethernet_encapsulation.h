// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/encapsulation.h"

/// The encapsulations on Ethernet; users go through make_encapsulation().
namespace rnic::transport {

/// GRH of an IB or RoCEv1 packet whose BTH .. ICRC takes `inner_bytes`.
void write_grh(const AddressVector& av, std::uint32_t inner_bytes, std::uint8_t* out);
/// Reads 40 bytes of GRH; false when it is malformed.
bool parse_grh(const std::uint8_t* in, ParsedOuter& outer);

/// Ethernet header, VLAN tag, FCS, minimum frame and line costs.
class EthernetEncapsulation : public Encapsulation {
 public:
  std::uint8_t lane_of(const AddressVector& av) const override;
  protocol::Gid group_of(const ParsedOuter& outer) const override;
  std::uint32_t wire_bytes(std::uint32_t frame_bytes) const override;

 protected:
  /// `network_bytes`: between Ethernet header and BTH (or TCP header).
  EthernetEncapsulation(bool vlan, std::uint16_t ether_type, std::uint32_t network_bytes);

  /// Bytes of Ethernet header and VLAN tag.
  std::uint32_t link_bytes() const { return link_bytes_; }
  std::uint16_t ether_type() const { return ether_type_; }
  void write_link(const AddressVector& av, std::uint8_t* out) const;
  /// Reads Ethernet header and, where there is one, VLAN tag: their size, and the EtherType behind
  /// them in `ether_type`. 0 when `bytes` are too few.
  static std::uint32_t parse_link(const std::uint8_t* header, std::size_t bytes, ParsedOuter& outer,
                                  std::uint16_t& ether_type);
  /// Of a frame's VLAN tag; 0 without one.
  static std::uint8_t priority_of(const std::uint8_t* header);
  /// As parse_link(), from a frame that is known to be whole.
  static std::uint32_t link_bytes_of(const std::uint8_t* header);

  std::uint32_t minimum_pad(const protocol::Frame& frame) const override;
  std::uint32_t link_crc(const Pieces& pieces) const override;

 private:
  bool vlan_;
  std::uint16_t ether_type_;
  std::uint32_t link_bytes_;
};

/// EtherType 0x8915, GRH, BTH.
class RoceV1Encapsulation final : public EthernetEncapsulation {
 public:
  explicit RoceV1Encapsulation(bool vlan);

  void write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                   std::uint8_t* out) const override;
  ParsedOuter parse_outer(const std::uint8_t* header, std::size_t bytes) const override;
  bool addressed_to(const ParsedOuter& outer, const PortIdentity& identity) const override;
  NetworkHeader network_header(const protocol::Frame& frame) const override;

 private:
  std::uint32_t inner_crc(const protocol::Frame& frame) const override;
};

/// IPv4 or IPv6 with one transport protocol inside. Sends the version it was made for, receives
/// both.
class IpEncapsulation : public EthernetEncapsulation {
 public:
  std::uint8_t lane_of(const AddressVector& av) const override;
  bool addressed_to(const ParsedOuter& outer, const PortIdentity& identity) const override;
  NetworkHeader network_header(const protocol::Frame& frame) const override;

 protected:
  IpEncapsulation(bool vlan, bool ipv6, std::uint8_t ip_protocol, std::uint32_t udp_bytes);

  /// Ethernet and IP headers; returns their size.
  std::uint32_t write_ip(const AddressVector& av, std::uint32_t ip_payload_bytes,
                         std::uint8_t* out) const;
  /// Ethernet and IP headers into `outer`, which gets the offset and length of what is inside.
  /// True when it is the protocol of this encapsulation; else `outer.status` says why not.
  bool parse_ip(const std::uint8_t* header, std::size_t bytes, ParsedOuter& outer) const;

 private:
  bool ip_checksum_ok(const protocol::Frame& frame) const override;
  bool parse_ipv4(const std::uint8_t* in, ParsedOuter& outer) const;
  bool parse_ipv6(const std::uint8_t* in, ParsedOuter& outer) const;

  bool vlan_tagged_;
  bool ipv6_;
  std::uint8_t ip_protocol_;
};

/// IP, UDP port 4791, BTH.
class RoceV2Encapsulation final : public IpEncapsulation {
 public:
  RoceV2Encapsulation(bool vlan, bool ipv6);

  void write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                   std::uint8_t* out) const override;
  ParsedOuter parse_outer(const std::uint8_t* header, std::size_t bytes) const override;

 private:
  std::uint32_t inner_crc(const protocol::Frame& frame) const override;
};

/// IP below the TCP of iWARP. The inner CRC is that of the one FPDU in the segment.
class TcpEncapsulation final : public IpEncapsulation {
 public:
  TcpEncapsulation(bool vlan, bool ipv6, bool mpa_crc);

  void write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                   std::uint8_t* out) const override;
  ParsedOuter parse_outer(const std::uint8_t* header, std::size_t bytes) const override;

 private:
  std::uint32_t inner_crc(const protocol::Frame& frame) const override;
  bool checks_inner_crc() const override { return mpa_crc_; }
  std::size_t tcp_checksum_offset(const protocol::Frame& frame) const override;
  std::uint16_t tcp_checksum(const Pieces& pieces) const override;
  void append_marked(const protocol::Frame& frame, const std::uint8_t* header,
                     std::vector<std::uint8_t>& out) const override;

  bool mpa_crc_;
};

}  // namespace rnic::transport
