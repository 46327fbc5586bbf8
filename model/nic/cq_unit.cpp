// SPDX-License-Identifier: Apache-2.0
#include "nic/cq_unit.h"

#include <algorithm>

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::nic {

CqUnit::CqUnit(const sc_core::sc_module_name& name, const QpTable* queue_pairs)
    : sc_module(name), queue_pairs_(queue_pairs), periods_("periods", this, &CqUnit::period_over) {
  completion_queues.bind(*this);
}

void CqUnit::create(const protocol::CreateCqCommand& create) {
  if (create.cqn >= queues_.size()) queues_.resize(std::size_t{create.cqn} + 1);
  Queue& queue = queues_[create.cqn];
  queue = Queue{};
  queue.number = create.cqn;
  queue.ring_address = create.ring_address;
  queue.log_entries = create.log_entries;
  queue.doorbell_record = create.doorbell_record;
  queue.eqn = create.eqn;
  queue.ignore_overrun = create.ignore_overrun;
  if (contexts_ != nullptr) contexts_->created(create.cqn, sim_now());
}

CqUnit::Queue* CqUnit::find(std::uint32_t cqn) {
  if (cqn >= queues_.size() || queues_[cqn].ring_address == 0) return nullptr;
  return &queues_[cqn];
}

bool CqUnit::modify(const protocol::ModifyCqCommand& modify) {
  Queue* queue = find(modify.cqn);
  if (queue == nullptr) return false;
  queue->event_count = modify.event_count;
  queue->event_period = microseconds(modify.event_period_us);
  return true;
}

bool CqUnit::resize(const protocol::ResizeCqCommand& resize) {
  Queue* queue = find(resize.cqn);
  if (queue == nullptr || queue->failed) return false;
  queue->ring_address = resize.ring_address;
  queue->log_entries = resize.log_entries;
  queue->next_check = queue->producer;
  return true;
}

bool CqUnit::destroy(std::uint32_t cqn) {
  Queue* queue = find(cqn);
  if (queue == nullptr) return false;
  queue->ring_address = 0;
  queue->armed = Armed::kNo;
  return true;
}

void CqUnit::post(std::uint32_t cqn, const protocol::Cqe& cqe, stats::MessageTrace* trace, Time t) {
  Queue* queue = find(cqn);
  if (queue == nullptr) panic(name(), "unknown CQ");
  if (queue->failed) return;
  if (!queue->ignore_overrun && !has_room(*queue, t)) {
    queue->held.push_back({cqe, trace});
    return;
  }
  write(*queue, cqe, trace, t);
}

bool CqUnit::has_room(Queue& queue, Time t) {
  const std::uint32_t entries = 1U << queue.log_entries;
  const std::uint32_t used = queue.producer - queue.consumer;
  const bool room = queue.held.empty() && used < entries;
  if (queue.checking) {
    queue.outdated |= !room;
  } else if (!room) {
    check(queue, t);
  } else if (used * 2 >= entries &&
             static_cast<std::int32_t>(queue.producer - queue.next_check) >= 0) {
    queue.next_check = queue.producer + std::max(1U, entries / 4);
    check(queue, t);
  }
  return room;
}

void CqUnit::write(Queue& queue, const protocol::Cqe& cqe, stats::MessageTrace* trace, Time t) {
  Job* job = jobs_.take();
  protocol::Cqe stamped = cqe;
  stamped.owner = ((queue.producer >> queue.log_entries) & 1) != 0;
  protocol::encode_cqe(stamped, job->bytes.data());
  job->trace = trace;
  job->delivery = cqe.is_responder();
  job->check = false;
  const std::uint32_t slot = queue.producer & ((1U << queue.log_entries) - 1);
  ++queue.producer;
  ++written_;
  job->unit = this;
  job->cqn = queue.number;
  job->address = queue.ring_address + std::uint64_t{slot} * protocol::kCqeBytes;
  go_on(*job, t, false);
  const bool solicited = cqe.solicited || cqe.is_error();
  if (solicited) queue.solicited_end = queue.producer;
  if (queue.armed == Armed::kNo) return;
  if (cqe.is_error()) {
    fire(queue, t);  // nobody is to wait for the news of a failure
  } else if (queue.armed == Armed::kAny || solicited) {
    count_for_event(queue, 1, t);
  }
}

void CqUnit::check(Queue& queue, Time t) {
  Job* job = jobs_.take();
  job->check = true;
  job->cqn = queue.number;
  queue.checking = true;
  queue.outdated = false;
  dma->dma_read(t, queue.doorbell_record, protocol::DoorbellRecord::kBytes, job->bytes.data(),
                tlm_ext::Purpose::kDoorbellRecord, this, reinterpret_cast<std::uint64_t>(job));
}

void CqUnit::checked(Queue& queue, std::uint32_t consumer, Time now) {
  queue.checking = false;
  queue.consumer = consumer;
  const std::uint32_t entries = 1U << queue.log_entries;
  while (!queue.held.empty() && queue.producer - queue.consumer < entries) {
    const Held held = queue.held.front();
    queue.held.pop_front();
    write(queue, held.cqe, held.trace, now);
  }
  if (queue.held.empty()) return;
  if (queue.outdated) {
    check(queue, now);
  } else {
    ++overruns_;
    lose(queue, now);
  }
}

/// The queue takes no more completions; its queue pairs could not report theirs.
void CqUnit::lose(Queue& queue, Time now) {
  if (queue.failed) return;
  queue.failed = true;
  queue.held.clear();
  queue.armed = Armed::kNo;
  if (events.size() > 0) events->raise({protocol::EventType::kCqError, queue.number}, now);
  if (queue_pairs_ == nullptr) return;
  const std::uint32_t cqn = queue.number;
  for (std::uint32_t qpn = 0; qpn < queue_pairs_->size(); ++qpn) {
    QpContext* qp = queue_pairs_->find(qpn);
    if (qp == nullptr || (qp->send_cqn != cqn && qp->recv_cqn != cqn)) continue;
    completion->fail_fatally(*qp, now);
  }
}

void CqUnit::arm(const protocol::CqArmDoorbell& doorbell, Time t) {
  Queue* queue = find(doorbell.cqn);
  if (queue == nullptr || queue->failed) return;
  if (!doorbell.solicited_only) {
    queue->armed = Armed::kAny;
  } else if (queue->armed == Armed::kNo) {
    queue->armed = Armed::kSolicited;
  }
  // Completions that came while the doorbell was on its way must not go unnoticed.
  const std::uint32_t end = queue->armed == Armed::kAny ? queue->producer : queue->solicited_end;
  const auto missed = static_cast<std::int32_t>(end - doorbell.consumer);
  queue->pending = 0;
  if (missed > 0) count_for_event(*queue, static_cast<std::uint32_t>(missed), t);
}

void CqUnit::count_for_event(Queue& queue, std::uint32_t completions, Time t) {
  queue.pending += completions;
  if (queue.pending >= queue.event_count) {
    fire(queue, t);
  } else if (queue.event_period > kTimeZero && !queue.timer_set) {
    queue.timer_set = true;
    periods_.post(std::max(t, sim_now()) + queue.event_period, queue.number);
  }
}

void CqUnit::fire(Queue& queue, Time t) {
  queue.armed = Armed::kNo;
  queue.pending = 0;
  if (events.size() > 0) events->notify(queue.eqn, queue.number, t);
}

void CqUnit::period_over(std::uint32_t& cqn) {
  Queue& queue = queues_[cqn];
  queue.timer_set = false;
  if (queue.armed != Armed::kNo && queue.pending > 0) fire(queue, sim_now());
}

void CqUnit::go_on(Job& job, Time t, bool again) {
  if (again && !usable(job.cqn)) {  // its context could not be read
    jobs_.give(&job);
    return;
  }
  // CQEs of a queue stay in order: those behind a miss wait in the same list.
  if (contexts_ != nullptr && !contexts_->acquire(job.cqn, t, &job, again)) return;
  dma->dma_write(t, job.address, protocol::kCqeBytes, job.bytes.data(), tlm_ext::Purpose::kCqe,
                 this, reinterpret_cast<std::uint64_t>(&job));
}

bool CqUnit::usable(std::uint32_t cqn) {
  const Queue* queue = find(cqn);
  return queue != nullptr && !queue->failed;
}

void CqUnit::line_unreadable(const LineFetch& line, Time now) {
  if (Queue* queue = find(CqContextCache::number_of(line))) lose(*queue, now);
}

void CqUnit::dma_failed(const pcie::DmaFault& fault) {
  auto* job = reinterpret_cast<Job*>(fault.token);
  const std::uint32_t cqn = job->cqn;
  jobs_.give(job);
  if (Queue* queue = find(cqn)) {
    queue->checking = false;
    lose(*queue, sim_now());
  }
}

void CqUnit::set_contexts(CqContextCache* contexts) {
  contexts_ = contexts;
  contexts_->cache().set_fault_client(this);
}

void CqUnit::dma_done(std::uint64_t token) {
  auto* job = reinterpret_cast<Job*>(token);
  if (job->check) {
    const std::uint32_t consumer = protocol::load_be32(job->bytes.data());
    const std::uint32_t cqn = job->cqn;
    jobs_.give(job);
    if (Queue* queue = find(cqn)) checked(*queue, consumer, sim_now());
    return;
  }
  if (job->trace != nullptr) {
    if (job->delivery) {
      job->trace->mark_delivery(stats::Stage::kCompletion, sim_now());
    } else {
      job->trace->mark_return(stats::Stage::kCompletion, sim_now());
    }
  }
  jobs_.give(job);
}

}  // namespace rnic::nic
