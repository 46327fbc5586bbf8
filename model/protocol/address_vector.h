// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/ethernet.h"
#include "protocol/ib_headers.h"
#include "protocol/ip.h"

namespace rnic::protocol {

/// Where a connection's packets go and how they are addressed, for every kind of wire; an
/// encapsulation uses the fields that its headers have.
struct AddressVector {
  MacAddress destination_mac{};
  MacAddress source_mac{};
  std::uint16_t vlan_id = 0;
  std::uint8_t lane = 0;  ///< IB: VL that the SL maps to. Ethernet: PCP of the VLAN tag
  std::uint8_t service_level = 0;
  std::uint32_t destination_ipv4 = 0;  ///< host order
  std::uint32_t source_ipv4 = 0;
  Gid destination_gid{};
  Gid source_gid{};
  std::uint16_t destination_lid = 0;
  std::uint16_t source_lid = 0;
  std::uint8_t traffic_class = 0;  ///< DSCP and ECN; GRH TClass
  std::uint8_t hop_limit = 64;
  std::uint16_t udp_source_port = 0xC000;  ///< see roce_source_port()
  std::uint32_t flow_label = 0;
  std::uint16_t pkey = kDefaultPkey;
};

}  // namespace rnic::protocol
