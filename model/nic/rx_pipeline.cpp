// SPDX-License-Identifier: Apache-2.0
#include "nic/rx_pipeline.h"

#include "base/sc_time.h"
#include "nic/responder.h"

namespace rnic::nic {

void RxJob::resume(Time now) {
  if (responder != nullptr) {
    responder->resume(this, now);
  } else {
    pipeline->resume(this, now);
  }
}

RxPipeline::RxPipeline(const sc_core::sc_module_name& name, const config::NicConfig& config,
                       transport::Transport& transport,
                       const transport::Encapsulation& encapsulation, const QpTable& queue_pairs,
                       protocol::FramePool& frames, const config::StageConfig* extra)
    : sc_module(name),
      transport_(transport),
      encapsulation_(encapsulation),
      queue_pairs_(queue_pairs),
      frames_(frames),
      by_role_(config.qpc_layout == config::QpcLayout::kByRole || config.qpc_read_entries > 0 ||
               config.qpc_cache.split),
      answers_need_context_(config.answers_need_context),
      looks_ahead_(config.translation_order == config::TranslationOrder::kFree),
      clock_(config.clock_hz),
      stage_(this->name(), config.rx_parse, clock_),
      crc_rate_(config.mpa_crc_rate),
      gap_time_(config.uc_gap_time),
      turns_("turns", this, &RxPipeline::turn_comes) {
  pipeline.bind(*this);
  if (extra != nullptr) {
    engine_ =
        std::make_unique<PipelineStage>(std::string(this->name()) + ".tcp_engine", *extra, clock_);
  }
}

void RxPipeline::drop(protocol::Frame* frame, std::uint64_t& counter, Time t) {
  ++counter;
  port->release(*frame, t);
  frames_.give(frame);
}

std::uint64_t& RxPipeline::counter_of(transport::TrailerStatus status) {
  switch (status) {
    case transport::TrailerStatus::kIpChecksum:
      return drops_.ip_checksum;
    case transport::TrailerStatus::kTcpChecksum:
      return drops_.tcp_checksum;
    case transport::TrailerStatus::kInnerCrc:
      return drops_.inner_crc;
    case transport::TrailerStatus::kLinkCrc:
    case transport::TrailerStatus::kOk:
      break;
  }
  return drops_.link_crc;
}

void RxPipeline::frame_arrived(protocol::Frame* frame, Time now) {
  Time t = stage_.pass(clock_.next_edge(now));
  if (!frame->checksums_deferred) {
    const transport::TrailerStatus status = encapsulation_.check_trailer(*frame);
    if (status != transport::TrailerStatus::kOk) {
      drop(frame, counter_of(status), t);
      return;
    }
  }
  if (now >= silent_from_) {
    drop(frame, drops_.silent, t);
    return;
  }
  const std::uint32_t qpn = transport_.destination(*frame);
  QpContext* qp = qpn == 0 ? nullptr : queue_pairs_.find(qpn);
  if (qp == nullptr) {
    if (!take_for_group(frame, t)) drop(frame, drops_.not_mine, t);
    return;
  }
  if (!qp->can_receive()) {
    drop(frame, drops_.bad_state, t);
    return;
  }
  if (engine_ != nullptr) {
    t = engine_->pass(t);
    if (crc_rate_.valid()) t = stage_.occupy(t, crc_rate_.time_for(frame->payload_bytes));
  }
  take(*qp, frame, t);
}

/// Each queue pair of the group gets a copy, but for the one that sent it (as if it were not
/// attached: its application knows what it has sent).
bool RxPipeline::take_for_group(protocol::Frame* frame, Time t) {
  if (groups_ == nullptr || groups_->empty()) return false;
  const transport::Transport::GroupAddress address = transport_.group_of(*frame);
  const MulticastGroups::Members* members = groups_->find(address.group);
  if (members == nullptr) return false;
  QpContext* first = nullptr;
  for (const std::uint32_t qpn : *members) {
    QpContext* qp = queue_pairs_.find(qpn);
    if (qp == nullptr || qpn == address.source_qpn || !qp->can_receive()) continue;
    if (first == nullptr) {
      first = qp;
      continue;
    }
    protocol::Frame* copy = frames_.take();
    protocol::copy_frame(*frame, *copy);
    copy->uncounted = true;  // the original has the place in the port's buffer
    take(*qp, copy, t);
  }
  if (first == nullptr) return false;
  take(*first, frame, t);
  return true;
}

void RxPipeline::take(QpContext& receiver, protocol::Frame* frame, Time t) {
  QpContext* const qp = &receiver;
  RxJob* job = jobs_.take();
  job->qp = qp;
  job->frame = frame;
  job->next = nullptr;
  job->pipeline = this;
  job->responder = nullptr;
  job->wants_wqe = false;
  job->arrived = t;
  job->came = sim_now();
  job->in_port_buffer = true;
  job->expected = job->forsaken = false;
  const bool first = qp->rx_head == nullptr;
  // While held frames are executed, what arrives joins them in the reorder buffer.
  const bool joins = !first && (qp->early != nullptr || !qp->rx_tail->in_port_buffer);
  if (first) {
    qp->rx_head = job;
  } else {
    qp->rx_tail->next = job;
  }
  qp->rx_tail = job;
  if (first) {
    process(job, t, false);
    return;
  }
  if (joins) release_buffer(job, t);
  if (looks_ahead_) expect_next(*qp, t);
}

/// Tells of the packets behind the one in work what they will need, a few ahead: what is fetched
/// for more would give way before its turn in a small cache.
void RxPipeline::expect_next(const QpContext& qp, Time t) {
  constexpr int kAhead = 4;
  if (qp.rx_head == nullptr) return;
  RxJob* job = qp.rx_head->next;
  for (int i = 0; i < kAhead && job != nullptr; ++i, job = job->next) {
    if (job->expected) continue;
    job->expected = true;
    responder->expect(*job, t);
  }
}

void RxPipeline::resume(RxJob* job, Time now) {
  if (!job->wants_wqe) {
    process(job, now, true);
  } else if (wqe_here(job, now, true)) {
    // An answer that waited for its WQE takes another turn in the pipeline.
    responder->execute(job, contexts->pass(now));
  }
}

ContextRole RxPipeline::role_of(const RxJob& job) const {
  if (!by_role_) return ContextRole::kResponder;
  const transport::FrameUse use = transport_.use_of(*job.frame);
  if (use.for_requester) {
    return use.read ? ContextRole::kRequesterRead : ContextRole::kRequester;
  }
  return use.read ? ContextRole::kResponderRead : ContextRole::kResponder;
}

void RxPipeline::set_wqe_cache(WqeCache* cache) {
  wqe_cache_ = cache;
  wqe_cache_->cache().set_fault_client(this);
}

/// A READ or atomic whose WQE cannot be read again, so that nobody knows where its answer belongs.
void RxPipeline::line_unreadable(const LineFetch& line, Time now) {
  QpContext* qp = queue_pairs_.find(WqeCache::sender_of(line));
  if (qp != nullptr) completion->fail_fatally(*qp, now);
}

bool RxPipeline::wqe_here(RxJob* job, Time t, bool again) {
  const transport::RxPlan& plan = job->plan;
  if (plan.action != transport::RxPlan::Action::kReadResponse &&
      plan.action != transport::RxPlan::Action::kAtomicResponse) {
    return true;
  }
  const transport::SendEntry* entry = job->qp->entry(plan.entry_number);
  if (entry == nullptr) return true;
  const WqeCache::Place place = WqeCache::of_send(*job->qp, entry->wqe);
  job->wants_wqe = !wqe_cache_->acquire(place, t, job, again);
  if (!job->wants_wqe && plan.last) wqe_cache_->release(place);
  return !job->wants_wqe;
}

void RxPipeline::process(RxJob* job, Time t, bool again) {
  QpContext& qp = *job->qp;
  job->begun = t;
  if (!answers_need_context_ && transport_.use_of(*job->frame).for_requester) {
    t = contexts->pass(t);
  } else if (!contexts->acquire(qp, role_of(*job), t, job, again)) {
    return;
  }
  if (job->forsaken || !qp.can_receive()) {  // it changed while frames were waiting
    job->plan = transport::RxPlan{};
  } else {
    transport_.receive(qp, *job->frame, t, job->plan);
  }
  if (job->frame->trace != nullptr) job->frame->trace->mark(stats::Stage::kRxParse, t);
  if (job->plan.action == transport::RxPlan::Action::kHold) {
    hold(job, t);
    return;
  }
  if (job->plan.action != transport::RxPlan::Action::kNone) {
    if (qp.state == protocol::QpState::kRtr && !qp.established && events.size() > 0) {
      qp.established = true;
      events->raise({protocol::EventType::kCommEstablished, qp.qpn}, t);
    }
    if (job->plan.sequence_gap) t += gap_time_;
    if (wqe_cache_ == nullptr || wqe_here(job, t, false)) responder->execute(job, t);
    return;
  }
  if (job->plan.disconnected) completion->fail(qp, t);
  release_buffer(job, t);
  executed(job, t, t);
  retire(job);
}

void RxPipeline::release_buffer(RxJob* job, Time t) {
  if (!job->in_port_buffer) return;
  job->in_port_buffer = false;
  port->release(*job->frame, t);
}

void RxPipeline::hold(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  release_buffer(job, t);  // it waits in a reorder buffer of the NIC's own
  leave_queue(job);
  job->next = qp.early;
  qp.early = job;
  go_on(qp, t, t);
}

RxJob* RxPipeline::take_early(QpContext& qp) {
  RxJob* due = nullptr;
  RxJob** link = &qp.early;
  while (RxJob* job = *link) {
    const bool wanted = !job->forsaken && qp.can_receive() && transport_.holds(qp, job->plan.psn);
    if (wanted && (due != nullptr || !transport_.hold_over(qp, job->plan.psn))) {
      link = &job->next;
      continue;
    }
    *link = job->next;
    if (wanted) {
      due = job;
    } else {
      retire(job);  // the connection is gone, or it came again at its turn
    }
  }
  return due;
}

void RxPipeline::executed(RxJob* job, Time t, Time next) {
  leave_queue(job);
  go_on(*job->qp, t, next);
}

void RxPipeline::leave_queue(RxJob* job) {
  QpContext& qp = *job->qp;
  qp.rx_head = job->next;
  if (qp.rx_head == nullptr) qp.rx_tail = nullptr;
}

void RxPipeline::go_on(QpContext& qp, Time t, Time next) {
  completion->retire(qp, t);
  timer->update(qp);
  scheduler->activate(qp, t);
  run_queue(qp, next);
}

void RxPipeline::run_queue(QpContext& qp, Time t) {
  if (qp.early != nullptr) {
    if (RxJob* job = take_early(qp); job != nullptr) {
      job->next = qp.rx_head;
      if (qp.rx_head == nullptr) qp.rx_tail = job;
      qp.rx_head = job;
      job->responder = nullptr;
      if (job->frame->trace != nullptr) job->frame->trace->mark(stats::Stage::kReorder, t);
    }
  }
  if (qp.rx_head == nullptr) return;
  if (looks_ahead_) expect_next(qp, sim_now());
  // Not ahead of time: a backlog would take its places in all units at once, far ahead, and keep
  // out what other queue pairs need sooner.
  const Time at = std::max(t, qp.rx_head->arrived);
  if (at > sim_now()) {
    turns_.post(at, qp.rx_head);
  } else {
    process(qp.rx_head, at, false);
  }
}

void RxPipeline::turn_comes(RxJob*& job) { process(job, sim_now(), false); }

void RxPipeline::retire(RxJob* job) {
  frames_.give(job->frame);
  jobs_.give(job);
}

}  // namespace rnic::nic
