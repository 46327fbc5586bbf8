// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic::config {

enum class Op {
  kWrite,
  kWriteImm,
  kRead,
  kSend,
  kSendImm,
  kAtomicCas,
  kAtomicFadd,
  kDmaRead,  ///< the device's DMA engine alone, without verbs or a wire
  kDmaWrite,
  kDmaReadWrite
};

/// Whether PCIe and host memory are all that the operation uses.
constexpr bool is_dma(Op op) {
  return op == Op::kDmaRead || op == Op::kDmaWrite || op == Op::kDmaReadWrite;
}

/// The requester waits for data (READ) or a value (atomics), so max_rd_atomic limits it.
constexpr bool returns_data(Op op) {
  return op == Op::kRead || op == Op::kAtomicCas || op == Op::kAtomicFadd;
}
constexpr bool is_atomic(Op op) { return op == Op::kAtomicCas || op == Op::kAtomicFadd; }
constexpr bool is_send(Op op) { return op == Op::kSend || op == Op::kSendImm; }
/// Takes a RECV of the peer.
constexpr bool takes_recv(Op op) {
  return op == Op::kSend || op == Op::kSendImm || op == Op::kWriteImm;
}

enum class Pattern { kLatency, kBandwidth };
enum class Traffic { kPair, kIncast, kAllToAll, kPermutation, kRing, kLoopback };
/// Where a buffer lies.
enum class BufferMemory { kHost, kPeer, kDevice };
/// How a thread learns of completions.
enum class Completion { kPoll, kEvent };
/// When the buffers of a stream are registered.
enum class Registration { kAhead, kEach };
/// On-demand paging: of each buffer's region, or one region of the whole process.
enum class OnDemand { kNone, kExplicit, kImplicit };
enum class HostCache { kCold, kWarm };
enum class Access { kSequential, kRandom, kZipf };
enum class QpOrder { kInTurn, kRandom, kZipf };  ///< whose turn it is in a window of several QPs

enum class Program { kNone, kPingPong, kKvStore, kRingBuffer, kRendezvous, kSpinLock, kMulticast };

/// What is wrong with one message of a workload, on purpose.
enum class Mistake {
  kNone,
  kLocalKey,
  kLocalBounds,
  kLocalPd,
  kSinkNotWritable,  ///< READ, atomics: the buffer for the answer lacks LOCAL_WRITE
  kTooLong,
  kRemoteKey,
  kLkeyAsRkey,  ///< the peer's local key where its remote one belongs
  kRemoteBounds,
  kRemotePd,
  kRemoteRight,
  kQpRight,  ///< of all messages
  kMisaligned,
  kRecvSmall,
  kRecvKey,
  kQkey,
  kHandlePd,
  kNoHandle  ///< of all messages, with nic.write_imm_needs_handle
};

/// workload.probe_size=none.
inline constexpr std::uint64_t kNoProbe = ~std::uint64_t{0};
/// workload.probe_service_level=as_streams.
inline constexpr std::uint32_t kProbeAsStreams = 16;

struct WorkloadConfig {
  Program program;  ///< an application on the verbs API instead of plain messages
  Op op;
  Pattern pattern;
  std::uint64_t msg_size;
  std::uint64_t iterations;  ///< measured messages of each flow
  Traffic traffic;
  std::uint32_t threads;  ///< posting threads at each end of a flow, each with a core
  std::uint32_t qps;      ///< of a flow, dealt out to its threads
  std::uint32_t depth;
  std::uint32_t outstanding;  ///< of a thread over all its QPs; 0: depth on each
  QpOrder qp_order;           ///< with outstanding
  std::uint32_t qp_sharers;   ///< threads behind each thread, which share its QPs under a lock
  std::uint32_t inline_max;
  std::uint32_t signal_every;
  std::uint32_t post_batch;
  bool batch_as_list;        ///< with one doorbell; else each message of a batch has its own
  std::uint32_t recv_depth;  ///< RECVs posted ahead on each QP
  std::uint32_t recv_batch;  ///< RECVs posted again together
  Time recv_cost;            ///< of the CPU, before it posts the RECV of a message again
  bool recv_credits;         ///< iWARP: senders know how many RECVs are posted
  Time start_gap;            ///< of each flow behind the one before
  bool bidirectional;
  std::uint32_t sges;  ///< pieces that the local data of a message lie in
  std::uint32_t mrs;
  bool mr_per_qp;           ///< else one region for all queue pairs of a thread
  std::uint64_t alignment;  ///< messages lie at multiples of it in their buffers
  std::uint64_t mr_size;    ///< 0: as large as the workload needs
  Registration registration;
  double reg_rate;         ///< registrations a second of another thread beside; 0: none
  std::uint64_t reg_size;  ///< bytes of each of them
  OnDemand odp;
  bool odp_prefetch;           ///< pages of on-demand regions are brought in before the stream
  BufferMemory local_memory;   ///< of the clients' buffers
  BufferMemory remote_memory;  ///< of the servers'
  Access access;
  HostCache host_cache;  ///< whether the CPU has just touched that window
  std::uint64_t window;  ///< bytes that DMA operations touch
  std::uint32_t offset;  ///< start of messages and DMA accesses past their alignment
  Completion completion;
  std::uint32_t cq_count;             ///< moderation of events: completions that one stands for
  Time cq_period;                     ///< but no later than this after the first of them
  bool solicited_only;                ///< RECVs' events only of messages that ask for one
  std::uint32_t solicited_every;      ///< every n-th message asks for an event of the receiver
  Time poll_interval;                 ///< between two looks; 0: spins
  Time answer_timeout;                ///< latency, unacknowledged: then a message is lost; 0: never
  Time gap;                           ///< latency pattern: pause before each message of the client
  Time long_gap;                      ///< before each second one, instead; 0: all pauses are alike
  bool srq;                           ///< the RECVs of a thread come from one shared queue
  std::uint32_t idle_qps;             ///< further connected QPs that stay silent
  std::uint64_t probe_size;           ///< bytes of a WRITE beside the streams; kNoProbe: none
  Time probe_interval;                ///< from one probe to the next, if the last one is done
  std::uint32_t probe_service_level;  ///< kProbeAsStreams: as the streams' first queue pair
  Mistake mistake;
  std::uint64_t mistake_at;  ///< which message of the first flow, from 1
};

}  // namespace rnic::config
