// SPDX-License-Identifier: Apache-2.0
#include "nic/atomic_unit.h"

#include <algorithm>
#include <string>

#include "base/sc_time.h"
#include "protocol/atomic.h"
#include "protocol/opcode.h"

namespace rnic::nic {
namespace {

using protocol::kAtomicBytes;

bool is_compare_swap(const transport::RxPlan& plan) {
  return plan.opcode == static_cast<std::uint8_t>(protocol::BthOpcode::kCompareSwap);
}

}  // namespace

AtomicUnit::AtomicUnit(const sc_core::sc_module_name& name, const config::NicConfig& config)
    : sc_module(name),
      stage_(this->name(), config.atomic, Clock(config.clock_hz)),
      pcie_atomics_(config.pcie_atomics),
      response_time_(config.atomic_response_time),
      buckets_(config.atomic_buckets),
      unlocking_("unlocking", this, &AtomicUnit::unlock),
      responding_("responding", this, &AtomicUnit::respond) {
  atomics.bind(*this);
}

void AtomicUnit::execute(QpContext& qp, const transport::RxPlan& plan, stats::MessageTrace* trace,
                         std::uint64_t address, Time t) {
  t = stage_.pass(t);
  stage_.stats().set_occupancy(sim_now(), ++under_way_);
  Operation* operation = operations_.take();
  operation->qp = &qp;
  operation->plan = plan;
  operation->trace = trace;
  operation->address = address;
  operation->bucket = static_cast<std::uint32_t>(address / kAtomicBytes % buckets_.size());
  operation->next = nullptr;
  Bucket& bucket = buckets_[operation->bucket];
  if (bucket.holder != nullptr) {
    bucket.last->next = operation;
    bucket.last = operation;
    return;
  }
  bucket.holder = bucket.last = operation;
  start(operation, t);
}

void AtomicUnit::start(Operation* operation, Time t) {
  buckets_[operation->bucket].locked_at = t;
  if (operation->trace != nullptr) operation->trace->mark(stats::Stage::kAtomicLock, t);
  const auto token = reinterpret_cast<std::uint64_t>(operation);
  if (pcie_atomics_) {
    const transport::RxPlan& plan = operation->plan;
    dma->dma_atomic(t, operation->address, {is_compare_swap(plan), plan.swap_or_add, plan.compare},
                    operation->bytes.data(), this, token);
    return;
  }
  dma->dma_read(t, operation->address, kAtomicBytes, operation->bytes.data(),
                tlm_ext::Purpose::kAtomic, this, token);
}

void AtomicUnit::dma_done(std::uint64_t token) {
  auto* operation = reinterpret_cast<Operation*>(token);
  transport::RxPlan& plan = operation->plan;
  plan.original = protocol::load_operand(operation->bytes.data());
  if (pcie_atomics_) {
    unlock(operation);
    return;
  }
  protocol::store_operand(operation->bytes.data(),
                          protocol::atomic_result(is_compare_swap(plan), plan.original,
                                                  plan.swap_or_add, plan.compare));
  // A read that is sent later does not overtake the write: the bucket is free once it has left.
  const Time left = dma->dma_write(sim_now(), operation->address, kAtomicBytes,
                                   operation->bytes.data(), tlm_ext::Purpose::kAtomic, nullptr, 0);
  unlocking_.post(left, operation);
}

void AtomicUnit::dma_failed(const pcie::DmaFault& fault) {
  auto* operation = reinterpret_cast<Operation*>(fault.token);
  const Time now = sim_now();
  leave_bucket(*operation, now);
  client->atomic_failed(*operation->qp, operation->plan, now);
  operations_.give(operation);
}

void AtomicUnit::leave_bucket(Operation& operation, Time now) {
  Bucket& bucket = buckets_[operation.bucket];
  bucket.locked += now - bucket.locked_at;
  bucket.holder = operation.next;
  stage_.stats().set_occupancy(now, --under_way_);
  if (bucket.holder != nullptr) start(bucket.holder, now);
}

void AtomicUnit::unlock(Operation*& operation) {
  const Time now = sim_now();
  leave_bucket(*operation, now);
  if (response_time_ > kTimeZero) {
    responding_.post(now + response_time_, operation);
  } else {
    respond(operation);
  }
}

void AtomicUnit::respond(Operation*& operation) {
  client->atomic_done(*operation->qp, operation->plan, operation->trace, sim_now());
  operations_.give(operation);
}

stats::UnitStats AtomicUnit::busiest_bucket(Time now) const {
  stats::UnitStats busiest(std::string(name()) + ".bucket");
  Time most{0};
  for (const Bucket& bucket : buckets_) {
    most = std::max(
        most, bucket.locked + (bucket.holder != nullptr ? now - bucket.locked_at : kTimeZero));
  }
  busiest.add_busy(most);
  return busiest;
}

void AtomicUnit::reset_statistics(Time now) {
  stage_.stats().reset(now);
  for (Bucket& bucket : buckets_) {
    bucket.locked = kTimeZero;
    bucket.locked_at = now;
  }
}

}  // namespace rnic::nic
