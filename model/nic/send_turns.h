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

  bool empty() const { return ring_.empty() && (plain_ || (occupied_ == 0 && kept_ == nullptr)); }
  QpContext* front() { return plain_ ? ring_.front() : favoured(); }
  /// The first has its turn.
  void pop_front() {
    if (plain_) {
      ring_.pop_front();
    } else {
      take_turn();
    }
  }
  /// `qp` has something to send, and is not among those that wait already.
  void push_back(QpContext* qp) {
    if (plain_) {
      ring_.push_back(qp);
    } else {
      line_up(qp);
    }
  }

 private:
  QpContext* favoured() { return kept_ != nullptr ? kept_ : first_ring().front(); }
  void take_turn();
  void line_up(QpContext* qp);
  Ring<QpContext*>& first_ring() {
    return rings_[31U - static_cast<std::uint32_t>(__builtin_clz(occupied_))];
  }

  bool plain_ = true;                                    ///< round robin
  Ring<QpContext*> ring_;                                ///< of round robin
  std::array<std::uint32_t, kServiceLevels> weights_{};  ///< packets in a row
  std::array<std::uint32_t, kServiceLevels> ranks_{};   ///< of service levels; the highest is first
  std::array<Ring<QpContext*>, kServiceLevels> rings_;  ///< by rank
  std::uint32_t occupied_ = 0;                          ///< bit i: rank i has queue pairs
  QpContext* holder_ = nullptr;                         ///< who had the last turn
  QpContext* kept_ = nullptr;                           ///< the same, with more packets to send
  std::uint32_t left_ = 0;                              ///< packets that it may send in a row
};

}  // namespace rnic::nic
