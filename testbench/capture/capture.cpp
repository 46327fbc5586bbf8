// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"

#include <algorithm>
#include <string>

namespace rnic::testbench {

Captures::Captures(System& system) {
  const config::Config& config = system.config();
  const auto& traces = config.output.traces;
  if (std::find(traces.begin(), traces.end(), "pcap") == traces.end()) return;
  const CaptureLink link = config.transport.protocol == config::Protocol::kIb
                               ? CaptureLink::kErf
                               : CaptureLink::kEthernet;
  const transport::Encapsulation& encapsulation = system.nodes.front()->nic.encapsulation();
  for (const NamedPort& named : system.ports()) {
    ports_.push_back(
        std::make_unique<PortCapture>(config.output.dir, named.name, link, encapsulation));
    named.port->set_tap(ports_.back().get());
  }
}

void Captures::finish() {
  for (auto& port : ports_) port->finish();
}

}  // namespace rnic::testbench
