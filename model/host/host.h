// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>

#include "host/address_space.h"
#include "host/context_memory.h"
#include "host/memory_port.h"
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

  PhysicalMemory memory;
  AddressSpace space;
  ContextMemory context_memory;

 private:
  MemoryPortOf<PhysicalMemory> memory_port_{memory};

 public:
  RootComplex root_complex;
  verbs::Context verbs;
};

}  // namespace rnic::host
