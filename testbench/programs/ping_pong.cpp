// SPDX-License-Identifier: Apache-2.0
#include "programs/programs.h"

namespace rnic::testbench {

void PingPong::prepare(Peer& self, std::uint32_t /*number*/) {
  End& end = ends_[self.index];
  end.out = self.allocate(message_bytes());
  end.in = self.allocate(self.header_bytes() + message_bytes());
  self.post_recv(0, end.in);  // before the peer can send
}

void PingPong::client(Peer& self, std::uint32_t number) {
  const End& mine = ends_[self.index];
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const Bytes ping = pattern(i, message_bytes());
    self.store(mine.out, ping);
    const Time started = begin(self);
    self.send(mine.out);
    const host::verbs::Wc wc = self.await_recv();
    done(self, started, 2 * message_bytes());
    compare(self.received(mine.in, wc), ping);
    self.await_send();
    self.post_recv(i + 1, mine.in);
  }
}

void PingPong::server(Peer& self, std::uint32_t number) {
  const End& mine = ends_[self.index];
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const host::verbs::Wc wc = self.await_recv();
    const Bytes ping = self.received(mine.in, wc);
    compare(ping, pattern(i, message_bytes()));
    self.post_recv(i + 1, mine.in);  // before the answer asks for the next ping
    self.store(mine.out, ping);
    self.send(mine.out);
    self.await_send();
  }
}

}  // namespace rnic::testbench
