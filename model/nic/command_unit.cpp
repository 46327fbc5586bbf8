// SPDX-License-Identifier: Apache-2.0
#include "nic/command_unit.h"

namespace rnic::nic {

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::QpAttrMask;
using protocol::QpState;

CommandUnit::CommandUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                         transport::Transport& transport, QpTable& queue_pairs)
    : sc_module(name),
      transport_(transport),
      queue_pairs_(queue_pairs),
      latency_(config.command_latency),
      max_rd_atomic_(config.max_rd_atomic),
      executing_("executing", this, &CommandUnit::run) {
  commands.bind(*this);
}

void CommandUnit::execute(std::uint64_t mailbox_address, Time t) {
  Command* command = pool_.take();
  command->address = mailbox_address;
  dma->dma_read(t, mailbox_address, sizeof command->mailbox,
                reinterpret_cast<std::uint8_t*>(&command->mailbox), tlm_ext::Purpose::kCommand,
                this, reinterpret_cast<std::uint64_t>(command));
}

void CommandUnit::dma_done(std::uint64_t token) {
  executing_.post(firmware_.reserve(sim_now(), latency_).end, reinterpret_cast<Command*>(token));
}

void CommandUnit::run(Command*& command) {
  const Time now = sim_now();
  const auto status = static_cast<std::uint8_t>(dispatch(command->mailbox, now));
  dma->dma_write(now, command->address + protocol::kCommandStatusOffset, 1, &status,
                 tlm_ext::Purpose::kCommand, nullptr, 0);
  pool_.give(command);
}

CommandStatus CommandUnit::dispatch(const protocol::CommandMailbox& mailbox, Time now) {
  switch (mailbox.opcode) {
    case CommandOpcode::kCreateCq:
      completion_queues->create(mailbox.create_cq.cqn, mailbox.create_cq.ring_address,
                                mailbox.create_cq.log_entries);
      return CommandStatus::kOk;
    case CommandOpcode::kCreateQp:
      create_qp(mailbox.create_qp);
      return CommandStatus::kOk;
    case CommandOpcode::kModifyQp:
      return modify_qp(mailbox.modify_qp, now);
    case CommandOpcode::kDestroyQp: {
      QpContext* qp = queue_pairs_.find(mailbox.destroy_qp.qpn);
      if (qp == nullptr) return CommandStatus::kBadResource;
      // Packets in flight may still refer to the object: it stays, deaf, until its number is
      // reused.
      reset(*qp);
      return CommandStatus::kOk;
    }
    case CommandOpcode::kInvalidateMkey:
      translation->invalidate(mailbox.invalidate_mkey.key, mailbox.invalidate_mkey.first_mtt,
                              mailbox.invalidate_mkey.mtt_count);
      return CommandStatus::kOk;
  }
  return CommandStatus::kBadParameter;
}

void CommandUnit::create_qp(const protocol::CreateQpCommand& create) {
  QpContext& qp = queue_pairs_.create(create.qpn);
  qp.pd = create.pd;
  qp.send_cqn = create.send_cqn;
  qp.recv_cqn = create.recv_cqn;
  qp.sq_address = create.sq_address;
  qp.sq_log_blocks = create.sq_log_blocks;
  qp.rq_address = create.rq_address;
  qp.rq_log_entries = create.rq_log_entries;
  qp.rq_max_sge = create.rq_max_sge;
  qp.doorbell_record = create.doorbell_record;
}

CommandStatus CommandUnit::modify_qp(const protocol::ModifyQpCommand& modify, Time now) {
  QpContext* qp = queue_pairs_.find(modify.qpn);
  if (qp == nullptr) return CommandStatus::kBadResource;
  if (!protocol::rc_transition_allowed(qp->state, modify.state, modify.mask)) {
    return CommandStatus::kBadParameter;
  }
  const bool too_many_reads =
      ((modify.mask & QpAttrMask::kMaxQpRdAtomic) != 0 && modify.max_rd_atomic > max_rd_atomic_) ||
      ((modify.mask & QpAttrMask::kMaxDestRdAtomic) != 0 &&
       modify.max_dest_rd_atomic > max_rd_atomic_);
  if (too_many_reads) return CommandStatus::kBadParameter;
  apply(*qp, modify);
  const QpState from = qp->state;
  if (modify.state == QpState::kReset) {
    reset(*qp);
    return CommandStatus::kOk;
  }
  if (modify.state == QpState::kError) {
    completion->fail(*qp, now);
    return CommandStatus::kOk;
  }
  qp->state = modify.state;
  if (from == QpState::kInit && modify.state == QpState::kRtr) {
    transport_.connect(*qp);
    recv_queues->prefetch(*qp, now);
  }
  if (from == QpState::kRtr && modify.state == QpState::kRts) transport_.start_sending(*qp);
  if (modify.state == QpState::kRts) scheduler->activate(*qp, now);
  return CommandStatus::kOk;
}

void CommandUnit::apply(QpContext& qp, const protocol::ModifyQpCommand& modify) {
  const auto has = [&modify](std::uint32_t bit) { return (modify.mask & bit) != 0; };
  if (has(QpAttrMask::kAccessFlags)) qp.access = modify.access;
  if (has(QpAttrMask::kDestQpn)) qp.dest_qpn = modify.dest_qpn;
  if (has(QpAttrMask::kPathMtu)) qp.mtu = modify.path_mtu;
  if (has(QpAttrMask::kRqPsn)) qp.expected_psn = modify.rq_psn;
  if (has(QpAttrMask::kSqPsn)) qp.next_psn = modify.sq_psn;
  if (has(QpAttrMask::kTimeout)) qp.timeout_exponent = modify.timeout;
  if (has(QpAttrMask::kRetryCnt)) qp.retry_count = modify.retry_count;
  if (has(QpAttrMask::kRnrRetry)) qp.rnr_retry = modify.rnr_retry;
  if (has(QpAttrMask::kMinRnrTimer)) qp.min_rnr_timer = modify.min_rnr_timer;
  if (has(QpAttrMask::kMaxQpRdAtomic)) qp.max_rd_atomic = modify.max_rd_atomic;
  if (has(QpAttrMask::kMaxDestRdAtomic)) qp.max_dest_rd_atomic = modify.max_dest_rd_atomic;
  if (has(QpAttrMask::kAv)) qp.av = modify.av;
}

void CommandUnit::reset(QpContext& qp) {
  qp.state = QpState::kReset;
  qp.sq_base += qp.sq.size();
  qp.sq.clear();
  qp.tx_number = qp.sq_base;
  qp.tx_offset = 0;
  qp.outstanding_reads = 0;
  qp.sq_producer = qp.sq_fetched = 0;
  qp.rq.clear();
  qp.rq_producer = qp.rq_fetched = qp.rq_consumed = 0;
  qp.responses.clear();
  qp.retry_deadline = kTimeNever;
  qp.failed = false;
}

}  // namespace rnic::nic
