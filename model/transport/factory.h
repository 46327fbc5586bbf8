// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transport/encapsulation.h"
#include "transport/transport.h"

namespace rnic::config {
struct Config;
}

namespace rnic::transport {

/// The transport that `config.transport.protocol` names, for one NIC. `encapsulation` and
/// `identity` must outlive it.
std::unique_ptr<Transport> make_transport(const config::Config& config,
                                          const Encapsulation& encapsulation,
                                          const PortIdentity& identity);

}  // namespace rnic::transport
