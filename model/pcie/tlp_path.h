// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <systemc>

#include "base/event_queue.h"
#include "pcie/issue_order.h"
#include "pcie/link_path.h"
#include "pcie/transmit_queues.h"

namespace rnic::pcie {

/// TLP by TLP: each packet waits in its queue for credits and the wire, crosses it and frees its
/// place in the receiver's buffer, three events in all. Packets overtake as the ordering rules say.
/// A request is handed on when its last packet has arrived, a response when its last completion
/// has.
class TlpPath : public sc_core::sc_module, public LinkPath {
 public:
  TlpPath(const sc_core::sc_module_name& name, LinkEnds& ends);

  tlm::tlm_sync_enum request(Direction direction, tlm::tlm_generic_payload& payload, Time at,
                             Time& left) override;
  tlm::tlm_sync_enum respond(Direction direction, tlm::tlm_generic_payload& payload,
                             Time at) override;

  void reset_statistics(Time now) override;

  /// Packets that wait for the wire or for credits.
  std::size_t waiting(Direction direction) const { return way(direction).queues.size(); }

 private:
  struct Moving {
    Direction direction{};
    Tlp tlp;
  };
  /// One direction.
  struct Way {
    TransmitQueues queues;
    Time wire_free{0};
    Time wake_at = kTimeNever;
    Time starved_since = kTimeNever;  ///< a packet waits for credits, counted up to here
    PipelineServer forecast;          ///< of requests, as if credits were never short
    Time last_sent = kTimeNever;      ///< start of the last packet, if another waited then
    Time pace{0};                     ///< running mean of the time between packets while some wait
  };

  Way& way(Direction direction) { return ways_[static_cast<std::size_t>(direction)]; }
  const Way& way(Direction direction) const { return ways_[static_cast<std::size_t>(direction)]; }

  /// When what has been handed over so far will have left, as fast as packets have left of late.
  Time expected_departure(Direction direction) const;
  void enter(Moving& entering);
  /// Sends what may go now; arranges to be woken for what has to wait.
  void kick(Direction direction);
  static void note_stall(Way& way_of, Lane& lane);
  void transmit(Direction direction, FlowClass which);
  void wake(Direction direction, Time at);
  void woken(Direction& direction);
  void arrive(Moving& arriving);

  LinkEnds& ends_;
  IssueOrder issue_order_;  ///< of the device
  std::array<Way, static_cast<std::size_t>(Direction::kCount)> ways_;
  EventQueue<TlpPath, Moving> entering_;
  EventQueue<TlpPath, Moving> arriving_;
  EventQueue<TlpPath, Direction> wakes_;
};

}  // namespace rnic::pcie
