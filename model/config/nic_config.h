// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic::config {

enum class SqPolicy { kRoundRobin, kWeighted, kStrict };
/// Which lone WQEs the driver writes to the device by MMIO (nic.blueflame).
enum class BlueFlameOps {
  kAll,            ///< whatever is small enough (mlx5)
  kInlineAndReads  ///< what has no payload to be fetched (mlx4)
};
/// Whether a region's local and remote key are one value (mlx5) or have an MPT entry each.
enum class KeyPolicy { kShared, kDistinct };
enum class Replacement { kLru, kRandom, kTreePlru };

/// Order in which translations are answered.
enum class TranslationOrder {
  kStrict,  ///< as they were asked: a hit waits behind a miss
  kQp,      ///< in order within each half of a QP, out of order between QPs
  kFree     ///< as soon as each is known
};
/// What a QP's context takes in the context cache.
enum class QpcLayout { kUnified, kByRole };

struct CacheConfig {
  std::uint32_t entries;  ///< 0: unlimited, where the parameter allows it
  std::uint32_t ways;
  Replacement replacement;
  std::uint32_t misses = 0;  ///< fetches of this cache under way at a time; 0: no limit of its own
  bool split = false;        ///< half for the requester, half for the responder
  std::uint32_t prefetch = 0;    ///< lines fetched ahead with one that is missing
  std::uint32_t l0_entries = 0;  ///< of a first level in front; 0: none
  std::uint32_t l0_ways = 0;
  std::uint32_t refetch = 0;  ///< bytes of the ring that are read when a WQE is; 0: it alone
};

/// What becomes of a UC or UD message longer than its RECV: nothing happens, or the RECV completes
/// with a length error.
enum class LongMessage { kDrop, kComplete };

/// A pipelined unit: a request takes `latency` cycles, a new one starts every `interval` cycles.
struct StageConfig {
  std::uint32_t latency;
  std::uint32_t interval;
};

struct NicConfig {
  double clock_hz;
  CacheConfig qpc_cache;
  std::uint32_t qpc_fetch;     ///< bytes of a context that a miss reads
  CacheConfig qpc_dual_cache;  ///< of QPs that use both halves, besides; no entries: none
  bool answers_need_context;   ///< ACKs, READ data and results of atomics look contexts up
  CacheConfig mpt_cache;
  CacheConfig mtt_cache;     ///< an entry is one line of `mtt_line` MTTs
  std::uint32_t mtt_line;    ///< page translations in a line: 1 to 8
  std::uint64_t mtt_reach;   ///< MTT entries of a region that are found without a directory
  std::uint32_t mtt_fanout;  ///< by which each level of directories extends the reach
  QpcLayout qpc_layout;
  std::uint32_t qpc_dual_entries;  ///< further entries of each half once a QP uses both
  std::uint32_t qpc_read_entries;  ///< further entries of a QP, in each half, for READs and atomics
  bool qpc_write_back;
  bool qpc_prefetch;           ///< a doorbell fetches the context
  CacheConfig wqe_cache;       ///< WQEs of READs and atomics that wait for their answer
  CacheConfig rq_wqe_cache;    ///< fetched RECV WQEs of all receive queues
  CacheConfig cqc_cache;       ///< completion queue contexts
  std::uint32_t wqe_prefetch;  ///< WQEs fetched by one DMA read at most
  std::uint32_t wqe_buffer;    ///< fetched WQEs buffered for each QP
  SqPolicy sq_scheduler;
  std::vector<std::uint64_t> sq_weights;  ///< of service level 0, 1 ...; the last for the others
  bool blueflame;
  BlueFlameOps blueflame_ops;
  std::uint32_t blueflame_blocks;  ///< largest WQE written by MMIO, 64 B blocks
  std::uint32_t max_inline;
  std::uint32_t max_sge;
  StageConfig doorbell;
  StageConfig scheduler;
  std::uint32_t scheduler_look_ahead;  ///< picks made ahead of the scheduler's own pace at most
  StageConfig qpc_lookup;
  StageConfig wqe_decode;
  StageConfig translation;
  TranslationOrder translation_order;
  std::uint32_t translation_page_interval;  ///< cycles for each further page of a request
  std::uint32_t translation_l1_latency;     ///< cycles by which a second-level hit is later
  StageConfig dma;
  StageConfig packetizer;
  StageConfig rx_parse;
  StageConfig responder;
  StageConfig atomic;  ///< issue of atomic operations
  StageConfig completion;
  LongMessage long_message;
  bool flush_late_sends;        ///< what is posted in ERR completes, flushed
  bool empty_recv;              ///< device capability: RECVs without an element may be posted
  bool write_imm_needs_handle;  ///< the responder must have an address handle of the requester
  bool write_imm_unsolicited;   ///< immediate data of WRITEs take no RECV
  std::uint32_t ports;          ///< of an adapter: each a device of its own, in one slot
  std::uint32_t functions;      ///< of a port: each with a PCIe link of its own
  std::uint32_t second_function_lanes;  ///< 0: as the first one's
  bool pcie_atomics;                    ///< atomics go to the root complex as AtomicOps
  Time loopback_latency;                ///< a frame of the port to itself, inside the NIC
  BitRate loopback_rate;                ///< of payload and headers
  std::uint32_t atomic_buckets;         ///< locks that atomic operations hash to
  std::uint64_t device_memory;          ///< bytes of memory on the device; 0: none
  Time device_memory_latency;           ///< of an access to it
  BitRate device_memory_rate;           ///< that it takes and gives data at
  bool atomics_in_turn;                 ///< those of one QP do not overlap
  Time atomic_response_time;            ///< from the lock's release to the response
  Time read_response_time;              ///< from a READ's check to its answer
  std::uint32_t tx_slots;               ///< packets between scheduler and wire
  std::uint64_t tx_buffer = 0;          ///< payload of those on a lane; 0: unlimited
  std::uint64_t fetch_granule;    ///< bytes of a message fetched before any is sent; 0: a packet
  std::uint64_t forward_granule;  ///< bytes of a message received before any is placed; 0: a packet
  bool dereg_flushes_mtt = false;  ///< a deregistration empties the MTT cache
  double message_rate = 0;         ///< messages/us that start, and that are executed; 0: no limit
  BitRate qp_rate;                 ///< payload that one send queue's engine moves at most
  Time qp_message_time;            ///< that a request keeps that engine besides its data
  BitRate read_engine_rate;        ///< READ data that one QP's responder sends at most
  Time read_engine_time;           ///< that a READ keeps it besides its data
  std::uint64_t read_segment = 0;  ///< bytes that one READ request asks for at most; 0: any
  Time sge_time{0};              ///< that a piece behind a packet's first takes of the gather unit
  std::uint64_t rx_buffer;       ///< bytes, for each VL or priority
  std::uint32_t context_misses;  ///< concurrent context (QPC/MPT/MTT) fetches
  std::uint32_t max_mr;          ///< device capability: keys in use at a time
  std::uint32_t max_rd_atomic;   ///< device capability
  KeyPolicy key_policy;
  Time interrupt_moderation;  ///< between two interrupts of a vector at least
  Time command_latency;       ///< firmware time of one command
  StageConfig tcp_tx;         ///< iWARP: TCP/MPA/DDP engine, transmit
  StageConfig tcp_rx;
  Time uc_gap_time;      ///< UC: a receiver's slow path at each gap of PSNs
  BitRate mpa_crc_rate;  ///< iWARP: CRC32c of FPDUs, each direction
};

}  // namespace rnic::config
