// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <systemc>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/rate_server.h"
#include "config/nic_config.h"
#include "pcie/dma_engine.h"

namespace rnic::nic {

/// Memory on the device itself (ibv_alloc_dm): what lies in its window of bus addresses is served
/// here, in the order of the calls, without crossing PCIe; all else goes on to the host. Its bytes
/// lie with those of the host, so that the CPU sees them as through a mapped BAR.
class DeviceMemory : public sc_core::sc_module, public pcie::DmaIf {
 public:
  /// `base`: bus address of the window. `behind`: the way to host memory, through `engine`.
  DeviceMemory(const sc_core::sc_module_name& name, const config::NicConfig& config,
               std::uint64_t base, pcie::DmaIf& behind, pcie::DmaEngine& engine);

  void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes, std::uint8_t* into,
                tlm_ext::Purpose purpose, pcie::DmaClient* client, std::uint64_t token) override;
  void dma_atomic(Time earliest, std::uint64_t address, const tlm_ext::AtomicOperands& operands,
                  std::uint8_t* into, pcie::DmaClient* client, std::uint64_t token) override;
  Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                 const std::uint8_t* from, tlm_ext::Purpose purpose, pcie::DmaClient* client,
                 std::uint64_t token) override;

 private:
  static constexpr std::uint32_t kCopied = 256;  ///< longest write without a client

  /// An access on its way to its turn.
  struct Access {
    enum class Kind : std::uint8_t { kRead, kWrite, kAtomic };
    Kind kind = Kind::kRead;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint8_t* into = nullptr;
    const std::uint8_t* from = nullptr;
    std::array<std::uint8_t, kCopied> copy{};
    tlm_ext::AtomicOperands operands{};
    pcie::DmaClient* client = nullptr;
    std::uint64_t token = 0;
  };

  bool contains(std::uint64_t address) const { return address - base_ < size_; }
  Access* take(Access::Kind kind, std::uint64_t address, std::uint32_t bytes,
               pcie::DmaClient* client, std::uint64_t token);
  /// Gives the access its turn; returns when it has been taken in.
  Time serve(Access* access, Time earliest);
  void carry_out(Access*& access);
  void load(std::uint64_t address, std::uint8_t* into, std::uint32_t bytes);
  void store(std::uint64_t address, const std::uint8_t* from, std::uint32_t bytes);

  std::uint64_t base_;
  std::uint64_t size_;
  Time latency_;
  RateServer port_;
  pcie::DmaIf& behind_;
  pcie::DmaEngine& engine_;
  Pool<Access> accesses_;
  EventQueue<DeviceMemory, Access*> turns_;
};

}  // namespace rnic::nic
