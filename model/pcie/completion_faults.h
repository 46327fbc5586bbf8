// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "config/pcie_config.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// Which completions of the device's reads are lost or arrive poisoned, as configured
/// (`pcie.fault.*`). Counts the read requests of the configured purpose, from 1.
class CompletionFaults {
 public:
  CompletionFaults(const config::PcieFaultConfig& config, std::uint64_t seed,
                   std::string_view stream);

  bool possible() const { return possible_; }
  /// Read requests of the configured purpose so far.
  std::uint64_t seen() const { return seen_; }
  /// The completions of the next read request of that purpose arrive poisoned, once, whatever is
  /// configured. For tests of a fault at a certain moment.
  void poison_next(tlm_ext::Purpose purpose);
  /// What happens to the completions of the next `requests` read requests, which are one
  /// transaction: the worst of what happens to each.
  tlm_ext::CompletionFate next(tlm_ext::Purpose purpose, std::uint64_t requests);

 private:
  config::PcieFaultConfig config_;
  bool possible_;
  Rng rng_;
  std::uint64_t seen_ = 0;
  std::optional<tlm_ext::Purpose> poison_;
};

}  // namespace rnic::pcie
