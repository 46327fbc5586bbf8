// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "programs/programs.h"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kEntries = 256;
constexpr std::uint64_t kHeader = 16;  ///< key and checksum of the value, 8 bytes each

/// What the server answers to a PUT: the checksum of the value that it has stored.
constexpr std::uint64_t kReply = 8;

/// FNV-1a, enough to tell a torn entry.
std::uint64_t checksum(const Bytes& value) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::uint8_t byte : value) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

Bytes reply_to(const Bytes& value) {
  Bytes reply(kReply);
  const std::uint64_t sum = checksum(value);
  std::memcpy(reply.data(), &sum, sizeof sum);
  return reply;
}

}  // namespace

std::uint64_t KvStore::entry_bytes() const { return kHeader + message_bytes(); }

Bytes KvStore::entry(std::uint64_t key, const Bytes& value) const {
  Bytes bytes(kHeader + value.size());
  const std::uint64_t sum = checksum(value);
  std::memcpy(bytes.data(), &key, sizeof key);
  std::memcpy(bytes.data() + sizeof key, &sum, sizeof sum);
  std::copy(value.begin(), value.end(), bytes.begin() + static_cast<std::ptrdiff_t>(kHeader));
  return bytes;
}

void KvStore::prepare(Peer& self, std::uint32_t /*number*/) {
  request_[self.index] = self.allocate(entry_bytes());
  reply_[self.index] = self.allocate(kReply);
  if (self.index == 0) {
    fetched_ = self.allocate(entry_bytes());
    return;
  }
  // What a client finds before it has put anything: all zeros under each key.
  table_ = self.allocate(kEntries * entry_bytes(), protocol::kAccessRemoteRead);
  for (std::uint64_t key = 0; key < kEntries; ++key) {
    self.store(table_.part(key * entry_bytes(), entry_bytes()),
               entry(key, Bytes(static_cast<std::size_t>(message_bytes()))));
  }
  self.post_recv(0, request_[self.index]);
}

void KvStore::put(Peer& self, std::uint64_t key, const Bytes& value) {
  const Buffer& reply = reply_[self.index];
  self.post_recv(key, reply);
  self.store(request_[self.index], entry(key, value));
  self.send(request_[self.index]);
  const host::verbs::Wc wc = self.await_recv();
  compare(self.load(reply.part(0, wc.byte_len)), reply_to(value));
  self.await_send();
}

Bytes KvStore::get(Peer& self, std::uint64_t key) {
  self.read(fetched_, table_.part(key * entry_bytes(), entry_bytes()));
  self.await_send();
  return self.load(fetched_);
}

void KvStore::client(Peer& self, std::uint32_t number) {
  Rng rng(config_.sim.seed, "kv_store");
  std::vector<Bytes> values(kEntries, Bytes(static_cast<std::size_t>(message_bytes())));
  for (std::uint64_t i = 0; i < operations(number); ++i) {
    const std::uint64_t key = rng.below(kEntries);
    const bool puts = rng.below(2) == 0;
    if (puts) values[key] = pattern(i, message_bytes());
    const Time started = begin(self);
    if (puts) {
      put(self, key, values[key]);
      done(self, started, message_bytes());
      continue;
    }
    const Bytes found = get(self, key);
    done(self, started, message_bytes());
    compare(found, entry(key, values[key]));
  }
}

void KvStore::server(Peer& self, std::uint32_t /*number*/) {
  for (std::uint64_t i = 1;; ++i) {
    const host::verbs::Wc wc = self.await_recv();
    const Bytes request = self.load(request_[self.index].part(0, wc.byte_len));
    std::uint64_t key = 0;
    std::memcpy(&key, request.data(), sizeof key);
    const Bytes value(request.begin() + kHeader, request.end());
    compare(request, entry(key, value));
    self.store(table_.part(key % kEntries * entry_bytes(), entry_bytes()), request);
    self.post_recv(i, request_[self.index]);
    self.store(reply_[self.index], reply_to(value));
    self.send(reply_[self.index]);
    self.await_send();
  }
}

}  // namespace rnic::testbench
