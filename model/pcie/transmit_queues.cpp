// SPDX-License-Identifier: Apache-2.0
#include "pcie/transmit_queues.h"

namespace rnic::pcie {

void TransmitQueues::push(Tlp tlp) {
  tlp.sequence = next_sequence_++;
  queue(flow_class(tlp.attributes.kind)).push_back(tlp);
}

bool TransmitQueues::may_overtake(const Tlp& tlp, std::size_t own_class) const {
  for (std::size_t other = 0; other < kFlowClasses; ++other) {
    if (other == own_class) continue;
    const Ring<Tlp>& waiting = queues_[other];
    for (std::size_t i = 0; i < waiting.size() && waiting[i].sequence < tlp.sequence; ++i) {
      if (protocol::may_pass(tlp.attributes, waiting[i].attributes) == protocol::Passing::kNo) {
        return false;
      }
    }
  }
  return true;
}

bool TransmitQueues::starved(Time now, CreditPools& credits) {
  for (std::size_t i = 0; i < kFlowClasses; ++i) {
    if (queues_[i].empty() || !credits[i].finite()) continue;
    if (!credits[i].available(now, queues_[i].front().units())) return true;
  }
  return false;
}

std::optional<FlowClass> TransmitQueues::pick(Time now, CreditPools& credits) {
  std::optional<FlowClass> best;
  for (std::size_t i = 0; i < kFlowClasses; ++i) {
    if (queues_[i].empty()) continue;
    const Tlp& tlp = queues_[i].front();
    const bool passed = best == FlowClass::kPosted &&
                        i == static_cast<std::size_t>(FlowClass::kCompletion) && posted_first();
    if (passed || (best && tlp.sequence > front(*best).sequence)) continue;
    if (credits[i].finite() && !credits[i].available(now, tlp.units())) continue;
    if (may_overtake(tlp, i)) best = static_cast<FlowClass>(i);
  }
  return best;
}

}  // namespace rnic::pcie
