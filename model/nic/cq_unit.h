// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/ring.h"
#include "nic/cq_context_cache.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"

namespace rnic::nic {

/// Writes completion queue entries into their rings in host memory, behind the payload writes that
/// they report (posted writes stay in order), and notifies of those that the driver armed for.
///
/// The device knows the driver's consumer index from the queue's doorbell record, which it reads
/// when the ring seems to fill up; an entry that finds no room puts the queue in error.
/// A queue whose context is not on chip keeps its CQEs until it is.
class CqUnit : public sc_core::sc_module,
               public CompletionQueueIf,
               public pcie::DmaClient,
               public LineFaultClient {
 public:
  sc_core::sc_export<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};
  sc_core::sc_port<CompletionIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> completion{"completion"};

  /// `queue_pairs`: those that fail with a queue; null: none.
  explicit CqUnit(const sc_core::sc_module_name& name, const QpTable* queue_pairs = nullptr);

  /// Where contexts are cached; without a call all are on chip.
  void set_contexts(CqContextCache* contexts);

  void create(const protocol::CreateCqCommand& create) override;
  bool modify(const protocol::ModifyCqCommand& modify) override;
  bool resize(const protocol::ResizeCqCommand& resize) override;
  bool destroy(std::uint32_t cqn) override;
  void arm(const protocol::CqArmDoorbell& doorbell, Time t) override;
  void post(std::uint32_t cqn, const protocol::Cqe& cqe, stats::MessageTrace* trace,
            Time t) override;
  void dma_done(std::uint64_t token) override;
  /// A completion that cannot be written, or room that cannot be known: the queue is lost.
  void dma_failed(const pcie::DmaFault& fault) override;
  void line_unreadable(const LineFetch& line, Time now) override;

  std::uint64_t written() const { return written_; }
  /// Queues that ran over.
  std::uint64_t overruns() const { return overruns_; }

 private:
  enum class Armed : std::uint8_t { kNo, kSolicited, kAny };

  /// A completion that found the ring full, as far as the device knows.
  struct Held {
    protocol::Cqe cqe;
    stats::MessageTrace* trace = nullptr;
  };
  struct Queue {
    std::uint32_t number = 0;
    std::uint64_t ring_address = 0;
    std::uint32_t log_entries = 0;
    std::uint32_t producer = 0;
    std::uint64_t doorbell_record = 0;
    bool ignore_overrun = true;
    bool failed = false;
    // Room.
    std::uint32_t consumer = 0;    ///< as last read
    std::uint32_t next_check = 0;  ///< producer index at which to look ahead of need
    bool checking = false;
    bool outdated = false;  ///< the read under way may have passed the driver's latest update
    Ring<Held> held;
    // Notification.
    std::uint32_t eqn = 0;
    Armed armed = Armed::kNo;
    std::uint32_t solicited_end = 0;  ///< index behind the newest solicited or failed completion
    std::uint32_t event_count = 0;
    Time event_period{0};
    std::uint32_t pending = 0;  ///< completions that wait for an event
    bool timer_set = false;
  };
  /// A CQE on its way, which waits for its queue's context first when that is not on chip; or the
  /// read of a doorbell record.
  struct Job : public Waiter {
    std::array<std::uint8_t, protocol::kCqeBytes> bytes{};
    stats::MessageTrace* trace = nullptr;
    bool delivery = false;  ///< reports an arrival, not own work
    bool check = false;     ///< reads a doorbell record
    CqUnit* unit = nullptr;
    std::uint32_t cqn = 0;
    std::uint64_t address = 0;

    void resume(Time now) override { unit->go_on(*this, now, true); }
  };

  Queue* find(std::uint32_t cqn);
  bool has_room(Queue& queue, Time t);
  void write(Queue& queue, const protocol::Cqe& cqe, stats::MessageTrace* trace, Time t);
  void go_on(Job& job, Time t, bool again);
  void check(Queue& queue, Time t);
  void checked(Queue& queue, std::uint32_t consumer, Time now);
  void lose(Queue& queue, Time now);
  bool usable(std::uint32_t cqn);
  void count_for_event(Queue& queue, std::uint32_t completions, Time t);
  void fire(Queue& queue, Time t);
  void period_over(std::uint32_t& cqn);

  const QpTable* queue_pairs_;
  std::vector<Queue> queues_;
  Pool<Job> jobs_;
  CqContextCache* contexts_ = nullptr;
  std::uint64_t written_ = 0;
  std::uint64_t overruns_ = 0;
  EventQueue<CqUnit, std::uint32_t> periods_;
};

}  // namespace rnic::nic
