// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/config.h"
#include "host/host.h"
#include "protocol/address_vector.h"
#include "workload/address_pattern.h"
#include "workload/waiting.h"

namespace rnic::testbench {

/// What one end tells the other out of band before the first message.
struct QpInfo {
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint32_t qkey = 0;     ///< datagrams
  std::uint64_t address = 0;  ///< of the buffer that the peer writes to and reads from
  std::uint32_t rkey = 0;
};

/// One end of a flow: its thread's core, queue pairs, completion queues and registered buffers.
/// Mirrors what perftest sets up. All calls come from the end's own SC_THREAD.
class Endpoint {
 public:
  /// `memory`: where its buffers lie.
  Endpoint(host::Host& host, const config::Config& config, std::uint32_t index,
           config::BufferMemory memory = config::BufferMemory::kHost);

  /// PD, CQs, buffers, MRs, and queue pairs in INIT.
  void create();
  /// Brings queue pair `i` to RTS towards `peer`.
  void connect(std::uint32_t i, const QpInfo& peer, const protocol::AddressVector& path);

  /// Registers the `bytes` at `address` for one message of its own thread; give_back() ends it.
  host::MemoryRegion register_for_message(std::uint64_t address, std::uint64_t bytes);
  void give_back(const host::MemoryRegion& region) { host.verbs.dereg_mr(core, region); }

  QpInfo info(std::uint32_t i) const;
  /// Place in `qps` of the queue pair that has number `qpn`. Threads of a host create queue pairs
  /// in turn, so the numbers of one endpoint rise but leave gaps.
  std::uint32_t index_of(std::uint32_t qpn) const { return places_[qpn - qps.front()->qpn]; }
  /// Number of the host it is on.
  std::uint32_t host_index() const { return index_; }

  struct Buffer {
    std::uint64_t send = 0;     ///< local source of WRITE and SEND
    std::uint64_t receive = 0;  ///< target of the peer's operations, sink of own READs
    std::vector<host::MemoryRegion> send_regions;
    std::vector<host::MemoryRegion> receive_regions;
  };

  /// What a workload.mistake needs.
  struct Spare {
    host::MemoryRegion plain;    ///< without any right
    host::MemoryRegion foreign;  ///< of another protection domain
    host::verbs::AddressHandle* foreign_path = nullptr;
  };
  Spare spare;

  host::Host& host;
  host::Core core;
  Waiting waiting;
  host::verbs::SharedReceiveQueue* srq = nullptr;  ///< of all its queue pairs, or null
  host::verbs::CompletionQueue* send_cq = nullptr;
  host::verbs::CompletionQueue* recv_cq = nullptr;
  std::vector<host::verbs::QueuePair*> qps;
  std::vector<host::verbs::AddressHandle*> paths;  ///< of each queue pair that sends datagrams
  std::vector<Buffer> buffers;                     ///< of each queue pair
  std::vector<std::uint64_t> receives_posted;      ///< of each queue pair
  std::vector<AddressPattern> receive_slots;       ///< likewise: where the next RECV's buffer lies
  std::vector<std::uint32_t> receives_used;        ///< consumed and not posted again
  std::uint32_t recv_depth = 1;                    ///< RECVs kept posted on each queue pair
  std::uint32_t header_room = 0;                   ///< in front of a message that takes a RECV
  std::uint64_t slot_bytes = 0;                    ///< distance of consecutive messages in a buffer
  std::uint64_t slots = 1;                         ///< messages that fit in one region
  std::uint32_t regions = 1;                       ///< regions a buffer is divided into

  /// Address and key of slot `slot`, counted over all regions of a buffer.
  std::uint64_t slot_address(std::uint64_t base, std::uint64_t slot) const {
    return base + slot / slots * region_bytes() + slot % slots * slot_bytes + offset_;
  }
  std::uint64_t region_bytes() const { return region_bytes_; }
  std::uint64_t total_slots() const { return slots * regions; }

 private:
  host::verbs::QpAttr initial_attributes(std::uint32_t& mask) const;
  host::Status bring_up(std::uint32_t i, const QpInfo& peer, const protocol::AddressVector& path);
  void moderate_events();
  void make_spare();
  void size_buffers();
  std::uint64_t automatic_bytes() const;
  std::uint64_t map_buffer(std::uint64_t bytes);
  void own_buffer();
  void share_buffers();
  std::uint32_t access_flags() const;
  host::MemoryRegion implicit_region();
  void bring_in(const host::MemoryRegion& region, std::uint64_t address, std::uint64_t bytes);
  /// Whether regions of so many bytes find no room in the table of translations any more.
  bool lacks_translations(std::uint64_t bytes) const;
  void register_buffer(std::uint64_t base, std::uint64_t bytes,
                       std::vector<host::MemoryRegion>& out);

  const config::Config& config_;
  config::BufferMemory memory_;
  std::uint32_t index_;
  std::uint32_t pd_ = 0;
  std::uint32_t foreign_pd_ = 0;
  std::optional<host::MemoryRegion> implicit_;  ///< workload.odp=implicit
  std::uint64_t region_bytes_ = 0;
  std::uint64_t offset_ = 0;           ///< of messages past their alignment
  std::vector<std::uint32_t> places_;  ///< by number of a queue pair beyond the first one's
};

}  // namespace rnic::testbench
