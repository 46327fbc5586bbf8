// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <systemc>

#include "host/address_space.h"
#include "host/context_memory.h"
#include "host/memory_port.h"
#include "host/peer_memory.h"
#include "host/physical_memory.h"
#include "host/root_complex.h"
#include "host/verbs.h"

namespace rnic::config {
struct Config;
}

namespace rnic::host {

/// A server without its NIC: memory, one process's address space, the root complex and the opened
/// device's driver. PCIe attaches at `root_complex`.
class Host : public sc_core::sc_module {
 public:
  Host(const sc_core::sc_module_name& name, const config::Config& config);

  /// Memory of the PCIe device beside the NIC, mapped into the process; `bytes` of it. ConfigError:
  /// its BAR is full.
  std::uint64_t map_peer(std::uint64_t bytes);

  /// Memory on the NIC (ibv_alloc_dm), mapped into the process; `bytes` of it. ConfigError: there
  /// is not so much.
  std::uint64_t map_device_memory(std::uint64_t bytes);
  /// Bus address of the memory on the NIC; 0: it has none.
  std::uint64_t device_memory() const { return device_memory_; }

  PhysicalMemory memory;
  AddressSpace space;
  ContextMemory context_memory;

 private:
  MemoryPortOf<PhysicalMemory> memory_port_{memory};

 public:
  RootComplex root_complex;
  verbs::Context verbs;
  std::unique_ptr<PeerMemory> peer;  ///< null: no buffer lies there

 private:
  std::uint64_t device_memory_ = 0;
  std::uint64_t device_memory_left_;
};

}  // namespace rnic::host
