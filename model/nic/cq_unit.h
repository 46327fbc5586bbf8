// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <systemc>
#include <vector>

#include "base/pool.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// Writes completion queue entries into their rings in host memory, behind the payload writes that
/// they report (posted writes stay in order).
class CqUnit : public sc_core::sc_module, public CompletionQueueIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  explicit CqUnit(const sc_core::sc_module_name& name);

  void create(std::uint32_t cqn, std::uint64_t ring_address, std::uint32_t log_entries) override;
  void post(std::uint32_t cqn, const protocol::Cqe& cqe, stats::MessageTrace* trace,
            Time t) override;
  void dma_done(std::uint64_t token) override;

  std::uint64_t written() const { return written_; }

 private:
  struct Queue {
    std::uint64_t ring_address = 0;
    std::uint32_t log_entries = 0;
    std::uint32_t producer = 0;
  };
  struct Write {
    std::array<std::uint8_t, protocol::kCqeBytes> bytes{};
    stats::MessageTrace* trace = nullptr;
    bool delivery = false;  ///< reports an arrival, not own work
  };

  std::vector<Queue> queues_;
  Pool<Write> writes_;
  std::uint64_t written_ = 0;
};

}  // namespace rnic::nic
