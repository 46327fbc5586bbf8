// SPDX-License-Identifier: Apache-2.0
// What an application does while its traffic runs that must not change any outcome.
#include "reference/random_runner.h"

namespace rnic::testbench {

using host::Status;
using protocol::QpState;
using Mask = protocol::QpAttrMask;

protocol::AccessFlags RandomRunner::on_demand(bool possible) {
  if (!options_.interferes || !possible || !dice_->chance(0.4)) return 0;
  return protocol::kAccessOnDemand;
}

void RandomRunner::interfere() {
  Live& live = *lives_[dice_->rng().below(lives_.size())];
  switch (dice_->between(0, 3)) {
    case 0:
      resize_queue(dice_->between(0, 1));
      break;
    case 1:
      pause(live);
      break;
    case 2:
      if (options_.migrates) migrate(live);
      break;
    default:
      query(live);
      break;
  }
}

void RandomRunner::resize_queue(std::uint32_t host) {
  ++done_["resize"];
  RigSide& here = side(host);
  host::verbs::CompletionQueue& cq = dice_->chance(0.5) ? *send_cq_[host] : *recv_cq_[host];
  const std::uint32_t entries = 1U << dice_->between(13, 15);  // room for all that can come
  EXPECT_EQ(here.verbs().resize_cq(here.core, cq, entries), Status::kOk);
}

/// The send queue drains, waits, and goes on; sometimes its owner waits until it is drained.
void RandomRunner::pause(Live& live) {
  ++done_["pause"];
  modify(live, QpState::kSqd);
  rig_.settle(nanoseconds(dice_->between(1, 20000)));
  modify(live, QpState::kRts);
}

/// The alternate path leads to the same place. Both ends need not agree on when.
void RandomRunner::migrate(Live& live) {
  if (live.qp->cap.qp_type == protocol::QpType::kUd) return;
  ++done_["migrate"];
  RigSide& here = side(live.name.host);
  host::verbs::QpAttr attr;
  std::uint32_t mask = Mask::kPathMigState;
  if (live.qp->alternate() == nullptr || dice_->chance(0.5)) {
    attr.alt_ah_attr = path_between(live.name.host, 1 - live.name.host);
    attr.alt_timeout = static_cast<std::uint8_t>(rig_.config().transport.ack_timeout);
    attr.path_mig_state = protocol::PathMigration::kRearm;
    mask |= Mask::kAltPath;
  } else {
    attr.path_mig_state = protocol::PathMigration::kMigrated;
  }
  EXPECT_EQ(here.verbs().modify_qp(here.core, *live.qp, attr, mask), Status::kOk);
}

void RandomRunner::query(Live& live) {
  ++done_["query"];
  RigSide& here = side(live.name.host);
  host::verbs::QpAttr attr;
  host::verbs::QpInitAttr init;
  EXPECT_EQ(here.verbs().query_qp(here.core, *live.qp, attr, init), Status::kOk);
  EXPECT_EQ(attr.qp_state, QpState::kRts);
}

}  // namespace rnic::testbench
