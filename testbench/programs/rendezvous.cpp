// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "programs/programs.h"

namespace rnic::testbench {
namespace {

/// What the client tells the server.
struct Offer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rkey = 0;
};

}  // namespace

void Rendezvous::prepare(Peer& self, std::uint32_t /*number*/) {
  offer_[self.index] = self.allocate(sizeof(Offer));
  free_[self.index] = self.allocate(1);
  if (self.index == 0) {
    message_ = self.allocate(message_bytes(), protocol::kAccessRemoteRead);
    return;
  }
  copy_ = self.allocate(message_bytes());
  self.post_recv(0, offer_[self.index]);
}

void Rendezvous::client(Peer& self, std::uint32_t number) {
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    self.store(message_, pattern(i, message_bytes()));
    Offer offer;
    offer.address = message_.address;
    offer.bytes = message_.bytes;
    offer.rkey = message_.rkey;
    Bytes bytes(sizeof offer);
    std::memcpy(bytes.data(), &offer, sizeof offer);
    self.store(offer_[self.index], bytes);
    self.post_recv(i, free_[self.index]);
    const Time started = self.core.now();
    self.send(offer_[self.index]);
    self.await_recv();  // the server has it: the buffer may change
    done(self, started, message_bytes());
    self.await_send();
  }
}

void Rendezvous::server(Peer& self, std::uint32_t number) {
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    self.await_recv();
    const Bytes bytes = self.load(offer_[self.index]);
    Offer offer;
    std::memcpy(&offer, bytes.data(), sizeof offer);
    self.post_recv(i + 1, offer_[self.index]);
    self.read(copy_.part(0, offer.bytes), {offer.address, offer.bytes, 0, offer.rkey});
    self.await_send();
    compare(self.load(copy_), pattern(i, message_bytes()));
    self.send(free_[self.index]);
    self.await_send();
  }
}

}  // namespace rnic::testbench
