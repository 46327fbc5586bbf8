// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/connection_table.h"

#include "base/error.h"

namespace rnic::transport {
namespace {

constexpr std::size_t kFirstSlots = 16;

}  // namespace

std::size_t ConnectionTable::hash(const ConnectionKey& key) {
  const std::uint64_t ports = (std::uint64_t{key.peer_port} << 16) | key.local_port;
  std::uint64_t h = (key.peer ^ (ports << 32) ^ ports) * 0x9E37'79B9'7F4A'7C15ULL;
  h ^= h >> 32;
  return static_cast<std::size_t>(h);
}

std::size_t ConnectionTable::slot_of(const ConnectionKey& key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash(key) & mask;
  while (slots_[at].qpn != 0 && !(slots_[at].key == key)) at = (at + 1) & mask;
  return at;
}

std::uint32_t ConnectionTable::find(const ConnectionKey& key) const {
  return slots_.empty() ? 0 : slots_[slot_of(key)].qpn;
}

void ConnectionTable::insert(const ConnectionKey& key, std::uint32_t qpn) {
  erase(qpn);
  if (2 * (size_ + 1) > slots_.size()) grow();
  Slot& slot = slots_[slot_of(key)];
  if (slot.qpn != 0) {
    throw ConfigError(
        "two queue pairs have the same TCP addresses and ports: too many queue pairs "
        "between two hosts");
  }
  slot = {key, qpn};
  ++size_;
  if (qpn >= keys_.size()) keys_.resize(std::size_t{qpn} + 1);
  keys_[qpn] = key;
}

void ConnectionTable::erase(std::uint32_t qpn) {
  if (qpn >= keys_.size() || keys_[qpn].local_port == 0) return;
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = slot_of(keys_[qpn]);
  keys_[qpn] = ConnectionKey{};
  slots_[hole].qpn = 0;
  --size_;
  // Close the gap, or look-ups of what collided with the entry would stop at it.
  for (std::size_t at = (hole + 1) & mask; slots_[at].qpn != 0; at = (at + 1) & mask) {
    const std::size_t home = hash(slots_[at].key) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    slots_[at].qpn = 0;
    hole = at;
  }
}

void ConnectionTable::grow() {
  std::vector<Slot> old(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.qpn != 0) slots_[slot_of(slot.key)] = slot;
  }
}

}  // namespace rnic::transport
