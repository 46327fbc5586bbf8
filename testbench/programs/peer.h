// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "host/host.h"
#include "protocol/access.h"
#include "workload/waiting.h"

namespace rnic::testbench {

using Bytes = std::vector<std::uint8_t>;

/// Registered memory, and a part of it.
struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;

  Buffer part(std::uint64_t offset, std::uint64_t count) const {
    return {address + offset, count, lkey, rkey};
  }
};

/// Memory that requests of the queue pair register, each time under another key.
struct FastBuffer {
  Buffer memory;
  host::verbs::FastRegion region;
};

/// A work request of a process has failed, or nothing can complete any more: its program is over.
/// The simulation is not at fault.
struct ProcessFailure {
  /// Of the completion; empty: there was none.
  std::optional<protocol::WcStatus> status;
  std::string what;  ///< in one line
};

/// One process of an example program: a thread with its core and one connected queue pair. It shows
/// the usual steps of a verbs program. A completion that is no success throws ProcessFailure,
/// everything else that fails SimulationError. All calls come from the process's own SC_THREAD.
class Peer {
 public:
  Peer(host::Host& host, const config::Config& config, std::uint32_t index);

  /// Protection domain, completion queues, and a queue pair in INIT.
  void open();
  /// Maps and registers memory for local writes, and for what the peer may do with it.
  Buffer allocate(std::uint64_t bytes, protocol::AccessFlags remote_access = 0);
  /// Registers memory that another process of this host allocated.
  Buffer share(const Buffer& memory, protocol::AccessFlags remote_access);
  /// Memory with a region that register_fast() makes valid; one mapping serves all registrations.
  FastBuffer allocate_fast(std::uint64_t bytes);
  /// RTR and RTS towards a peer that is open.
  void connect(const Peer& peer);

  /// Joins a multicast group: what is sent to it arrives here, too.
  void join(std::uint32_t group);
  /// From now on send() is to that group.
  void send_to_group(std::uint32_t group);
  /// Queue pair of this end, for reply().
  std::uint32_t number() const { return qp_->qpn; }
  /// A datagram to queue pair `qpn` of the host that connect() named.
  void reply(const Buffer& from, std::uint32_t qpn);

  /// To the shared receive queue, with workload.srq.
  void post_recv(std::uint64_t id, const Buffer& into);
  /// What a RECV buffer must have in front of the message: the place of a datagram's GRH.
  std::uint64_t header_bytes() const;
  /// The message in a RECV buffer.
  Bytes received(const Buffer& buffer, const host::verbs::Wc& wc);
  void send(const Buffer& from);
  /// Ends `key` at the peer before its RECV completes.
  void send_with_invalidate(const Buffer& from, std::uint32_t key);
  /// Opens `buffer` under its next key, for what is posted afterwards; completes without notice.
  std::uint32_t register_fast(FastBuffer& buffer, protocol::AccessFlags remote_access);
  void write(const Buffer& from, const Buffer& to);
  void write_with_imm(const Buffer& from, const Buffer& to, std::uint32_t imm);
  void read(const Buffer& into, const Buffer& from);
  void compare_and_swap(const Buffer& into, const Buffer& word, std::uint64_t expected,
                        std::uint64_t desired);

  /// Waits, as workload.completion says, for the next completion, which must be a success.
  host::verbs::Wc await_send() { return await(*send_cq_); }
  host::verbs::Wc await_recv() { return await(*recv_cq_); }

  /// The CPU's own view of memory.
  void store(const Buffer& to, const Bytes& bytes);
  Bytes load(const Buffer& from);
  void store_word(const Buffer& to, std::uint64_t value);
  std::uint64_t load_word(const Buffer& from);
  /// Spins until the 8 bytes there are at least `value`; a device writes them.
  void await_word(const Buffer& at, std::uint64_t value);

  host::Host& host;
  host::Core core;
  Waiting waiting;
  const std::uint32_t index;  ///< of the host

 private:
  void to_rtr(const Peer& peer);
  /// The way to `peer`, as the keys of the transport ask.
  protocol::AddressVector path_to(const Peer& peer) const;
  void to_rts();
  void post(host::verbs::SendWr& wr, const Buffer& local);
  host::verbs::Wc await(host::verbs::CompletionQueue& cq);
  /// Why the queue pair is in error, when `status` only says that it is.
  protocol::WcStatus cause_of(protocol::WcStatus status);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void end(std::optional<protocol::WcStatus> status, const std::string& what) const;

  const config::Config& config_;
  std::uint32_t pd_ = 0;
  host::verbs::CompletionQueue* send_cq_ = nullptr;
  host::verbs::CompletionQueue* recv_cq_ = nullptr;
  host::verbs::QueuePair* qp_ = nullptr;
  host::verbs::SharedReceiveQueue* srq_ = nullptr;  ///< with workload.srq
  host::verbs::AddressHandle* path_ = nullptr;      ///< of datagrams
  std::uint32_t peer_qpn_ = 0;
  std::uint64_t wr_ids_ = 0;
  host::PollSpot spot_;
  std::uint64_t watched_ = 0;
};

}  // namespace rnic::testbench
