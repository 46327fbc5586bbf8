// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/event_queue.h"
#include "base/ring.h"
#include "base/time.h"
#include "config/host_config.h"
#include "host/iommu.h"
#include "host/memory_port.h"
#include "host/memory_system.h"
#include "host/ordering_point.h"
#include "host/peer_memory.h"
#include "host/write_order.h"
#include "protocol/tlp.h"
#include "stats/unit_stats.h"
#include "tlm/payload_pool.h"
#include "tlm/pcie_extension.h"

namespace rnic::host {

/// Told of what the CPU waits for.
class MmioReader {
 public:
  virtual ~MmioReader() = default;
  virtual void mmio_read_done(std::uint64_t value) = 0;
};

/// The CPU's way to the device's registers.
class MmioPort {
 public:
  virtual ~MmioPort() = default;
  /// Posted write to `offset` in the device's BAR: one TLP for every 64 bytes. The bytes are taken
  /// at once. `earliest`, not in the past, is when the store leaves the core.
  virtual void mmio_write(Time earliest, std::uint64_t offset, const std::uint8_t* data,
                          std::uint32_t bytes, tlm_ext::Purpose purpose) = 0;
  /// Uncached read of the register at `offset`: a request across PCIe and its completion. `reader`
  /// is told when the data is at the core.
  virtual void mmio_read(Time /*earliest*/, std::uint64_t /*offset*/, MmioReader& reader) {
    reader.mmio_read_done(0);
  }
  /// The IOMMU forgets its translations of [address, address + bytes); a device with a cache of its
  /// own (ATS) is told, and `reader` once it has answered. False: nobody has to be waited for.
  virtual bool invalidate(std::uint64_t /*address*/, std::uint64_t /*bytes*/,
                          MmioReader& /*reader*/) {
    return false;
  }
};

/// Told of interrupts: posted writes with purpose kMsix, which do not go to memory.
class InterruptSink {
 public:
  virtual ~InterruptSink() = default;
  virtual void interrupt(std::uint64_t address, const std::uint8_t* data, std::uint32_t bytes) = 0;
};

/// Where PCIe meets memory. Every DMA request costs one kernel event: at that instant a read
/// samples memory and a write becomes visible. Instants: arrival, IOTLB misses, then what
/// MemorySystem takes; writes in order of arrival, and no read before an earlier write unless
/// relaxed ordering allows it. An address without memory is answered
/// TLM_ADDRESS_ERROR_RESPONSE.
///
/// MMIO towards the device: nb_transport_fw with the delay of arrival; the device answers
/// TLM_COMPLETED and keeps the payload by acquire() if it needs it later.
class RootComplex : public sc_core::sc_module,
                    public MmioPort,
                    private tlm::tlm_fw_transport_if<>,
                    private tlm::tlm_bw_transport_if<> {
 public:
  RootComplex(const sc_core::sc_module_name& name, const config::MemoryConfig& memory_config,
              const config::IommuConfig& iommu_config, MemoryPort& memory);

  tlm::tlm_target_socket<> dma_socket;  ///< from the link's host_initiator
  /// To the link's host_target.
  tlm::tlm_initiator_socket<32, tlm::tlm_base_protocol_types, 1, sc_core::SC_ZERO_OR_MORE_BOUND>
      mmio_socket;

  void mmio_write(Time earliest, std::uint64_t offset, const std::uint8_t* data,
                  std::uint32_t bytes, tlm_ext::Purpose purpose) override;

  void mmio_read(Time earliest, std::uint64_t offset, MmioReader& reader) override;
  bool invalidate(std::uint64_t address, std::uint64_t bytes, MmioReader& reader) override;

  /// What the link to the device means for the root complex: how requests are cut, and whether
  /// posted writes take time to become ordered.
  void set_link(const config::PcieConfig& config);
  /// Does it matter in which order it is told of requests that come at nearly the same time? After
  /// set_link() and set_peer().
  bool minds_order() const;

  /// Behind the same slot as `other`, without ID-based ordering: one order of writes for both.
  void share_order(RootComplex& other) { order_ = &other.own_order_; }
  /// Accesses to a peer device's memory do not go to the host's.
  void set_peer(PeerMemory* peer) { peer_ = peer; }
  void set_interrupt_sink(InterruptSink* sink) { interrupt_sink_ = sink; }

  /// Null when the IOMMU is off.
  const Iommu* iommu() const { return iommu_ ? &*iommu_ : nullptr; }
  MemorySystem& memory_system() { return memory_system_; }
  const MemorySystem& memory_system() const { return memory_system_; }
  /// Busy time of the path into the memory system.
  const stats::UnitStats& unit() const { return memory_system_.path(); }
  /// Where posted writes are put into order; null when that takes no time here.
  const OrderingPoint* ordering() const {
    return own_order_.point && order_ == &own_order_ ? &*own_order_.point : nullptr;
  }
  std::uint64_t faults() const { return faults_; }
  /// Requests accepted and not yet performed.
  std::size_t pending() const { return pending_.size(); }
  void reset_statistics(Time now);

 private:
  /// To one request of a burst.
  struct Answer {
    Time ready{0};
    Time wire{0};
  };

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override;
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override;
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64 start, sc_dt::uint64 end) override;

  /// How writes to the host's memory become ordered.
  struct Order {
    WriteOrder writes;
    std::optional<OrderingPoint> point;
  };

  /// When a request that arrives at `arrival` reads or writes memory.
  Time schedule(const tlm::tlm_generic_payload& payload, Time arrival);
  void perform(tlm::tlm_generic_payload*& payload);
  void register_read(tlm_ext::PooledPayload*& payload);
  /// A message or peer-to-peer access: not for memory.
  std::optional<Time> schedule_elsewhere(const tlm::tlm_generic_payload& payload,
                                         const tlm_ext::PcieExtension& extension, Time arrival);
  bool is_for_peer(const tlm::tlm_generic_payload& payload) const {
    return peer_ != nullptr && peer_->contains(payload.get_address());
  }
  void access(tlm::tlm_generic_payload& payload);
  bool access_memory(const tlm::tlm_generic_payload& payload,
                     const tlm_ext::PcieExtension& extension);
  /// Reads, changes and writes 8 bytes at one instant.
  bool atomic_access(std::uint64_t address, std::uint8_t* original,
                     const tlm_ext::AtomicOperands& operands);
  /// As MemorySystem's, of a burst as well.
  Time read_memory(Time arrival, std::uint64_t address, std::uint32_t bytes);
  Time write_memory(const tlm::tlm_generic_payload& payload, Time arrival);
  /// What the translation of an access adds to the time that memory takes.
  Time translate(const tlm::tlm_generic_payload& payload, Time arrival);
  Time stream_of(bool read, std::uint64_t address, std::uint32_t bytes) const;
  /// What the lines of a read after the first add, those of several requests side by side.
  Time further_lines(std::uint64_t address, std::uint32_t bytes) const;

  MemoryPort& memory_;
  MemorySystem memory_system_;
  bool reads_wait_for_writes_;
  Time line_latency_;
  protocol::TlpRules link_rules_;
  BitRate link_rate_;  ///< of TLPs; not valid before set_link()
  std::optional<Iommu> iommu_;
  Order own_order_;
  Order* order_ = &own_order_;
  InterruptSink* interrupt_sink_ = nullptr;
  PeerMemory* peer_ = nullptr;
  bool ats_ = false;
  Time ats_latency_;
  Ring<MmioReader*> invalidations_;  ///< waiting for the device's answers, in order
  tlm_ext::PayloadPool payloads_;
  WriteOrder peer_writes_;       ///< of their own: PCIe keeps no order of writes on different ways
  std::vector<Answer> answers_;  ///< kept for its storage
  std::uint64_t faults_ = 0;
  EventQueue<RootComplex, tlm::tlm_generic_payload*> pending_;
  EventQueue<RootComplex, tlm_ext::PooledPayload*> registers_read_;
};

}  // namespace rnic::host
