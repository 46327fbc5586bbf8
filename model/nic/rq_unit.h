// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <set>
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
/// receives) and fetches their WQEs ahead of need, so that a SEND finds its buffer at once. A
/// message takes the front RECV of its queue pair's ring, or of the shared ring in the order in
/// which messages begin.
class RqUnit : public sc_core::sc_module,
               public RecvQueueIf,
               public pcie::DmaClient,
               public LineFaultClient {
 public:
  sc_core::sc_export<RecvQueueIf> recv_queues{"recv_queues"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};
  sc_core::sc_port<CompletionIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> completion{"completion"};

  RqUnit(const sc_core::sc_module_name& name, const config::NicConfig& config);

  Answer acquire(QpContext& qp, Time& t, Waiter* waiter, bool again) override;
  void consume(QpContext& qp, Time t) override;
  void prefetch(QpContext& qp, Time t) override;
  void flush(QpContext& qp, Time t) override;
  void forget(QpContext& qp, Time t) override;
  void create_shared(const protocol::CreateSrqCommand& create) override;
  bool resize_shared(const protocol::ResizeSrqCommand& resize) override;
  RecvQueue* find_shared(std::uint32_t srqn) override;
  void destroy_shared(std::uint32_t srqn) override;
  void arm_limit(RecvQueue& queue, std::uint32_t limit, Time t) override;
  void dma_done(std::uint64_t token) override;
  void dma_failed(const pcie::DmaFault& fault) override;
  void line_unreadable(const LineFetch& line, Time now) override;

  /// Where fetched RECV WQEs of all queues are kept; without a call there is room for all.
  void set_wqe_cache(WqeCache* cache);

 private:
  /// Reads of a queue that may fail before its ring is given up: the first puts its queue pair in
  /// ERR, the others would flush it.
  static constexpr std::uint32_t kReadAttempts = 4;

  struct Fetch {
    RecvQueue* queue = nullptr;
    bool record = false;  ///< the doorbell record, not WQEs
    std::uint32_t count = 0;
    std::array<std::uint8_t, protocol::DoorbellRecord::kBytes> record_bytes{};
    std::vector<std::uint8_t> bytes;
  };

  static std::uint32_t stride(const RecvQueue& queue);
  void fetch(RecvQueue& queue, Time t);
  void read_record(RecvQueue& queue, Time t);
  void read_wqes(RecvQueue& queue, Time t);
  void record_read(RecvQueue& queue, const Fetch& fetch, Time now);
  void wqes_read(RecvQueue& queue, const Fetch& fetch);
  void begin_anew(RecvQueue& queue, Time now);
  void check_limit(RecvQueue& queue, Time t);
  void flush_one(QpContext& qp, const protocol::RecvWqe& recv, Time t);

  static WqeCache::Place place_of(const RecvQueue& queue, std::uint16_t index);
  /// Whether the oldest RECV is on chip; if not, `waiter` is resumed when it is.
  bool front_here(const RecvQueue& queue, Time t, Waiter* waiter, bool again);
  Answer refuse(const QpContext& qp, Time t);
  void raise(protocol::EventType type, std::uint32_t number, Time t);
  /// Tells the application that the queue is lost.
  void tell(const RecvQueue& queue, Time t);
  /// Whether the oldest RECV had to be read again, in vain.
  bool lost_in_cache(const RecvQueue& queue);
  void drop_front(RecvQueue& queue);
  void take_shared(QpContext& qp, Time t);

  std::uint32_t prefetch_;
  WqeCache* cache_ = nullptr;
  std::set<std::uint64_t> unreadable_;  ///< places of RECVs that could not be read again
  Pool<Fetch> fetches_;
  std::vector<std::unique_ptr<RecvQueue>> shared_;  ///< by number
};

}  // namespace rnic::nic
