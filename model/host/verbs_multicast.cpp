// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/verbs.h"
#include "protocol/multicast.h"

/// Multicast groups of datagram queue pairs.
namespace rnic::host::verbs {

using protocol::CommandOpcode;
using protocol::Gid;

bool Context::group_valid(const Gid& group, std::uint16_t lid) const {
  switch (group_addressing_) {
    case GroupAddressing::kLid:
      return group[0] == 0xFF && protocol::is_multicast_lid(lid);
    case GroupAddressing::kGid:
      return group[0] == 0xFF;
    case GroupAddressing::kIpv4:
      return protocol::is_multicast_ipv4(protocol::mapped_ipv4(group));
    case GroupAddressing::kNone:
      break;
  }
  return false;
}

Status Context::change_group(Core& core, CommandOpcode opcode, const QueuePair& qp,
                             const Gid& group) {
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = opcode;
  mailbox.multicast = {qp.qpn, group};
  return execute_status(core, mailbox);
}

Status Context::attach_mcast(Core& core, QueuePair& qp, const Gid& group, std::uint16_t lid) {
  if (qp.cap.qp_type != protocol::QpType::kUd || !group_valid(group, lid)) return Status::kEinval;
  if (qp.in_group(group)) return Status::kOk;
  const Status status = change_group(core, CommandOpcode::kAttachMcast, qp, group);
  if (status == Status::kOk) qp.with_extras().groups.push_back(group);
  return status;
}

Status Context::detach_mcast(Core& core, QueuePair& qp, const Gid& group, std::uint16_t lid) {
  if (!qp.in_group(group) || !group_valid(group, lid)) return Status::kEinval;
  const Status status = change_group(core, CommandOpcode::kDetachMcast, qp, group);
  if (status == Status::kOk) {
    std::vector<Gid>& groups = qp.extras->groups;
    groups.erase(std::find(groups.begin(), groups.end(), group));
  }
  return status;
}

}  // namespace rnic::host::verbs
