// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "programs/programs.h"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kGroup = 1;
constexpr std::uint64_t kReceipt = 8;

/// What a member answers to the publisher's message `number`.
Bytes receipt_of(std::uint64_t number) {
  Bytes receipt(kReceipt);
  std::memcpy(receipt.data(), &number, kReceipt);
  return receipt;
}

}  // namespace

std::uint64_t Multicast::room(const Peer& self) const {
  return self.header_bytes() + (self.index == 0 ? kReceipt : message_bytes());
}

/// Each operation has all members' RECVs back before it is over, so that there is always one for
/// every publisher's message, and for every member's receipt.
void Multicast::prepare(Peer& self, std::uint32_t number) {
  ends_.resize(2 * clients());
  End& end = ends_[2 * number + (self.index == 0 ? 0 : 1)];
  end.out = self.allocate(std::max(message_bytes(), kReceipt));
  end.in = self.allocate(room(self) * clients());
  for (std::uint32_t i = 0; i < clients(); ++i) {
    self.post_recv(i, end.in.part(i * room(self), room(self)));
  }
}

void Multicast::prepare_connected(Peer& self, std::uint32_t /*number*/) {
  if (self.index == 0) {
    self.send_to_group(kGroup);
  } else {
    self.join(kGroup);
  }
}

/// The contents of message `operation` of a publisher, which begin with both numbers.
Bytes Multicast::message(std::uint32_t publisher, std::uint64_t operation) const {
  return pattern(operation * clients() + publisher, message_bytes());
}

void Multicast::client(Peer& self, std::uint32_t number) {
  const End& mine = ends_[2 * number];
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const Time started = begin(self);
    self.store(mine.out, message(number, i));
    self.send(mine.out.part(0, message_bytes()));
    for (std::uint32_t member = 0; member < clients(); ++member) {
      const host::verbs::Wc wc = self.await_recv();
      const Buffer buffer = mine.in.part(wc.wr_id * room(self), room(self));
      compare(self.received(buffer, wc), receipt_of(i));
      self.post_recv(wc.wr_id, buffer);
    }
    self.await_send();
    done(self, started, message_bytes() * clients());
  }
}

void Multicast::server(Peer& self, std::uint32_t number) {
  const End& mine = ends_[2 * number + 1];
  std::vector<std::uint64_t> seen(clients());
  std::uint64_t expected = 0;
  for (std::uint32_t i = 0; i < clients(); ++i) expected += operations(i);
  for (std::uint64_t i = 0; i < expected; ++i) {
    const host::verbs::Wc wc = self.await_recv();
    const Buffer buffer = mine.in.part(wc.wr_id * room(self), room(self));
    const std::uint32_t publisher = publisher_of(wc.src_qp);
    const std::uint64_t message_number = seen[publisher]++;
    compare(self.received(buffer, wc), message(publisher, message_number));
    self.post_recv(wc.wr_id, buffer);
    self.store(mine.out.part(0, kReceipt), receipt_of(message_number));
    self.reply(mine.out.part(0, kReceipt), wc.src_qp);
    self.await_send();
  }
}

std::uint32_t Multicast::publisher_of(std::uint32_t qpn) const {
  for (std::uint32_t i = 0; i < clients(); ++i) {
    if (peers()[2 * std::size_t{i}]->number() == qpn) return i;
  }
  throw SimulationError("a datagram of an unknown queue pair");
}

}  // namespace rnic::testbench
