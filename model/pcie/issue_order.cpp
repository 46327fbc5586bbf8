// SPDX-License-Identifier: Apache-2.0
#include "pcie/issue_order.h"

#include <algorithm>
#include <cstddef>

#include "tlm/pcie_extension.h"

namespace rnic::pcie {

Time IssueOrder::overlapping(std::uint64_t begin, std::uint64_t end) const {
  Time last{0};
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    const Write& write = writes_[i];
    if (write.begin < end && begin < write.end) last = std::max(last, write.comes);
  }
  return last;
}

Time IssueOrder::admit(const tlm::tlm_generic_payload& request, Time now, Time due) {
  while (!writes_.empty() && writes_.front().comes < now) writes_.pop_front();
  const std::uint64_t begin = request.get_address();
  const std::uint64_t end = begin + request.get_data_length();
  if (!request.is_write()) return std::max(due, overlapping(begin, end));
  const bool relaxed = tlm_ext::extension_of(request).relaxed_ordering;
  const Time comes = std::max(due, relaxed ? overlapping(begin, end) : last_);
  writes_.push_back({begin, end, comes});
  last_ = std::max(last_, comes);
  return comes;
}

}  // namespace rnic::pcie
