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
  Time dereg_call_cost;
  Time dereg_page_cost;
  Time odp_fault_cost;            ///< driver's time for a page fault of the device
  Time odp_page_cost;             ///< and for each page that it maps
  std::uint64_t odp_granularity;  ///< bytes mapped around a fault
  std::uint32_t odp_handlers;     ///< faults handled at a time
  Time read_latency;              ///< root complex: a DMA read, from TLP in to first data out
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
  std::uint32_t doorbell_registers;  ///< shared by all QPs of a host; 0: each has its own
  Time poll_cost;          ///< one poll of a CQ or of a memory location
  Time cqe_cost;           ///< digest one CQE
  Time syscall_cost;       ///< enter and leave the kernel
  Time interrupt_latency;  ///< from the interrupt's arrival to the end of its handler
  Time wakeup_latency;     ///< from there to the thread that waited running again
  Time sleep1_after;       ///< idle time after which a core enters the first sleep state; 0: never
  Time sleep1_exit;        ///< what waking takes longer then
  Time sleep2_after;
  Time sleep2_exit;
  double preempt_probability;  ///< that the operating system takes a polling thread's core away
  Time preempt_time;
};

}  // namespace rnic::config
