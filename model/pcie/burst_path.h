// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pcie/link_path.h"

namespace rnic::pcie {

/// Bursts by arithmetic: a transaction of many TLPs takes one reservation of the wire and no event.
/// Delays are annotated on the calls, which must come in the order in which packets are to travel.
class BurstPath : public LinkPath {
 public:
  explicit BurstPath(LinkEnds& ends) : ends_(ends) {}

  tlm::tlm_sync_enum request(Direction direction, tlm::tlm_generic_payload& payload, Time at,
                             Time& left) override;
  tlm::tlm_sync_enum respond(Direction direction, tlm::tlm_generic_payload& payload,
                             Time at) override;

 private:
  /// When the last completion has left.
  Time send_completions(Direction direction, const tlm::tlm_generic_payload& payload, Time at);

  LinkEnds& ends_;
};

}  // namespace rnic::pcie
