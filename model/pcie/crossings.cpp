// SPDX-License-Identifier: Apache-2.0
#include "pcie/crossings.h"

#include "base/timeline.h"

namespace rnic::pcie {

TlpCounter sum(const TlpCounters& counters) {
  TlpCounter all;
  for (const TlpCounter& counter : counters) all.add(counter);
  return all;
}

TlpCounter Crossings::Burst::later_than(Time now) const {
  if (slot.start >= now) return {tlps, payload_bytes, wire_bytes};
  if (slot.end <= now) return {};
  const auto taken = static_cast<std::uint64_t>((slot.end - slot.start).count());
  const auto left = static_cast<std::uint64_t>((slot.end - now).count());
  // Packets are taken to be alike; the one on the wire has begun.
  const std::uint64_t later = tlps * left / taken;
  return {later, payload_bytes * later / tlps, wire_bytes * later / tlps};
}

void Crossings::make_room() {
  const Time now = sim_now();
  while (!ahead_.empty() && ahead_.front().slot.end <= now) ahead_.pop_front();
  if (ahead_.size() > room_ / 2) room_ *= 2;
}

void Crossings::reset(Time now) {
  counters_.fill(TlpCounter{});
  for (std::size_t left = ahead_.size(); left > 0; --left) {
    Burst burst = ahead_.front();
    ahead_.pop_front();
    const TlpCounter later = burst.later_than(now);
    if (later.tlps == 0) continue;
    counters_[static_cast<std::size_t>(burst.purpose)].add(later);
    const Time taken = burst.slot.end - burst.slot.start;
    burst.slot.start = burst.slot.end - taken * static_cast<std::int64_t>(later.tlps) /
                                            static_cast<std::int64_t>(burst.tlps);
    burst.tlps = static_cast<std::uint32_t>(later.tlps);
    burst.payload_bytes = static_cast<std::uint32_t>(later.payload_bytes);
    burst.wire_bytes = static_cast<std::uint32_t>(later.wire_bytes);
    ahead_.push_back(burst);
  }
}

TlpCounters Crossings::by(Time now) const {
  TlpCounters counters = counters_;
  for (std::size_t i = 0; i < ahead_.size(); ++i) {
    counters[static_cast<std::size_t>(ahead_[i].purpose)].take(ahead_[i].later_than(now));
  }
  return counters;
}

}  // namespace rnic::pcie
