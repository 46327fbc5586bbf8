// SPDX-License-Identifier: Apache-2.0
#include "simulation/addresses.h"

#include <algorithm>

#include "config/config.h"
#include "config/service_level.h"
#include "protocol/multicast.h"
#include "protocol/udp.h"

namespace rnic::testbench {

transport::PortIdentity identity_of(std::uint32_t index) {
  const std::uint32_t number = index + 1;
  const auto high = static_cast<std::uint8_t>(number >> 8);
  const auto low = static_cast<std::uint8_t>(number);
  transport::PortIdentity identity;
  identity.mac = {0x02, 0x00, 0x00, 0x00, high, low};
  identity.ipv4 = 0x0A00'0000U + number;
  identity.gid[0] = 0xFE;
  identity.gid[1] = 0x80;
  identity.gid[14] = high;
  identity.gid[15] = low;
  identity.lid = static_cast<std::uint16_t>(number);
  return identity;
}

protocol::AddressVector path_between(std::uint32_t from, std::uint32_t to) {
  const transport::PortIdentity source = identity_of(from);
  const transport::PortIdentity destination = identity_of(to);
  protocol::AddressVector av;
  av.source_mac = source.mac;
  av.destination_mac = destination.mac;
  av.source_ipv4 = source.ipv4;
  av.destination_ipv4 = destination.ipv4;
  av.source_gid = source.gid;
  av.destination_gid = destination.gid;
  av.source_lid = source.lid;
  av.destination_lid = destination.lid;
  return av;
}

protocol::AddressVector path_of_qp(const config::Config& config, protocol::AddressVector path,
                                   std::uint8_t level, std::uint32_t local_qpn,
                                   std::uint32_t remote_qpn) {
  const config::TransportConfig& t = config.transport;
  path.service_level = level;
  path.lane = config::lane_of_service_level(config, level);
  path.vlan_id = static_cast<std::uint16_t>(t.vlan_id);
  path.hop_limit = static_cast<std::uint8_t>(t.hop_limit);
  path.flow_label = t.flow_label;
  path.udp_source_port = protocol::roce_source_port(t.flow_label, local_qpn, remote_qpn);
  const bool ip = t.protocol == config::Protocol::kRoceV2 || t.protocol == config::Protocol::kIwarp;
  if (ip) {
    constexpr std::uint32_t kClassSelector = 8;
    const std::uint32_t dscp =
        t.dscp == config::kDscpOfPriority ? kClassSelector * path.lane : t.dscp;
    path.traffic_class = static_cast<std::uint8_t>(dscp << 2 | t.ecn);
    if (!t.vlan) path.lane = path.traffic_class >> 5;  // what the headers say
  }
  return path;
}

protocol::Gid gid_of(const config::Config& config, std::uint32_t index) {
  const transport::PortIdentity identity = identity_of(index);
  const config::TransportConfig& t = config.transport;
  if (t.protocol == config::Protocol::kRoceV2 && t.ip_version == 4) {
    return protocol::ipv4_mapped_gid(identity.ipv4);
  }
  if (t.protocol != config::Protocol::kIwarp) return identity.gid;
  protocol::Gid gid{};
  std::copy(identity.mac.begin(), identity.mac.end(), gid.begin());
  return gid;
}

protocol::AddressVector path_to_group(const config::Config& config, std::uint32_t from,
                                      std::uint32_t group) {
  protocol::AddressVector av = path_between(from, from);
  if (config.transport.protocol == config::Protocol::kRoceV2 && config.transport.ip_version == 4) {
    constexpr std::uint32_t kFirst = 0xEF01'0000;
    av.destination_gid = protocol::ipv4_mapped_gid(kFirst + group);
  } else {
    constexpr std::uint16_t kFirstLid = 0xC001;
    // Transient, of this site (RFC 4291, 2.7).
    av.destination_gid = protocol::Gid{0xFF, 0x15};
    av.destination_gid[13] = 1;
    av.destination_gid[15] = static_cast<std::uint8_t>(group);
    av.destination_lid = static_cast<std::uint16_t>(kFirstLid + group);
  }
  protocol::complete_group_address(av);
  return path_of_qp(config, av, config::request_service_level(config, 0), protocol::kMulticastQpn,
                    protocol::kMulticastQpn);
}

}  // namespace rnic::testbench
