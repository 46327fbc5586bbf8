// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rnic::transport {

/// The part of a TCP 4-tuple that differs between the connections of a port.
struct ConnectionKey {
  std::uint64_t peer = 0;  ///< IPv4 address, or the interface identifier of an IPv6 address
  std::uint16_t peer_port = 0;
  std::uint16_t local_port = 0;

  bool operator==(const ConnectionKey& other) const {
    return peer == other.peer && peer_port == other.peer_port && local_port == other.local_port;
  }
};

/// Finds the queue pair of an arriving segment: flat open addressing, no allocation on look-up.
class ConnectionTable {
 public:
  /// `qpn` (not 0) is reached by `key` and no longer by what it was reached by before. Throws
  /// ConfigError when another queue pair has this key.
  void insert(const ConnectionKey& key, std::uint32_t qpn);
  /// Forgets `qpn`; nothing when it is unknown.
  void erase(std::uint32_t qpn);
  /// 0 when there is none.
  std::uint32_t find(const ConnectionKey& key) const;
  std::size_t size() const { return size_; }

 private:
  struct Slot {
    ConnectionKey key;
    std::uint32_t qpn = 0;  ///< 0: free
  };

  static std::size_t hash(const ConnectionKey& key);
  std::size_t slot_of(const ConnectionKey& key) const;  ///< its slot, or the free one it would take
  void grow();

  std::vector<Slot> slots_;
  std::vector<ConnectionKey> keys_;  ///< by QPN; local port 0: not connected
  std::size_t size_ = 0;
};

}  // namespace rnic::transport
