// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic::config {

struct MemoryConfig {
  std::uint64_t page_size;
  std::uint64_t memlock_limit;
  Time reg_call_cost;
  Time reg_page_cost;
  Time reg_zero_cost;
  Time dereg_call_cost;
  Time dereg_page_cost;
  Time odp_fault_cost;            ///< driver's time for a page fault of the device
  Time odp_page_cost;             ///< and for each page that it maps
  std::uint64_t odp_granularity;  ///< bytes mapped around a fault
  std::uint32_t odp_handlers;     ///< faults handled at a time
  Time read_latency;              ///< root complex: a DMA read, from TLP in to first data out
  Time read_line_latency;  ///< and for each further line of a read request, besides the link's time
  Time write_latency;      ///< root complex: a posted write, from TLP in to visible to the CPU
  BitRate bandwidth;       ///< of the path from the root complex into the memory system
  std::uint64_t llc_size;  ///< last-level cache, bytes; 0: everything is taken to be resident
  std::uint32_t llc_ways;
  bool ddio;                ///< device writes allocate in the last-level cache
  std::uint32_t ddio_ways;  ///< ways that they may allocate in
  Time dram_latency;        ///< a read that misses the last-level cache, besides read_latency
  Time dram_write_latency;  ///< a write that goes to DRAM, besides write_latency
  std::uint32_t dram_channels;
  BitRate dram_channel_bandwidth;
  std::uint64_t dram_interleave;  ///< bytes on one channel before the next
  double cpu_traffic;             ///< share of DRAM bandwidth that the CPUs' own accesses take
  Time partial_line_time;         ///< occupancy of the path by a line written in part
  bool numa_remote;               ///< buffers are on another socket than the device
  Time numa_latency;              ///< added to reads of remote memory
  BitRate numa_bandwidth;         ///< of the link between sockets, each direction
  bool reads_wait_for_writes;     ///< a read starts only when earlier writes are visible
};

struct IommuConfig {
  bool enabled;
  std::uint32_t iotlb_entries;
  Time walk_latency;         ///< with the upper levels cached
  bool passthrough;          ///< enabled, but with an identity mapping that needs no look-up
  std::uint64_t page_size;   ///< of mappings
  std::uint64_t mapped;      ///< bytes of each page of payload that are mapped; 0: all
  std::uint32_t walkers;     ///< walks at a time; 0: any number
  std::uint32_t walk_cache;  ///< upper-level entries cached; 0: all
  Time walk_level_latency;   ///< added to a walk whose upper level is not cached
  Time invalidate_latency;   ///< driver: drop what the IOTLB holds of an unmapped range
  Time ats_latency;          ///< a translation request of the device, besides a walk
  bool serial_tables;        ///< walks start in order, one at a time in a page-table page
};

/// Memory of another PCIe device (a GPU) that the NIC reaches peer to peer.
struct PeerConfig {
  enum class Path : std::uint8_t {
    kSwitch,  ///< under the same PCIe switch as the NIC
    kRoot     ///< under another root port: the root complex forwards
  };
  Path path;
  bool reads;  ///< false: the way there forwards writes only, reads end in a completer abort
  BitRate write_bandwidth;       ///< what the peer takes
  BitRate read_bandwidth;        ///< what it delivers
  Time write_latency;            ///< from the fabric into its memory
  Time read_latency;             ///< request to first data
  BitRate root_write_bandwidth;  ///< what a root complex forwards between its ports
  BitRate root_read_bandwidth;
  Time root_latency;   ///< added by it, one way
  std::uint64_t size;  ///< bytes that its BAR shows
};

/// How a plain DMA device (dma_* workloads) moves data inside itself, besides nic.dma.*: after a
/// read has arrived, before a write leaves. All zero: it cuts through.
struct DmaDeviceConfig {
  Time setup_time;  ///< from the program's request to the DMA engine
  /// A path for data: so long for each request, and for each unit of it.
  struct Path {
    Time request_time;
    std::uint32_t unit;  ///< bytes
    Time unit_time;
  };
  Path read;
  Path write;
  Path memory;  ///< that both share
};

struct CpuConfig {
  Time post_cost;    ///< build one WQE in the ring
  Time list_saving;  ///< less of it for each WQE of a list but the first
  Time sge_cost;     ///< each further scatter/gather entry
  Time inline_cost_per_64b;
  Time doorbell_cost;  ///< doorbell record, barrier and 8 B MMIO store, as seen by the core
  Time blueflame_cost_per_64b;
  Time fence_cost;           ///< each store fence around a doorbell, besides its cost
  Time wc_line_interval;     ///< between write-combined lines that leave a host; 0: no limit
  std::uint32_t wc_buffers;  ///< lines that wait to leave before a core has to
  bool doorbell_readback;    ///< a register is read after each doorbell
  Time lock_transfer;        ///< a shared register's lock moves on, for each core at it
  Time doorbell_stall;       ///< and how long the core waits once the store has left
  Time blueflame_stall;      ///< and how much longer when that was a WQE
  bool doorbell_lock;        ///< who stores a WQE to a shared register keeps others out
  std::uint32_t doorbell_registers;  ///< shared by all QPs of a host; 0: each has its own
  Time lock_wait;                    ///< a shared QP's lock comes from another thread's core
  Time lock_crowd;                   ///< and is longer in coming, for each thread beyond two
  Time poll_cost;                    ///< one poll of a CQ or of a memory location
  Time cqe_cost;                     ///< digest one CQE
  Time syscall_cost;                 ///< enter and leave the kernel
  Time interrupt_latency;            ///< from the interrupt's arrival to the end of its handler
  Time wakeup_latency;               ///< from there to the thread that waited running again
  Time sleep1_after;  ///< idle time after which a core enters the first sleep state; 0: never
  Time sleep1_exit;   ///< what waking takes longer then
  Time sleep2_after;
  Time sleep2_exit;
  double preempt_probability;  ///< that the operating system takes a polling thread's core away
  Time preempt_time;
};

}  // namespace rnic::config
