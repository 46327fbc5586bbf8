// SPDX-License-Identifier: Apache-2.0
#include "nic/send_turns.h"

#include <algorithm>

namespace rnic::nic {

SendTurns::SendTurns(config::SqPolicy policy, const std::vector<std::uint64_t>& weights)
    : SendTurns() {
  if (policy == config::SqPolicy::kRoundRobin || weights.empty()) return;
  plain_ = false;
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

void SendTurns::take_turn() {
  if (kept_ != nullptr) {
    kept_ = nullptr;
    --left_;
    return;
  }
  Ring<QpContext*>& ring = first_ring();
  holder_ = ring.front();
  left_ = weights_[holder_->av.service_level % kServiceLevels] - 1;
  ring.pop_front();
  if (ring.empty()) occupied_ &= ~(1U << static_cast<std::uint32_t>(&ring - rings_.data()));
}

void SendTurns::line_up(QpContext* qp) {
  if (left_ > 0 && qp == holder_) {
    kept_ = qp;
    return;
  }
  const std::uint32_t rank = ranks_[qp->av.service_level % kServiceLevels];
  occupied_ |= 1U << rank;
  rings_[rank].push_back(qp);
}

}  // namespace rnic::nic
