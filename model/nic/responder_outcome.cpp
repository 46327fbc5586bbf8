// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/sc_time.h"
#include "nic/responder.h"

/// What an executed request answers and completes, and how one that fails ends.
namespace rnic::nic {

using protocol::WcStatus;
using stats::Stage;
using transport::Refusal;
using transport::RxPlan;
using Action = transport::RxPlan::Action;

/// Its RECVs cannot be read any more, which the application knows: the peer is told, if anything
/// is.
void Responder::lose_queue_pair(RxJob* job, Time t) {
  QpContext& qp = *job->qp;
  qp.recv_told = true;
  refuse(job, Refusal::kOperational, t);
  if (!qp.failed) completion->fail(qp, t);
}

/// The work it belongs to is gone: it failed meanwhile.
void Responder::abandon(RxJob* job, Time t) {
  job->finished = true;
  pipeline->release_buffer(job, t);
  pipeline->executed(job, t, t);
  pipeline->retire(job);
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
  if (job->forsaken || !job->qp->can_receive()) {  // it failed meanwhile
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
  if (is_datagram(job)) {
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
