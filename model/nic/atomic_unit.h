// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/pool.h"
#include "nic/interfaces.h"
#include "nic/stage.h"
#include "pcie/dma.h"

namespace rnic::nic {

/// Executes compare-and-swap and fetch-and-add for the responder: reads 8 bytes of host memory,
/// computes, writes them back, and keeps every other atomic of the same bucket waiting meanwhile.
/// A bucket is what the low bits of an address hash to, so unrelated words may share one. Buckets
/// work side by side; the unit's interval bounds all of them together. The host's own CPU is not
/// kept out (IBV_ATOMIC_HCA), unless the root complex does the work by PCIe AtomicOps
/// (nic.pcie_atomics, IBV_ATOMIC_GLOB).
class AtomicUnit : public sc_core::sc_module, public AtomicIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<AtomicIf> atomics{"atomics"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<AtomicClient> client{"client"};

  AtomicUnit(const sc_core::sc_module_name& name, const config::NicConfig& config);

  void execute(QpContext& qp, const transport::RxPlan& plan, stats::MessageTrace* trace,
               std::uint64_t address, Time t) override;
  void dma_done(std::uint64_t token) override;
  void dma_failed(const pcie::DmaFault& fault) override;

  /// The pipeline's own; occupancy: operations under way or waiting.
  stats::UnitStats& stats() { return stage_.stats(); }
  /// How long the most used bucket was locked since the last reset.
  stats::UnitStats busiest_bucket(Time now) const;
  void reset_statistics(Time now);

 private:
  struct Operation {
    QpContext* qp = nullptr;
    transport::RxPlan plan;
    stats::MessageTrace* trace = nullptr;
    std::uint64_t address = 0;
    std::uint32_t bucket = 0;
    Operation* next = nullptr;  ///< waits for the same bucket
    std::array<std::uint8_t, 8> bytes{};
  };
  struct Bucket {
    Operation* holder = nullptr;  ///< and those that wait behind it
    Operation* last = nullptr;
    Time locked_at{0};
    Time locked{0};  ///< in all
  };

  void start(Operation* operation, Time t);
  void unlock(Operation*& operation);
  void leave_bucket(Operation& operation, Time now);
  void respond(Operation*& operation);

  PipelineStage stage_;
  bool pcie_atomics_;
  Time response_time_;  ///< nic.atomic_response_time
  std::vector<Bucket> buckets_;
  std::uint64_t under_way_ = 0;
  Pool<Operation> operations_;
  EventQueue<AtomicUnit, Operation*> unlocking_;
  EventQueue<AtomicUnit, Operation*> responding_;
};

}  // namespace rnic::nic
