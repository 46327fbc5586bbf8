// SPDX-License-Identifier: Apache-2.0
#include "nic/completion_unit.h"

namespace rnic::nic {

using protocol::QpState;
using protocol::WcStatus;

CompletionUnit::CompletionUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                               transport::Transport& transport)
    : sc_module(name),
      transport_(transport),
      stage_(this->name(), config.completion, Clock(config.clock_hz)) {
  completion.bind(*this);
}

void CompletionUnit::retire(QpContext& qp, Time t) {
  while (!qp.sq.empty()) {
    transport::SendEntry& entry = qp.sq.front();
    if (qp.flushes_sends() && !entry.finished) {
      entry.status = WcStatus::kWrFlushError;
      entry.finished = true;
      entry.placing = false;
    }
    if (!entry.finished || entry.placing) break;
    const bool failed = entry.status != WcStatus::kSuccess;
    complete(qp, entry, t);
    qp.sq.pop_front();
    ++qp.sq_base;
    if (qp.tx_number < qp.sq_base) {
      qp.tx_number = qp.sq_base;
      qp.tx_offset = 0;
    }
    if (failed && !qp.flushes_sends()) fail_sends(qp, t);
  }
  // Local invalidation waits for all before it, which no packet of a peer tells of here.
  if (qp.type == protocol::QpType::kUc && !qp.sq.empty() && qp.sq.front().wqe.is_key_operation()) {
    scheduler->activate(qp, t);
  }
  // Posted but never decoded: they must be flushed too.
  if (qp.flushes_sends() && qp.sq.empty()) wqes->fetch(qp, t);
  const bool idle = qp.sq.empty() || !qp.sq.front().issued;
  if (qp.drain_event && qp.state == QpState::kSqd && idle) {
    qp.drain_event = false;
    raise(protocol::EventType::kSqDrained, qp, t);
  }
  if (qp.path_news != transport::PathNews::kNone) tell_path(qp, t);
}

void CompletionUnit::tell_path(QpContext& qp, Time t) {
  raise(qp.path_news == transport::PathNews::kMigrated ? protocol::EventType::kPathMigrated
                                                       : protocol::EventType::kPathMigrationError,
        qp, t);
  qp.path_news = transport::PathNews::kNone;
}

void CompletionUnit::fail_sends(QpContext& qp, Time t) {
  // Without a connection that both sides must agree on, only the send queue stops (10.3.1.7).
  if (qp.type == protocol::QpType::kRc) {
    fail(qp, t);
  } else {
    qp.state = QpState::kSqe;
  }
}

void CompletionUnit::raise(protocol::EventType type, const QpContext& qp, Time t) {
  if (events.size() > 0) events->raise({type, qp.qpn}, t);
}

void CompletionUnit::complete(QpContext& qp, transport::SendEntry& entry, Time t) {
  const bool failed = entry.status != WcStatus::kSuccess;
  if (entry.trace != nullptr) {
    // A READ or atomic is acknowledged by its data, which is on the way to memory now.
    const bool answered = entry.wqe.is_read() || entry.wqe.is_atomic();
    entry.trace->mark_return(answered ? stats::Stage::kPlacement : stats::Stage::kAck, t);
  }
  if (!entry.wqe.signaled && !failed) return;
  protocol::Cqe cqe;
  cqe.kind = failed ? protocol::Cqe::Kind::kRequesterError : protocol::Cqe::Kind::kRequester;
  cqe.status = entry.status;
  if (failed) {
    cqe.vendor_syndrome =
        protocol::vendor_syndrome(entry.status, entry.wqe.is_read() || entry.wqe.is_atomic());
  }
  cqe.opcode = entry.wqe.opcode;
  cqe.qpn = qp.qpn;
  cqe.byte_count = entry.wqe.length;
  cqe.wqe_counter = entry.wqe.index;
  completion_queues->post(qp.send_cqn, cqe, entry.trace, stage_.pass(t));
}

void CompletionUnit::fail_fatally(QpContext& qp, Time t) {
  if (qp.state == QpState::kReset || qp.state == QpState::kError) return;
  raise(protocol::EventType::kQpFatal, qp, t);
  fail(qp, t);
}

void CompletionUnit::fail(QpContext& qp, Time t) {
  if (qp.state == QpState::kError) return;
  qp.state = QpState::kError;
  // What no completion reports here: the responder half refused what the peer asked.
  if (qp.failed && qp.recv_told) {
    // the RECV of the message did
  } else if (qp.failed && (qp.refusal == transport::Refusal::kInvalidRequest ||
                           qp.refusal == transport::Refusal::kReceiverNotReady)) {
    raise(protocol::EventType::kQpRequestError, qp, t);
  } else if (qp.failed && qp.refusal == transport::Refusal::kRemoteAccess) {
    raise(protocol::EventType::kQpAccessError, qp, t);
  } else if (qp.failed && qp.refusal == transport::Refusal::kOperational) {
    raise(protocol::EventType::kQpFatal, qp, t);  // class C of IBTA vol 1, 9.9.3
  }
  qp.failed = qp.recv_told = false;
  qp.retry_deadline = kTimeNever;
  if (transport_.disconnect(qp)) scheduler->activate(qp, t);
  retire(qp, t);
  recv_queues->flush(qp, t);
}

}  // namespace rnic::nic
