// SPDX-License-Identifier: Apache-2.0
#include "nic/responder.h"

#include "base/sc_time.h"
#include "protocol/mpt.h"

namespace rnic::nic {

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
      stage_(this->name(), config.responder, Clock(config.clock_hz)) {
  responder.bind(*this);
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
  job->responder = this;
  job->piece = job->piece_count = job->placed = 0;
  job->writes_pending = 0;
  job->finished = false;
  job->recv_taken = false;
  if (!access_granted(*job)) {
    refuse(job, Refusal::kInvalidRequest, t);
    return;
  }
  const RxPlan& plan = job->plan;
  const bool needs_recv =
      plan.action == Action::kSend || (plan.action == Action::kWrite && plan.has_imm && plan.last);
  if (needs_recv) {
    need_recv(job, t, false);
  } else if (plan.action == Action::kReadResponse) {
    place_read_response(job, t);
  } else {
    check_remote(job, t);
  }
}

void Responder::resume(RxJob* job, Time now) { need_recv(job, now, true); }

void Responder::need_recv(RxJob* job, Time t, bool again) {
  switch (recv_queues->acquire(*job->qp, t, job, again)) {
    case RecvQueueIf::Answer::kWait:
      return;
    case RecvQueueIf::Answer::kEmpty:
      refuse(job, Refusal::kReceiverNotReady, t);
      return;
    case RecvQueueIf::Answer::kReady:
      break;
  }
  job->recv_taken = true;
  if (job->frame->trace != nullptr) job->frame->trace->mark(Stage::kRqFetch, t);
  if (job->plan.action == Action::kSend) {
    place_in_recv(job, t);
  } else {
    check_remote(job, t);
  }
}

void Responder::place_in_recv(RxJob* job, Time t) {
  const protocol::RecvWqe& recv = job->qp->rq.front();
  const RxPlan& plan = job->plan;
  if (std::uint64_t{plan.message_offset} + plan.length > recv.length) {
    fail_recv(job, WcStatus::kLocalLengthError, Refusal::kInvalidRequest, t);
    return;
  }
  job->piece_count = transport::slice_sges(recv.sge.data(), recv.sge_count, plan.message_offset,
                                           plan.length, job->pieces);
  next_piece(job, t);
}

void Responder::place_read_response(RxJob* job, Time t) {
  const RxPlan& plan = job->plan;
  const transport::SendEntry* entry = job->qp->entry(plan.entry_number);
  if (entry == nullptr) {  // failed meanwhile
    job->finished = true;
    port->release(*job->frame, t);
    pipeline->executed(job, t);
    pipeline->retire(job);
    return;
  }
  job->piece_count = transport::slice_sges(entry->wqe.sge.data(), entry->wqe.sge_count,
                                           plan.message_offset, plan.length, job->pieces);
  next_piece(job, t);
}

void Responder::check_remote(RxJob* job, Time t) {
  const RxPlan& plan = job->plan;
  const bool read = plan.action == Action::kReadRequest;
  // The whole message is checked at its first packet; a message of no bytes needs no key.
  if (plan.message_length == 0) {
    placed(job, t);
    return;
  }
  Translation& request = job->translation;
  request.key = plan.rkey;
  request.pd = job->qp->pd;
  request.qpn = job->qp->qpn;
  request.needed_access = read ? protocol::kAccessRemoteRead : protocol::kAccessRemoteWrite;
  request.address = plan.address;
  request.length = read ? 0 : plan.length;
  request.check_address = plan.address;
  request.check_length = plan.first ? plan.message_length : plan.length;
  request.client = this;
  request.owner = job;
  job->piece_count = 1;
  translation->translate(request, t);
}

void Responder::next_piece(RxJob* job, Time t) {
  if (job->piece == job->piece_count) {
    placed(job, t);
    return;
  }
  const protocol::Sge& piece = job->pieces[job->piece];
  Translation& request = job->translation;
  request.key = piece.lkey;
  request.pd = job->qp->pd;
  request.qpn = job->qp->qpn;
  request.needed_access = protocol::kAccessLocalWrite;
  request.check_address = request.address = piece.address;
  request.check_length = request.length = piece.length;
  request.client = this;
  request.owner = job;
  translation->translate(request, t);
}

void Responder::translated(Translation& request, Time t) {
  auto* job = static_cast<RxJob*>(request.owner);
  if (job->frame->trace != nullptr) {
    job->frame->trace->mark(job->plan.action == Action::kReadResponse ? Stage::kLocalTranslation
                                                                      : Stage::kRemoteTranslation,
                            t);
  }
  if (request.result == protocol::AccessResult::kOk) {
    write_segments(job, t);
    if (++job->piece < job->piece_count) {
      next_piece(job, t);
    } else {
      placed(job, std::max(t, job->left_device));
    }
    return;
  }
  switch (job->plan.action) {
    case Action::kSend:
      fail_recv(job, WcStatus::kLocalProtectionError, Refusal::kOperational, t);
      return;
    case Action::kReadResponse:
      if (transport::SendEntry* entry = job->qp->entry(job->plan.entry_number)) {
        entry->status = WcStatus::kLocalProtectionError;
        entry->finished = true;
        entry->placing = false;
      }
      finish(job, t);
      return;
    default:
      refuse(job, Refusal::kRemoteAccess, t);
      return;
  }
}

void Responder::write_segments(RxJob* job, Time t) {
  const std::uint8_t* bytes =
      move_bytes_ && job->frame->has_payload_data ? job->frame->payload.data() : nullptr;
  const Translation& where = job->translation;
  for (std::uint32_t i = 0; i < where.segment_count; ++i) {
    const BusSegment& segment = where.segments[i];
    ++job->writes_pending;
    job->left_device = dma->dma_write(
        t, segment.address, segment.bytes, bytes != nullptr ? bytes + job->placed : nullptr,
        tlm_ext::Purpose::kPayload, this, reinterpret_cast<std::uint64_t>(job));
    job->placed += segment.bytes;
  }
}

void Responder::placed(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  const RxPlan& plan = job->plan;
  if (instruments_ != nullptr && job->placed > 0) {
    stats::DeliveryMeter* meter = instruments_->meter_of(qp.qpn);
    if (meter != nullptr) meter->deliver(job->placed, t);
  }
  if (plan.action == Action::kReadResponse) {
    if (transport::SendEntry* entry = qp.entry(plan.entry_number); entry != nullptr && plan.last) {
      entry->finished = true;
      entry->placing = false;
    }
  } else {
    transport_.accept(qp, plan, t, job->frame->trace);
    if (job->recv_taken && plan.last) complete_recv(job, t);
  }
  finish(job, t);
}

void Responder::complete_recv(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  const RxPlan& plan = job->plan;
  using Kind = protocol::Cqe::Kind;
  protocol::Cqe cqe;
  cqe.kind = plan.action == Action::kWrite ? Kind::kRespWriteImm
                                           : (plan.has_imm ? Kind::kRespSendImm : Kind::kRespSend);
  cqe.qpn = qp.qpn;
  cqe.src_qp = qp.dest_qpn;
  cqe.imm = plan.imm;
  cqe.solicited = plan.solicited;
  cqe.wqe_counter = qp.rq_consumed;
  cqe.byte_count =
      plan.action == Action::kWrite ? plan.message_length : plan.message_offset + plan.length;
  completion_queues->post(qp.recv_cqn, cqe, job->frame->trace, t);
  recv_queues->consume(qp, t);
}

void Responder::finish(RxJob* job, Time t) {
  port->release(*job->frame, t);
  job->finished = true;
  pipeline->executed(job, t);
  if (job->writes_pending == 0) pipeline->retire(job);
}

void Responder::refuse(RxJob* job, Refusal why, Time t) {
  if (job->plan.duplicate) {
    finish(job, t);  // errors in duplicates are ignored
    return;
  }
  transport_.refuse(*job->qp, job->plan, why, t);
  finish(job, t);
}

void Responder::fail_recv(RxJob* job, WcStatus status, Refusal why, Time t) {
  QpContext& qp = *job->qp;
  protocol::Cqe cqe;
  cqe.kind = protocol::Cqe::Kind::kResponderError;
  cqe.status = status;
  cqe.qpn = qp.qpn;
  cqe.wqe_counter = qp.rq_consumed;
  completion_queues->post(qp.recv_cqn, cqe, nullptr, t);
  recv_queues->consume(qp, t);
  refuse(job, why, t);
}

void Responder::dma_failed(const pcie::DmaFault& fault) {
  // A posted write has no answer: the packet may be acknowledged by now. The connection cannot be
  // trusted any more.
  auto* job = reinterpret_cast<RxJob*>(fault.token);
  QpContext& qp = *job->qp;
  if (job->plan.action == Action::kReadResponse) {
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
    if (job->plan.action == Action::kReadResponse) {
      trace->mark_return(Stage::kPlacement, sim_now());
    } else {
      trace->mark_delivery(Stage::kPlacement, sim_now());
    }
  }
  pipeline->retire(job);
}

}  // namespace rnic::nic
