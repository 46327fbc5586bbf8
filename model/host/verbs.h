// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "base/rate_server.h"
#include "config/host_config.h"
#include "config/nic_config.h"
#include "host/address_space.h"
#include "host/context_memory.h"
#include "host/cpu.h"
#include "host/memory_registrar.h"
#include "host/status.h"
#include "host/verbs_types.h"
#include "protocol/command.h"
#include "protocol/cqe.h"
#include "protocol/wqe.h"
#include "stats/instruments.h"

namespace rnic::config {
struct Config;
}

namespace rnic::host::verbs {

/// Completion queue: a ring of CQEs in DMA-coherent memory and the driver's consumer index.
struct CompletionQueue {
  std::uint32_t cqn = 0;
  std::uint32_t log_entries = 0;
  std::uint64_t ring_address = 0;
  std::uint32_t consumer = 0;
  PollSpot written;
};

/// Queue pair as the driver holds it: rings, indices, and what a CQE must be turned back into.
struct QueuePair {
  std::uint32_t qpn = 0;
  protocol::QpState state = protocol::QpState::kReset;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  QpInitAttr cap;
  std::uint64_t sq_address = 0;
  std::uint32_t sq_log_blocks = 0;
  std::uint64_t rq_address = 0;
  std::uint32_t rq_log_entries = 0;
  std::uint64_t doorbell_record = 0;

  struct PostedSend {
    std::uint64_t wr_id = 0;
    std::uint16_t index = 0;
    std::uint8_t blocks = 0;
  };
  Ring<PostedSend> sends;  ///< posted and not yet known to be complete, oldest first
  std::uint16_t sq_head = 0;
  Ring<std::uint64_t> recvs;  ///< wr_ids of posted RECVs
  std::uint16_t rq_head = 0;
  std::vector<stats::MessageTrace*> traces;  ///< by ring block
  stats::DeliveryMeter* meter = nullptr;     ///< of what arrives here; may stay null
};

/// Cumulative cost of memory registration.
struct RegistrationStats {
  std::uint64_t calls = 0;
  std::uint64_t pages = 0;
  Time time{0};
};

/// Counts of the driver's work.
struct DriverStats {
  std::uint64_t doorbells = 0;
  std::uint64_t blueflames = 0;
  std::uint64_t polls = 0;
  std::uint64_t commands = 0;
  RegistrationStats registration;
};

/// An opened device: the user-space driver and the kernel's registration path. Every call spends
/// its caller's CPU time on the `Core` it is given and must come from an SC_THREAD. Results are
/// errno-like as in libibverbs.
class Context : public sc_core::sc_module, public stats::Instruments {
 public:
  Context(const sc_core::sc_module_name& name, const config::Config& config, PhysicalMemory& memory,
          AddressSpace& space, ContextMemory& context_memory, MmioPort& mmio);

  std::uint32_t alloc_pd() { return next_pd_++; }
  RegistrationResult reg_mr(Core& core, std::uint32_t pd, std::uint64_t addr, std::uint64_t length,
                            std::uint32_t access);
  Status dereg_mr(Core& core, const MemoryRegion& region);

  /// At least `entries` CQEs (rounded up to a power of two).
  CompletionQueue* create_cq(Core& core, std::uint32_t entries);
  /// EINVAL (null) when a capability exceeds the device's.
  QueuePair* create_qp(Core& core, std::uint32_t pd, CompletionQueue& send_cq,
                       CompletionQueue& recv_cq, const QpInitAttr& attr);
  Status modify_qp(Core& core, QueuePair& qp, const QpAttr& attr, std::uint32_t mask);

  /// Posts `count` requests with one doorbell. On failure `*bad` is the index of the first that was
  /// not posted; earlier ones are. EINVAL: bad SGE count, inline size or state; ENOMEM: queue full.
  Status post_send(Core& core, QueuePair& qp, const SendWr* wrs, std::uint32_t count,
                   std::uint32_t* bad = nullptr);
  Status post_recv(Core& core, QueuePair& qp, const RecvWr* wrs, std::uint32_t count,
                   std::uint32_t* bad = nullptr);
  /// Takes up to `count` completions; returns how many.
  std::uint32_t poll_cq(Core& core, CompletionQueue& cq, std::uint32_t count, Wc* wcs);
  /// Spins until the CQ holds a completion.
  void wait_cq(Core& core, CompletionQueue& cq);

  stats::MessageTrace* trace_of(std::uint32_t qpn, std::uint16_t wqe_index) override;
  stats::DeliveryMeter* meter_of(std::uint32_t qpn) override;

  AddressSpace& space() { return space_; }
  PhysicalMemory& memory() { return memory_; }
  const DriverStats& stats() const { return stats_; }
  QueuePair* find_qp(std::uint32_t qpn);

 private:
  Status check_send(const QueuePair& qp, const SendWr& wr) const;
  Status fill_wqe(const SendWr& wr, const QueuePair& qp);
  void write_ring(std::uint64_t base, std::uint32_t ring_bytes, std::uint32_t offset,
                  const std::uint8_t* bytes, std::uint32_t count);
  /// Spends `cost` storing to the queue pair's doorbell register, once that is free.
  void use_register(Core& core, const QueuePair& qp, Time cost);
  void ring_doorbell(Core& core, QueuePair& qp, std::uint32_t posted, std::uint32_t last_blocks);
  bool peek_cqe(const CompletionQueue& cq, protocol::Cqe& cqe) const;
  void to_wc(const protocol::Cqe& cqe, Wc& wc);
  protocol::CommandStatus execute(Core& core, const protocol::CommandMailbox& mailbox);
  std::uint64_t allocate_record();
  std::uint64_t allocate_ring(std::uint64_t bytes);

  const config::NicConfig nic_;
  const config::CpuConfig cpu_;
  PhysicalMemory& memory_;
  AddressSpace& space_;
  MemoryRegistrar registrar_;
  StoreBuffer store_buffer_;
  std::vector<Server> doorbell_registers_;  ///< empty: each queue pair has its own
  std::uint32_t next_pd_ = 1;
  std::uint32_t next_cqn_ = 1;
  std::vector<std::unique_ptr<CompletionQueue>> cqs_;
  std::vector<std::unique_ptr<QueuePair>> qps_;  ///< by number, from kFirstQpn
  std::uint64_t record_page_ = 0;
  std::uint32_t records_left_ = 0;
  std::uint64_t ring_chunk_ = 0;
  std::uint64_t ring_chunk_left_ = 0;
  std::uint64_t mailbox_address_ = 0;
  PollSpot mailbox_written_;
  bool mailbox_taken_ = false;
  sc_core::sc_event mailbox_free_;
  protocol::SendWqe scratch_;
  std::vector<std::uint8_t> scratch_bytes_;
  DriverStats stats_;
};

}  // namespace rnic::host::verbs
