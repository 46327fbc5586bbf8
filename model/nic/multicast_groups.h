// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "protocol/multicast.h"

namespace rnic::nic {

/// The device's table of multicast groups: which datagram queue pairs get a copy of what is sent to
/// a group (IBTA vol 1, 10.5).
class MulticastGroups {
 public:
  using Members = std::vector<std::uint32_t>;

  bool empty() const { return groups_.empty(); }

  /// Numbers of the group's queue pairs in the order in which they came; null: there is none.
  const Members* find(const protocol::Gid& group) const {
    const auto found = groups_.find(group);
    return found == groups_.end() ? nullptr : &found->second;
  }

  /// False: the group is full. A queue pair that is in it already stays in it once.
  bool attach(const protocol::Gid& group, std::uint32_t qpn) {
    Members& members = groups_[group];
    if (std::find(members.begin(), members.end(), qpn) != members.end()) return true;
    if (members.size() == protocol::kMostGroupMembers) return false;
    members.push_back(qpn);
    return true;
  }

  /// False: it is not in the group.
  bool detach(const protocol::Gid& group, std::uint32_t qpn) {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return false;
    Members& members = found->second;
    const auto member = std::find(members.begin(), members.end(), qpn);
    if (member == members.end()) return false;
    members.erase(member);
    if (members.empty()) groups_.erase(found);
    return true;
  }

 private:
  std::map<protocol::Gid, Members> groups_;
};

}  // namespace rnic::nic
