// SPDX-License-Identifier: Apache-2.0
#include "nic/rq_unit.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic::nic {

RqUnit::RqUnit(const sc_core::sc_module_name& name, const config::NicConfig& config)
    : sc_module(name), prefetch_(config.wqe_prefetch) {
  recv_queues.bind(*this);
}

void RqUnit::create_shared(const protocol::CreateSrqCommand& create) {
  if (create.srqn >= shared_.size()) shared_.resize(std::size_t{create.srqn} + 1);
  auto queue = std::make_unique<RecvQueue>();
  queue->number = create.srqn;
  queue->ring_address = create.ring_address;
  queue->doorbell_record = create.doorbell_record;
  queue->log_entries = create.log_entries;
  queue->max_sge = create.max_sge;
  queue->pd = create.pd;
  shared_[create.srqn] = std::move(queue);
}

RecvQueue* RqUnit::find_shared(std::uint32_t srqn) {
  RecvQueue* queue = srqn < shared_.size() ? shared_[srqn].get() : nullptr;
  return queue != nullptr && queue->ring_address != 0 ? queue : nullptr;
}

bool RqUnit::resize_shared(const protocol::ResizeSrqCommand& resize) {
  RecvQueue* queue = find_shared(resize.srqn);
  if (queue == nullptr) return false;
  // Slots keep their numbers, and a read under way brings what the new ring holds, too.
  queue->ring_address = resize.ring_address;
  queue->log_entries = resize.log_entries;
  return true;
}

void RqUnit::destroy_shared(std::uint32_t srqn) {
  // A fetch may be under way: the object stays, without a ring.
  if (RecvQueue* queue = find_shared(srqn)) queue->ring_address = 0;
}

RecvQueueIf::Answer RqUnit::acquire(QpContext& qp, Time& t, Waiter* waiter, bool again) {
  RecvQueue& queue = *qp.rq;
  if (queue.shared() && qp.recv_held) return Answer::kReady;
  if (queue.failed) return refuse(qp, t);
  if (!queue.wqes.empty()) {
    if (!front_here(queue, t, waiter, again)) return Answer::kWait;
    if (!unreadable_.empty() && lost_in_cache(queue)) {
      queue.failed = true;
      tell(queue, t);
      return refuse(qp, t);
    }
    if (queue.shared()) take_shared(qp, t);
    return Answer::kReady;
  }
  if (queue.ring_address == 0) return Answer::kEmpty;
  if (again && queue.record_fresh && !queue.known_posted()) return Answer::kEmpty;
  // A record read that is already on its way may have passed the posting of a RECV.
  if (queue.fetching) queue.record_outdated = true;
  queue.waiters.push(waiter);
  fetch(queue, t);
  return Answer::kWait;
}

/// A queue pair that needs a RECV of a queue that has failed.
RecvQueueIf::Answer RqUnit::refuse(const QpContext& qp, Time t) {
  // Of a queue of its own the application knows already (IBTA vol 1, 10.2.9: queue pairs of a
  // shared one fail when they come to it).
  if (qp.rq->shared()) raise(protocol::EventType::kQpFatal, qp.qpn, t);
  return Answer::kFailed;
}

void RqUnit::raise(protocol::EventType type, std::uint32_t number, Time t) {
  if (events.size() > 0) events->raise({type, number}, t);
}

void RqUnit::tell(const RecvQueue& queue, Time t) {
  if (queue.shared()) {
    raise(protocol::EventType::kSrqError, queue.number, t);
  } else {
    raise(protocol::EventType::kQpFatal, queue.owner->qpn, t);
  }
}

bool RqUnit::lost_in_cache(const RecvQueue& queue) {
  return unreadable_.erase(place_of(queue, queue.wqes.front().index).key) > 0;
}

void RqUnit::line_unreadable(const LineFetch& line, Time /*now*/) { unreadable_.insert(line.key); }

void RqUnit::set_wqe_cache(WqeCache* cache) {
  cache_ = cache;
  cache_->cache().set_fault_client(this);
}

/// The queue is lost (mlx5: a catastrophic error of a work queue). What was posted to a queue
/// pair's own ring is read again, to be flushed.
void RqUnit::dma_failed(const pcie::DmaFault& fault) {
  auto* over = reinterpret_cast<Fetch*>(fault.token);
  RecvQueue& queue = *over->queue;
  const Time now = sim_now();
  fetches_.give(over);
  queue.fetching = false;
  if (queue.forsaken) {
    begin_anew(queue, now);
    return;
  }
  ++queue.read_failures;
  if (!queue.shared() && queue.owner->state == protocol::QpState::kError) {
    flush(*queue.owner, now);
    queue.waiters.resume_all(now);
    return;
  }
  if (queue.failed) {
    queue.waiters.resume_all(now);
    return;
  }
  queue.failed = true;
  tell(queue, now);
  queue.waiters.resume_all(now);  // their peers are told by a NAK, which ends the queue pair
  if (!queue.shared() && !queue.owner->failed) completion->fail(*queue.owner, now);
}

/// The RECV at the head of a shared queue is the message's from now on.
void RqUnit::take_shared(QpContext& qp, Time t) {
  RecvQueue& queue = *qp.rq;
  if (qp.held == nullptr) qp.held = std::make_unique<protocol::RecvWqe>();
  *qp.held = queue.wqes.front();
  qp.recv_held = true;
  drop_front(queue);
  if (queue.wqes.size() * 2 <= prefetch_) fetch(queue, t);
  check_limit(queue, t);
}

void RqUnit::drop_front(RecvQueue& queue) {
  if (cache_ != nullptr) {
    const WqeCache::Place place = place_of(queue, queue.wqes.front().index);
    cache_->release(place);
    unreadable_.erase(place.key);  // the next RECV of that place is another one
  }
  queue.wqes.pop_front();
}

WqeCache::Place RqUnit::place_of(const RecvQueue& queue, std::uint16_t index) {
  constexpr std::uint64_t kShared = std::uint64_t{1} << 63;
  const std::uint64_t ring = queue.shared() ? kShared | (std::uint64_t{queue.number} << 16)
                                            : std::uint64_t{queue.owner->qpn} << 16;
  const std::uint32_t position = index & ((1U << queue.log_entries) - 1);
  return {ring | index, queue.ring_address + std::uint64_t{position} * stride(queue),
          stride(queue)};
}

bool RqUnit::front_here(const RecvQueue& queue, Time t, Waiter* waiter, bool again) {
  return cache_ == nullptr ||
         cache_->acquire(place_of(queue, queue.wqes.front().index), t, waiter, again);
}

void RqUnit::consume(QpContext& qp, Time /*t*/) {
  RecvQueue& queue = *qp.rq;
  if (queue.shared()) {
    qp.recv_held = false;
    return;
  }
  drop_front(queue);
  // At once: what is reserved for when the payload has left would pass payload that comes
  // meanwhile.
  if (queue.wqes.size() * 2 <= prefetch_) fetch(queue, sim_now());
}

void RqUnit::prefetch(QpContext& qp, Time t) { fetch(*qp.rq, t); }

void RqUnit::fetch(RecvQueue& queue, Time t) {
  if (queue.fetching || queue.ring_address == 0) return;
  if (queue.failed && (queue.shared() || queue.owner->state != protocol::QpState::kError ||
                       queue.read_failures >= kReadAttempts)) {
    return;
  }
  if (queue.known_posted()) {
    read_wqes(queue, t);
  } else {
    read_record(queue, t);
  }
}

void RqUnit::read_record(RecvQueue& queue, Time t) {
  Fetch* fetch = fetches_.take();
  fetch->queue = &queue;
  fetch->record = true;
  queue.fetching = true;
  queue.record_outdated = false;
  dma->dma_read(t, queue.doorbell_record, protocol::DoorbellRecord::kBytes,
                fetch->record_bytes.data(), tlm_ext::Purpose::kDoorbellRecord, this,
                reinterpret_cast<std::uint64_t>(fetch));
}

std::uint32_t RqUnit::stride(const RecvQueue& queue) {
  return queue.max_sge * protocol::kWqeSegmentBytes +
         (queue.shared() ? protocol::kSrqNextBytes : 0);
}

void RqUnit::read_wqes(RecvQueue& queue, Time t) {
  const std::uint32_t bytes = stride(queue);
  const std::uint32_t entries = 1U << queue.log_entries;
  const std::uint32_t posted = static_cast<std::uint16_t>(queue.producer - queue.fetched);
  const std::uint32_t position = queue.shared() ? queue.position : queue.fetched & (entries - 1);
  Fetch* fetch = fetches_.take();
  fetch->queue = &queue;
  fetch->record = false;
  fetch->count = std::min({posted, prefetch_, entries - position});
  fetch->bytes.resize(std::size_t{fetch->count} * bytes);
  queue.fetching = true;
  dma->dma_read(t, queue.ring_address + std::uint64_t{position} * bytes, fetch->count * bytes,
                fetch->bytes.data(), tlm_ext::Purpose::kRqWqe, this,
                reinterpret_cast<std::uint64_t>(fetch));
}

void RqUnit::dma_done(std::uint64_t token) {
  auto* done = reinterpret_cast<Fetch*>(token);
  RecvQueue& queue = *done->queue;
  const Time now = sim_now();
  queue.fetching = false;
  if (queue.forsaken) {
    fetches_.give(done);
    begin_anew(queue, now);
    return;
  }
  if (done->record) {
    record_read(queue, *done, now);
  } else {
    wqes_read(queue, *done);
    queue.waiters.resume_all(now);
  }
  fetches_.give(done);
  if (!queue.shared() && queue.owner->state == protocol::QpState::kError) flush(*queue.owner, now);
  queue.record_fresh = false;  // whoever waited for it has been answered
  if (queue.limit_check && !queue.fetching) fetch(queue, now);
}

/// The last read of a life that is over has come: what the new one needs could not be asked for.
void RqUnit::begin_anew(RecvQueue& queue, Time now) {
  queue.forsaken = false;
  QpContext& qp = *queue.owner;
  if (qp.state == protocol::QpState::kError) {
    flush(qp, now);
  } else if (qp.can_receive()) {
    fetch(queue, now);
  }
}

void RqUnit::record_read(RecvQueue& queue, const Fetch& fetch, Time now) {
  queue.producer = static_cast<std::uint16_t>(
      protocol::load_be32(fetch.record_bytes.data() + protocol::DoorbellRecord::kRecvOffset));
  if (queue.limit_check && !queue.record_outdated) {
    queue.limit_check = false;
    if (queue.available() < queue.limit) {
      queue.limit = 0;
      if (events.size() > 0) {
        events->raise({protocol::EventType::kSrqLimitReached, queue.number}, now);
      }
    }
  }
  if (queue.known_posted()) {
    read_wqes(queue, now);
    queue.record_fresh = true;
  } else if (queue.record_outdated) {
    read_record(queue, now);
  } else {
    queue.record_fresh = true;
    queue.waiters.resume_all(now);
  }
}

void RqUnit::wqes_read(RecvQueue& queue, const Fetch& fetch) {
  const std::uint32_t bytes = stride(queue);
  std::uint32_t used = 0;
  while (used < fetch.count) {
    const std::uint8_t* at = fetch.bytes.data() + std::size_t{used} * bytes;
    protocol::RecvWqe& wqe = queue.wqes.push_slot();
    wqe.index = static_cast<std::uint16_t>(queue.fetched + used++);
    if (!queue.shared()) {
      protocol::decode_recv_wqe(at, queue.max_sge, wqe);
      if (cache_ != nullptr) cache_->hold(place_of(queue, wqe.index));
      continue;
    }
    protocol::decode_recv_wqe(at + protocol::kSrqNextBytes, queue.max_sge, wqe);
    wqe.index = queue.position;
    if (cache_ != nullptr) cache_->hold(place_of(queue, wqe.index));
    queue.position = protocol::decode_srq_next(at);
    // What was read beyond is of use only while the list runs through consecutive slots.
    if (queue.position != wqe.index + 1) break;
  }
  queue.fetched = static_cast<std::uint16_t>(queue.fetched + used);
  queue.record_fresh = false;
}

void RqUnit::arm_limit(RecvQueue& queue, std::uint32_t limit, Time t) {
  queue.limit = limit;
  check_limit(queue, t);
}

void RqUnit::check_limit(RecvQueue& queue, Time t) {
  if (queue.limit == 0 || queue.available() >= queue.limit) return;
  // More may have been posted since the record was read last.
  queue.limit_check = true;
  if (queue.fetching) {
    queue.record_outdated = true;
  } else {
    fetch(queue, t);
  }
}

void RqUnit::flush_one(QpContext& qp, const protocol::RecvWqe& recv, Time t) {
  protocol::Cqe cqe;
  cqe.kind = protocol::Cqe::Kind::kResponderError;
  cqe.status = protocol::WcStatus::kWrFlushError;
  cqe.vendor_syndrome = protocol::vendor_syndrome(cqe.status, false);
  cqe.qpn = qp.qpn;
  cqe.wqe_counter = recv.index;
  completion_queues->post(qp.recv_cqn, cqe, nullptr, t);
}

void RqUnit::flush(QpContext& qp, Time t) {
  RecvQueue& queue = *qp.rq;
  if (queue.shared()) {
    if (qp.recv_held) flush_one(qp, *qp.held, t);
    qp.recv_held = false;
    if (events.size() > 0) {
      events->raise({protocol::EventType::kQpLastWqeReached, qp.qpn}, t);
    }
    return;
  }
  while (!queue.wqes.empty()) {
    flush_one(qp, queue.wqes.front(), t);
    drop_front(queue);
  }
  // RECVs may have been posted since the record was read last.
  if (queue.known_posted() || !queue.record_fresh) fetch(queue, t);
}

void RqUnit::forget(QpContext& qp, Time t) {
  RecvQueue& own = qp.own_rq;
  while (!own.wqes.empty()) drop_front(own);
  own.producer = own.fetched = 0;
  own.read_failures = 0;
  own.failed = own.record_fresh = own.record_outdated = false;
  own.forsaken = own.fetching;
  own.waiters.resume_all(t);  // each finds the queue pair in RESET
}

}  // namespace rnic::nic
