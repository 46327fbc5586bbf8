// SPDX-License-Identifier: Apache-2.0
#include "host/host.h"

#include <string>

#include "base/error.h"
#include "config/config.h"

namespace rnic::host {
namespace {

Rng stream(const config::Config& config, const std::string& host, const char* unit) {
  return Rng(config.sim.seed, host + unit);
}

ContextLayout layout_of(const config::NicConfig& nic) {
  ContextLayout layout;
  layout.max_mr = nic.max_mr;
  return layout;
}

}  // namespace

Host::Host(const sc_core::sc_module_name& name, const config::Config& config)
    : sc_module(name),
      memory(PhysicalMemory::kDefaultBytes, stream(config, this->name(), ".memory")),
      space(memory, config.memory.page_size, config.memory.memlock_limit,
            stream(config, this->name(), ".address_space")),
      context_memory(memory, layout_of(config.nic)),
      root_complex("root_complex", config.memory, config.iommu, memory_port_),
      verbs("verbs", config, memory, space, context_memory, root_complex),
      device_memory_left_(config.nic.device_memory) {
  root_complex.set_interrupt_sink(&verbs);
  MemorySystem& caches = root_complex.memory_system();
  if (caches.tracks_cache()) memory.set_observer(&caches);
  const config::WorkloadConfig& workload = config.workload;
  if (workload.local_memory == config::BufferMemory::kPeer ||
      workload.remote_memory == config::BufferMemory::kPeer) {
    const auto base = memory.allocate_contiguous(config.peer.size);
    if (!base) throw ConfigError("peer.size does not fit into the bus addresses of a host");
    peer = std::make_unique<PeerMemory>(this->name(), config.peer, *base, config.peer.size);
    root_complex.set_peer(peer.get());
  }
  if (config.nic.device_memory > 0) {
    const auto base = memory.allocate_contiguous(config.nic.device_memory);
    if (!base) throw ConfigError("nic.device_memory does not fit into the bus addresses of a host");
    device_memory_ = *base;
  }
}

std::uint64_t Host::map_device_memory(std::uint64_t bytes) {
  const std::uint64_t rounded = (bytes + kPage4KiB - 1) / kPage4KiB * kPage4KiB;
  if (rounded > device_memory_left_) {
    throw ConfigError(std::to_string(rounded) +
                      " bytes exceed what is left of nic.device_memory, " +
                      std::to_string(device_memory_left_));
  }
  // From its end, so that what is left tells where.
  device_memory_left_ -= rounded;
  return space.map_device(device_memory_ + device_memory_left_, rounded);
}

std::uint64_t Host::map_peer(std::uint64_t bytes) {
  const auto address = peer->allocate(bytes);
  if (!address) {
    throw ConfigError(
        "the buffers exceed peer.size (remedy: a larger peer.size, or fewer "
        "workload.qps, workload.mrs or a smaller workload.mr_size)");
  }
  return space.map_device(*address, bytes);
}

}  // namespace rnic::host
