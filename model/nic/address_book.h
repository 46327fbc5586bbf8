// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "protocol/address_vector.h"

namespace rnic::nic {

/// The address handles that the driver has told the device of, for a device that answers only whom
/// a protection domain knows (EFA's SRD).
class AddressBook {
 public:
  void add(std::uint32_t pd, const protocol::AddressVector& av) { ++handles_[key_of(pd, av)]; }
  void drop(std::uint32_t pd, const protocol::AddressVector& av) {
    const auto at = handles_.find(key_of(pd, av));
    if (at != handles_.end() && --at->second == 0) handles_.erase(at);
  }
  /// `av`: the way back to the requester.
  bool knows(std::uint32_t pd, const protocol::AddressVector& av) const {
    return handles_.count(key_of(pd, av)) > 0;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint16_t, std::uint32_t, protocol::Gid>;
  static Key key_of(std::uint32_t pd, const protocol::AddressVector& av) {
    return {pd, av.destination_lid, av.destination_ipv4, av.destination_gid};
  }

  std::map<Key, std::uint32_t> handles_;
};

}  // namespace rnic::nic
