// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/error.h"
#include "programs/programs.h"

namespace rnic::testbench {
namespace {

/// What the client tells the server.
struct Offer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rkey = 0;
};

constexpr std::uint64_t kOffer = 24;  ///< bytes of it, padding included
static_assert(sizeof(Offer) == kOffer);

/// The one byte with which the server gives back the buffer of operation `number`.
Bytes receipt_of(std::uint64_t number) {
  return Bytes(1, static_cast<std::uint8_t>(number * 7 + 1));
}

}  // namespace

void Rendezvous::prepare(Peer& self, std::uint32_t /*number*/) {
  offer_[self.index] = self.allocate(sizeof(Offer));
  free_[self.index] = self.allocate(1);
  if (self.index == 0) {
    message_ = self.allocate_fast(message_bytes());
    return;
  }
  copy_ = self.allocate(message_bytes());
  self.post_recv(0, offer_[self.index]);
}

void Rendezvous::client(Peer& self, std::uint32_t number) {
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    self.store(message_.memory, pattern(i, message_bytes()));
    const Time started = begin(self);
    Offer offer;
    offer.address = message_.memory.address;
    offer.bytes = message_.memory.bytes;
    offer.rkey = self.register_fast(message_, protocol::kAccessRemoteRead);
    offered_.assign(kOffer, 0);
    std::memcpy(offered_.data(), &offer.address, sizeof offer.address);
    std::memcpy(offered_.data() + 8, &offer.bytes, sizeof offer.bytes);
    std::memcpy(offered_.data() + 16, &offer.rkey, sizeof offer.rkey);
    self.store(offer_[self.index], offered_);
    self.post_recv(i, free_[self.index]);
    self.send(offer_[self.index]);
    const host::verbs::Wc wc = self.await_recv();  // the server has it: the buffer may change
    if ((wc.wc_flags & host::verbs::Wc::kWithInv) == 0 || wc.invalidated_rkey != offer.rkey) {
      throw SimulationError("the answer of a rendezvous leaves the message's key valid");
    }
    done(self, started, message_bytes());
    compare(self.load(free_[self.index].part(0, wc.byte_len)), receipt_of(i));
    self.await_send();
  }
}

void Rendezvous::server(Peer& self, std::uint32_t number) {
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const host::verbs::Wc wc = self.await_recv();
    const Bytes bytes = self.load(offer_[self.index].part(0, wc.byte_len));
    compare(bytes, offered_);
    Offer offer;
    std::memcpy(&offer, bytes.data(), sizeof offer);
    self.post_recv(i + 1, offer_[self.index]);
    self.read(copy_.part(0, offer.bytes), {offer.address, offer.bytes, 0, offer.rkey});
    self.await_send();
    compare(self.load(copy_), pattern(i, message_bytes()));
    self.store(free_[self.index], receipt_of(i));
    self.send_with_invalidate(free_[self.index], offer.rkey);
    self.await_send();
  }
}

}  // namespace rnic::testbench
