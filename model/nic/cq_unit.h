// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <systemc>
#include <vector>

#include "base/pool.h"
#include "nic/cq_context_cache.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// Writes completion queue entries into their rings in host memory, behind the payload writes that
/// they report (posted writes stay in order). A queue whose context is not on chip keeps its CQEs
/// until it is.
class CqUnit : public sc_core::sc_module, public CompletionQueueIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  explicit CqUnit(const sc_core::sc_module_name& name);

  /// Where contexts are cached; null: all are on chip.
  void set_contexts(CqContextCache* contexts) { contexts_ = contexts; }

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
  /// A CQE on its way; waits for its queue's context first when that is not on chip.
  struct Write : public Waiter {
    std::array<std::uint8_t, protocol::kCqeBytes> bytes{};
    stats::MessageTrace* trace = nullptr;
    bool delivery = false;  ///< reports an arrival, not own work
    CqUnit* unit = nullptr;
    std::uint32_t cqn = 0;
    std::uint64_t address = 0;

    void resume(Time now) override { unit->go_on(*this, now, true); }
  };

  void go_on(Write& write, Time t, bool again);

  std::vector<Queue> queues_;
  Pool<Write> writes_;
  CqContextCache* contexts_ = nullptr;
  std::uint64_t written_ = 0;
};

}  // namespace rnic::nic
