// SPDX-License-Identifier: Apache-2.0
#include "nic/sq_scheduler.h"

#include <algorithm>

namespace rnic::nic {
void SqScheduler::ContextWait::resume(Time now) {
  SqScheduler* owner = scheduler;
  QpContext& context = *qp;
  const bool is_response = response;
  const std::uint32_t kept = lane;
  // The next one to ask, if it is this queue pair again, goes on where it stands
  // (Waiter::progress).
  if (owner->next_wait_ != nullptr) owner->waits_.give(owner->next_wait_);
  owner->next_wait_ = this;
  owner->give_slot(kept, 0);
  if (!owner->full(transmit_lane(context))) {
    owner->serve(context, is_response, now, true);
  } else {
    // A datagram that came meanwhile goes by another lane.
    owner->enqueue(context, is_response, now);
  }
  owner->run();
}

SqScheduler::SqScheduler(const sc_core::sc_module_name& name, const config::NicConfig& config,
                         transport::Transport& transport, protocol::FramePool& frames,
                         Pool<TxJob>& jobs, bool limits_rates)
    : sc_module(name),
      transport_(transport),
      frames_(frames),
      jobs_(jobs),
      stage_(this->name(), config.scheduler, Clock(config.clock_hz)),
      by_role_(config.qpc_read_entries > 0),
      answers_need_context_(config.answers_need_context),
      request_rate_(config.qp_rate),
      message_time_(config.qp_message_time),
      request_engine_(request_rate_.valid() || message_time_ > kTimeZero),
      holds_back_(request_engine_ || limits_rates),
      read_rate_(config.read_engine_rate),
      read_time_(config.read_engine_time),
      read_engine_(read_rate_.valid() || read_time_ > kTimeZero),
      granule_(config.fetch_granule),
      slots_(config.tx_slots),
      buffer_(config.tx_buffer),
      messages_(config.message_rate, config.scheduler, Clock(config.clock_hz)),
      look_ahead_(stage_.interval() * static_cast<std::int64_t>(config.scheduler_look_ahead)),
      requests_(config.sq_scheduler, config.sq_weights),
      wake_("wake", this, &SqScheduler::wake),
      later_("later", this, &SqScheduler::response_due),
      paced_("paced", this, &SqScheduler::request_due_later) {
  slots_free_.fill(slots_);
  scheduler.bind(*this);
}

/// `from`: what made it ready may lie a little ahead, behind the pipelines that found it out.
void SqScheduler::enqueue(QpContext& qp, bool response, Time from) {
  bool& flag = response ? qp.response_ready : qp.request_ready;
  Time& since = response ? qp.response_from : qp.request_from;
  if (flag) {
    since = std::min(since, from);
    return;
  }
  flag = true;
  since = from;
  if (idle_since_ != kTimeNever) {
    idle_before_ += sim_now() - idle_since_;
    idle_since_ = kTimeNever;
  }
  lanes_seen_ |= 1U << transmit_lane(qp);
  (response ? responses_ : requests_).push_back(&qp);
}

void SqScheduler::activate(QpContext& qp, Time t) {
  const bool answers = transport_.response_due(qp) && !postpone_response(qp);
  const bool asks = qp.request_ready || (request_due(qp) && !out_of_read_slots(qp));
  if (answers) enqueue(qp, true, t);
  if (asks) enqueue(qp, false, t);
  if (answers || asks) run();
}

Time SqScheduler::idle_time() const {
  return idle_before_ + (idle_since_ == kTimeNever ? kTimeZero : sim_now() - idle_since_);
}

void SqScheduler::slot_freed(Time t, std::uint32_t lane) {
  std::uint32_t bytes = 0;
  if (Ring<std::uint32_t>& sent = under_way_[lane]; !sent.empty()) {
    bytes = sent.front();
    sent.pop_front();
  }
  const bool stalled = full_since_ != kTimeNever;
  const bool awaited = give_slot(lane, bytes);
  if (!awaited && !stalled) return;  // nobody's turn depends on it
  end_stall(t);
  run();
}

void SqScheduler::end_stall(Time now) {
  if (full_since_ == kTimeNever) return;
  stage_.stats().add_stall(stats::StallCause::kDownstreamFull,
                           std::max(now, full_since_) - full_since_);
  full_since_ = kTimeNever;
}

bool SqScheduler::postpone_response(QpContext& qp) {
  // Taking a place in the pipelines for a later time would keep others out until then.
  if (qp.cnp_due || qp.responses.empty()) return false;
  const transport::ResponseEntry& first = qp.responses.front();
  Time ready = first.ready;
  if (first.kind == transport::ResponseEntry::Kind::kReadResponse) {
    ready = std::max(ready, qp.response_free_at);
  }
  if (ready <= sim_now()) return false;
  if (qp.granule_open != 0) close_granule(qp, sim_now());
  if (!qp.response_later) {
    qp.response_later = true;
    later_.post(ready, &qp);
  }
  return true;
}

void SqScheduler::response_due(QpContext*& qp) {
  qp->response_later = false;
  if (!transport_.response_due(*qp) || postpone_response(*qp)) return;
  enqueue(*qp, true, sim_now());
  run();
}

/// Its engine is busy, its next WQE waits for the decoder, or for a connection.
bool SqScheduler::postpone_request(QpContext& qp) {
  Time ready = qp.request_free_at;
  if (connections_ != nullptr && qp.tx_offset == 0) {
    ready = std::max(ready, connections_->ready(qp, sim_now()));
    if (ready == kTimeNever) return true;  // an answer activates it
  }
  if (const transport::SendEntry* next = qp.entry(qp.tx_number)) {
    ready = std::max(ready, next->decode_start - look_ahead_);
  }
  if (ready <= sim_now()) return false;
  if (qp.granule_open != 0) close_granule(qp, sim_now());
  if (!qp.request_later) {
    qp.request_later = true;
    paced_.post(ready, &qp);
  }
  return true;
}

void SqScheduler::request_due_later(QpContext*& qp) {
  qp->request_later = false;
  if (qp->state == protocol::QpState::kRts) enqueue(*qp, false, sim_now());
  run();
}

void SqScheduler::wake(int& /*unused*/) {
  wake_at_ = kTimeNever;
  run();
}

void SqScheduler::run() {
  if (running_) return;  // a pick may free a slot or activate others: the loop below sees it
  running_ = true;
  while (pick()) {
  }
  running_ = false;
}

bool SqScheduler::request_due(const QpContext& qp) {
  if (!qp.may_send()) return false;
  // With nothing decoded to send a pick makes sense when WQEs are to be fetched.
  return !transport::Transport::idle(qp) || (qp.sq_fetched != qp.sq_producer && qp.sq_fetches == 0);
}

/// Takes queue pairs off the head of `list` as long as their lanes are full.
void SqScheduler::park_all_blocked(SendTurns& list, bool response, Time now) {
  while (!list.empty() && full(transmit_lane(*list.front()))) {
    if (list.front()->granule_open != 0) close_granule(*list.front(), now);
    parked_[transmit_lane(*list.front())].push_back(Parked{list.front(), response});
    list.pop_front();
  }
}

bool SqScheduler::give_slot(std::uint32_t lane, std::uint32_t bytes) {
  ++slots_free_[lane];
  taken_[lane] -= bytes;
  if (!full(lane) || no_room(lane)) return false;
  // Its queue pairs take their turns again, in the order in which they lost them.
  full_lanes_ &= ~(1U << lane);
  Ring<Parked>& waiting = parked_[lane];
  while (!waiting.empty()) {
    (waiting.front().response ? responses_ : requests_).push_back(waiting.front().qp);
    waiting.pop_front();
  }
  return true;
}

Time SqScheduler::earliest_pick(const QpContext& qp, bool response) {
  const Time now = sim_now();
  if (response) return std::max(now, qp.response_from);
  const Time from = std::max(now, qp.request_from);
  if (qp.sq_decoded <= from) return from;
  const transport::SendEntry* next = qp.entry(qp.tx_number);
  return next == nullptr ? from : std::max(from, next->decode_start);
}

bool SqScheduler::pick() {
  if (responses_.empty() && requests_.empty()) {
    if (idle_since_ == kTimeNever && full_lanes_ == 0) idle_since_ = sim_now();
    return false;
  }
  const Time now = sim_now();
  if ((lanes_seen_ & ~full_lanes_) != 0) {
    park_blocked(responses_, true, now);
    park_blocked(requests_, false, now);
  }
  if ((lanes_seen_ & ~full_lanes_) == 0 || (responses_.empty() && requests_.empty())) {
    // Packets that wait for others of their granule would wait for ever.
    while (!open_granules_.empty()) close_granule(*open_granules_.back(), now);
    if (full_since_ == kTimeNever) full_since_ = now;
    return false;
  }
  end_stall(now);
  const bool response = requests_.empty() || (response_turn_ && !responses_.empty());
  SendTurns& list = response ? responses_ : requests_;
  QpContext& qp = *list.front();
  const Time ready = earliest_pick(qp, response);
  // Behind the packet of this queue pair that was picked before, which may lie ahead.
  const Time from = std::max(ready, qp.picked_at - stage_.latency());
  if (const Time start = stage_.start_of(from); start > ready + look_ahead_) {
    const Time at = start - look_ahead_;
    if (at < wake_at_) {
      wake_at_ = at;
      wake_.post(at, 0);
    }
    return false;
  }
  list.pop_front();
  (response ? qp.response_ready : qp.request_ready) = false;
  if (response ? !transport_.response_due(qp) : !request_due(qp)) {
    if (qp.granule_open != 0) close_granule(qp, now);
    return true;
  }
  const bool may_wait = holds_back_ || qp.sq_decoded > now;
  if (!response && may_wait && postpone_request(qp)) return true;
  response_turn_ = !response;  // who has nothing to send takes no turn
  serve(qp, response, from, false);
  return true;
}

void SqScheduler::serve(QpContext& qp, bool response, Time t, bool again) {
  if (!response && !request_due(qp)) return;
  if (!again) t = stage_.pass(t);
  qp.picked_at = t;
  if (response && !answers_need_context_) {
    qp.context_at = t = contexts->pass(t);
    serve_response(qp, t);
    return;
  }
  if (next_wait_ == nullptr) next_wait_ = waits_.take();
  next_wait_->scheduler = this;
  next_wait_->qp = &qp;
  next_wait_->response = response;
  if (!contexts->acquire(qp, role_of(qp, response), t, next_wait_, again)) {
    next_wait_->lane = transmit_lane(qp);
    take_slot(next_wait_->lane, 0);  // others must not fill the transmit path meanwhile
    next_wait_ = nullptr;
    return;
  }
  qp.context_at = t;
  if (response) {
    serve_response(qp, t);
  } else {
    serve_request(qp, t);
  }
}

void SqScheduler::serve_response(QpContext& qp, Time t) {
  messages_.pass_other();
  TxJob* job = jobs_.take();
  if (!transport_.plan_response(qp, t, job->plan)) {
    jobs_.give(job);
    return;
  }
  timer->update(qp);  // a stream transport's responses are acknowledged, too
  if (read_engine_ && job->plan.payload == transport::TxPlan::Payload::kRemote) {
    const Time needed = (read_rate_.valid() ? read_rate_.time_for(job->plan.length) : kTimeZero) +
                        (job->plan.last ? read_time_ : kTimeZero);
    qp.response_free_at = std::max(qp.response_free_at, sim_now()) + needed;
    qp.engine_busy += needed;
  }
  if (qp.rate != nullptr && job->plan.payload == transport::TxPlan::Payload::kRemote) {
    qp.response_free_at =
        std::max(qp.response_free_at, sim_now()) + qp.rate->send(job->plan.length, sim_now());
  }
  if (transport_.response_due(qp) && !postpone_response(qp)) {
    enqueue(qp, true, qp.response_from);
  }
  start(qp, job, std::max(t, job->plan.not_before));
}

bool SqScheduler::key_operation(QpContext& qp, Time t) {
  transport::SendEntry* entry = qp.entry(qp.tx_number);
  if (entry == nullptr || !entry->wqe.is_key_operation() || entry->finished) return false;
  if (entry->issued || qp.state != protocol::QpState::kRts) return true;
  // Work before it may still use the key, when it is resent or answered (Linux, rxe_req.c).
  if (entry->wqe.opcode == protocol::WqeOpcode::kLocalInval && qp.tx_number != qp.sq_base) {
    return true;
  }
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
  // The WQE may have come since the pick, while the context was being fetched.
  if (connections_ != nullptr && postpone_request(qp)) return;
  if (keys.size() > 0 && key_operation(qp, t)) return;
  TxJob* job = jobs_.take();
  const transport::PlanStatus status = transport_.plan_request(qp, t, job->plan);
  if (status == transport::PlanStatus::kPlanned) {
    if (qp.hold != transport::Hold::kNone) end_hold(qp);
    if (request_engine_) {
      const Time needed =
          (request_rate_.valid() ? request_rate_.time_for(job->plan.length) : kTimeZero) +
          (job->plan.last ? message_time_ : kTimeZero);
      qp.request_free_at = std::max(qp.request_free_at, sim_now()) + needed;
      qp.engine_busy += needed;
    }
    if (qp.rate != nullptr) {
      qp.request_free_at =
          std::max(qp.request_free_at, sim_now()) + qp.rate->send(job->plan.length, sim_now());
    }
    if (job->plan.message_offset == 0 && !job->plan.goes_on) {
      messages_.pass_message(stage_, t);
    } else {
      messages_.pass_other();
    }
    if (!out_of_read_slots(qp)) enqueue(qp, false, qp.request_from);
    mark_pick(qp, job->plan);
    timer->update(qp);
    start(qp, job, t);
    wqes->fetch(qp, t);  // keep the queue of decoded WQEs filled while sending
    return;
  }
  jobs_.give(job);
  if (qp.granule_open != 0) close_granule(qp, t);
  if (status == transport::PlanStatus::kNoWqe) wqes->fetch(qp, t);
  if (status == transport::PlanStatus::kDelayed) timer->update(qp);
  if (status == transport::PlanStatus::kBlocked) retire_failed(qp, t);
  if (status != transport::PlanStatus::kNoWqe) begin_hold(qp);
}

/// A turn would be in vain: the response that frees a slot activates it.
bool SqScheduler::out_of_read_slots(QpContext& qp) {
  if (!transport::Transport::waits_for_read_slot(qp)) return false;
  begin_hold(qp);
  return true;
}

void SqScheduler::begin_hold(QpContext& qp) {
  if (qp.hold != transport::Hold::kNone) {
    // Whatever it waited for, an RNR NAK that has come meanwhile is what it waits for now.
    const bool refused = qp.rnr_until > sim_now();
    if (!refused || qp.hold == transport::Hold::kReceiverNotReady) return;
    end_hold(qp);
  }
  qp.hold = transport_.held_by(qp, sim_now());
  qp.held_since = sim_now();
}

void SqScheduler::end_hold(QpContext& qp) {
  held_[static_cast<std::size_t>(qp.hold)] += sim_now() - std::max(qp.held_since, counted_from_);
  qp.hold = transport::Hold::kNone;
}

void SqScheduler::reset_statistics(Time now) {
  stage_.stats().reset(now);
  held_.fill(kTimeZero);
  counted_from_ = now;
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
  const bool first = plan.message_offset == 0 && !plan.goes_on;
  trace->mark(first ? stats::Stage::kSqWait : stats::Stage::kSegmentation,
              qp.picked_at - stage_.latency());
  trace->mark(stats::Stage::kSqSchedule, qp.picked_at);
  trace->mark(stats::Stage::kQpContext, qp.context_at);
}

void SqScheduler::start(QpContext& qp, TxJob* job, Time t) {
  job->lane = transmit_lane(qp, job->plan.entry_number);
  take_slot(job->lane, job->plan.length);
  if (buffer_ != 0) under_way_[job->lane].push_back(job->plan.length);
  job->qp = &qp;
  job->next = nullptr;
  job->piece = 0;
  job->filled = 0;
  job->reads_pending = 0;
  job->all_issued = false;
  job->ready = false;
  job->failed = job->dropped = job->continued = false;
  job->frame = frames_.take();
  job->frame->trace = job->plan.trace;
  job->frame->payload_bytes = job->plan.length;
  if (qp.tx_tail != nullptr) {
    qp.tx_tail->next = job;
  } else {
    qp.tx_head = job;
  }
  qp.tx_tail = job;
  if (granule_ > 0) note_granule(qp, *job);
  transmit->gather(job, t);
}

ContextRole SqScheduler::role_of(QpContext& qp, bool response) const {
  if (!by_role_) return response ? ContextRole::kResponder : ContextRole::kRequester;
  if (response) {
    using Kind = transport::ResponseEntry::Kind;
    const bool read = !qp.responses.empty() && (qp.responses.front().kind == Kind::kReadResponse ||
                                                qp.responses.front().kind == Kind::kAtomicResponse);
    return read ? ContextRole::kResponderRead : ContextRole::kResponder;
  }
  const transport::SendEntry* entry = qp.entry(qp.tx_number);
  const bool read = entry != nullptr && (entry->wqe.is_read() || entry->wqe.is_atomic());
  return read ? ContextRole::kRequesterRead : ContextRole::kRequester;
}

void SqScheduler::note_granule(QpContext& qp, TxJob& job) {
  const transport::TxPlan& plan = job.plan;
  const bool fetched = plan.payload == transport::TxPlan::Payload::kLocal ||
                       plan.payload == transport::TxPlan::Payload::kRemote;
  const std::uint64_t next = std::uint64_t{plan.message_offset} + plan.length;
  if (!fetched) return;
  job.continued = !plan.last && next / granule_ == plan.message_offset / granule_;
  const auto stream = static_cast<std::uint8_t>(plan.is_response ? 2 : 1);
  const std::uint8_t before = qp.granule_open;
  qp.granule_open = static_cast<std::uint8_t>(job.continued ? before | stream : before & ~stream);
  if (before == 0 && qp.granule_open != 0) open_granules_.push_back(&qp);
  if (before != 0 && qp.granule_open == 0) {
    open_granules_.erase(std::find(open_granules_.begin(), open_granules_.end(), &qp));
  }
}

void SqScheduler::close_granule(QpContext& qp, Time t) {
  qp.granule_open = 0;
  open_granules_.erase(std::find(open_granules_.begin(), open_granules_.end(), &qp));
  transmit->close_granule(qp, t);
}

}  // namespace rnic::nic
