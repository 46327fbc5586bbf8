// SPDX-License-Identifier: Apache-2.0
#include "pcie/posted_window.h"

#include <algorithm>

namespace rnic::pcie {
namespace {

/// When the packet with unit `unit` of `units` begins, within a burst of `packets` that takes
/// `wire`.
Time offset_of(std::uint64_t unit, std::uint64_t units, std::uint64_t packets, Time wire) {
  const std::uint64_t packet = unit * packets / units;
  return wire * static_cast<std::int64_t>(packet) / static_cast<std::int64_t>(packets);
}

}  // namespace

/// When a burst of `need` units in `packets` may begin, as far as those go that end with unit `end`
/// and of which `before` has `units`.
Time PostedWindow::allowed(const Kind& kind, std::uint64_t need, std::uint64_t packets, Time wire,
                           std::uint64_t end, std::uint64_t units, const Burst& before) {
  const std::uint64_t begin = end - units;
  if (units == 0 || !kind.wants(begin, need)) return kTimeZero;
  // Its last packet that is needed, and the unit of the new burst that takes the place of that
  // packet's first one.
  const std::uint64_t last = std::min(end, kind.used + need - kind.limit) - 1;
  const std::uint64_t packet = (last - begin) * before.headers / units;
  const std::uint64_t first = begin + (packet * units + before.headers - 1) / before.headers;
  const std::uint64_t takes = first + kind.limit;
  const std::uint64_t at = takes > kind.used ? takes - kind.used : 0;
  const Time back = before.returned - offset_of(units - 1, units, before.headers, before.wire) +
                    offset_of(last - begin, units, before.headers, before.wire);
  return back - offset_of(at, need, packets, wire);
}

Time PostedWindow::ready(Time earliest, CreditUnits need, Time wire) {
  while (!bursts_.empty() && bursts_.front().returned <= earliest) bursts_.pop_front();
  if (bursts_.empty()) return earliest;
  const Burst& oldest = bursts_.front();
  if (!headers_.wants(oldest.headers_end - oldest.headers, need.headers) &&
      !data_.wants(oldest.data_end - oldest.data, need.data)) {
    return earliest;
  }
  const std::uint64_t headers = headers_.clamped(std::max(need.headers, 1U));
  const std::uint64_t data = data_.clamped(need.data);
  const std::uint64_t packets = std::max(need.headers, 1U);
  // Credits come back in order, and none is needed later than it is back: behind the newest burst
  // that matters, only those count that are back after what is known to be needed.
  for (std::size_t i = wanted_bursts(headers, data); i-- > 0;) {
    const Burst& before = bursts_[i];
    if (before.returned <= earliest) break;
    earliest = std::max(
        {earliest,
         allowed(headers_, headers, packets, wire, before.headers_end, before.headers, before),
         allowed(data_, data, packets, wire, before.data_end, before.data, before)});
  }
  return earliest;
}

std::size_t PostedWindow::wanted_bursts(std::uint64_t headers, std::uint64_t data) const {
  std::size_t low = 0;
  std::size_t high = bursts_.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const Burst& burst = bursts_[middle];
    const bool wanted = headers_.wants(burst.headers_end - burst.headers, headers) ||
                        data_.wants(burst.data_end - burst.data, data);
    (wanted ? low : high) = wanted ? middle + 1 : middle;
  }
  return low;
}

void PostedWindow::add(Time returned, CreditUnits need, Time wire) {
  // UpdateFCs carry running totals in order: none overtakes another.
  if (!bursts_.empty()) returned = std::max(returned, bursts_[bursts_.size() - 1].returned);
  Burst burst;
  burst.returned = returned;
  burst.wire = wire;
  burst.headers = static_cast<std::uint32_t>(headers_.clamped(std::max(need.headers, 1U)));
  burst.data = static_cast<std::uint32_t>(data_.clamped(need.data));
  burst.headers_end = headers_.used += burst.headers;
  burst.data_end = data_.used += burst.data;
  bursts_.push_back(burst);
}

}  // namespace rnic::pcie
