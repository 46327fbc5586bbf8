// SPDX-License-Identifier: Apache-2.0
#include "transport/factory.h"

#include "config/config.h"
#include "transport/iwarp_transport.h"
#include "transport/rc_transport.h"

namespace rnic::transport {

std::unique_ptr<Transport> make_transport(const config::Config& config,
                                          const Encapsulation& encapsulation,
                                          const PortIdentity& identity) {
  if (config.transport.protocol == config::Protocol::kIwarp) {
    return std::make_unique<IwarpTransport>(config.tcp, config.transport, encapsulation, identity);
  }
  RcConfig rc;
  rc.ack_every = config.transport.ack_every;
  rc.ack_gap = config.transport.ack_coalesce_time;
  return std::make_unique<RcTransport>(rc, encapsulation, identity);
}

}  // namespace rnic::transport
