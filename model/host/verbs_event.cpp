// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/sc_time.h"
#include "config/config.h"
#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::EventType;
using protocol::QpState;

void Context::create_event_rings() {
  const std::uint64_t bytes = std::uint64_t{protocol::Eqe::kBytes} << kLogEventEntries;
  for (EventRing& ring : event_rings_) {
    const auto address = memory_.allocate_contiguous(bytes);
    if (!address) throw ConfigError("the host has no memory left for event queues");
    ring.address = *address;
    for (std::uint64_t at = protocol::Eqe::kOwnerOffset; at < bytes; at += protocol::Eqe::kBytes) {
      memory_.write(ring.address + at, &protocol::Eqe::kInvalidOwner, 1);
    }
  }
}

std::vector<protocol::CreateEqCommand> Context::event_queues() const {
  std::vector<protocol::CreateEqCommand> queues;
  for (std::uint32_t eqn = 0; eqn < event_rings_.size(); ++eqn) {
    queues.push_back({eqn, kLogEventEntries, event_rings_[eqn].address});
  }
  return queues;
}

void Context::interrupt(std::uint64_t /*address*/, const std::uint8_t* data,
                        std::uint32_t /*bytes*/) {
  ++stats_.interrupts;
  handlers_.post(sim_now() + cpu_.interrupt_latency, protocol::load_be32(data));
}

void Context::handle_interrupt(std::uint32_t& eqn) {
  EventRing& ring = event_rings_.at(eqn);
  while (true) {
    std::uint8_t bytes[protocol::Eqe::kBytes];
    const std::uint32_t slot = ring.consumer & ((1U << kLogEventEntries) - 1);
    memory_.read(ring.address + std::uint64_t{slot} * protocol::Eqe::kBytes, bytes, sizeof bytes);
    protocol::Event event;
    if (!protocol::Eqe::decode(bytes, ((ring.consumer >> kLogEventEntries) & 1) != 0, event)) break;
    ++ring.consumer;
    handle_event(event);
  }
  std::uint8_t doorbell[protocol::EqArmDoorbell::kBytes];
  protocol::EqArmDoorbell{eqn, ring.consumer}.encode(doorbell);
  store_buffer_.store(sim_now(), protocol::BarLayout::kEqArm, doorbell, sizeof doorbell,
                      tlm_ext::Purpose::kDoorbell);
}

void Context::handle_event(const protocol::Event& event) {
  if (event.type == EventType::kCompletion) {
    ++stats_.completion_events;
    if (event.number == 0 || event.number > cqs_.size()) return;
    const CompletionQueue* cq = cqs_[event.number - 1].get();
    if (cq != nullptr && cq->channel != nullptr) notify_channel(*cq);
    return;
  }
  if (event.type == EventType::kPageFault) {
    handle_page_fault(event);
    return;
  }
  async_events_.push_back(event);
  ++stats_.async_events.at(static_cast<std::size_t>(event.type));
  const AsyncEvent about = to_async_event(event);
  switch (event.type) {
    case EventType::kQpFatal:
    case EventType::kQpRequestError:
    case EventType::kQpAccessError:
    case EventType::kQpLastWqeReached:
      if (about.qp != nullptr) learn_of_error(*about.qp);
      break;
    case EventType::kDeviceFatal:
      for (const auto& qp : qps_) {
        if (qp != nullptr && qp->state != QpState::kReset) learn_of_error(*qp);
      }
      break;
    case EventType::kCqError:
      if (about.cq != nullptr) {
        about.cq->failed = true;
        about.cq->written.memory_written(0, 0);  // who spins on it looks up
        // Who sleeps is woken by the process's own thread for these events, which is not modelled.
        if (about.cq->channel != nullptr) notify_channel(*about.cq);
      }
      break;
    case EventType::kSrqLimitReached:
      if (about.srq != nullptr) about.srq->limit = 0;
      break;
    default:
      break;
  }
  if (async_waiting_) Timeline::notify(async_arrived_);
}

void Context::notify_channel(const CompletionQueue& cq) {
  CompletionChannel& channel = *cq.channel;
  channel.events.push_back(cqs_[cq.cqn - 1].get());
  if (channel.waiting) Timeline::notify(channel.arrived);
}

AsyncEvent Context::to_async_event(const protocol::Event& event) {
  AsyncEvent out;
  out.type = event.type;
  const std::uint32_t number = event.number;
  switch (event.type) {
    case EventType::kCqError:
      if (number > 0 && number <= cqs_.size()) out.cq = cqs_[number - 1].get();
      break;
    case EventType::kSrqError:
    case EventType::kSrqLimitReached:
      if (number > 0 && number <= srqs_.size()) out.srq = srqs_[number - 1].get();
      break;
    case EventType::kDeviceFatal:
      break;
    case EventType::kPortActive:
    case EventType::kPortError:
      out.port_num = static_cast<std::uint8_t>(number);
      break;
    default:
      out.qp = find_qp(number);
      break;
  }
  return out;
}

void Context::enter_kernel(Core& core) {
  ++stats_.syscalls;
  core.spend(cpu_.syscall_cost);
  core.sync();
}

void Context::wake_up(Core& core, Time since) {
  const Time idle = sim_now() - since;
  Time latency = cpu_.wakeup_latency;
  if (cpu_.sleep2_after > kTimeZero && idle >= cpu_.sleep2_after) {
    latency += cpu_.sleep2_exit;
  } else if (cpu_.sleep1_after > kTimeZero && idle >= cpu_.sleep1_after) {
    latency += cpu_.sleep1_exit;
  }
  core.idle(latency);
}

CompletionChannel* Context::create_comp_channel() {
  channels_.push_back(std::make_unique<CompletionChannel>());
  return channels_.back().get();
}

Status Context::destroy_comp_channel(CompletionChannel* channel) {
  for (auto it = channels_.begin(); it != channels_.end(); ++it) {
    if (it->get() != channel) continue;
    if (channel->users > 0) return Status::kEbusy;
    channels_.erase(it);
    return Status::kOk;
  }
  return Status::kEinval;
}

Status Context::req_notify_cq(Core& core, CompletionQueue& cq, bool solicited_only) {
  if (cq.channel == nullptr) return Status::kEinval;
  core.spend(cpu_.doorbell_cost);
  core.sync();
  std::uint8_t bytes[protocol::CqArmDoorbell::kBytes];
  protocol::CqArmDoorbell{cq.cqn, solicited_only, cq.consumer + visible_cqes(cq)}.encode(bytes);
  store_buffer_.store(core.now(), protocol::BarLayout::kCqArm, bytes, sizeof bytes,
                      tlm_ext::Purpose::kDoorbell);
  return Status::kOk;
}

CompletionQueue* Context::get_cq_event(Core& core, CompletionChannel& channel, Time deadline) {
  enter_kernel(core);
  if (channel.events.empty()) {
    const Time since = sim_now();
    channel.waiting = true;
    while (channel.events.empty() && sim_now() < deadline) {
      if (deadline == kTimeNever) {
        sc_core::wait(channel.arrived);
      } else {
        sc_core::wait(to_sc_time(deadline - sim_now()), channel.arrived);
      }
    }
    channel.waiting = false;
    wake_up(core, since);
  }
  if (channel.events.empty()) return nullptr;
  CompletionQueue* cq = channel.events.front();
  channel.events.pop_front();
  ++cq->events_unacked;
  return cq;
}

void Context::ack_cq_events(CompletionQueue& cq, std::uint32_t count) {
  cq.events_unacked -= std::min(cq.events_unacked, count);
}

bool Context::poll_async_event(Core& core, AsyncEvent& event) {
  enter_kernel(core);
  if (async_events_.empty()) return false;
  event = to_async_event(async_events_.front());
  async_events_.pop_front();
  return true;
}

AsyncEvent Context::get_async_event(Core& core) {
  enter_kernel(core);
  if (async_events_.empty()) {
    const Time since = sim_now();
    async_waiting_ = true;
    while (async_events_.empty()) sc_core::wait(async_arrived_);
    async_waiting_ = false;
    wake_up(core, since);
  }
  const AsyncEvent event = to_async_event(async_events_.front());
  async_events_.pop_front();
  return event;
}

}  // namespace rnic::host::verbs
