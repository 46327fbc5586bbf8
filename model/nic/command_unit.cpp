// SPDX-License-Identifier: Apache-2.0
#include "nic/command_unit.h"

#include <cstddef>

#include "transport/path_migration.h"

namespace rnic::nic {

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::QpAttrMask;
using protocol::QpState;

namespace {

/// A value that has been found within its range, into a field just wide enough for it.
template <typename Field>
void set(Field& field, std::uint32_t value) {
  field = static_cast<Field>(value);
}

}  // namespace

CommandUnit::CommandUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                         transport::Transport& transport, QpTable& queue_pairs, bool path_mtus)
    : sc_module(name),
      transport_(transport),
      queue_pairs_(queue_pairs),
      latency_(config.command_latency),
      max_rd_atomic_(config.max_rd_atomic),
      any_mtu_(!path_mtus),
      executing_("executing", this, &CommandUnit::run),
      failing_("failing", this, &CommandUnit::device_failed) {
  commands.bind(*this);
}

void CommandUnit::execute(std::uint64_t mailbox_address, Time t) {
  Command* command = pool_.take();
  command->address = mailbox_address;
  command->unreadable = false;
  dma->dma_read(t, mailbox_address, sizeof command->mailbox,
                reinterpret_cast<std::uint8_t*>(&command->mailbox), tlm_ext::Purpose::kCommand,
                this, reinterpret_cast<std::uint64_t>(command));
}

void CommandUnit::dma_done(std::uint64_t token) {
  executing_.post(firmware_.reserve(sim_now(), latency_).end, reinterpret_cast<Command*>(token));
}

void CommandUnit::dma_failed(const pcie::DmaFault& fault) {
  reinterpret_cast<Command*>(fault.token)->unreadable = true;
  dma_done(fault.token);
}

void CommandUnit::start_of_simulation() {
  if (fails_at_ != kTimeNever) failing_.post(fails_at_, 0);
}

/// What was posted comes back unexecuted, as from a queue pair in error.
void CommandUnit::device_failed(std::uint32_t& /*unused*/) {
  const Time now = sim_now();
  failed_ = true;
  if (events.size() > 0) events->raise({protocol::EventType::kDeviceFatal, 0}, now);
  for (std::uint32_t qpn = 0; qpn < queue_pairs_.size(); ++qpn) {
    QpContext* qp = queue_pairs_.find(qpn);
    if (qp != nullptr && qp->state != QpState::kReset) completion->fail(*qp, now);
  }
}

void CommandUnit::run(Command*& command) {
  const Time now = sim_now();
  protocol::CommandMailbox& mailbox = command->mailbox;
  const CommandStatus status =
      command->unreadable ? CommandStatus::kDeviceFailed : dispatch(mailbox, now);
  if (mailbox.opcode == CommandOpcode::kQueryQp && status == CommandStatus::kOk) {
    // The attributes first: the status tells that they are there.
    constexpr std::size_t kBody = offsetof(protocol::CommandMailbox, modify_qp);
    dma->dma_write(now, command->address + kBody, sizeof mailbox.modify_qp,
                   reinterpret_cast<const std::uint8_t*>(&mailbox.modify_qp),
                   tlm_ext::Purpose::kCommand, nullptr, 0);
    dma->dma_write(now, command->address + protocol::kCommandDetailOffset, 1, &mailbox.detail,
                   tlm_ext::Purpose::kCommand, nullptr, 0);
  }
  // The bytes from the status on, which a query's result follows.
  const std::uint8_t answer[2] = {static_cast<std::uint8_t>(status), result_};
  dma->dma_write(now, command->address + protocol::kCommandStatusOffset, sizeof answer, answer,
                 tlm_ext::Purpose::kCommand, nullptr, 0);
  pool_.give(command);
}

CommandStatus CommandUnit::dispatch(protocol::CommandMailbox& mailbox, Time now) {
  result_ = 0;
  if (failed_) return CommandStatus::kDeviceFailed;
  switch (mailbox.opcode) {
    case CommandOpcode::kCreateQp:
    case CommandOpcode::kModifyQp:
    case CommandOpcode::kDestroyQp:
    case CommandOpcode::kQueryQp:
    case CommandOpcode::kMigrateQp:
      return dispatch_qp(mailbox, now);
    case CommandOpcode::kQueryPort:
      if (port_ == nullptr) return CommandStatus::kBadResource;
      result_ = static_cast<std::uint8_t>(port_->state());
      return CommandStatus::kOk;
    case CommandOpcode::kInvalidateMkey:
      translation->invalidate(mailbox.invalidate_mkey.key, mailbox.invalidate_mkey.first_mtt,
                              mailbox.invalidate_mkey.mtt_count);
      return CommandStatus::kOk;
    case CommandOpcode::kAddAddress:
    case CommandOpcode::kDropAddress:
      return note_address(mailbox);
    case CommandOpcode::kAttachMcast:
    case CommandOpcode::kDetachMcast:
      return join_group(mailbox);
    case CommandOpcode::kCreateEq:
      if (events.size() == 0) return CommandStatus::kBadParameter;
      events->create(mailbox.create_eq);
      return CommandStatus::kOk;
    default:
      return dispatch_queue(mailbox, now);
  }
}

CommandStatus CommandUnit::note_address(const protocol::CommandMailbox& mailbox) {
  if (address_book_ == nullptr) return CommandStatus::kBadParameter;
  if (mailbox.opcode == CommandOpcode::kAddAddress) {
    address_book_->add(mailbox.address.pd, mailbox.address.av);
  } else {
    address_book_->drop(mailbox.address.pd, mailbox.address.av);
  }
  return CommandStatus::kOk;
}

CommandStatus CommandUnit::join_group(const protocol::CommandMailbox& mailbox) {
  const protocol::MulticastCommand& command = mailbox.multicast;
  const QpContext* qp = queue_pairs_.find(command.qpn);
  if (groups_ == nullptr || qp == nullptr || qp->type != protocol::QpType::kUd) {
    return CommandStatus::kBadResource;
  }
  if (mailbox.opcode == CommandOpcode::kAttachMcast) {
    return groups_->attach(command.group, command.qpn) ? CommandStatus::kOk
                                                       : CommandStatus::kNoRoom;
  }
  return groups_->detach(command.group, command.qpn) ? CommandStatus::kOk
                                                     : CommandStatus::kBadResource;
}

CommandStatus CommandUnit::dispatch_queue(const protocol::CommandMailbox& mailbox, Time now) {
  const auto found = [](bool ok) { return ok ? CommandStatus::kOk : CommandStatus::kBadResource; };
  switch (mailbox.opcode) {
    case CommandOpcode::kCreateCq:
      completion_queues->create(mailbox.create_cq);
      return CommandStatus::kOk;
    case CommandOpcode::kModifyCq:
      return found(completion_queues->modify(mailbox.modify_cq));
    case CommandOpcode::kResizeCq:
      return found(completion_queues->resize(mailbox.resize_cq));
    case CommandOpcode::kDestroyCq:
      return found(completion_queues->destroy(mailbox.object.number));
    case CommandOpcode::kCreateSrq:
      recv_queues->create_shared(mailbox.create_srq);
      return CommandStatus::kOk;
    case CommandOpcode::kArmSrq: {
      RecvQueue* queue = recv_queues->find_shared(mailbox.arm_srq.srqn);
      if (queue != nullptr) recv_queues->arm_limit(*queue, mailbox.arm_srq.limit, now);
      return found(queue != nullptr);
    }
    case CommandOpcode::kResizeSrq:
      return found(recv_queues->resize_shared(mailbox.resize_srq));
    case CommandOpcode::kDestroySrq:
      recv_queues->destroy_shared(mailbox.object.number);
      return CommandStatus::kOk;
    default:
      return CommandStatus::kBadParameter;
  }
}

CommandStatus CommandUnit::dispatch_qp(protocol::CommandMailbox& mailbox, Time now) {
  if (mailbox.opcode == CommandOpcode::kCreateQp) return create_qp(mailbox.create_qp);
  if (mailbox.opcode == CommandOpcode::kModifyQp) return modify_qp(mailbox.modify_qp, now);
  if (mailbox.opcode == CommandOpcode::kMigrateQp) return migrate_qp(mailbox.migrate_qp, now);
  QpContext* qp = queue_pairs_.find(mailbox.object.number);
  if (qp == nullptr) return CommandStatus::kBadResource;
  if (mailbox.opcode == CommandOpcode::kQueryQp) {
    answer_query(*qp, mailbox);
    return CommandStatus::kOk;
  }
  // Packets in flight may still refer to the object: it stays, deaf, until its number is reused.
  reset(*qp, now);
  return CommandStatus::kOk;
}

void CommandUnit::answer_query(const QpContext& qp, protocol::CommandMailbox& mailbox) {
  result_ = static_cast<std::uint8_t>(qp.state);
  const bool idle = qp.sq.empty() || !qp.sq.front().issued;
  mailbox.detail = qp.state == QpState::kSqd && !idle ? protocol::QueryQpDetail::kDraining : 0;
  if (qp.migration != nullptr) {
    mailbox.detail |= static_cast<std::uint8_t>(qp.migration->state);
  }
  protocol::ModifyQpCommand& m = mailbox.modify_qp;
  m = protocol::ModifyQpCommand{};
  m.qpn = qp.qpn;
  m.state = m.current = qp.state;
  m.access = qp.access;
  m.qkey = qp.qkey;
  m.dest_qpn = qp.dest_qpn;
  m.path_mtu = qp.mtu;
  m.rq_psn = qp.expected_psn;
  m.sq_psn = qp.next_psn;
  m.timeout = qp.timeout_exponent;
  m.retry_count = qp.retry_count;
  m.rnr_retry = qp.rnr_retry;
  m.min_rnr_timer = qp.min_rnr_timer;
  m.max_rd_atomic = qp.max_rd_atomic;
  m.max_dest_rd_atomic = qp.max_dest_rd_atomic;
  m.av = qp.av;
}

/// The alternate path is loaded first: a call may bring it and arm it.
CommandStatus CommandUnit::migrate_qp(const protocol::MigrateQpCommand& command, Time now) {
  using protocol::PathMigration;
  QpContext* qp = queue_pairs_.find(command.qpn);
  if (qp == nullptr) return CommandStatus::kBadResource;
  if (any_mtu_) return CommandStatus::kBadParameter;  // iWARP: TCP has one path
  if ((command.mask & QpAttrMask::kAltPath) != 0) {
    if (qp->migration == nullptr) qp->migration = std::make_unique<transport::MigrationPath>();
    qp->migration->alternate = command.av;
    qp->migration->timeout_exponent = command.timeout;
    qp->migration->refused = false;
  }
  if ((command.mask & QpAttrMask::kPathMigState) == 0) return CommandStatus::kOk;
  if (qp->migration == nullptr || command.state == PathMigration::kArmed) {
    return CommandStatus::kBadParameter;
  }
  if (command.state == PathMigration::kRearm) {
    qp->migration->state = PathMigration::kRearm;
    qp->migration->moved = false;
  } else if (transport::migrate(*qp)) {
    completion->retire(*qp, now);  // tells of it
  }
  return CommandStatus::kOk;
}

CommandStatus CommandUnit::create_qp(const protocol::CreateQpCommand& create) {
  RecvQueue* shared = nullptr;
  if (create.srqn != 0) {
    shared = recv_queues->find_shared(create.srqn);
    if (shared == nullptr) return CommandStatus::kBadResource;
  }
  QpContext& qp = queue_pairs_.create(create.qpn);
  qp.type = create.type;
  qp.pd = create.pd;
  qp.send_cqn = create.send_cqn;
  qp.recv_cqn = create.recv_cqn;
  qp.sq_address = create.sq_address;
  qp.sq_log_blocks = create.sq_log_blocks;
  qp.own_rq.ring_address = create.rq_address;
  qp.own_rq.log_entries = create.rq_log_entries;
  qp.own_rq.max_sge = create.rq_max_sge;
  qp.own_rq.doorbell_record = create.doorbell_record;
  if (shared != nullptr) qp.rq = shared;
  return CommandStatus::kOk;
}

bool CommandUnit::values_valid(const protocol::ModifyQpCommand& modify) const {
  const auto within = [&modify](std::uint32_t bit, std::uint32_t value, std::uint32_t limit) {
    return (modify.mask & bit) == 0 || value <= limit;
  };
  constexpr std::uint32_t kThreeBits = 7;
  constexpr std::uint32_t kFiveBits = 31;
  constexpr std::uint32_t kNumberBits = 0xFF'FFFF;
  const std::uint32_t mtu = modify.path_mtu;
  const bool mtu_known = mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096;
  return ((modify.mask & QpAttrMask::kPathMtu) == 0 || mtu_known || any_mtu_) &&
         within(QpAttrMask::kMaxQpRdAtomic, modify.max_rd_atomic, max_rd_atomic_) &&
         within(QpAttrMask::kMaxDestRdAtomic, modify.max_dest_rd_atomic, max_rd_atomic_) &&
         within(QpAttrMask::kTimeout, modify.timeout, kFiveBits) &&
         within(QpAttrMask::kMinRnrTimer, modify.min_rnr_timer, kFiveBits) &&
         within(QpAttrMask::kRetryCnt, modify.retry_count, kThreeBits) &&
         within(QpAttrMask::kRnrRetry, modify.rnr_retry, kThreeBits) &&
         within(QpAttrMask::kDestQpn, modify.dest_qpn, kNumberBits);
}

CommandStatus CommandUnit::modify_qp(const protocol::ModifyQpCommand& modify, Time now) {
  QpContext* qp = queue_pairs_.find(modify.qpn);
  if (qp == nullptr) return CommandStatus::kBadResource;
  const bool elsewhere = (modify.mask & QpAttrMask::kCurState) != 0 && modify.current != qp->state;
  if (elsewhere ||
      !protocol::qp_transition_allowed(qp->type, qp->state, modify.state, modify.mask) ||
      !values_valid(modify)) {
    return CommandStatus::kBadParameter;
  }
  apply(*qp, modify);
  const QpState from = qp->state;
  if (modify.state == QpState::kReset) {
    reset(*qp, now);
    return CommandStatus::kOk;
  }
  if (modify.state == QpState::kError) {
    completion->fail(*qp, now);
    return CommandStatus::kOk;
  }
  qp->state = modify.state;
  if (from == QpState::kSqe) qp->send_failed = false;
  if (from == QpState::kInit && modify.state == QpState::kRtr) {
    transport_.connect(*qp);
    recv_queues->prefetch(*qp, now);
  }
  if (from == QpState::kRtr && modify.state == QpState::kRts) start_sending(*qp, now);
  if (modify.state == QpState::kRts) scheduler->activate(*qp, now);
  if (from == QpState::kRts && modify.state == QpState::kSqd) {
    qp->drain_event = modify.drain_event;
    completion->retire(*qp, now);  // nothing may be under way
  }
  return CommandStatus::kOk;
}

/// Also an end that waits for its peer has a deadline.
void CommandUnit::start_sending(QpContext& qp, Time now) {
  transport_.start_sending(qp, now);
  timer->update(qp);
}

void CommandUnit::apply(QpContext& qp, const protocol::ModifyQpCommand& modify) {
  const auto has = [&modify](std::uint32_t bit) { return (modify.mask & bit) != 0; };
  if (has(QpAttrMask::kAccessFlags)) qp.access = modify.access;
  if (has(QpAttrMask::kQkey)) qp.qkey = modify.qkey;
  if (has(QpAttrMask::kDestQpn)) qp.dest_qpn = modify.dest_qpn;
  if (has(QpAttrMask::kPathMtu)) qp.mtu = modify.path_mtu;
  if (has(QpAttrMask::kRqPsn)) qp.expected_psn = modify.rq_psn;
  if (has(QpAttrMask::kSqPsn)) qp.next_psn = modify.sq_psn;
  if (has(QpAttrMask::kTimeout)) set(qp.timeout_exponent, modify.timeout);
  if (has(QpAttrMask::kRetryCnt)) set(qp.retry_count, modify.retry_count);
  if (has(QpAttrMask::kRnrRetry)) set(qp.rnr_retry, modify.rnr_retry);
  if (has(QpAttrMask::kMinRnrTimer)) set(qp.min_rnr_timer, modify.min_rnr_timer);
  if (has(QpAttrMask::kMaxQpRdAtomic)) set(qp.max_rd_atomic, modify.max_rd_atomic);
  if (has(QpAttrMask::kMaxDestRdAtomic)) set(qp.max_dest_rd_atomic, modify.max_dest_rd_atomic);
  if (has(QpAttrMask::kAv)) qp.av = modify.av;
}

void CommandUnit::reset(QpContext& qp, Time now) {
  if (qp.kept_head != nullptr && responder.size() > 0) responder->release_kept(qp, now);
  qp.state = QpState::kReset;
  qp.sq_base += qp.sq.size();
  qp.sq.clear();
  qp.tx_number = qp.sq_base;
  qp.tx_offset = 0;
  qp.dc.reset();
  qp.outstanding_reads = 0;
  qp.sq_producer = qp.sq_fetched = 0;
  wqes->forsake(qp);
  qp.sq_cut.reset();
  qp.sq_read_failures = 0;
  qp.recv_held = false;
  qp.drain_event = qp.send_failed = false;
  qp.established = false;
  qp.responses.clear();
  qp.retry_deadline = kTimeNever;
  qp.failed = qp.recv_told = false;
  qp.migration.reset();
  for (TxJob* job = qp.tx_head; job != nullptr; job = job->next) {
    job->failed = job->dropped = true;  // its payload is being read, and nobody wants it any more
  }
  for (RxJob* first : {qp.rx_head, qp.early}) {
    for (RxJob* job = first; job != nullptr; job = job->next) job->forsaken = true;
  }
  recv_queues->forget(qp, now);
  if (transport_.disconnect(qp)) scheduler->activate(qp, now);
}

}  // namespace rnic::nic
