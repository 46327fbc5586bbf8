// SPDX-License-Identifier: Apache-2.0
#include "nic/send_turns.h"

#include <algorithm>

namespace rnic::nic {

SendTurns::SendTurns(config::SqPolicy policy, const std::vector<std::uint64_t>& weights)
    : SendTurns() {
  if (policy == config::SqPolicy::kRoundRobin || weights.empty()) return;
  std::array<std::uint64_t, kServiceLevels> of_level{};
  for (std::size_t level = 0; level < of_level.size(); ++level) {
    of_level[level] = weights[std::min(level, weights.size() - 1)];
  }
  for (std::size_t level = 0; level < of_level.size(); ++level) {
    if (policy == config::SqPolicy::kWeighted) {
      weights_[level] = static_cast<std::uint32_t>(of_level[level]);
    } else {
      ranks_[level] = static_cast<std::uint32_t>(
          std::count_if(of_level.begin(), of_level.end(),
                        [&](std::uint64_t weight) { return weight < of_level[level]; }));
    }
  }
}

}  // namespace rnic::nic
