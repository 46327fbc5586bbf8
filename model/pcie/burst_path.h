// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>

#include "base/event_queue.h"
#include "pcie/issue_order.h"
#include "pcie/link_path.h"

namespace rnic::pcie {

/// Bursts by arithmetic: a transaction of many TLPs takes one reservation of the wire and no event.
/// Delays are annotated on the calls. Units hand requests over a little ahead of their time, and
/// not always in that order; the wires put that right (PipelineServer) as far as queues are short.
/// Where they are not, and where the host serves in the order of the calls, requests wait here for
/// their time (deliver_in_order()).
///
/// Strictly ordered writes always do: a CQE is due when its payload has left, and handed over with
/// it. A place on the wire that it took then would put it before payload that comes meanwhile and
/// is due sooner, and whoever waits for its RECV would find that posted too early. While one waits,
/// all that is handed over does: none may come into the order of writes before what it stands
/// behind.
class BurstPath : public sc_core::sc_module, public LinkPath {
 public:
  BurstPath(const sc_core::sc_module_name& name, LinkEnds& ends);

  tlm::tlm_sync_enum request(Direction direction, tlm::tlm_generic_payload& payload, Time at,
                             Time& left) override;
  tlm::tlm_sync_enum respond(Direction direction, tlm::tlm_generic_payload& payload,
                             Time at) override;
  void deliver_in_order() override { in_order_ = true; }

 private:
  /// A request of the device whose time has not come.
  struct Held {
    std::uint64_t wire_bytes = 0;
    tlm::tlm_generic_payload* payload = nullptr;
  };

  /// As request(), now.
  tlm::tlm_sync_enum travel(Direction direction, tlm::tlm_generic_payload& payload, Time at,
                            Time& left);
  void come(Held& held);
  /// When the last completion has left.
  Time send_completions(Direction direction, const tlm::tlm_generic_payload& payload, Time at);

  LinkEnds& ends_;
  bool in_order_ = false;
  std::uint64_t held_bytes_ = 0;
  IssueOrder issue_order_;  ///< of the device
  EventQueue<BurstPath, Held> held_;
};

}  // namespace rnic::pcie
