// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ring.h"
#include "config/nic_config.h"
#include "nic/qp_context.h"

namespace rnic::nic {

/// Whose turn it is among queue pairs with something to send (nic.sq_scheduler):
/// - round robin: a packet each in turn;
/// - weighted: in turn, as many packets in a row as the weight of the queue pair's service level,
///   as long as it has some;
/// - strict: the service level with the largest weight first, in turn within one.
class SendTurns {
 public:
  static constexpr std::uint32_t kServiceLevels = 16;

  SendTurns() { weights_.fill(1); }
  /// `weights`: of service level 0, 1 ..., 1 to 255; the last one stands for all that follow.
  SendTurns(config::SqPolicy policy, const std::vector<std::uint64_t>& weights);

  bool empty() const { return occupied_ == 0 && kept_ == nullptr; }
  QpContext* front() { return kept_ != nullptr ? kept_ : first_ring().front(); }
  /// The first has its turn.
  void pop_front();
  /// `qp` has something to send, and is not among those that wait already.
  void push_back(QpContext* qp);

 private:
  Ring<QpContext*>& first_ring() {
    return rings_[31U - static_cast<std::uint32_t>(__builtin_clz(occupied_))];
  }

  std::array<std::uint32_t, kServiceLevels> weights_{};  ///< packets in a row
  std::array<std::uint32_t, kServiceLevels> ranks_{};    ///< of service levels; the highest is first
  std::array<Ring<QpContext*>, kServiceLevels> rings_;   ///< by rank
  std::uint32_t occupied_ = 0;                           ///< bit i: rank i has queue pairs
  QpContext* holder_ = nullptr;                          ///< who had the last turn
  QpContext* kept_ = nullptr;                            ///< the same, with more packets to send
  std::uint32_t left_ = 0;                               ///< packets that it may send in a row
};

inline void SendTurns::pop_front() {
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

inline void SendTurns::push_back(QpContext* qp) {
  if (left_ > 0 && qp == holder_) {
    kept_ = qp;
    return;
  }
  const std::uint32_t rank = ranks_[qp->av.service_level % kServiceLevels];
  occupied_ |= 1U << rank;
  rings_[rank].push_back(qp);
}

}  // namespace rnic::nic
