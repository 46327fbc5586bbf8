// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/rate_server.h"
#include "base/time.h"
#include "config/pcie_config.h"
#include "pcie/bit_errors.h"
#include "pcie/crossings.h"
#include "pcie/posted_window.h"
#include "pcie/transmit_queues.h"
#include "protocol/tlp.h"
#include "stats/unit_stats.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// One direction of a link: the wire, the receiver's credits, bit errors, and what is counted.
class Lane {
 public:
  /// `credits`: what the receiver advertises.
  Lane(const std::string& name, const config::PcieConfig& config,
       const config::PcieCredits& credits, std::uint64_t seed);

  /// Occupies the wire with packets, not before `earliest`. A damaged one costs a round trip, in
  /// which the receiver discards what follows, and is sent again.
  Reservation occupy(Time earliest, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose);

  /// As occupy(), for a posted request of the arithmetic: it passes completions that are reserved
  /// ahead (see pass_completions()), and waits for credits.
  Reservation occupy_posted(Time earliest, const protocol::TlpCount& tlps,
                            tlm_ext::Purpose purpose);
  /// `slot` of a read request or of completions that have to stay behind earlier posted requests
  /// that wait for credits, unless an attribute lets them pass.
  Reservation behind_posted(Reservation slot, const protocol::TlpAttributes& attributes) const;
  /// Likewise completions, which such a request may pass.
  Reservation occupy_completion(Time earliest, const protocol::TlpCount& tlps,
                                tlm_ext::Purpose purpose);

  /// As occupy(), and departure waits for credits as the ordering rules allow: packets without
  /// credit keep their capacity of the wire but leave later, posted requests past non-posted ones.
  /// Arithmetic, for packets that are handed over in order.
  Reservation send(Time earliest, const protocol::TlpCount& tlps, tlm_ext::Purpose purpose,
                   const protocol::TlpAttributes& attributes);

  /// The receiver has freed its buffer at `freed`, an instant at the far end.
  void drained(Time freed, FlowClass which, CreditUnits units);
  /// Likewise of a posted request of the arithmetic, which has taken `wire` to leave.
  void written(Time freed, CreditUnits units, Time wire);
  /// Is any class of packets bounded by credits?
  bool flow_controlled() const { return flow_controlled_; }
  /// Any but posted requests?
  bool answers_flow_controlled() const { return answers_flow_controlled_; }
  bool finite(FlowClass which) const { return credits[static_cast<std::size_t>(which)].finite(); }

  /// When the last posted request of the arithmetic has left.
  Time posted_left() const { return departed_[static_cast<std::size_t>(FlowClass::kPosted)]; }

  void reset_statistics(Time now);

  const BitRate& rate() const { return rate_; }

  stats::UnitStats unit;
  Crossings crossings;
  CreditPools credits;
  std::uint64_t replays = 0;  ///< packets sent again after a bit error

 private:
  /// When the UpdateFC for a buffer that is freed at `freed` is here.
  Time returned(Time freed) const;
  void note_wait(Time from, Time until);
  Time replay(std::uint32_t errors, const protocol::TlpCount& tlps);
  Reservation pass_completions(Time earliest, Reservation slot) const;

  BitRate rate_;
  PipelineServer wire_;
  Time half_packet_;  ///< mean rest of the largest packet that is on the wire
  Time one_way_;
  Time update_latency_;
  Time update_interval_;
  BitErrors errors_;
  bool flow_controlled_;
  bool answers_flow_controlled_;
  PostedWindow posted_;        ///< of the arithmetic
  Time posted_held_until_{0};  ///< the last posted request that waited for credits has left
  std::array<Time, kFlowClasses> departed_{};  ///< when the last packet of each class has left
  Time stalled_until_{0};                      ///< stalls have been counted up to here
};

}  // namespace rnic::pcie
