// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "stats/histogram.h"
#include "stats/stage.h"

namespace rnic::stats {

/// Where messages spend their time: a distribution for each stage over all messages, those that
/// spend no time in it included. Sums are whole picoseconds, so the stages' sums add up to the sum
/// of the messages' latencies exactly.
class Breakdown {
 public:
  /// Counts a finished message.
  void add(const MessageTrace& trace);
  void merge(const Breakdown& other);
  /// As Histogram::repeat.
  void repeat(const Breakdown& before, const Breakdown& after, std::uint64_t times);
  /// Forgets everything; keeps the memory.
  void reset();

  std::uint64_t messages() const { return messages_; }
  /// Sum over all messages, ps.
  std::uint64_t sum_ps(Stage stage) const { return of(stage).sum_ps(); }
  /// Sum over all messages and stages, ps.
  std::uint64_t total_ps() const;
  double mean_ns(Stage stage) const { return per_message_ns(sum_ps(stage)); }
  double total_mean_ns() const { return per_message_ns(total_ps()); }
  /// As Histogram::quantile.
  Time quantile(Stage stage, double q) const;

 private:
  const Histogram& of(Stage stage) const { return by_stage_[static_cast<std::size_t>(stage)]; }
  double per_message_ns(std::uint64_t ps) const {
    return messages_ == 0 ? 0.0 : static_cast<double>(ps) / static_cast<double>(messages_) / 1e3;
  }

  /// Times above zero only: most messages skip most stages, and their zeros need no histogram.
  std::array<Histogram, kStageCount> by_stage_;
  std::uint64_t messages_ = 0;
};

}  // namespace rnic::stats
