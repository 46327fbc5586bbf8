// SPDX-License-Identifier: Apache-2.0
#include "nic/sq_scheduler.h"

#include <algorithm>

namespace rnic::nic {
namespace {

/// Packets that may be picked ahead of the scheduler's own pace before it waits for its clock.
constexpr std::int64_t kLookAheadPicks = 4;

}  // namespace

void SqScheduler::ContextWait::resume(Time now) {
  SqScheduler* owner = scheduler;
  QpContext& context = *qp;
  const bool is_response = response;
  owner->waits_.give(this);
  owner->give_slot(transmit_lane(context));  // the one kept for this packet
  owner->serve(context, is_response, now, true);
  owner->run(now);
}

SqScheduler::SqScheduler(const sc_core::sc_module_name& name, const config::NicConfig& config,
                         transport::Transport& transport, protocol::FramePool& frames,
                         Pool<TxJob>& jobs)
    : sc_module(name),
      transport_(transport),
      frames_(frames),
      jobs_(jobs),
      stage_(this->name(), config.scheduler, Clock(config.clock_hz)),
      slots_(config.tx_slots),
      look_ahead_(stage_.interval() * kLookAheadPicks),
      wake_("wake", this, &SqScheduler::wake),
      later_("later", this, &SqScheduler::response_due) {
  slots_free_.fill(slots_);
  scheduler.bind(*this);
}

void SqScheduler::enqueue(QpContext& qp, bool response) {
  bool& flag = response ? qp.response_ready : qp.request_ready;
  if (flag) return;
  flag = true;
  lanes_seen_ |= 1U << transmit_lane(qp);
  (response ? responses_ : requests_).push_back(&qp);
}

void SqScheduler::activate(QpContext& qp, Time t) {
  if (transport_.response_due(qp) && !postpone_response(qp)) enqueue(qp, true);
  if (qp.may_send()) enqueue(qp, false);
  run(std::max(t, sim_now()));
}

void SqScheduler::slot_freed(Time t, std::uint32_t lane) {
  give_slot(lane);
  end_stall(t);
  run(sim_now());
}

void SqScheduler::end_stall(Time now) {
  if (full_since_ == kTimeNever) return;
  stage_.stats().add_stall(stats::StallCause::kDownstreamFull,
                           std::max(now, full_since_) - full_since_);
  full_since_ = kTimeNever;
}

bool SqScheduler::postpone_response(QpContext& qp) {
  // Taking a place in the pipelines for a later time would keep others out until then.
  if (qp.responses.empty()) return false;
  const Time ready = qp.responses.front().ready;
  if (ready <= sim_now()) return false;
  if (!qp.response_later) {
    qp.response_later = true;
    later_.post(ready, &qp);
  }
  return true;
}

void SqScheduler::response_due(QpContext*& qp) {
  qp->response_later = false;
  if (!transport_.response_due(*qp) || postpone_response(*qp)) return;
  enqueue(*qp, true);
  run(sim_now());
}

void SqScheduler::wake(int& /*unused*/) {
  wake_at_ = kTimeNever;
  run(sim_now());
}

void SqScheduler::run(Time now) {
  if (running_) return;  // a pick may free a slot or activate others: the loop below sees it
  running_ = true;
  while (pick(now)) {
  }
  running_ = false;
}

bool SqScheduler::request_due(const QpContext& qp) {
  if (!qp.may_send()) return false;
  // With nothing decoded to send a pick makes sense when WQEs are to be fetched.
  return !transport::Transport::idle(qp) || (qp.sq_fetched != qp.sq_producer && !qp.sq_fetching);
}

/// Takes queue pairs off the head of `list` as long as their lanes are full.
void SqScheduler::park_blocked(Ring<QpContext*>& list, bool response) {
  while (!list.empty() && slots_free_[transmit_lane(*list.front())] == 0) {
    parked_[transmit_lane(*list.front())].push_back(Parked{list.front(), response});
    list.pop_front();
  }
}

void SqScheduler::give_slot(std::uint32_t lane) {
  if (slots_free_[lane]++ > 0) return;
  // Its queue pairs take their turns again, in the order in which they lost them.
  full_lanes_ &= ~(1U << lane);
  Ring<Parked>& waiting = parked_[lane];
  while (!waiting.empty()) {
    (waiting.front().response ? responses_ : requests_).push_back(waiting.front().qp);
    waiting.pop_front();
  }
}

bool SqScheduler::pick(Time now) {
  if (responses_.empty() && requests_.empty()) return false;
  if ((lanes_seen_ & ~full_lanes_) != 0) {
    park_blocked(responses_, true);
    park_blocked(requests_, false);
  }
  if ((lanes_seen_ & ~full_lanes_) == 0 || (responses_.empty() && requests_.empty())) {
    if (full_since_ == kTimeNever) full_since_ = now;
    return false;
  }
  end_stall(now);
  if (stage_.free_at() > sim_now() + look_ahead_) {
    const Time at = stage_.free_at() - look_ahead_;
    if (at < wake_at_) {
      wake_at_ = at;
      wake_.post(at, 0);
    }
    return false;
  }
  const bool response = requests_.empty() || (response_turn_ && !responses_.empty());
  Ring<QpContext*>& list = response ? responses_ : requests_;
  QpContext& qp = *list.front();
  list.pop_front();
  (response ? qp.response_ready : qp.request_ready) = false;
  if (response ? !transport_.response_due(qp) : !request_due(qp)) return true;
  response_turn_ = !response;  // who has nothing to send takes no turn
  serve(qp, response, now, false);
  return true;
}

void SqScheduler::serve(QpContext& qp, bool response, Time t, bool again) {
  if (!response && !request_due(qp)) return;
  if (!again) t = stage_.pass(t);
  qp.picked_at = t;
  ContextWait* wait = waits_.take();
  wait->scheduler = this;
  wait->qp = &qp;
  wait->response = response;
  if (!contexts->acquire(qp, response ? ContextRole::kResponder : ContextRole::kRequester, t, wait,
                         again)) {
    take_slot(qp);  // others must not fill the transmit path meanwhile
    return;
  }
  waits_.give(wait);
  qp.context_at = t;
  if (response) {
    serve_response(qp, t);
  } else {
    serve_request(qp, t);
  }
}

void SqScheduler::serve_response(QpContext& qp, Time t) {
  TxJob* job = jobs_.take();
  if (!transport_.plan_response(qp, t, job->plan)) {
    jobs_.give(job);
    return;
  }
  timer->update(qp);  // a stream transport's responses are acknowledged, too
  if (transport_.response_due(qp) && !postpone_response(qp)) enqueue(qp, true);
  start(qp, job, std::max(t, job->plan.not_before));
}

bool SqScheduler::key_operation(QpContext& qp, Time t) {
  transport::SendEntry* entry = qp.entry(qp.tx_number);
  if (entry == nullptr || !entry->wqe.is_key_operation() || entry->finished) return false;
  if (entry->issued || qp.state != protocol::QpState::kRts) return true;
  if (entry->wqe.fence) {
    for (std::uint64_t i = qp.sq_base; i < qp.tx_number; ++i) {
      const transport::SendEntry& before = *qp.entry(i);
      if ((before.wqe.is_read() || before.wqe.is_atomic()) && !before.finished) return true;
    }
  }
  entry->issued = true;
  entry->first_psn = qp.next_psn;
  entry->psn_count = 0;
  keys->execute(qp, qp.tx_number, t);
  return true;
}

void SqScheduler::serve_request(QpContext& qp, Time t) {
  if (keys.size() > 0 && key_operation(qp, t)) return;
  TxJob* job = jobs_.take();
  const transport::PlanStatus status = transport_.plan_request(qp, t, job->plan);
  if (status == transport::PlanStatus::kPlanned) {
    enqueue(qp, false);
    mark_pick(qp, job->plan);
    timer->update(qp);
    start(qp, job, t);
    wqes->fetch(qp, t);  // keep the queue of decoded WQEs filled while sending
    return;
  }
  jobs_.give(job);
  if (status == transport::PlanStatus::kNoWqe) wqes->fetch(qp, t);
  if (status == transport::PlanStatus::kDelayed) timer->update(qp);
  if (status == transport::PlanStatus::kBlocked) retire_failed(qp, t);
}

/// Work that was refused before it was sent completes once all before it has.
void SqScheduler::retire_failed(QpContext& qp, Time t) {
  const transport::SendEntry* entry = qp.entry(qp.tx_number);
  if (entry != nullptr && entry->finished && qp.tx_number == qp.sq_base) completion->retire(qp, t);
}

void SqScheduler::mark_pick(QpContext& qp, const transport::TxPlan& plan) const {
  if (plan.is_response || (plan.message_offset > 0 && !plan.last)) return;
  // Only the last packet carries the trace; the first one ends the wait in the send queue.
  stats::MessageTrace* trace = plan.trace;
  if (trace == nullptr) {
    const transport::SendEntry* entry = qp.entry(plan.entry_number);
    trace = entry != nullptr ? entry->trace : nullptr;
  }
  if (trace == nullptr) return;
  const bool first = plan.message_offset == 0;
  trace->mark(first ? stats::Stage::kSqWait : stats::Stage::kSegmentation,
              qp.picked_at - stage_.latency());
  trace->mark(stats::Stage::kSqSchedule, qp.picked_at);
  trace->mark(stats::Stage::kQpContext, qp.context_at);
}

void SqScheduler::start(QpContext& qp, TxJob* job, Time t) {
  take_slot(qp);
  job->qp = &qp;
  job->next = nullptr;
  job->piece = 0;
  job->filled = 0;
  job->reads_pending = 0;
  job->all_issued = false;
  job->ready = false;
  job->failed = false;
  job->frame = frames_.take();
  job->frame->trace = job->plan.trace;
  job->frame->payload_bytes = job->plan.length;
  if (qp.tx_tail != nullptr) {
    qp.tx_tail->next = job;
  } else {
    qp.tx_head = job;
  }
  qp.tx_tail = job;
  transmit->gather(job, t);
}

}  // namespace rnic::nic
