// SPDX-License-Identifier: Apache-2.0
#include "nic/payload_gather.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/page.h"
#include "base/sc_time.h"

namespace rnic::nic {

using stats::Stage;
using transport::TxPlan;

namespace {

/// Whether a READ's response packet begins on the page where the READ does: the check has found
/// that one.
bool in_first_page(const TxPlan& plan) {
  return plan.address / Page::kBytes == (plan.address - plan.message_offset) / Page::kBytes;
}

}  // namespace

PayloadGather::PayloadGather(const sc_core::sc_module_name& name, transport::Transport& transport,
                             protocol::FramePool& frames, Pool<TxJob>& jobs, Time sge_time,
                             bool move_bytes)
    : sc_module(name),
      transport_(transport),
      frames_(frames),
      jobs_(jobs),
      sge_time_(sge_time),
      move_bytes_(move_bytes),
      turns_("turns", this, &PayloadGather::turn_over),
      stats_(this->name()) {
  transmit.bind(*this);
}

TxJob* PayloadGather::job_of(Translation& translation) {
  // A translation is a member of its job.
  return static_cast<TxJob*>(translation.owner);
}

void PayloadGather::gather(TxJob* job, Time t) {
  stats_.set_occupancy(sim_now(), ++in_flight_);
  protocol::Frame& frame = *job->frame;
  frame.has_payload_data = move_bytes_;
  switch (job->plan.payload) {
    case TxPlan::Payload::kNone:
      complete(job, t);
      return;
    case TxPlan::Payload::kInline: {
      frame.payload.reserve(job->plan.length);
      const transport::SendEntry* entry = job->qp->entry(job->plan.entry_number);
      std::memcpy(frame.payload.writable(),
                  entry->wqe.inline_bytes.data() + job->plan.message_offset, job->plan.length);
      complete(job, t);
      return;
    }
    case TxPlan::Payload::kRemote:
      job->plan.piece_count = 1;
      job->plan.pieces[0] = {job->plan.address, job->plan.length, job->plan.rkey};
      break;
    case TxPlan::Payload::kLocal:
      break;
  }
  if (move_bytes_) frame.payload.reserve(job->plan.length);
  job->reads_pending = 1;  // held until every piece has been issued
  next_piece(job, t);
}

void PayloadGather::next_piece(TxJob* job, Time t) {
  const protocol::Sge& piece = job->plan.pieces[job->piece];
  Translation& request = job->translation;
  request.key = piece.lkey;
  request.pd = job->qp->pd;
  request.qpn = job->qp->qpn;
  request.needed_access = job->plan.payload == TxPlan::Payload::kRemote
                              ? protocol::kAccessRemoteRead
                              : protocol::kAccessLocalRead;
  request.check_address = request.address = piece.address;
  request.check_length = request.length = piece.length;
  request.responder = job->plan.is_response;
  request.follows_check = job->plan.payload == TxPlan::Payload::kRemote && in_first_page(job->plan);
  request.client = this;
  request.owner = job;
  translation->translate(request, t);
}

/// A piece behind the first. Where pieces queue, its turn is far ahead: an event, so that what it
/// asks of others is asked then.
void PayloadGather::take_turn(TxJob* job, Time t) {
  if (sge_time_ == kTimeZero) {
    next_piece(job, t);
    return;
  }
  const Reservation turn = unit_.reserve(t, sge_time_);
  stats_.add_busy(turn.start, turn.end);
  turns_.post(turn.end, job);
}

void PayloadGather::translated(Translation& request, Time t) {
  TxJob* job = job_of(request);
  if (request.result != protocol::AccessResult::kOk) {
    fail(job, request.result == protocol::AccessResult::kUnreadable
                  ? transport::Refusal::kOperational
                  : transport::Refusal::kRemoteAccess);
    --job->reads_pending;
    complete(job, t);
    return;
  }
  if (job->plan.trace != nullptr) {
    job->plan.trace->mark(
        job->plan.is_response ? Stage::kRemoteTranslation : Stage::kLocalTranslation, t);
  }
  for (std::uint32_t i = 0; i < request.segment_count; ++i) {
    ++job->reads_pending;
    read_segment(*job, request.segments[i], t);
  }
  if (++job->piece < job->plan.piece_count) {
    take_turn(job, t);
    return;
  }
  if (--job->reads_pending == 0) complete(job, t);
}

void PayloadGather::read_segment(TxJob& job, const BusSegment& segment, Time t) {
  const auto token = reinterpret_cast<std::uint64_t>(&job);
  protocol::PayloadBuffer& payload = job.frame->payload;
  std::uint8_t* into = move_bytes_ ? payload.writable() + job.filled : nullptr;
  const bool whole = segment.bytes == job.plan.length;
  job.filled += segment.bytes;
  if (into != nullptr && whole && pcie::is_page(segment.address, segment.bytes)) {
    dma->dma_read_page(t, segment.address, into, payload.page(), tlm_ext::Purpose::kPayload, this,
                       token);
    return;
  }
  dma->dma_read(t, segment.address, segment.bytes, into, tlm_ext::Purpose::kPayload, this, token);
}

void PayloadGather::dma_done(std::uint64_t token) {
  auto* job = reinterpret_cast<TxJob*>(token);
  if (--job->reads_pending > 0) return;
  const Time now = sim_now();
  if (job->plan.trace != nullptr) {
    job->plan.trace->mark(job->plan.is_response ? Stage::kResponderRead : Stage::kPayloadFetch,
                          now);
  }
  complete(job, now);
}

void PayloadGather::complete(TxJob* job, Time t) {
  job->ready = true;
  job->ready_at = t;
  release_in_order(*job->qp, t);
}

void PayloadGather::dma_failed(const pcie::DmaFault& fault) {
  auto* job = reinterpret_cast<TxJob*>(fault.token);
  const Time now = sim_now();
  if (!job->failed) fail(job, transport::Refusal::kOperational);
  if (--job->reads_pending == 0) complete(job, now);
}

/// A request whose turn would have come after one that failed here. Those before it may still be
/// sent again.
bool PayloadGather::behind_failure(const TxJob& job) {
  if (job.plan.is_response) return false;
  const QpContext& qp = *job.qp;
  if (qp.flushes_sends()) return true;
  for (std::uint64_t i = qp.sq_base; i <= job.plan.entry_number; ++i) {
    const transport::SendEntry* entry = qp.entry(i);
    if (entry == nullptr) return false;
    if (entry->finished && entry->status != protocol::WcStatus::kSuccess) return true;
  }
  return false;
}

void PayloadGather::fail(TxJob* job, transport::Refusal why) {
  job->failed = true;
  job->refusal = why;
  if (job->plan.is_response) return;  // refused at its turn: the peer gets its answers in order
  if (job->qp->send_failed && behind_failure(*job)) return;  // flushed
  if (transport::SendEntry* entry = job->qp->entry(job->plan.entry_number)) {
    entry->status = protocol::WcStatus::kLocalProtectionError;
    entry->finished = true;
    job->qp->tx_number = std::min(job->qp->tx_number, job->plan.entry_number);
    job->qp->send_failed = true;
  }
}

/// Answers leave in the order of their requests (IBTA vol 1, 9.7.5.1): what is ahead of `job` has
/// left, and nothing behind it may, for that would say that `job` has been answered.
void PayloadGather::refuse(TxJob& job, Time t) {
  for (TxJob* later = job.next; later != nullptr; later = later->next) {
    if (later->plan.is_response) later->failed = later->dropped = true;
  }
  transport_.refuse_response(*job.qp, job.plan, job.refusal, t);
  scheduler->activate(*job.qp, t);
}

void PayloadGather::close_granule(QpContext& qp, Time t) {
  for (TxJob* job = qp.tx_head; job != nullptr; job = job->next) job->continued = false;
  release_in_order(qp, t);
}

bool PayloadGather::granule_incomplete(TxJob& head) {
  for (TxJob* job = &head; job != nullptr; job = job->next) {
    if (job->plan.is_response != head.plan.is_response) continue;
    if (!job->ready || job->reads_pending > 0) return true;
    if (job->continued && !job->failed) continue;
    for (TxJob* member = &head; member != job; member = member->next) member->continued = false;
    return false;
  }
  return true;
}

void PayloadGather::release_in_order(QpContext& qp, Time t) {
  while (qp.tx_head != nullptr && qp.tx_head->ready && qp.tx_head->reads_pending == 0) {
    TxJob* job = qp.tx_head;
    if (job->continued && granule_incomplete(*job)) return;
    qp.tx_head = job->next;
    if (qp.tx_head == nullptr) qp.tx_tail = nullptr;
    stats_.set_occupancy(sim_now(), --in_flight_);
    if (!job->failed && !(qp.send_failed && behind_failure(*job))) {
      packetizer->packetize(job, std::max(t, job->ready_at));
      continue;
    }
    if (job->plan.is_response && !job->dropped) refuse(*job, t);
    const std::uint32_t lane = job->lane;
    frames_.give(job->frame);
    jobs_.give(job);
    completion->retire(qp, t);
    scheduler->slot_freed(t, lane);
  }
}

}  // namespace rnic::nic
