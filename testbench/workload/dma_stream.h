// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/rng.h"
#include "config/config.h"
#include "host/host.h"
#include "workload/address_pattern.h"
#include "workload/dma_staging.h"
#include "workload/measurement.h"

namespace rnic::testbench {

/// A device's DMA engine against host memory, as pcie-bench measures it (Neugebauer et al., SIGCOMM
/// 2018): no verbs, no wire. `workload.msg_size` bytes at a time within `workload.window`, either
/// one access at a time (latency) or `workload.depth` in flight (bandwidth).
///
/// - dma_read: latency from the device asking to the last byte in the device.
/// - dma_write: latency from the device asking to the bytes visible in host memory, which only a
///   simulator can see.
/// - dma_read_write: bandwidth of reads and writes in turn; latency of a write and, once it has
/// left
///   the device, a read of the same bytes (pcie-bench's LAT_WRRD, how it measures writes).
///
/// Accesses are naturally aligned (then shifted by `workload.offset`), so that those of up to 4 KiB
/// cross no boundary of their own size.
class DmaStream : public sc_core::sc_module, private DmaStaging::Program {
 public:
  DmaStream(const sc_core::sc_module_name& name, const config::Config& config, host::Host& host,
            DmaStaging& device, Measurement& measurement);

  /// Reads (host to device) and writes (device to host), those that the operation has.
  const std::vector<FlowMeasurement>& measured() const { return measured_; }
  /// Bytes that a read delivered, or a write left in memory, different from what was sent.
  std::uint64_t verify();

 private:
  /// An access in flight; a slot of `depth`.
  struct Access {
    std::uint64_t address = 0;
    Time started{0};
    bool write = false;
    bool read_follows = false;      ///< the write half of a write-then-read
    std::uint32_t outstanding = 0;  ///< DMA requests not yet over
    stats::MessageTrace trace;
    std::vector<std::uint8_t> bytes;
  };

  void start();
  void finish();
  void post(std::uint64_t slot);
  void read_back(std::uint64_t& slot);
  void begin(std::uint64_t slot, bool write);
  void write_leaves(std::uint64_t token, Time at) override;
  void transfer_done(std::uint64_t token) override;
  void complete(Access& access);
  void count(const Access& access);
  void allocate_window();
  void prepare_window();
  void fill(std::uint64_t address, std::uint8_t* into) const;
  void check(const Access& access);

  const config::Config& config_;
  host::Host& host_;
  DmaStaging& device_;
  Measurement& measurement_;
  std::uint32_t bytes_;
  std::uint64_t stride_;
  std::uint64_t slots_;
  std::uint64_t total_;
  std::uint64_t base_ = 0;
  bool moves_bytes_;
  bool reads_;
  bool writes_;
  AddressPattern pattern_;
  std::vector<Access> accesses_;
  std::vector<bool> written_;
  std::vector<FlowMeasurement> measured_;
  std::uint64_t posted_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t corrupt_ = 0;
  EventQueue<DmaStream, std::uint64_t> departures_;
  sc_core::sc_event finished_;
};

}  // namespace rnic::testbench
