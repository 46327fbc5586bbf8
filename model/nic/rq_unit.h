// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <systemc>
#include <vector>

#include "base/pool.h"
#include "config/nic_config.h"
#include "nic/interfaces.h"
#include "nic/wqe_cache.h"
#include "pcie/dma.h"
#include "protocol/doorbell.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// Receive queues: learns of posted RECVs from the doorbell record in host memory (no MMIO for
/// receives) and fetches their WQEs ahead of need, so that a SEND finds its buffer at once.
class RqUnit : public sc_core::sc_module, public RecvQueueIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<RecvQueueIf> recv_queues{"recv_queues"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<CompletionQueueIf> completion_queues{"completion_queues"};

  RqUnit(const sc_core::sc_module_name& name, const config::NicConfig& config);

  Answer acquire(QpContext& qp, Time& t, Waiter* waiter, bool again) override;
  void consume(QpContext& qp, Time t) override;
  void prefetch(QpContext& qp, Time t) override;
  void flush(QpContext& qp, Time t) override;
  void dma_done(std::uint64_t token) override;

  /// Where fetched RECV WQEs of all queues are kept; null: there is room for all.
  void set_wqe_cache(WqeCache* cache) { cache_ = cache; }

 private:
  struct Fetch {
    QpContext* qp = nullptr;
    bool record = false;  ///< the doorbell record, not WQEs
    std::uint32_t count = 0;
    std::uint32_t parts = 0;
    std::array<std::uint8_t, protocol::DoorbellRecord::kBytes> record_bytes{};
    std::vector<std::uint8_t> bytes;
  };

  static bool known_posted(const QpContext& qp) { return qp.rq_fetched != qp.rq_producer; }
  void read_record(QpContext& qp, Time t);
  void read_wqes(QpContext& qp, Time t);

  static WqeCache::Place place_of(const QpContext& qp, std::uint16_t counter);
  /// Whether the front RECV is on chip; if not, it is fetched again and `waiter` resumed.
  bool front_here(const QpContext& qp, Time t, Waiter* waiter, bool again);

  std::uint32_t prefetch_;
  WqeCache* cache_ = nullptr;
  Pool<Fetch> fetches_;
};

}  // namespace rnic::nic
