// SPDX-License-Identifier: Apache-2.0
#include "pcie/credits.h"

#include <algorithm>

namespace rnic::pcie {

CreditUnits CreditPool::clamped(CreditUnits need) const {
  return {std::min(need.headers, limit_.headers), std::min(need.data, limit_.data)};
}

bool CreditPool::covers(CreditUnits need) const {
  return free_.headers >= need.headers && free_.data >= need.data;
}

void CreditPool::take_update() {
  free_.headers += updates_.front().units.headers;
  free_.data += updates_.front().units.data;
  updates_.pop_front();
}

bool CreditPool::available(Time now, CreditUnits need) {
  while (!updates_.empty() && updates_.front().at <= now) take_update();
  return covers(clamped(need));
}

Time CreditPool::ready(Time earliest, CreditUnits need) {
  if (available(earliest, need)) return earliest;
  const CreditUnits wanted = clamped(need);
  Time at = kTimeNever;
  while (!covers(wanted)) {
    if (updates_.empty()) return kTimeNever;
    at = updates_.front().at;
    take_update();
  }
  return at;
}

void CreditPool::consume(CreditUnits need) {
  const CreditUnits used = clamped(need);
  free_.headers -= used.headers;
  free_.data -= used.data;
}

void CreditPool::give_back(Time at, CreditUnits units) {
  if (!finite()) return;
  // UpdateFCs carry running totals in order: none overtakes another.
  if (!updates_.empty()) at = std::max(at, updates_[updates_.size() - 1].at);
  updates_.push_back({at, clamped(units)});
}

}  // namespace rnic::pcie
