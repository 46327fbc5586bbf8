// SPDX-License-Identifier: Apache-2.0
#include "simulation/addresses.h"

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

}  // namespace rnic::testbench
