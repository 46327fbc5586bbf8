// SPDX-License-Identifier: Apache-2.0
#include "nic/event_unit.h"

#include <algorithm>
#include <array>

namespace rnic::nic {
namespace {

constexpr std::uint32_t kAsyncQueue = 0;

}  // namespace

EventUnit::EventUnit(const sc_core::sc_module_name& name, const config::NicConfig& config)
    : sc_module(name),
      moderation_(config.interrupt_moderation),
      due_("due", this, &EventUnit::interrupt_due) {
  events.bind(*this);
}

void EventUnit::create(const protocol::CreateEqCommand& create) {
  if (create.eqn >= queues_.size()) queues_.resize(std::size_t{create.eqn} + 1);
  Queue& queue = queues_[create.eqn];
  queue.ring_address = create.ring_address;
  queue.log_entries = create.log_entries;
}

void EventUnit::raise(const protocol::Event& event, Time t) { push(kAsyncQueue, event, t); }

void EventUnit::notify(std::uint32_t eqn, std::uint32_t cqn, Time t) {
  push(eqn, {protocol::EventType::kCompletion, cqn}, t);
}

void EventUnit::push(std::uint32_t eqn, const protocol::Event& event, Time t) {
  if (eqn >= queues_.size() || queues_[eqn].ring_address == 0) return;  // nobody listens
  Queue& queue = queues_[eqn];
  if (((queue.producer - queue.consumer) >> queue.log_entries) != 0) {
    queue.waiting.push_back(event);
    return;
  }
  write(queue, event, t);
  if (queue.armed) interrupt(eqn, t);
}

void EventUnit::write(Queue& queue, const protocol::Event& event, Time t) {
  std::array<std::uint8_t, protocol::Eqe::kBytes> bytes{};
  const bool owner = ((queue.producer >> queue.log_entries) & 1) != 0;
  protocol::Eqe{event, owner}.encode(bytes.data());
  const std::uint32_t slot = queue.producer & ((1U << queue.log_entries) - 1);
  ++queue.producer;
  ++entries_;
  dma->dma_write(t, queue.ring_address + std::uint64_t{slot} * protocol::Eqe::kBytes,
                 protocol::Eqe::kBytes, bytes.data(), tlm_ext::Purpose::kEqe, nullptr, 0);
}

void EventUnit::interrupt(std::uint32_t eqn, Time t) {
  queues_[eqn].armed = false;
  const Time at = std::max(t, queues_[eqn].next_interrupt);
  if (at > sim_now()) {
    due_.post(at, eqn);
  } else {
    interrupt_due(eqn);
  }
}

void EventUnit::interrupt_due(std::uint32_t& eqn) {
  const Time now = sim_now();
  queues_[eqn].next_interrupt = now + moderation_;
  ++interrupts_;
  std::uint8_t vector[4];
  protocol::store_be32(vector, eqn);
  dma->dma_write(now, protocol::kMsixAddress, sizeof vector, vector, tlm_ext::Purpose::kMsix,
                 nullptr, 0);
}

void EventUnit::arm(const protocol::EqArmDoorbell& doorbell, Time t) {
  if (doorbell.eqn >= queues_.size()) return;
  Queue& queue = queues_[doorbell.eqn];
  queue.consumer = doorbell.consumer;
  while (!queue.waiting.empty() && ((queue.producer - queue.consumer) >> queue.log_entries) == 0) {
    write(queue, queue.waiting.front(), t);
    queue.waiting.pop_front();
  }
  if (queue.producer != queue.consumer) {
    interrupt(doorbell.eqn, t);
  } else {
    queue.armed = true;
  }
}

}  // namespace rnic::nic
