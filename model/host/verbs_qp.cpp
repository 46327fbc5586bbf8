// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::kWqeBlockBytes;
using protocol::QpAttrMask;
using protocol::WqeOpcode;

QueuePair* Context::create_qp(Core& core, std::uint32_t pd, CompletionQueue& send_cq,
                              CompletionQueue& recv_cq, const QpInitAttr& attr) {
  if (!pd_exists(pd) || attr.max_inline_data > nic_.max_inline ||
      attr.max_send_sge > nic_.max_sge || attr.max_recv_sge > nic_.max_sge ||
      attr.max_send_wr == 0 || (post_rules_.iwarp && attr.qp_type != protocol::QpType::kRc)) {
    return nullptr;
  }
  auto created = std::make_unique<QueuePair>();
  QueuePair* const qp = created.get();
  qp->qpn = kFirstQpn + static_cast<std::uint32_t>(qps_.size());
  qp->pd = pd;
  qp->send_cq = &send_cq;
  qp->recv_cq = &recv_cq;
  qp->cap = attr;
  scratch_ = protocol::SendWqe{};
  scratch_.is_datagram = attr.qp_type == protocol::QpType::kUd;
  scratch_.opcode = WqeOpcode::kAtomicCas;  // the largest header
  scratch_.sge_count = attr.max_send_sge;
  std::uint32_t blocks = protocol::wqe_blocks(scratch_);
  scratch_.opcode = WqeOpcode::kWrite;
  scratch_.inline_data = true;
  scratch_.length = attr.max_inline_data;
  blocks = std::max(blocks, protocol::wqe_blocks(scratch_));
  const std::uint32_t log_blocks = ceil_log2(std::uint64_t{attr.max_send_wr} * blocks);
  if (log_blocks > kMaxLogSendBlocks) return nullptr;
  qp->sq_log_blocks = static_cast<std::uint8_t>(log_blocks);
  qp->sq_address = allocate_ring(std::uint64_t{kWqeBlockBytes} << qp->sq_log_blocks);
  if (attr.srq != nullptr) {
    qp->cap.max_recv_wr = 0;
  } else if (attr.max_recv_wr > 0) {
    qp->rq_log_entries = static_cast<std::uint8_t>(ceil_log2(attr.max_recv_wr));
    qp->rq_address =
        allocate_ring((std::uint64_t{std::max(1U, attr.max_recv_sge)} * protocol::kWqeSegmentBytes)
                      << qp->rq_log_entries);
  }
  qp->doorbell_record = allocate_ring(kCacheLine);
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kCreateQp;
  mailbox.create_qp = {qp->qpn,
                       pd,
                       send_cq.cqn,
                       recv_cq.cqn,
                       qp->sq_address,
                       qp->rq_address,
                       qp->doorbell_record,
                       qp->sq_log_blocks,
                       qp->rq_log_entries,
                       std::max(1U, attr.max_recv_sge),
                       attr.srq != nullptr ? attr.srq->srqn : 0,
                       attr.qp_type};
  // Known before the command is carried out: another thread may create the next one meanwhile.
  qps_.push_back(std::move(created));
  if (execute(core, mailbox) != CommandStatus::kOk) {
    qps_[qp->qpn - kFirstQpn].reset();
    return nullptr;
  }
  use_pd(pd);
  ++send_cq.users;
  ++recv_cq.users;
  if (attr.srq != nullptr) ++attr.srq->users;
  return qp;
}

Status Context::modify_qp(Core& core, QueuePair& qp, const QpAttr& attr, std::uint32_t mask) {
  using protocol::QpState;
  const bool current_given = (mask & QpAttrMask::kCurState) != 0;
  const QpState current = current_given ? attr.cur_qp_state : qp.state;
  // Without kState attributes change and the state stays.
  const QpState target = (mask & QpAttrMask::kState) != 0 ? attr.qp_state : current;
  if (!protocol::qp_transition_allowed(qp.cap.qp_type, current, target, mask) ||
      !numbers_valid(attr, mask)) {
    return Status::kEinval;
  }
  constexpr std::uint32_t kMigration = QpAttrMask::kAltPath | QpAttrMask::kPathMigState;
  const bool new_path = (mask & QpAttrMask::kAltPath) != 0;
  if ((mask & QpAttrMask::kPathMigState) != 0 && !new_path && qp.alternate() == nullptr) {
    return Status::kEinval;  // there is nothing to migrate to
  }
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kModifyQp;
  protocol::ModifyQpCommand& m = mailbox.modify_qp;
  m.qpn = qp.qpn;
  m.mask = mask;
  m.state = target;
  m.current = current;
  m.access = attr.access_flags;
  m.qkey = attr.qkey;
  m.dest_qpn = attr.dest_qp_num;
  m.path_mtu = attr.path_mtu;
  m.rq_psn = attr.rq_psn;
  m.sq_psn = attr.sq_psn;
  m.timeout = attr.timeout;
  m.retry_count = attr.retry_cnt;
  m.rnr_retry = attr.rnr_retry;
  m.min_rnr_timer = attr.min_rnr_timer;
  m.max_rd_atomic = attr.max_rd_atomic;
  m.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  m.drain_event = attr.en_sqd_async_notify && (mask & QpAttrMask::kEnSqdAsyncNotify) != 0;
  m.av = attr.ah_attr;
  if (current == QpState::kRtr && target == QpState::kRts) core.spend(connection_setup_);
  const Status status = execute_status(core, mailbox);
  if (status != Status::kOk) return status;
  qp.state = target;
  if (target == QpState::kReset) {
    forget_work(qp);
    if (qp.extras != nullptr) qp.extras->alternate.reset();
  }
  return (mask & kMigration) != 0 ? modify_migration(core, qp, attr, mask) : Status::kOk;
}

bool Context::numbers_valid(const QpAttr& attr, std::uint32_t mask) {
  // One port, and a table of one partition key.
  constexpr std::uint8_t kPort = 1;
  constexpr std::uint32_t kLongestTimeout = 31;
  const auto has = [mask](std::uint32_t bit) { return (mask & bit) != 0; };
  if (has(QpAttrMask::kPort) && attr.port_num != kPort) return false;
  if (has(QpAttrMask::kPkeyIndex) && attr.pkey_index != 0) return false;
  if (has(QpAttrMask::kPathMigState) && attr.path_mig_state == protocol::PathMigration::kArmed) {
    return false;  // only the device gets there
  }
  return !has(QpAttrMask::kAltPath) || (attr.alt_port_num == kPort && attr.alt_pkey_index == 0 &&
                                        attr.alt_timeout <= kLongestTimeout);
}

Status Context::modify_migration(Core& core, QueuePair& qp, const QpAttr& attr,
                                 std::uint32_t mask) {
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kMigrateQp;
  mailbox.migrate_qp = {qp.qpn, mask, attr.path_mig_state, attr.alt_timeout, attr.alt_ah_attr};
  const Status status = execute_status(core, mailbox);
  if (status == Status::kOk && (mask & QpAttrMask::kAltPath) != 0) {
    qp.with_extras().alternate = std::make_unique<QpAttr>(attr);
  }
  return status;
}

void Context::forget_work(QueuePair& qp) {
  clean_cq(*qp.send_cq, qp);
  if (qp.recv_cq != qp.send_cq) clean_cq(*qp.recv_cq, qp);
  qp.sends.clear();
  qp.recvs.clear();
  qp.sq_head = qp.rq_head = 0;
  // The device reads the record again on the way to RTR.
  constexpr std::uint8_t kNothingPosted[protocol::DoorbellRecord::kBytes] = {};
  memory_.write(qp.doorbell_record, kNothingPosted, sizeof kNothingPosted);
}

Status Context::destroy_qp(Core& core, QueuePair* qp) {
  if (qp->extras != nullptr && !qp->extras->groups.empty()) return Status::kEbusy;
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kDestroyQp;
  mailbox.object = {qp->qpn};
  if (execute(core, mailbox) != CommandStatus::kOk) return Status::kEinval;
  forget_work(*qp);
  leave_pd(qp->pd);
  --qp->send_cq->users;
  --qp->recv_cq->users;
  if (qp->cap.srq != nullptr) --qp->cap.srq->users;
  qps_[qp->qpn - kFirstQpn].reset();
  return Status::kOk;
}

QueuePair* Context::find_qp(std::uint32_t qpn) {
  const std::uint32_t index = qpn - kFirstQpn;
  return index < qps_.size() ? qps_[index].get() : nullptr;
}

}  // namespace rnic::host::verbs
