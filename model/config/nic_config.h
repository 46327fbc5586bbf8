// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic::config {

enum class SqPolicy { kRoundRobin, kWeighted, kStrict };
/// Whether a region's local and remote key are one value (mlx5) or have an MPT entry each.
enum class KeyPolicy { kShared, kDistinct };
enum class Replacement { kLru, kRandom, kTreePlru };

struct CacheConfig {
  std::uint32_t entries;
  std::uint32_t ways;
  Replacement replacement;
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
  CacheConfig mpt_cache;
  CacheConfig mtt_cache;       ///< an entry is one 64 B line of eight MTTs
  std::uint32_t wqe_prefetch;  ///< WQEs fetched by one DMA read at most
  std::uint32_t wqe_cache;     ///< fetched WQEs buffered for each QP
  SqPolicy sq_scheduler;
  bool blueflame;
  std::uint32_t max_inline;
  std::uint32_t max_sge;
  StageConfig doorbell;
  StageConfig scheduler;
  StageConfig qpc_lookup;
  StageConfig wqe_decode;
  StageConfig translation;
  StageConfig dma;
  StageConfig packetizer;
  StageConfig rx_parse;
  StageConfig responder;
  StageConfig atomic;  ///< issue of atomic operations
  StageConfig completion;
  LongMessage long_message;
  std::uint32_t atomic_buckets;  ///< locks that atomic operations hash to
  std::uint32_t tx_slots;        ///< packets between scheduler and wire
  std::uint64_t rx_buffer;       ///< bytes, for each VL or priority
  std::uint32_t context_misses;  ///< concurrent context (QPC/MPT/MTT) fetches
  std::uint32_t max_rd_atomic;   ///< device capability
  KeyPolicy key_policy;
  Time interrupt_moderation;  ///< between two interrupts of a vector at least
  Time command_latency;       ///< firmware time of one command
  StageConfig tcp_tx;         ///< iWARP: TCP/MPA/DDP engine, transmit
  StageConfig tcp_rx;
};

}  // namespace rnic::config
