// SPDX-License-Identifier: Apache-2.0
#include "nic/rq_unit.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic::nic {

RqUnit::RqUnit(const sc_core::sc_module_name& name, const config::NicConfig& config)
    : sc_module(name), prefetch_(config.wqe_prefetch) {
  recv_queues.bind(*this);
}

RecvQueueIf::Answer RqUnit::acquire(QpContext& qp, Time& t, Waiter* waiter, bool again) {
  if (!qp.rq.empty()) {
    return front_here(qp, t, waiter, again) ? Answer::kReady : Answer::kWait;
  }
  if (qp.rq_address == 0) return Answer::kEmpty;
  if (again && qp.rq_record_fresh && !known_posted(qp)) {
    qp.rq_record_fresh = false;
    return Answer::kEmpty;
  }
  // A record read that is already on its way may have passed the posting of a RECV.
  qp.rq_record_outdated = qp.rq_fetching;
  qp.rq_record_fresh = false;
  qp.rq_waiters.push(waiter);
  prefetch(qp, t);
  return Answer::kWait;
}

WqeCache::Place RqUnit::place_of(const QpContext& qp, std::uint16_t counter) {
  const std::uint32_t stride = qp.rq_max_sge * protocol::kWqeSegmentBytes;
  const std::uint32_t position = counter & ((1U << qp.rq_log_entries) - 1);
  return {(std::uint64_t{qp.qpn} << 16) | counter, qp.rq_address + std::uint64_t{position} * stride,
          stride};
}

bool RqUnit::front_here(const QpContext& qp, Time t, Waiter* waiter, bool again) {
  return cache_ == nullptr || cache_->acquire(place_of(qp, qp.rq_consumed), t, waiter, again);
}

void RqUnit::consume(QpContext& qp, Time t) {
  if (cache_ != nullptr) cache_->release(place_of(qp, qp.rq_consumed));
  qp.rq.pop_front();
  ++qp.rq_consumed;
  if (qp.rq.size() * 2 <= prefetch_) prefetch(qp, t);
}

void RqUnit::prefetch(QpContext& qp, Time t) {
  if (qp.rq_fetching || qp.rq_address == 0) return;
  if (known_posted(qp)) {
    read_wqes(qp, t);
  } else {
    read_record(qp, t);
  }
}

void RqUnit::read_record(QpContext& qp, Time t) {
  Fetch* fetch = fetches_.take();
  fetch->qp = &qp;
  fetch->record = true;
  fetch->parts = 1;
  qp.rq_fetching = true;
  dma->dma_read(t, qp.doorbell_record, protocol::DoorbellRecord::kBytes, fetch->record_bytes.data(),
                tlm_ext::Purpose::kDoorbellRecord, this, reinterpret_cast<std::uint64_t>(fetch));
}

void RqUnit::read_wqes(QpContext& qp, Time t) {
  const std::uint32_t stride = qp.rq_max_sge * protocol::kWqeSegmentBytes;
  const std::uint32_t entries = 1U << qp.rq_log_entries;
  const std::uint32_t posted = static_cast<std::uint16_t>(qp.rq_producer - qp.rq_fetched);
  const std::uint32_t position = qp.rq_fetched & (entries - 1);
  Fetch* fetch = fetches_.take();
  fetch->qp = &qp;
  fetch->record = false;
  fetch->parts = 1;
  fetch->count = std::min({posted, prefetch_, entries - position});
  fetch->bytes.resize(std::size_t{fetch->count} * stride);
  qp.rq_fetching = true;
  dma->dma_read(t, qp.rq_address + std::uint64_t{position} * stride, fetch->count * stride,
                fetch->bytes.data(), tlm_ext::Purpose::kRqWqe, this,
                reinterpret_cast<std::uint64_t>(fetch));
}

void RqUnit::dma_done(std::uint64_t token) {
  auto* fetch = reinterpret_cast<Fetch*>(token);
  QpContext& qp = *fetch->qp;
  const Time now = sim_now();
  qp.rq_fetching = false;
  if (fetch->record) {
    qp.rq_producer = static_cast<std::uint16_t>(
        protocol::load_be32(fetch->record_bytes.data() + protocol::DoorbellRecord::kRecvOffset));
    qp.rq_record_fresh = true;
    if (known_posted(qp)) {
      read_wqes(qp, now);
    } else if (qp.rq_record_outdated) {
      qp.rq_record_outdated = false;
      read_record(qp, now);
    } else {
      qp.rq_waiters.resume_all(now);
    }
  } else {
    const std::uint32_t stride = qp.rq_max_sge * protocol::kWqeSegmentBytes;
    for (std::uint32_t i = 0; i < fetch->count; ++i) {
      protocol::decode_recv_wqe(fetch->bytes.data() + std::size_t{i} * stride, qp.rq_max_sge,
                                qp.rq.push_slot());
      if (cache_ != nullptr) {
        cache_->hold(place_of(qp, static_cast<std::uint16_t>(qp.rq_fetched + i)));
      }
    }
    qp.rq_fetched = static_cast<std::uint16_t>(qp.rq_fetched + fetch->count);
    qp.rq_record_fresh = false;
    qp.rq_waiters.resume_all(now);
  }
  fetches_.give(fetch);
  if (qp.state == protocol::QpState::kError) flush(qp, now);
  qp.rq_record_fresh = false;  // whoever waited for it has been answered
}

void RqUnit::flush(QpContext& qp, Time t) {
  while (!qp.rq.empty()) {
    protocol::Cqe cqe;
    cqe.kind = protocol::Cqe::Kind::kResponderError;
    cqe.status = protocol::WcStatus::kWrFlushError;
    cqe.qpn = qp.qpn;
    cqe.wqe_counter = qp.rq_consumed;
    completion_queues->post(qp.recv_cqn, cqe, nullptr, t);
    qp.rq.pop_front();
    ++qp.rq_consumed;
  }
  // RECVs may have been posted since the record was read last.
  if (known_posted(qp) || !qp.rq_record_fresh) prefetch(qp, t);
}

}  // namespace rnic::nic
