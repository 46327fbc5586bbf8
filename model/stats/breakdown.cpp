// SPDX-License-Identifier: Apache-2.0
#include "stats/breakdown.h"

namespace rnic::stats {

void Breakdown::add(const MessageTrace& trace) {
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const Time spent = trace.of(static_cast<Stage>(i));
    if (spent > kTimeZero) by_stage_[i].add(spent);
  }
  ++messages_;
}

void Breakdown::merge(const Breakdown& other) {
  for (std::size_t i = 0; i < kStageCount; ++i) by_stage_[i].merge(other.by_stage_[i]);
  messages_ += other.messages_;
}

void Breakdown::repeat(const Breakdown& before, const Breakdown& after, std::uint64_t times) {
  for (std::size_t i = 0; i < kStageCount; ++i) {
    by_stage_[i].repeat(before.by_stage_[i], after.by_stage_[i], times);
  }
  messages_ += times * (after.messages_ - before.messages_);
}

void Breakdown::reset() {
  for (Histogram& histogram : by_stage_) histogram.reset();
  messages_ = 0;
}

std::uint64_t Breakdown::total_ps() const {
  std::uint64_t sum = 0;
  for (const Histogram& histogram : by_stage_) sum += histogram.sum_ps();
  return sum;
}

Time Breakdown::quantile(Stage stage, double q) const {
  const Histogram& histogram = of(stage);
  const std::uint64_t zeros = messages_ - histogram.count();
  const std::uint64_t rank = Histogram::nearest_rank(q, messages_);
  return rank <= zeros ? kTimeZero : histogram.at_rank(rank - zeros);
}

}  // namespace rnic::stats
