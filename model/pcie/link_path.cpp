// SPDX-License-Identifier: Apache-2.0
#include "pcie/link_path.h"

#include <algorithm>

namespace rnic::pcie {

protocol::TlpRules rules_of(const config::PcieConfig& config) {
  protocol::TlpRules rules = protocol::tlp_rules(config.gen, config.mps, config.mrrs, config.rcb);
  rules.completion_size = std::min(config.completion_size, config.mps);
  rules.short_headers = config.short_headers;
  if (config.ecrc) {
    rules.request_overhead += protocol::kEcrcBytes;
    rules.completion_overhead += protocol::kEcrcBytes;
  }
  return rules;
}

}  // namespace rnic::pcie
