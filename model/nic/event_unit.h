// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/ring.h"
#include "config/nic_config.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"

namespace rnic::nic {

/// Tells the host of events: writes event queue entries and, when the driver has asked for one, an
/// MSI-X interrupt behind them. Queue 0 takes asynchronous events, the others those of completion
/// queues; a queue's number is also its interrupt vector.
class EventUnit : public sc_core::sc_module, public EventIf {
 public:
  sc_core::sc_export<EventIf> events{"events"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};

  EventUnit(const sc_core::sc_module_name& name, const config::NicConfig& config);

  void create(const protocol::CreateEqCommand& create) override;
  void raise(const protocol::Event& event, Time t) override;
  void notify(std::uint32_t eqn, std::uint32_t cqn, Time t) override;
  void arm(const protocol::EqArmDoorbell& doorbell, Time t) override;

  std::uint64_t interrupts() const { return interrupts_; }
  std::uint64_t entries() const { return entries_; }

 private:
  struct Queue {
    std::uint64_t ring_address = 0;
    std::uint32_t log_entries = 0;
    std::uint32_t producer = 0;
    std::uint32_t consumer = 0;
    bool armed = true;
    Time next_interrupt{0};         ///< none before (moderation)
    Ring<protocol::Event> waiting;  ///< for room in the ring
  };

  void push(std::uint32_t eqn, const protocol::Event& event, Time t);
  void write(Queue& queue, const protocol::Event& event, Time t);
  void interrupt(std::uint32_t eqn, Time t);
  void interrupt_due(std::uint32_t& eqn);

  Time moderation_;
  std::vector<Queue> queues_;
  std::uint64_t interrupts_ = 0;
  std::uint64_t entries_ = 0;
  EventQueue<EventUnit, std::uint32_t> due_;
};

}  // namespace rnic::nic
