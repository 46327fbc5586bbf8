// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"

/// Parameters as the model uses them: typed, validated, in model units. `parameters.cpp` declares
/// each with its key, default, unit, range, evidence class, source and one-line meaning; that
/// table is the documentation of every field below.
namespace rnic::config {

enum class Protocol { kIb, kRoceV1, kRoceV2, kIwarp };
enum class TransportType { kRc, kUc, kUd };
enum class FlowControl { kAuto, kNone, kPfc, kCredit };
enum class Recovery { kGoBackN, kSelectiveRepeat };
enum class Op { kWrite, kWriteImm, kRead, kSend, kSendImm, kAtomicCas, kAtomicFadd };
enum class Pattern { kLatency, kBandwidth };
enum class Access { kSequential, kRandom, kZipf };
enum class SqPolicy { kRoundRobin, kWeighted, kStrict };
enum class Replacement { kLru, kRandom, kTreePlru };
enum class PayloadMode { kBytes, kNone };
enum class ProgressMode { kAuto, kOn, kOff };

struct SimConfig {
  std::uint64_t seed;
  std::uint64_t warmup;  ///< messages a flow completes before measuring starts
  Time max_time;
  PayloadMode payload;
};

struct OutputConfig {
  std::string dir;                  ///< empty: stdout only
  std::vector<std::string> traces;  ///< subset of pcap, perfetto, vcd
  ProgressMode progress;
};

struct FabricConfig {
  std::uint32_t hosts;
  std::string topology;  ///< back_to_back | single_switch
};

struct LinkConfig {
  BitRate rate;
  Time delay;
  FlowControl flow_control;
  std::uint32_t data_vls;       ///< IB data virtual lanes (priorities on Ethernet are always 8)
  std::uint64_t credit_update;  ///< IB: freed bytes on a VL that trigger a flow-control packet
  Time phy_latency;             ///< PCS/PMA + FEC latency of one end, each direction
  double loss_rate;
  double corrupt_rate;
  std::vector<std::uint64_t> drop_list;
};

struct SwitchConfig {
  Time latency;
  std::uint64_t buffer;
  std::uint64_t pfc_xoff;
  std::uint64_t pfc_xon;
};

struct TransportConfig {
  Protocol protocol;
  TransportType type;
  std::uint32_t mtu;
  Recovery recovery;
  std::uint32_t ack_timeout;  ///< exponent: 4.096 us * 2^n, 0 = no timer
  std::uint32_t retry_count;
  std::uint32_t rnr_retry;
  std::uint32_t min_rnr_timer;
  std::uint32_t max_rd_atomic;
  std::uint32_t max_dest_rd_atomic;
  std::uint32_t ack_every;     ///< AckReq every n packets inside a long message
  std::uint32_t ack_coalesce;  ///< responder: requests with AckReq answered by one ACK at most
  Time ack_coalesce_time;      ///< longest an ACK is held back for coalescing
};

struct TcpConfig {
  std::uint64_t window;        ///< receive window, bytes
  std::uint32_t initial_cwnd;  ///< segments
  std::uint32_t delayed_ack;   ///< full segments per ACK
  Time delayed_ack_time;
  Time min_rto;
  bool timestamps;
  bool mpa_crc;
  bool mpa_markers;
};

struct MemoryConfig {
  std::uint64_t page_size;
  std::uint64_t memlock_limit;
  Time reg_call_cost;
  Time reg_page_cost;
  Time dereg_call_cost;
  Time dereg_page_cost;
  Time read_latency;   ///< root complex: a DMA read, from TLP in to first data out
  Time write_latency;  ///< root complex: a posted write, from TLP in to visible to the CPU
  BitRate bandwidth;
};

struct IommuConfig {
  bool enabled;
  std::uint32_t iotlb_entries;
  Time walk_latency;
};

struct CpuConfig {
  Time post_cost;  ///< build one WQE in the ring
  Time sge_cost;   ///< each further scatter/gather entry
  Time inline_cost_per_64b;
  Time doorbell_cost;  ///< doorbell record, barrier and 8 B MMIO store, as seen by the core
  Time blueflame_cost_per_64b;
  Time poll_cost;  ///< one poll of a CQ or of a memory location
  Time cqe_cost;   ///< digest one CQE
};

struct PcieConfig {
  std::uint32_t gen;
  std::uint32_t lanes;
  std::uint32_t mps;
  std::uint32_t mrrs;
  std::uint32_t rcb;
  std::uint32_t read_tags;
  bool relaxed_ordering;
  Time latency;          ///< one way through both ends' PHY, data-link and transaction layers
  double dllp_overhead;  ///< share of raw bandwidth taken by DLLPs and SKP sets
};

struct CacheConfig {
  std::uint32_t entries;
  std::uint32_t ways;
  Replacement replacement;
};

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
  StageConfig completion;
  std::uint32_t tx_slots;        ///< packets between scheduler and wire
  std::uint64_t rx_buffer;       ///< bytes, for each VL or priority
  std::uint32_t context_misses;  ///< concurrent context (QPC/MPT/MTT) fetches
  std::uint32_t max_rd_atomic;   ///< device capability
  Time command_latency;          ///< firmware time of one command
  StageConfig tcp_tx;            ///< iWARP: TCP/MPA/DDP engine, transmit
  StageConfig tcp_rx;
};

struct WorkloadConfig {
  Op op;
  Pattern pattern;
  std::uint64_t msg_size;
  std::uint64_t iterations;  ///< measured messages of each flow
  std::uint32_t qps;
  std::uint32_t depth;
  std::uint32_t inline_max;
  std::uint32_t signal_every;
  std::uint32_t post_batch;
  bool bidirectional;
  std::uint32_t mrs;
  std::uint64_t mr_size;  ///< 0: as large as the workload needs
  Access access;
  std::uint32_t idle_qps;  ///< further connected QPs that stay silent
};

struct Config {
  SimConfig sim;
  OutputConfig output;
  FabricConfig fabric;
  LinkConfig link;
  SwitchConfig network_switch;
  TransportConfig transport;
  TcpConfig tcp;
  MemoryConfig memory;
  IommuConfig iommu;
  CpuConfig cpu;
  PcieConfig pcie;
  NicConfig nic;
  WorkloadConfig workload;
};

}  // namespace rnic::config
