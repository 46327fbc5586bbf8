// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tlm>

#include "base/ring.h"
#include "base/time.h"
#include "pcie/credits.h"
#include "protocol/tlp_ordering.h"

namespace rnic::pcie {

/// The three kinds of credit, each with a queue of its own in front of a link.
enum class FlowClass : std::uint8_t { kPosted, kNonPosted, kCompletion, kCount };
inline constexpr std::size_t kFlowClasses = static_cast<std::size_t>(FlowClass::kCount);

inline FlowClass flow_class(protocol::TlpClass kind) {
  switch (kind) {
    case protocol::TlpClass::kPosted:
      return FlowClass::kPosted;
    case protocol::TlpClass::kCompletion:
      return FlowClass::kCompletion;
    default:
      return FlowClass::kNonPosted;
  }
}

using CreditPools = std::array<CreditPool, kFlowClasses>;

/// A packet on its way over a link.
struct Tlp {
  protocol::TlpAttributes attributes;
  std::uint32_t payload_bytes = 0;
  std::uint32_t wire_bytes = 0;
  bool last = true;  ///< of its transaction
  tlm::tlm_generic_payload* transaction = nullptr;
  std::uint64_t sequence = 0;  ///< order of entry; set by the queues

  CreditUnits units() const { return credit_units(1, payload_bytes); }
};

/// What waits to cross a link in one direction, and which packet goes next: the oldest that has
/// credits and may pass every older one that has to wait (protocol::may_pass). Packets of one class
/// stay in order. Posted requests do not wait for older completions, which come in long trains:
/// the two classes take turns then. Kernel-free.
class TransmitQueues {
 public:
  void push(Tlp tlp);
  /// The class whose front packet goes next at `now`; nothing: all are blocked or there is none.
  std::optional<FlowClass> pick(Time now, CreditPools& credits);
  /// Does any class wait for credits at `now`?
  bool starved(Time now, CreditPools& credits);
  Tlp& front(FlowClass which) { return queue(which).front(); }
  void pop(FlowClass which) {
    const Ring<Tlp>& completions = queue(FlowClass::kCompletion);
    completion_turn_ = which == FlowClass::kPosted && !completions.empty();
    queue(which).pop_front();
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return queues_[0].size() + queues_[1].size() + queues_[2].size(); }

 private:
  Ring<Tlp>& queue(FlowClass which) { return queues_[static_cast<std::size_t>(which)]; }
  /// May `tlp` leave before all older packets of other classes?
  bool may_overtake(const Tlp& tlp, std::size_t own_class) const;

  /// Whether the posted request that waits goes before the completion that waits.
  bool posted_first() const {
    const Ring<Tlp>& posted = queues_[static_cast<std::size_t>(FlowClass::kPosted)];
    const Ring<Tlp>& completions = queues_[static_cast<std::size_t>(FlowClass::kCompletion)];
    return posted.front().sequence < completions.front().sequence || !completion_turn_;
  }

  std::array<Ring<Tlp>, kFlowClasses> queues_;
  bool completion_turn_ = false;  ///< the last packet was a posted one that passed a completion
  std::uint64_t next_sequence_ = 0;
};

}  // namespace rnic::pcie
