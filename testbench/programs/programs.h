// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "programs/program.h"

namespace rnic::testbench {

/// SEND there, SEND back: the client sends workload.msg_size bytes, the server returns them. Over
/// RC, UC or UD (transport.type), with receive queues of its own or shared ones (workload.srq).
class PingPong : public Program {
 public:
  using Program::Program;

 protected:
  void prepare(Peer& self, std::uint32_t number) override;
  void client(Peer& self, std::uint32_t number) override;
  void server(Peer& self, std::uint32_t number) override;

 private:
  struct End {
    Buffer out;
    Buffer in;
  };
  End ends_[2];  ///< by host
};

/// A key-value store: GET is a READ of the entry, without the server's CPU; PUT is a SEND of key
/// and value that the server answers when the entry is written. Half of the operations are PUTs. An
/// entry carries a checksum, so that a GET that meets a PUT half-way would be seen.
class KvStore : public Program {
 public:
  using Program::Program;

 protected:
  void prepare(Peer& self, std::uint32_t number) override;
  void client(Peer& self, std::uint32_t number) override;
  void server(Peer& self, std::uint32_t number) override;

 private:
  std::uint64_t entry_bytes() const;
  Bytes entry(std::uint64_t key, const Bytes& value) const;
  void put(Peer& self, std::uint64_t key, const Bytes& value);
  Bytes get(Peer& self, std::uint64_t key);

  Buffer table_;       ///< server
  Buffer request_[2];  ///< by host
  Buffer reply_[2];
  Buffer fetched_;  ///< client
};

/// A stream through a ring in the server's memory: WRITE with immediate tells which slot is full, a
/// WRITE of the consumed count gives slots back.
class RingBuffer : public Program {
 public:
  using Program::Program;

 protected:
  void prepare(Peer& self, std::uint32_t number) override;
  void client(Peer& self, std::uint32_t number) override;
  void server(Peer& self, std::uint32_t number) override;

 private:
  Buffer ring_;      ///< server
  Buffer staging_;   ///< client: source of each slot
  Buffer consumed_;  ///< client: messages that the server is done with
  Buffer count_;     ///< server: source of that
};

/// Rendezvous: the client registers its message in the send queue and SENDs where it lies and by
/// which key; the server READs it and answers by a SEND that ends the key: the buffer is the
/// client's again. So NVMe over fabrics and NFS over RDMA move data.
class Rendezvous : public Program {
 public:
  using Program::Program;

 protected:
  void prepare(Peer& self, std::uint32_t number) override;
  void client(Peer& self, std::uint32_t number) override;
  void server(Peer& self, std::uint32_t number) override;

 private:
  Buffer offer_[2];     ///< by host: source and target of the keys
  Bytes offered_;       ///< what the client has sent last
  FastBuffer message_;  ///< client
  Buffer copy_;         ///< server
  Buffer free_[2];
};

/// workload.qps clients guard a counter in the server's memory by a lock: compare-and-swap until it
/// is theirs, READ, WRITE one more, compare-and-swap back.
class SpinLock : public Program {
 public:
  using Program::Program;

 protected:
  void prepare(Peer& self, std::uint32_t number) override;
  void client(Peer& self, std::uint32_t number) override;
  void server(Peer& self, std::uint32_t number) override;

 private:
  void swap(Peer& self, std::uint32_t number, std::uint64_t expected, std::uint64_t desired);

  std::vector<Buffer> shared_;   ///< lock and counter as each connection's server registers them
  std::vector<Buffer> scratch_;  ///< of each client: old value, counter
  Buffer memory_;
  std::uint32_t inside_ = 0;  ///< clients that hold the lock
  std::uint64_t tries_ = 0;
  std::uint64_t counted_ = 0;
};

/// Publish and subscribe: as many publishers on host 0 as there are other hosts SEND datagrams to a
/// multicast group that those hosts have joined; each member sends a receipt to the publisher,
/// whose operation is over with the last one.
class Multicast : public Program {
 public:
  using Program::Program;

 protected:
  void prepare(Peer& self, std::uint32_t number) override;
  void prepare_connected(Peer& self, std::uint32_t number) override;
  void client(Peer& self, std::uint32_t number) override;
  void server(Peer& self, std::uint32_t number) override;

 private:
  struct End {
    Buffer out;
    Buffer in;  ///< room for a message of each of the others
  };
  std::uint64_t room(const Peer& self) const;
  Bytes message(std::uint32_t publisher, std::uint64_t operation) const;
  std::uint32_t publisher_of(std::uint32_t qpn) const;

  std::vector<End> ends_;  ///< publisher 0, member 0, publisher 1, ...
};

}  // namespace rnic::testbench
