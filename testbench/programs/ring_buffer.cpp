// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "programs/programs.h"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kSlots = 16;
constexpr std::uint64_t kWord = 8;

}  // namespace

void RingBuffer::prepare(Peer& self, std::uint32_t /*number*/) {
  if (self.index == 0) {
    staging_ = self.allocate(kSlots * message_bytes());
    consumed_ = self.allocate(kWord, protocol::kAccessRemoteWrite);
    return;
  }
  ring_ = self.allocate(kSlots * message_bytes(), protocol::kAccessRemoteWrite);
  count_ = self.allocate(kWord);
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) self.post_recv(slot, {});
}

void RingBuffer::client(Peer& self, std::uint32_t number) {
  const std::uint64_t total = operations(number);
  for (std::uint64_t i = 0; i < total; ++i) {
    const std::uint64_t offset = i % kSlots * message_bytes();
    const Time started = begin(self);
    // The slot must be free, which also means that the server has posted its RECV again.
    if (i >= kSlots) self.await_word(consumed_, i - kSlots + 1);
    self.store(staging_.part(offset, message_bytes()), pattern(i, message_bytes()));
    self.write_with_imm(staging_.part(offset, message_bytes()), ring_.part(offset, message_bytes()),
                        static_cast<std::uint32_t>(i));
    self.await_send();
    done(self, started, message_bytes());
  }
  self.await_word(consumed_, total);
}

void RingBuffer::server(Peer& self, std::uint32_t number) {
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const host::verbs::Wc wc = self.await_recv();
    if (wc.imm_data != static_cast<std::uint32_t>(i)) {
      throw SimulationError("immediate data of another message");
    }
    const std::uint64_t slot = i % kSlots;
    compare(self.load(ring_.part(slot * message_bytes(), message_bytes())),
            pattern(i, message_bytes()));
    self.post_recv(slot, {});
    self.store_word(count_, i + 1);
    self.write(count_, consumed_);
    self.await_send();
  }
}

}  // namespace rnic::testbench
