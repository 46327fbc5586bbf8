// SPDX-License-Identifier: Apache-2.0
#include "simulation/paths.h"

#include "transport/path_hint.h"

namespace rnic::testbench {

void use_paths(network::Cable& cable, const config::Config& config,
               const transport::Encapsulation& encapsulation) {
  const config::LinkConfig& link = config.link;
  if (link.paths <= 1) return;
  network::PathConfig paths;
  paths.count = link.paths;
  paths.rate = BitRate(link.rate.bits_per_second() / link.paths);
  paths.skew = link.path_skew;
  paths.choice = link.path_choice;
  paths.salt = config.sim.seed;
  const config::Protocol protocol = config.transport.protocol;
  cable.use_paths(paths, [protocol, &encapsulation](const protocol::Frame& frame) {
    return network::PathHint{transport::flow_of(protocol, encapsulation, frame),
                             transport::takes_any_path(protocol, encapsulation, frame)};
  });
}

}  // namespace rnic::testbench
