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

/// The data path inside a plain DMA device, in front of its DMA engine: what a read brought is
/// stored in units once it has all arrived, a write is collected in units before it leaves.
/// Store-and-forward within a request, next-free between requests; each direction has its own path.
/// What has no cost passes at once. A write that has to wait for the path is handed to the engine
/// when its turn comes, so that it does not reserve the link before; dma_write() then returns when
/// it will be ready to leave.
class DmaStaging : public sc_core::sc_module, public pcie::DmaIf, private pcie::DmaClient {
 public:
  DmaStaging(const sc_core::sc_module_name& name, const config::DmaDeviceConfig& config,
             pcie::DmaIf& engine);

  void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes, std::uint8_t* into,
                tlm_ext::Purpose purpose, pcie::DmaClient* client, std::uint64_t token) override;
  Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                 const std::uint8_t* from, tlm_ext::Purpose purpose, pcie::DmaClient* client,
                 std::uint64_t token) override;

  const stats::UnitStats& read_unit() const { return reads_.unit; }
  const stats::UnitStats& write_unit() const { return writes_.unit; }
  void reset_statistics(Time now);

 private:
  struct Path {
    Time request_time;
    std::uint32_t bytes;  ///< of a unit
    Time unit_time;
    Server server;
    stats::UnitStats unit;

    bool free() const { return request_time == kTimeZero && unit_time == kTimeZero; }
    Reservation pass(Time earliest, std::uint32_t length);
  };
  /// A write that waits for its turn on the data path.
  struct Write {
    Time ready{0};
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    const std::uint8_t* from = nullptr;
    tlm_ext::Purpose purpose = tlm_ext::Purpose::kPayload;
    pcie::DmaClient* client = nullptr;
    std::uint64_t token = 0;
  };
  struct Read {
    std::uint32_t bytes = 0;
    pcie::DmaClient* client = nullptr;
    std::uint64_t token = 0;
  };

  void dma_done(std::uint64_t token) override;
  void stored(Read*& read);
  void collected(Write& write);

  pcie::DmaIf& engine_;
  Path reads_;
  Path writes_;
  Pool<Read> pool_;
  EventQueue<DmaStaging, Read*> storing_;
  EventQueue<DmaStaging, Write> collecting_;
};

}  // namespace rnic::testbench
