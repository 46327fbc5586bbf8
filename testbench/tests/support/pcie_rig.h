// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/sc_time.h"
#include "config/config.h"
#include "host/root_complex.h"
#include "pcie/dma_engine.h"
#include "pcie/link.h"
#include "tests/support/fake_memory.h"

namespace rnic::testbench {

/// Parameters with round numbers, so that expected times are sums a reader can check: 64 Gb/s, i.e.
/// 125 ps a byte, and nothing taken by DLLPs.
struct PcieRigConfig {
  config::PcieConfig pcie{};
  config::MemoryConfig memory{};
  config::IommuConfig iommu{};
  Time dma_latency = nanoseconds(10);
  Time dma_interval = nanoseconds(2);

  PcieRigConfig() {
    pcie.gen = 2;
    pcie.lanes = 16;
    pcie.mps = 256;
    pcie.mrrs = 512;
    pcie.rcb = 64;
    pcie.read_tags = 256;
    pcie.latency = nanoseconds(100);
    pcie.dllp_overhead = 0;
    memory.page_size = 4096;
    memory.read_latency = nanoseconds(150);
    memory.write_latency = nanoseconds(60);
    memory.bandwidth = BitRate::gbps(640);
    iommu.enabled = false;
    iommu.iotlb_entries = 64;
    iommu.page_size = 4096;
    iommu.walk_latency = nanoseconds(300);
  }
};

/// A device's BAR that notes what arrives and when.
class FakeBar : public sc_core::sc_module, private tlm::tlm_fw_transport_if<> {
 public:
  struct Write {
    Time at;
    std::uint64_t offset;
    std::vector<std::uint8_t> data;
    tlm_ext::Purpose purpose;
  };

  explicit FakeBar(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  }

  tlm::tlm_target_socket<> socket;
  std::vector<Write> writes;

 private:
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& /*phase*/,
                                     sc_core::sc_time& delay) override {
    const std::uint8_t* data = payload.get_data_ptr();
    writes.push_back({sim_now() + from_sc_time(delay), payload.get_address(),
                      std::vector<std::uint8_t>(data, data + payload.get_data_length()),
                      payload.get_extension<tlm_ext::PcieExtension>()->purpose});
    return tlm::TLM_COMPLETED;
  }
  void b_transport(tlm::tlm_generic_payload& /*payload*/, sc_core::sc_time& /*delay*/) override {}
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/, tlm::tlm_dmi& /*dmi*/) override {
    return false;
  }
  unsigned transport_dbg(tlm::tlm_generic_payload& /*payload*/) override { return 0; }
};

/// A DMA client that notes when each token was done.
class FakeClient : public pcie::DmaClient {
 public:
  void dma_done(std::uint64_t token) override {
    done_at[token] = sim_now();
    order.push_back(token);
  }
  void dma_failed(const pcie::DmaFault& fault) override { faults.push_back(fault); }
  std::map<std::uint64_t, Time> done_at;
  std::vector<std::uint64_t> order;
  std::vector<pcie::DmaFault> faults;
};

/// Memory - root complex - link - DMA engine, not elaborated: a test may compare several.
struct PcieParts {
  explicit PcieParts(const PcieRigConfig& c, std::size_t memory_bytes = 1 << 20,
                     const std::string& suffix = "")
      : memory(memory_bytes),
        root(("root" + suffix).c_str(), c.memory, c.iommu, memory),
        link(("link" + suffix).c_str(), c.pcie),
        dma(("dma" + suffix).c_str(), c.pcie, c.dma_latency, c.dma_interval),
        bar(("bar" + suffix).c_str()) {
    root.set_link(c.pcie);
    dma.socket.bind(link.device_target);
    link.device_initiator.bind(bar.socket);
    link.host_initiator.bind(root.dma_socket);
    root.mmio_socket.bind(link.host_target);
  }

  FakeMemory memory;
  host::RootComplex root;
  pcie::Link link;
  pcie::DmaEngine dma;
  FakeBar bar;
  FakeClient client;
};

/// One such host, elaborated and at time zero.
struct PcieRig : public PcieParts {
  explicit PcieRig(const PcieRigConfig& c = PcieRigConfig(), std::size_t memory_bytes = 1 << 20)
      : PcieParts(c, memory_bytes) {
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  /// Until nothing is left to do.
  static void run() { sc_core::sc_start(); }
};

}  // namespace rnic::testbench
