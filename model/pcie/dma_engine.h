// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>
#include <tlm>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/rate_server.h"
#include "base/ring.h"
#include "base/time.h"
#include "config/pcie_config.h"
#include "pcie/dma.h"
#include "protocol/tlp.h"
#include "stats/unit_stats.h"
#include "tlm/payload_pool.h"

namespace rnic::pcie {

/// The device's DMA engine: turns requests into TLM transactions on the link.
///
/// A read holds one tag for each MRRS-sized request until its data is there. While tags are
/// plentiful, up to 4 KiB travel as one transaction (two kernel events), which holds all its tags
/// until its last byte; that is harmless as long as the tags cover the round trip anyway. When they
/// do not, reads are cut into single requests, each with its own round trip, so that bandwidth is
/// tags x MRRS / round trip. Reads that wait for tags are served in order. TLP by TLP
/// (tlp_by_tlp()) transactions are single packets; while posted credits are finite, few packets.
///
/// A completion that was lost holds its tags until `pcie.completion_timeout` after its request.
class DmaEngine : public sc_core::sc_module, public DmaIf, private tlm::tlm_bw_transport_if<> {
 public:
  /// Longest read or write that is one transaction.
  static constexpr std::uint32_t kBurstBytes = 4096;

  /// `latency`: from a request's start to its first TLP at the link; `interval`: between starts.
  DmaEngine(const sc_core::sc_module_name& name, const config::PcieConfig& config, Time latency,
            Time interval);

  tlm::tlm_initiator_socket<> socket;

  void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes, std::uint8_t* into,
                tlm_ext::Purpose purpose, DmaClient* client, std::uint64_t token) override;
  Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                 const std::uint8_t* from, tlm_ext::Purpose purpose, DmaClient* client,
                 std::uint64_t token) override;
  void dma_read_page(Time earliest, std::uint64_t address, std::uint8_t* into, Page& page,
                     tlm_ext::Purpose purpose, DmaClient* client, std::uint64_t token) override;
  Time dma_write_page(Time earliest, std::uint64_t address, Page& page, tlm_ext::Purpose purpose,
                      DmaClient* client, std::uint64_t token) override;

  void dma_atomic(Time earliest, std::uint64_t address, const tlm_ext::AtomicOperands& operands,
                  std::uint8_t* into, DmaClient* client, std::uint64_t token) override;

  /// Busy: issuing; stalled (no_tag): a read waits for tags; occupancy: tags in use.
  const stats::UnitStats& unit() const { return unit_; }
  /// Transactions that failed; each request's client has been told.
  std::uint64_t faults() const { return faults_; }
  std::uint32_t tags_in_use() const { return total_tags_ - free_tags_; }
  std::size_t waiting() const { return waiting_.size(); }
  /// Reads and writes not yet over.
  std::size_t outstanding() const { return requests_.in_use(); }
  void reset_statistics(Time now);

 private:
  /// One dma_read() or dma_write(): what is left to issue and to arrive.
  struct Request {
    std::uint64_t address = 0;
    std::uint8_t* data = nullptr;
    std::uint32_t to_issue = 0;
    std::uint32_t to_arrive = 0;
    tlm_ext::Purpose purpose = tlm_ext::Purpose::kPayload;
    DmaClient* client = nullptr;
    std::uint64_t token = 0;
    Time ready{0};
    Page* page = nullptr;  ///< all that is read or written
    bool failed = false;
    bool is_atomic = false;
    tlm_ext::AtomicOperands operands{};
    DmaError error{};  ///< of the first transaction that failed, and where it was
    std::uint64_t fault_address = 0;
  };
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64 start, sc_dt::uint64 end) override;

  /// A transaction of a read: its length and the tags it holds; 0 tags: not enough are free.
  struct Piece {
    std::uint32_t bytes;
    std::uint32_t tags;
  };

  /// A transaction of a write: its length, and whether others of the same write go before or come
  /// after it.
  struct WritePiece {
    std::uint32_t bytes;
    bool follows = false;
    bool followed = false;
  };

  /// Bytes of a write's next transaction.
  std::uint32_t write_piece(std::uint64_t address, std::uint32_t rest) const;
  /// Sends the next piece of a write; returns when the last of it leaves.
  Time issue_write(Request& request, WritePiece piece, const std::uint8_t* from);
  void set_ordering(tlm_ext::PooledPayload& payload) const;
  /// When a request called now may reach the link.
  Time pass_pipeline(Time earliest);
  Piece next_piece(const Request& request, bool queued) const;
  /// Issues what tags allow; true when all of `request` is on its way.
  void start_read(Request* request);
  Time start_write(Request* request, const std::uint8_t* from);
  bool issue_reads(Request& request, bool queued);
  void issue_read(Request& request, Piece piece);
  void serve_waiting();
  void learn_round_trip(const tlm_ext::PooledPayload& payload);
  /// Hands a transaction to the link at `at`; returns when its last byte has left.
  Time send(tlm_ext::PooledPayload& payload, Time at);
  /// A transaction is over.
  void finish(tlm_ext::PooledPayload*& payload);
  void note_fault(Request& request, const tlm_ext::PooledPayload& payload);
  static void tell_failure(DmaClient* client, const DmaFault& fault);

  protocol::TlpRules rules_;
  bool relaxed_ordering_;
  bool id_based_ordering_;
  bool translates_;  ///< addresses are translated in front of the engine (ATS)
  /// Transactions are single packets: of reads; of writes, as many packets as this (0: no limit).
  bool single_reads_;
  std::uint32_t write_packets_;
  std::uint32_t full_burst_tags_;
  Time completion_timeout_;
  BitRate rate_;
  Time latency_;
  Time interval_;
  PipelineServer issue_;
  std::uint32_t total_tags_;
  std::uint32_t free_tags_;
  /// Shortest round trip of a read seen, and the tags that fill the link for that long.
  Time round_trip_ = kTimeNever;
  std::uint64_t covering_tags_ = 0;
  Time starved_since_{0};
  Pool<Request> requests_;
  Ring<Request*> waiting_;
  tlm_ext::PayloadPool payloads_;
  stats::UnitStats unit_;
  std::uint64_t faults_ = 0;
  EventQueue<DmaEngine, tlm_ext::PooledPayload*> arrivals_;
};

}  // namespace rnic::pcie
