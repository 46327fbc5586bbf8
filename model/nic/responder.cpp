// SPDX-License-Identifier: Apache-2.0
#include "nic/responder.h"

#include <algorithm>

#include "base/sc_time.h"
#include "protocol/atomic.h"
#include "protocol/mpt.h"

namespace rnic::nic {
namespace {

using protocol::kAtomicBytes;

/// Access right of a region that a request needs.
protocol::AccessFlags right_of(const transport::RxPlan& plan) {
  using Action = transport::RxPlan::Action;
  switch (plan.action) {
    case Action::kReadRequest:
      return protocol::kAccessRemoteRead;
    case Action::kAtomicRequest:
      return protocol::kAccessRemoteAtomic;
    default:
      return protocol::kAccessRemoteWrite;
  }
}

}  // namespace

using protocol::WcStatus;
using stats::Stage;
using transport::Refusal;
using transport::RxPlan;
using Action = transport::RxPlan::Action;

Responder::Responder(const sc_core::sc_module_name& name, const config::NicConfig& config,
                     transport::Transport& transport, bool move_bytes)
    : sc_module(name),
      transport_(transport),
      move_bytes_(move_bytes),
      drops_long_messages_(config.long_message == config::LongMessage::kDrop),
      atomics_in_turn_(config.atomics_in_turn),
      looks_ahead_(config.translation_order == config::TranslationOrder::kFree),
      messages_(config.message_rate, config.responder, Clock(config.clock_hz)),
      read_response_time_(config.read_response_time),
      forward_granule_(config.forward_granule),
      keeping_room_(config.rx_buffer / 2),
      unsolicited_(config.write_imm_unsolicited),
      stage_(this->name(), config.responder, Clock(config.clock_hz)) {
  responder.bind(*this);
  atomic_client.bind(*this);
}

bool Responder::access_granted(const RxJob& job) {
  switch (job.plan.action) {
    case Action::kWrite:
      return (job.qp->access & protocol::kAccessRemoteWrite) != 0;
    case Action::kReadRequest:
      return (job.qp->access & protocol::kAccessRemoteRead) != 0;
    case Action::kAtomicRequest:
      return (job.qp->access & protocol::kAccessRemoteAtomic) != 0;
    default:
      return true;
  }
}

void Responder::execute(RxJob* job, Time t) {
  t = stage_.pass(t);
  if (job->plan.first && !is_response(job->plan)) {
    messages_.pass_message(stage_, t);  // what keeps the next ones waiting does not delay this one
  } else {
    messages_.pass_other();
  }
  job->responder = this;
  job->piece = job->piece_count = job->placed = job->header_bytes = 0;
  job->writes_pending = 0;
  job->left_device = kTimeZero;
  job->finished = job->kept = false;
  job->recv_taken = false;
  // Atomics may overlap each other, but what follows them is executed after them.
  const bool waits = job->plan.action == Action::kWrite || job->plan.action == Action::kSend ||
                     (atomics_in_turn_ && job->plan.action == Action::kAtomicRequest);
  if (job->qp->atomics_under_way > 0 && waits) {
    job->qp->behind_atomics = job;
    return;
  }
  begin(job, t);
}

void Responder::begin(RxJob* job, Time t) {
  if (!access_granted(*job)) {
    refuse(job, Refusal::kInvalidRequest, t);
    return;
  }
  const RxPlan& plan = job->plan;
  if (plan.action == Action::kSend) {
    need_recv(job, t, false);
  } else if (is_response(plan)) {
    place_response(job, t);
  } else {
    check_remote(job, t);
  }
}

void Responder::expect(const RxJob& job, Time t) {
  if (!looks_ahead_) return;
  const transport::FrameTarget target = transport_.target_of(*job.frame);
  translation->expect({target.rkey, target.address, target.bytes, true}, t);
}

template <typename Elements>
void Responder::expect_elements(const Elements& elements, std::uint32_t count, bool for_peer,
                                Time t) {
  for (std::uint32_t i = 0; i < count; ++i) {
    translation->expect({elements[i].lkey, elements[i].address, elements[i].length, for_peer}, t);
  }
}

/// A message begins: its later packets will ask for what lies behind.
void Responder::expect_rest(const RxJob& job, Time t) {
  const RxPlan& plan = job.plan;
  if (plan.message_offset > 0) return;
  if (plan.action == Action::kSend) {
    const protocol::RecvWqe& recv = job.qp->recv();
    expect_elements(recv.sge, recv.sge_count, true, t);
  } else if (plan.action == Action::kReadResponse) {
    const transport::SendEntry* entry = job.qp->entry(plan.entry_number);
    expect_elements(entry->wqe.sge, entry->wqe.sge_count, false, t);
  } else {
    translation->expect({plan.rkey, plan.address, plan.message_length, true}, t);
  }
}

void Responder::resume(RxJob* job, Time now) {
  if (job->forsaken || !job->qp->can_receive()) {  // it failed while the frame waited
    finish(job, now, now);
    return;
  }
  need_recv(job, now, true);
}

void Responder::need_recv(RxJob* job, Time t, bool again) {
  switch (recv_queues->acquire(*job->qp, t, job, again)) {
    case RecvQueueIf::Answer::kWait:
      return;
    case RecvQueueIf::Answer::kEmpty:
      refuse(job, Refusal::kReceiverNotReady, t);
      return;
    case RecvQueueIf::Answer::kFailed:
      lose_queue_pair(job, t);
      return;
    case RecvQueueIf::Answer::kReady:
      break;
  }
  job->recv_taken = true;
  if (job->frame->trace != nullptr) job->frame->trace->mark(Stage::kRqFetch, t);
  if (job->plan.action == Action::kSend) {
    place_in_recv(job, t);
  } else {
    write_remote(job, t);
  }
}

void Responder::place_in_recv(RxJob* job, Time t) {
  const protocol::RecvWqe& recv = job->qp->recv();
  const RxPlan& plan = job->plan;
  if (std::uint64_t{plan.message_offset} + plan.length > recv.length) {
    if (job->qp->type != protocol::QpType::kRc && drops_long_messages_) {
      refuse(job, Refusal::kInvalidRequest, t);
      return;
    }
    fail_recv(job, WcStatus::kLocalLengthError, Refusal::kInvalidRequest, t);
    return;
  }
  if (is_datagram(*job)) {
    slice_datagram(job, recv);
  } else {
    job->piece_count = transport::slice_sges(recv.sge.data(), recv.sge_count, plan.message_offset,
                                             plan.length, job->pieces);
  }
  if (looks_ahead_) expect_rest(*job, t);
  next_piece(job, t);
}

/// The network header, where there is one, at the end of its place, and the data behind it.
void Responder::slice_datagram(RxJob* job, const protocol::RecvWqe& recv) {
  const transport::NetworkHeader header = transport_.network_header(*job->frame);
  job->header_bytes = header.length;
  job->piece_count = transport::slice_sges(recv.sge.data(), recv.sge_count,
                                           transport::kNetworkHeaderArea - header.length,
                                           header.length, job->pieces);
  transport::PieceList data;
  const std::uint32_t count = transport::slice_sges(
      recv.sge.data(), recv.sge_count, job->plan.message_offset, job->plan.length, data);
  std::copy_n(data.begin(), count, job->pieces.begin() + job->piece_count);
  job->piece_count += count;
}

void Responder::place_response(RxJob* job, Time t) {
  const RxPlan& plan = job->plan;
  const transport::SendEntry* entry = job->qp->entry(plan.entry_number);
  if (entry == nullptr) {
    abandon(job, t);
    return;
  }
  const bool atomic = plan.action == Action::kAtomicResponse;
  if (atomic) protocol::store_operand(job->atomic_bytes.data(), plan.original);
  job->piece_count =
      transport::slice_sges(entry->wqe.sge.data(), entry->wqe.sge_count, plan.message_offset,
                            atomic ? kAtomicBytes : plan.length, job->pieces);
  if (looks_ahead_) expect_rest(*job, t);
  next_piece(job, t);
}

void Responder::check_remote(RxJob* job, Time t) {
  const RxPlan& plan = job->plan;
  const bool atomic = plan.action == Action::kAtomicRequest;
  if (atomic && plan.address % kAtomicBytes != 0) {
    refuse(job, Refusal::kInvalidRequest, t);
    return;
  }
  // The whole message is checked at its first packet; a message of no bytes needs no key.
  const std::uint32_t message_length = atomic ? kAtomicBytes : plan.message_length;
  if (message_length == 0) {
    remote_checked(job, t);
    return;
  }
  if (looks_ahead_ && plan.first) expect_rest(*job, t);
  Translation& request = job->translation;
  request.key = plan.rkey;
  request.pd = job->qp->pd;
  request.qpn = job->qp->qpn;
  request.needed_access = right_of(plan);
  request.address = plan.address;
  request.length = plan.action == Action::kReadRequest ? 0 : atomic ? kAtomicBytes : plan.length;
  request.refuse_faults = plan.action == Action::kWrite && transport_.can_put_off();
  request.check_address = plan.address;
  request.check_length = plan.first ? message_length : plan.length;
  request.responder = true;
  request.client = this;
  request.owner = job;
  job->piece_count = 1;
  translation->translate(request, t);
}

/// The key is good. Only now a WRITE with immediate takes a RECV: a refused one must not have, or a
/// shared queue would have lost it.
void Responder::remote_checked(RxJob* job, Time t) {
  const RxPlan& plan = job->plan;
  if (plan.action != Action::kWrite || !plan.has_imm || !plan.last) {
    write_remote(job, t);
  } else if (address_book_ != nullptr && !address_book_->knows(job->qp->pd, job->qp->av)) {
    refuse(job, Refusal::kOperational, t);
  } else if (unsolicited_) {
    write_remote(job, t);
  } else {
    need_recv(job, t, false);
  }
}

void Responder::write_remote(RxJob* job, Time t) {
  if (job->plan.message_length == 0) {
    placed(job, t, t);
  } else {
    write_piece(job, t);
  }
}

/// Whether the packet waits for more of its granule. Not when it is scattered, nor when there is no
/// room: then it goes, with what waits before it.
bool Responder::keeps(const RxJob& job) const {
  const QpContext& qp = *job.qp;
  const RxPlan& plan = job.plan;
  return !plan.last && job.piece_count == 1 && plan.length <= keeping_room_ &&
         qp.kept_bytes + plan.length < forward_granule_;
}

void Responder::keep(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  job->kept = true;
  job->next_kept = nullptr;
  job->writes_pending = 1;  // until release_kept() has issued its own
  (qp.kept_tail != nullptr ? qp.kept_tail->next_kept : qp.kept_head) = job;
  qp.kept_tail = job;
  qp.kept_bytes += job->plan.length;
  keeping_room_ -= job->plan.length;
  placed(job, t, t);
}

void Responder::release_kept(QpContext& qp, Time t) {
  keeping_room_ += qp.kept_bytes;
  qp.kept_bytes = 0;
  RxJob* job = qp.kept_head;
  qp.kept_head = qp.kept_tail = nullptr;
  while (job != nullptr) {
    RxJob* next = job->next_kept;
    job->kept = false;
    write_segments(job, t);
    --job->writes_pending;
    job = next;
  }
}

void Responder::write_piece(RxJob* job, Time t) {
  if (forward_granule_ > 0) {
    if (keeps(*job)) {
      keep(job, t);
      return;
    }
    release_kept(*job->qp, t);
  }
  write_segments(job, t);
  if (++job->piece < job->piece_count) {
    next_piece(job, t);
    return;
  }
  const Time left = std::max(t, job->left_device);
  placed(job, left, follower_start(*job));
}

void Responder::next_piece(RxJob* job, Time t) {
  if (job->piece == job->piece_count) {
    placed(job, t, t);
    return;
  }
  const protocol::Sge& piece = job->pieces[job->piece];
  Translation& request = job->translation;
  request.key = piece.lkey;
  // A shared queue's RECVs belong to its own protection domain (IBTA vol 1, 10.2.9).
  const bool of_shared = job->plan.action == Action::kSend && job->qp->rq->shared();
  request.pd = of_shared ? job->qp->rq->pd : job->qp->pd;
  request.qpn = job->qp->qpn;
  request.needed_access = protocol::kAccessLocalWrite;
  request.refuse_faults = job->plan.action == Action::kSend && transport_.can_put_off();
  // A READ response that names its buffer (iWARP) is a remote write to it (RFC 5040, 5.2).
  if (job->plan.action == Action::kReadResponse && job->plan.rkey != 0) {
    request.needed_access |= protocol::kAccessRemoteWrite;
  }
  request.check_address = request.address = piece.address;
  request.check_length = request.length = piece.length;
  request.responder = job->plan.action != Action::kReadResponse;
  request.client = this;
  request.owner = job;
  translation->translate(request, t);
}

void Responder::translated(Translation& request, Time t) {
  auto* job = static_cast<RxJob*>(request.owner);
  if (job->forsaken) {
    finish(job, t, t);
    return;
  }
  if (job->frame->trace != nullptr) {
    job->frame->trace->mark(
        is_response(job->plan) ? Stage::kLocalTranslation : Stage::kRemoteTranslation, t);
  }
  if (request.result == protocol::AccessResult::kOk) {
    if (job->plan.action == Action::kAtomicRequest) {
      start_atomic(job, t);
      return;
    }
    if (job->plan.action == Action::kWrite) {
      remote_checked(job, t);
    } else {
      const bool read = job->plan.action == Action::kReadRequest;
      write_piece(job, read ? t + read_response_time_ : t);
    }
    return;
  }
  if (request.result == protocol::AccessResult::kPageFault) {
    refuse(job, Refusal::kReceiverNotReady, t);
    return;
  }
  switch (job->plan.action) {
    case Action::kSend:
      fail_recv(job, WcStatus::kLocalProtectionError, Refusal::kOperational, t);
      return;
    case Action::kReadResponse:
    case Action::kAtomicResponse:
      if (transport::SendEntry* entry = job->qp->entry(job->plan.entry_number)) {
        entry->status = WcStatus::kLocalProtectionError;
        entry->finished = true;
        entry->placing = false;
      }
      finish(job, t, t);
      return;
    default:
      job->plan.fault = request.result;
      refuse(job,
             request.result == protocol::AccessResult::kUnreadable ? Refusal::kOperational
                                                                   : Refusal::kRemoteAccess,
             t);
      return;
  }
}

/// Where the bytes come from that go to memory next; null when they are left out.
const std::uint8_t* Responder::source_of(const RxJob& job) const {
  if (job.plan.action == Action::kAtomicResponse) return job.atomic_bytes.data();
  if (job.placed < job.header_bytes) {
    return transport_.network_header(*job.frame).bytes + job.placed;
  }
  const bool kept = move_bytes_ && job.frame->has_payload_data;
  return kept ? job.frame->payload.data() + (job.placed - job.header_bytes) : nullptr;
}

Time Responder::write_segment(RxJob& job, const BusSegment& segment, Time t) {
  const auto token = reinterpret_cast<std::uint64_t>(&job);
  const std::uint8_t* source = source_of(job);
  Page& page = job.frame->payload.page();
  if (page && source == page.get() && pcie::is_page(segment.address, segment.bytes)) {
    return dma->dma_write_page(t, segment.address, page, tlm_ext::Purpose::kPayload, this, token);
  }
  return dma->dma_write(t, segment.address, segment.bytes, source, tlm_ext::Purpose::kPayload, this,
                        token);
}

void Responder::write_segments(RxJob* job, Time t) {
  const Translation& where = job->translation;
  for (std::uint32_t i = 0; i < where.segment_count; ++i) {
    const BusSegment& segment = where.segments[i];
    ++job->writes_pending;
    job->left_device = write_segment(*job, segment, t);
    job->placed += segment.bytes;
  }
}

/// Later atomics of the queue pair may overlap this one; its answer keeps its place in the order.
void Responder::start_atomic(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  t = in_order(qp, t);
  const Time next = follower_start(*job);
  job->plan.deferred = true;
  transport_.accept(qp, job->plan, t, job->frame->trace);
  ++qp.atomics_under_way;
  atomics->execute(qp, job->plan, job->frame->trace, job->translation.segments[0].address, t);
  finish(job, t, next);
}

void Responder::end_atomic(QpContext& qp, Time t) {
  if (--qp.atomics_under_way > 0 || qp.behind_atomics == nullptr) return;
  RxJob* job = qp.behind_atomics;
  qp.behind_atomics = nullptr;
  if (qp.can_receive() && !job->forsaken) {
    begin(job, t);
  } else {
    abandon(job, t);
  }
}

/// When the next packet of the queue pair may set out on the same way: the units on it are
/// pipelines, and its effects come behind this one's (in_order()).
Time Responder::follower_start(const RxJob& job) const { return job.begun + stage_.interval(); }

/// What is executed next on a queue pair may begin at `next`, while this leaves the device, but it
/// takes effect behind it.
Time Responder::in_order(QpContext& qp, Time t) {
  qp.executed_until = std::max(qp.executed_until, t);
  return qp.executed_until;
}

}  // namespace rnic::nic
