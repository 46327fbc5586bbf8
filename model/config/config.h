// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/host_config.h"
#include "config/link_config.h"
#include "config/nic_config.h"
#include "config/pcie_config.h"
#include "config/run_config.h"
#include "config/transport_config.h"
#include "config/workload_config.h"

/// Parameters as the model uses them: typed, validated, in model units. `parameters_*.cpp` declare
/// each with its key, default, unit, range, evidence class, source and one-line meaning; that
/// table is the documentation of every field below.
namespace rnic::config {

struct Config {
  SimConfig sim;
  OutputConfig output;
  FabricConfig fabric;
  LinkConfig link;
  SwitchConfig network_switch;
  TransportConfig transport;
  DcConfig dc;
  DcqcnConfig dcqcn;
  TcpConfig tcp;
  MemoryConfig memory;
  IommuConfig iommu;
  PeerConfig peer;
  DmaDeviceConfig dma_device;
  CpuConfig cpu;
  PcieConfig pcie;
  NicConfig nic;
  WorkloadConfig workload;
};

}  // namespace rnic::config
