// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/address_vector.h"
#include "transport/encapsulation.h"

namespace rnic::config {
struct Config;
}

namespace rnic::testbench {

/// Addresses of host `index` (below 2^16 - 2): locally administered MAC, 10.0.0.0/8, link-local
/// GID, LID index + 1.
transport::PortIdentity identity_of(std::uint32_t index);

/// How host `from` addresses host `to`; the UDP source port is each connection's own.
protocol::AddressVector path_between(std::uint32_t from, std::uint32_t to);

/// `path` as a queue pair of service level `level` uses it: lane, traffic class, VLAN, hop limit,
/// flow label and source port as transport.* says.
protocol::AddressVector path_of_qp(const config::Config& config, protocol::AddressVector path,
                                   std::uint8_t level, std::uint32_t local_qpn,
                                   std::uint32_t remote_qpn);

/// The way from host `from` to multicast group number `group` (0 to 255), named as the wire does:
/// FF15::1:NN with LID 0xC001 + NN, or 239.1.0.NN of RoCEv2 over IPv4.
protocol::AddressVector path_to_group(const config::Config& config, std::uint32_t from,
                                      std::uint32_t group);

/// What verbs call the port of a host: Context::query_gid().
protocol::Gid gid_of(const config::Config& config, std::uint32_t index);

}  // namespace rnic::testbench
