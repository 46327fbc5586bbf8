// SPDX-License-Identifier: Apache-2.0
#include "pcie/completion_faults.h"

#include <algorithm>

namespace rnic::pcie {
namespace {

using tlm_ext::CompletionFate;

bool listed(const std::vector<std::uint64_t>& list, std::uint64_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

}  // namespace

CompletionFaults::CompletionFaults(const config::PcieFaultConfig& config, std::uint64_t seed,
                                   std::string_view stream)
    : config_(config),
      possible_(!config.lost_list.empty() || !config.poisoned_list.empty() ||
                config.loss_rate > 0 || config.poison_rate > 0),
      rng_(seed, stream) {}

void CompletionFaults::poison_next(tlm_ext::Purpose purpose) {
  poison_ = purpose;
  possible_ = true;
}

CompletionFate CompletionFaults::next(tlm_ext::Purpose purpose, std::uint64_t requests) {
  if (poison_ == purpose) {
    poison_.reset();
    return CompletionFate::kPoisoned;
  }
  // Commands are the driver's, most of them before the workload begins.
  const bool any = config_.purpose == "any" && purpose != tlm_ext::Purpose::kCommand;
  if (!any && config_.purpose != tlm_ext::purpose_name(purpose)) return CompletionFate::kIntact;
  CompletionFate fate = CompletionFate::kIntact;
  for (std::uint64_t i = 0; i < requests; ++i) {
    const std::uint64_t number = ++seen_;
    const bool lost = listed(config_.lost_list, number) ||
                      (config_.loss_rate > 0 && rng_.uniform() < config_.loss_rate);
    const bool poisoned = listed(config_.poisoned_list, number) ||
                          (config_.poison_rate > 0 && rng_.uniform() < config_.poison_rate);
    if (lost) {
      fate = CompletionFate::kLost;
    } else if (poisoned && fate == CompletionFate::kIntact) {
      fate = CompletionFate::kPoisoned;
    }
  }
  return fate;
}

}  // namespace rnic::pcie
