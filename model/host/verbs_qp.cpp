// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::kWqeBlockBytes;
using protocol::WqeOpcode;

QueuePair* Context::create_qp(Core& core, std::uint32_t pd, CompletionQueue& send_cq,
                              CompletionQueue& recv_cq, const QpInitAttr& attr) {
  if (attr.max_inline_data > nic_.max_inline || attr.max_send_sge > nic_.max_sge ||
      attr.max_recv_sge > nic_.max_sge || attr.max_send_wr == 0) {
    return nullptr;
  }
  auto created = std::make_unique<QueuePair>();
  QueuePair* const qp = created.get();
  qp->qpn = kFirstQpn + static_cast<std::uint32_t>(qps_.size());
  qp->send_cq = &send_cq;
  qp->recv_cq = &recv_cq;
  qp->cap = attr;
  scratch_ = protocol::SendWqe{};
  scratch_.opcode = WqeOpcode::kAtomicCas;  // the largest header
  scratch_.sge_count = attr.max_send_sge;
  std::uint32_t blocks = protocol::wqe_blocks(scratch_);
  scratch_.opcode = WqeOpcode::kWrite;
  scratch_.inline_data = true;
  scratch_.length = attr.max_inline_data;
  blocks = std::max(blocks, protocol::wqe_blocks(scratch_));
  qp->sq_log_blocks = ceil_log2(std::uint64_t{attr.max_send_wr} * blocks);
  if (qp->sq_log_blocks > 15) return nullptr;  // 16-bit indices
  qp->sq_address = allocate_ring(std::uint64_t{kWqeBlockBytes} << qp->sq_log_blocks);
  if (attr.max_recv_wr > 0) {
    qp->rq_log_entries = ceil_log2(attr.max_recv_wr);
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
                       std::max(1U, attr.max_recv_sge)};
  // Known before the command is carried out: another thread may create the next one meanwhile.
  qps_.push_back(std::move(created));
  if (execute(core, mailbox) == CommandStatus::kOk) return qp;
  qps_[qp->qpn - kFirstQpn].reset();
  return nullptr;
}

Status Context::modify_qp(Core& core, QueuePair& qp, const QpAttr& attr, std::uint32_t mask) {
  if (!protocol::rc_transition_allowed(qp.state, attr.qp_state, mask)) return Status::kEinval;
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kModifyQp;
  protocol::ModifyQpCommand& m = mailbox.modify_qp;
  m.qpn = qp.qpn;
  m.mask = mask;
  m.state = attr.qp_state;
  m.access = attr.access_flags;
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
  m.av = attr.ah_attr;
  using protocol::QpState;
  if (qp.state == QpState::kRtr && attr.qp_state == QpState::kRts) core.spend(connection_setup_);
  if (execute(core, mailbox) != CommandStatus::kOk) return Status::kEinval;
  qp.state = attr.qp_state;
  if (attr.qp_state == protocol::QpState::kReset) {
    qp.sends.clear();
    qp.recvs.clear();
    qp.sq_head = qp.rq_head = 0;
    // The device reads the record again on the way to RTR.
    const std::uint8_t empty[protocol::DoorbellRecord::kBytes] = {};
    memory_.write(qp.doorbell_record, empty, sizeof empty);
  }
  return Status::kOk;
}

QueuePair* Context::find_qp(std::uint32_t qpn) {
  const std::uint32_t index = qpn - kFirstQpn;
  return index < qps_.size() ? qps_[index].get() : nullptr;
}

}  // namespace rnic::host::verbs
