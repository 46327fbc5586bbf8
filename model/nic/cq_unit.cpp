// SPDX-License-Identifier: Apache-2.0
#include "nic/cq_unit.h"

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::nic {

CqUnit::CqUnit(const sc_core::sc_module_name& name) : sc_module(name) {
  completion_queues.bind(*this);
}

void CqUnit::create(std::uint32_t cqn, std::uint64_t ring_address, std::uint32_t log_entries) {
  if (cqn >= queues_.size()) queues_.resize(std::size_t{cqn} + 1);
  queues_[cqn] = Queue{ring_address, log_entries, 0};
  if (contexts_ != nullptr) contexts_->created(cqn, sim_now());
}

void CqUnit::post(std::uint32_t cqn, const protocol::Cqe& cqe, stats::MessageTrace* trace, Time t) {
  if (cqn >= queues_.size() || queues_[cqn].ring_address == 0) panic(name(), "unknown CQ");
  Queue& queue = queues_[cqn];
  Write* write = writes_.take();
  protocol::Cqe stamped = cqe;
  stamped.owner = ((queue.producer >> queue.log_entries) & 1) != 0;
  protocol::encode_cqe(stamped, write->bytes.data());
  write->trace = trace;
  write->delivery = cqe.is_responder();
  const std::uint32_t slot = queue.producer & ((1U << queue.log_entries) - 1);
  ++queue.producer;
  ++written_;
  write->unit = this;
  write->cqn = cqn;
  write->address = queue.ring_address + std::uint64_t{slot} * protocol::kCqeBytes;
  go_on(*write, t, false);
}

void CqUnit::go_on(Write& write, Time t, bool again) {
  // CQEs of a queue stay in order: those behind a miss wait in the same list.
  if (contexts_ != nullptr && !contexts_->acquire(write.cqn, t, &write, again)) return;
  dma->dma_write(t, write.address, protocol::kCqeBytes, write.bytes.data(), tlm_ext::Purpose::kCqe,
                 this, reinterpret_cast<std::uint64_t>(&write));
}

void CqUnit::dma_done(std::uint64_t token) {
  auto* write = reinterpret_cast<Write*>(token);
  if (write->trace != nullptr) {
    if (write->delivery) {
      write->trace->mark_delivery(stats::Stage::kCompletion, sim_now());
    } else {
      write->trace->mark_return(stats::Stage::kCompletion, sim_now());
    }
  }
  writes_.give(write);
}

}  // namespace rnic::nic
