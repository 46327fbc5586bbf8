// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <systemc>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/rate_server.h"
#include "config/host_config.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::testbench {

/// A plain DMA device in front of its DMA engine: descriptors take time to set up, and data moves
/// through the device in units. What a read brought is stored once it has all arrived, a write is
/// collected before it leaves: store-and-forward within a request, next-free between requests, each
/// direction on a path of its own, and both through one memory. What has no cost passes at once;
/// what has waits in an event queue, so that it does not reserve the link before its time.
class DmaStaging : public sc_core::sc_module, private pcie::DmaClient {
 public:
  /// Who asks the device for transfers.
  class Program {
   public:
    virtual ~Program() = default;
    /// The last byte of the write `token` leaves the device at `at`, now or later.
    virtual void write_leaves(std::uint64_t token, Time at) = 0;
    /// As pcie::DmaClient::dma_done().
    virtual void transfer_done(std::uint64_t token) = 0;
  };

  DmaStaging(const sc_core::sc_module_name& name, const config::DmaDeviceConfig& config,
             pcie::DmaIf& engine);

  void set_program(Program* program) { program_ = program; }
  /// Starts now; `into` and `from` as in pcie::DmaIf.
  void read(std::uint64_t address, std::uint32_t bytes, std::uint8_t* into, std::uint64_t token);
  void write(std::uint64_t address, std::uint32_t bytes, const std::uint8_t* from,
             std::uint64_t token);

  const stats::UnitStats& read_unit() const { return reads_.unit; }
  const stats::UnitStats& write_unit() const { return writes_.unit; }
  const stats::UnitStats& memory_unit() const { return memory_.unit; }
  void reset_statistics(Time now);

 private:
  /// One direction's data path, or the memory at the end of both.
  struct Path {
    config::DmaDeviceConfig::Path config;
    Server server;
    stats::UnitStats unit;

    bool free() const { return config.request_time == kTimeZero && config.unit_time == kTimeZero; }
    /// When `length` bytes that are there now have passed.
    Time pass(Time now, std::uint32_t length);
  };
  struct Transfer {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint8_t* into = nullptr;
    const std::uint8_t* from = nullptr;
    bool is_write = false;
    std::uint64_t token = 0;
  };

  void issue_read(Transfer*& transfer);
  void issue_write(Transfer*& transfer);
  void dma_done(std::uint64_t token) override;
  void finish(Transfer*& transfer);

  pcie::DmaIf& engine_;
  Program* program_ = nullptr;
  Time setup_time_;
  Path reads_;
  Path writes_;
  Path memory_;
  Pool<Transfer> pool_;
  EventQueue<DmaStaging, Transfer*> reads_to_issue_;
  EventQueue<DmaStaging, Transfer*> writes_to_issue_;
  EventQueue<DmaStaging, Transfer*> storing_;
};

}  // namespace rnic::testbench
