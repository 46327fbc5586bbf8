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
  std::uint32_t doorbell_registers;  ///< shared by all QPs of a host; 0: each has its own
  Time poll_cost;                    ///< one poll of a CQ or of a memory location
  Time cqe_cost;                     ///< digest one CQE
};

}  // namespace rnic::config
