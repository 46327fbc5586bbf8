// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/error.h"
#include "programs/programs.h"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kWord = 8;
constexpr std::uint64_t kFree = 0;

/// A word as it lies in memory.
Bytes bytes_of(std::uint64_t word) {
  Bytes bytes(kWord);
  std::memcpy(bytes.data(), &word, kWord);
  return bytes;
}

}  // namespace

void SpinLock::prepare(Peer& self, std::uint32_t number) {
  if (self.index == 0) {
    scratch_.resize(clients());
    scratch_[number] = self.allocate(2 * kWord);
    return;
  }
  // One lock and one counter behind it, seen through a region of each connection.
  constexpr protocol::AccessFlags kRights =
      protocol::kAccessRemoteAtomic | protocol::kAccessRemoteRead | protocol::kAccessRemoteWrite;
  shared_.resize(clients());
  if (memory_.bytes == 0) memory_ = {self.host.space.map(2 * kWord), 2 * kWord, 0, 0};
  shared_[number] = self.share(memory_, kRights);
}

/// Repeats until the lock was `expected` and is `desired`.
void SpinLock::swap(Peer& self, std::uint32_t number, std::uint64_t expected,
                    std::uint64_t desired) {
  const Buffer old = scratch_[number].part(0, kWord);
  std::uint64_t holder = 0;
  do {
    ++tries_;
    self.compare_and_swap(old, shared_[number].part(0, kWord), expected, desired);
    self.await_send();
    holder = self.load_word(old);
    if (holder > clients()) throw SimulationError("the lock names nobody as its holder");
  } while (holder != expected);
}

void SpinLock::client(Peer& self, std::uint32_t number) {
  const std::uint64_t mine = number + 1;
  const Buffer counter = shared_[number].part(kWord, kWord);
  const Buffer local = scratch_[number].part(kWord, kWord);
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const Time started = begin(self);
    swap(self, number, kFree, mine);
    if (inside_++ != 0) throw SimulationError("two clients hold the lock");
    self.read(local, counter);
    self.await_send();
    if (self.load_word(local) != counted_) throw SimulationError("the counter lost an increment");
    compare(self.load(local), bytes_of(counted_));
    self.store_word(local, ++counted_);
    self.write(local, counter);
    self.await_send();
    --inside_;
    swap(self, number, mine, kFree);
    done(self, started, kWord);
  }
}

/// The server's CPU has nothing to do.
void SpinLock::server(Peer& /*self*/, std::uint32_t /*number*/) {}

}  // namespace rnic::testbench
