// SPDX-License-Identifier: Apache-2.0
#include "nic/responder.h"

#include <algorithm>

#include "base/sc_time.h"
#include "protocol/atomic.h"
#include "protocol/mpt.h"

namespace rnic::nic {
namespace {

using protocol::kAtomicBytes;

/// Lets a frame's data be placed behind what the requester's own READ or atomic asked for.
bool is_response(const transport::RxPlan& plan) {
  using Action = transport::RxPlan::Action;
  return plan.action == Action::kReadResponse || plan.action == Action::kAtomicResponse;
}

bool qp_is_datagram(const RxJob& job) { return job.qp->type == protocol::QpType::kUd; }

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
      message_gap_(message_gap(config.message_rate, config.responder, Clock(config.clock_hz))),
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
  if (message_gap_ > kTimeZero && job->plan.first && !is_response(job->plan)) {
    stage_.occupy(t, message_gap_);  // what keeps the next ones waiting does not delay this one
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
  if (!job->qp->can_receive()) {  // it failed while the frame waited
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

/// Its RECVs cannot be read any more, which the application knows: the peer is told, if anything
/// is.
void Responder::lose_queue_pair(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  qp.recv_told = true;
  refuse(job, Refusal::kOperational, t);
  if (!qp.failed) completion->fail(qp, t);
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
  if (qp_is_datagram(*job)) {
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

/// The work it belongs to is gone: it failed meanwhile.
void Responder::abandon(RxJob* job, Time t) {
  job->finished = true;
  pipeline->release_buffer(job, t);
  pipeline->executed(job, t, t);
  pipeline->retire(job);
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
      write_piece(job, t);
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

void Responder::atomic_done(QpContext& qp, const RxPlan& plan, stats::MessageTrace* trace, Time t) {
  if (trace != nullptr) trace->mark(Stage::kResponderRead, t);
  transport_.answer_atomic(qp, plan, t);
  scheduler->activate(qp, t);
  end_atomic(qp, t);
}

void Responder::atomic_failed(QpContext& qp, const RxPlan& plan, Time t) {
  if (qp.can_receive()) {
    transport_.refuse_atomic(qp, plan, t);
    scheduler->activate(qp, t);
  }
  end_atomic(qp, t);
}

void Responder::end_atomic(QpContext& qp, Time t) {
  if (--qp.atomics_under_way > 0 || qp.behind_atomics == nullptr) return;
  RxJob* job = qp.behind_atomics;
  qp.behind_atomics = nullptr;
  if (qp.can_receive()) {
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

void Responder::placed(RxJob* job, Time t, Time next) {
  QpContext& qp = *job->qp;
  t = in_order(qp, t);
  const RxPlan& plan = job->plan;
  const std::uint32_t data = job->kept ? job->plan.length : job->placed - job->header_bytes;
  if (instruments_ != nullptr) meter_delivery(*job, data, t);
  if (is_response(plan)) {
    if (transport::SendEntry* entry = qp.entry(plan.entry_number); entry != nullptr && plan.last) {
      entry->finished = true;
      entry->placing = false;
    }
  } else if (plan.invalidates) {
    keys->invalidate_for_peer(job, *this, t);  // first of all: the completion tells that it is over
    return;
  } else {
    accept(job, t);
  }
  finish(job, t, next);
}

/// What nobody sends again counts once the whole message is there, as 1 if it has no bytes.
void Responder::meter_delivery(const RxJob& job, std::uint32_t data, Time t) {
  const QpContext& qp = *job.qp;
  const RxPlan& plan = job.plan;
  const bool acknowledged = qp.type == protocol::QpType::kRc;
  if (acknowledged ? data == 0 : !plan.last) return;
  stats::DeliveryMeter* meter = instruments_->meter_of(qp.qpn);
  if (meter == nullptr) return;
  if (acknowledged) {
    meter->deliver(data, job.came, t);
  } else {
    const bool datagram = qp.type == protocol::QpType::kUd;
    meter->deliver(std::max(1U, plan.length + (datagram ? 0 : plan.message_offset)), job.came, t);
  }
}

void Responder::accept(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  const bool takes_recv = job->recv_taken && job->plan.last;
  if (!qp.rq->shared()) qp.receives_posted = qp.rq->available() - (takes_recv ? 1 : 0);
  transport_.accept(qp, job->plan, t, job->frame->trace);
  if (takes_recv) {
    complete_recv(job, t);
  } else if (unsolicited_ && job->plan.action == Action::kWrite && job->plan.has_imm &&
             job->plan.last) {
    report_immediate(job, t);
  }
}

void Responder::key_invalidated(RxJob* job, bool allowed, Time t) {
  if (!job->qp->can_receive()) {  // it failed meanwhile
    finish(job, t, t);
  } else if (allowed) {
    accept(job, t);
    finish(job, t, t);
  } else {
    // IBTA vol 1, 9.9.3 (class J); the RECV's status as Linux' rxe_resp.c has it.
    fail_recv(job, WcStatus::kRemoteInvalidRequestError, Refusal::kRemoteAccess, t);
  }
}

protocol::Cqe Responder::completion_of(const RxJob& job) const {
  const QpContext& qp = *job.qp;
  const RxPlan& plan = job.plan;
  using Kind = protocol::Cqe::Kind;
  protocol::Cqe cqe;
  cqe.kind = plan.action == Action::kWrite ? Kind::kRespWriteImm
             : plan.has_imm                ? Kind::kRespSendImm
             : plan.invalidates            ? Kind::kRespSendInv
                                           : Kind::kRespSend;
  cqe.qpn = qp.qpn;
  cqe.src_qp = plan.source_qpn != 0 ? plan.source_qpn : qp.dest_qpn;
  cqe.grh = job.header_bytes > 0;
  if (qp_is_datagram(job)) {
    const transport::NetworkHeader header = transport_.network_header(*job.frame);
    cqe.slid = header.source_lid;
    cqe.sl = header.service_level;
  }
  cqe.imm = plan.imm;
  cqe.solicited = plan.solicited;
  cqe.byte_count = plan.action == Action::kWrite ? plan.message_length + plan.written_before
                                                 : plan.message_offset + plan.length;
  return cqe;
}

void Responder::complete_recv(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  protocol::Cqe cqe = completion_of(*job);
  cqe.wqe_counter = qp.recv().index;
  completion_queues->post(qp.recv_cqn, cqe, job->frame->trace, t);
  recv_queues->consume(qp, t);
}

void Responder::report_immediate(RxJob* job, Time t) {
  protocol::Cqe cqe = completion_of(*job);
  cqe.unsolicited = true;
  completion_queues->post(job->qp->recv_cqn, cqe, job->frame->trace, t);
}

void Responder::finish(RxJob* job, Time t, Time next) {
  pipeline->release_buffer(job, t);
  job->finished = true;
  pipeline->executed(job, t, next);
  if (job->writes_pending == 0) pipeline->retire(job);
}

void Responder::refuse(RxJob* job, Refusal why, Time t) {
  if (job->plan.duplicate) {
    finish(job, t, t);  // errors in duplicates are ignored
    return;
  }
  QpContext& qp = *job->qp;
  t = in_order(qp, t);
  transport_.refuse(qp, job->plan, why, t);
  // No answer to wait for where nothing is acknowledged.
  if (qp.failed && qp.type != protocol::QpType::kRc) completion->fail(qp, t);
  finish(job, t, t);
}

void Responder::fail_recv(RxJob* job, WcStatus status, Refusal why, Time t) {
  QpContext& qp = *job->qp;
  t = in_order(qp, t);
  protocol::Cqe cqe;
  cqe.kind = protocol::Cqe::Kind::kResponderError;
  cqe.status = status;
  cqe.qpn = qp.qpn;
  cqe.wqe_counter = qp.recv().index;
  completion_queues->post(qp.recv_cqn, cqe, nullptr, t);
  recv_queues->consume(qp, t);
  // Queue pairs of other services go on, but where the receive queue itself does not work.
  qp.recv_told = qp.type == protocol::QpType::kRc || why == Refusal::kOperational;
  refuse(job, why, t);
}

void Responder::dma_failed(const pcie::DmaFault& fault) {
  // A posted write has no answer: the packet may be acknowledged by now. The connection cannot be
  // trusted any more.
  auto* job = reinterpret_cast<RxJob*>(fault.token);
  QpContext& qp = *job->qp;
  if (is_response(job->plan)) {
    if (transport::SendEntry* entry = qp.entry(job->plan.entry_number)) {
      entry->status = WcStatus::kLocalProtectionError;
      entry->finished = true;
      entry->placing = false;
    }
  }
  completion->retire(qp, sim_now());
  completion->fail(qp, sim_now());
  dma_done(fault.token);
}

void Responder::dma_done(std::uint64_t token) {
  auto* job = reinterpret_cast<RxJob*>(token);
  --job->writes_pending;
  if (job->writes_pending > 0 || !job->finished) return;
  if (stats::MessageTrace* trace = job->frame->trace; trace != nullptr) {
    if (is_response(job->plan)) {
      trace->mark_return(Stage::kPlacement, sim_now());
    } else {
      trace->mark_delivery(Stage::kPlacement, sim_now());
    }
  }
  pipeline->retire(job);
}

}  // namespace rnic::nic
