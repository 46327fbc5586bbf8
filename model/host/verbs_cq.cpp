// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "host/verbs.h"
#include "host/verbs_internal.h"

namespace rnic::host::verbs {

namespace {

struct CqeRing {
  std::uint64_t address;
  std::uint32_t log_entries;
};

/// Copies a completion to the place that `index` has in `to`, with that place's owner bit.
void copy_cqe(PhysicalMemory& memory, const CqeRing& from, std::uint32_t from_index,
              const CqeRing& to, std::uint32_t index) {
  const auto place = [](const CqeRing& ring, std::uint32_t at) {
    const std::uint32_t slot = at & ((1U << ring.log_entries) - 1);
    return ring.address + std::uint64_t{slot} * protocol::kCqeBytes;
  };
  std::uint8_t bytes[protocol::kCqeBytes];
  memory.read(place(from, from_index), bytes, sizeof bytes);
  std::uint8_t& last = bytes[protocol::kCqeOwnerOffset];
  last = static_cast<std::uint8_t>((last & ~1U) | ((index >> to.log_entries) & 1U));
  memory.write(place(to, index), bytes, sizeof bytes);
}

/// A queue that may run over holds nothing at its consumer's place once that was overwritten: the
/// owner bit there is that of the next pass. What is behind it is there all the same, up to the
/// last place before it, which tells that this has happened. `valid`: whether a completion of that
/// number can be taken.
template <typename Valid>
void pass_over_overwritten(CompletionQueue& cq, const Valid& valid) {
  const bool may_run_over = cq.doorbell_record == 0;
  const std::uint32_t entries = 1U << cq.log_entries;
  if (!may_run_over || valid(cq.consumer) || !valid(cq.consumer + entries - 1)) return;
  while (!valid(cq.consumer)) ++cq.consumer;
}

}  // namespace

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::WqeOpcode;

std::uint64_t Context::make_cq_ring(std::uint32_t log_entries) {
  const std::uint64_t bytes = std::uint64_t{protocol::kCqeBytes} << log_entries;
  const std::uint64_t address = allocate_ring(bytes);
  // Every CQE starts out invalid, or the first pass would see owner bit 0 as "new".
  constexpr std::uint8_t kInvalid = 0xF0;
  for (std::uint64_t at = protocol::kCqeOwnerOffset; at < bytes; at += protocol::kCqeBytes) {
    memory_.write(address + at, &kInvalid, 1);
  }
  return address;
}

CompletionQueue* Context::create_cq(Core& core, const CqInitAttr& attr) {
  if (attr.entries == 0 || attr.entries > kMaxCqEntries) return nullptr;
  auto created = std::make_unique<CompletionQueue>();
  CompletionQueue* const cq = created.get();
  cq->cqn = static_cast<std::uint32_t>(cqs_.size()) + 1;
  cq->log_entries = ceil_log2(attr.entries);
  cq->ring_address = make_cq_ring(cq->log_entries);
  if (!attr.ignore_overrun) cq->doorbell_record = allocate_ring(kCacheLine);
  cq->channel = attr.channel;
  cq->watch = memory_.watch(cq->ring_address, std::uint64_t{protocol::kCqeBytes} << cq->log_entries,
                            &cq->written);
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kCreateCq;
  mailbox.create_cq = {cq->cqn,           cq->log_entries,    cq->ring_address, cq->doorbell_record,
                       kCompletionEvents, attr.ignore_overrun};
  // Known before the command is carried out: another thread may create the next one meanwhile.
  cqs_.push_back(std::move(created));
  if (execute_status(core, mailbox) != Status::kOk) {
    memory_.unwatch(cq->watch);
    cqs_[cq->cqn - 1].reset();
    return nullptr;
  }
  if (attr.channel != nullptr) ++attr.channel->users;
  return cq;
}

Status Context::modify_cq(Core& core, CompletionQueue& cq, const CqModeration& moderation) {
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kModifyCq;
  mailbox.modify_cq = {cq.cqn, moderation.count, moderation.period_us};
  return execute_status(core, mailbox);
}

Status Context::resize_cq(Core& core, CompletionQueue& cq, std::uint32_t entries) {
  core.sync();
  if (entries == 0 || entries > kMaxCqEntries || entries < visible_cqes(cq)) {
    return Status::kEinval;
  }
  const std::uint32_t log_entries = ceil_log2(entries);
  const std::uint64_t ring = make_cq_ring(log_entries);
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kResizeCq;
  mailbox.resize_cq = {cq.cqn, log_entries, ring};
  const Status status = execute_status(core, mailbox);
  if (status != Status::kOk) return status;
  // What the device wrote to the old ring before it changed over moves to the new one.
  const std::uint32_t waiting = visible_cqes(cq);
  const CqeRing from{cq.ring_address, cq.log_entries};
  const CqeRing to{ring, log_entries};
  for (std::uint32_t i = 0; i < waiting; ++i) {
    copy_cqe(memory_, from, cq.consumer + i, to, cq.consumer + i);
  }
  memory_.unwatch(cq.watch);
  cq.ring_address = ring;
  cq.log_entries = log_entries;
  cq.watch = memory_.watch(ring, std::uint64_t{protocol::kCqeBytes} << log_entries, &cq.written);
  return Status::kOk;
}

Status Context::destroy_cq(Core& core, CompletionQueue* cq) {
  if (cq->users > 0 || cq->events_unacked > 0) return Status::kEbusy;
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kDestroyCq;
  mailbox.object = {cq->cqn};
  const Status status = execute_status(core, mailbox);
  if (status != Status::kOk) return status;
  memory_.unwatch(cq->watch);
  if (cq->channel != nullptr) {
    --cq->channel->users;
    cq->channel->events.remove(cq);
  }
  cqs_[cq->cqn - 1].reset();
  return Status::kOk;
}

void Context::clean_cq(CompletionQueue& cq, const QueuePair& qp) {
  const CqeRing ring{cq.ring_address, cq.log_entries};
  std::uint32_t removed = 0;
  for (std::uint32_t i = visible_cqes(cq); i-- > 0;) {
    protocol::Cqe cqe;
    peek_cqe(cq, cq.consumer + i, cqe);
    if (cqe.qpn == qp.qpn) {
      if (cqe.is_responder() && !cqe.unsolicited && qp.cap.srq != nullptr) {
        free_srq_slot(*qp.cap.srq, cqe.wqe_counter);
      }
      ++removed;
    } else if (removed > 0) {
      copy_cqe(memory_, ring, cq.consumer + i, ring, cq.consumer + i + removed);
    }
  }
  if (removed == 0) return;
  cq.consumer += removed;
  write_consumer(cq);
}

void Context::write_consumer(const CompletionQueue& cq) {
  if (cq.doorbell_record == 0) return;
  std::uint8_t record[4];
  protocol::store_be32(record, cq.consumer);
  memory_.write(cq.doorbell_record, record, sizeof record);
}

std::uint32_t Context::visible_cqes(const CompletionQueue& cq) const {
  protocol::Cqe cqe;
  std::uint32_t count = 0;
  while (count < 1U << cq.log_entries && peek_cqe(cq, cq.consumer + count, cqe)) ++count;
  return count;
}

bool Context::peek_cqe(const CompletionQueue& cq, std::uint32_t index, protocol::Cqe& cqe) const {
  const std::uint32_t slot = index & ((1U << cq.log_entries) - 1);
  std::uint8_t bytes[protocol::kCqeBytes];
  memory_.read(cq.ring_address + std::uint64_t{slot} * protocol::kCqeBytes, bytes, sizeof bytes);
  cqe = protocol::decode_cqe(bytes);
  const bool owner = ((index >> cq.log_entries) & 1) != 0;
  return cqe.kind != protocol::Cqe::Kind::kInvalid && cqe.owner == owner;
}

std::uint32_t Context::poll_cq(Core& core, CompletionQueue& cq, std::uint32_t count, Wc* wcs) {
  core.spend(cpu_.poll_cost);
  core.sync();
  ++stats_.polls;
  std::uint32_t taken = 0;
  protocol::Cqe cqe;
  pass_over_overwritten(cq, [&](std::uint32_t index) { return peek_cqe(cq, index, cqe); });
  while (taken < count && peek_cqe(cq, cqe)) {
    to_wc(cqe, wcs[taken++]);
    ++cq.consumer;
    core.spend(cpu_.cqe_cost);
  }
  if (taken > 0) write_consumer(cq);
  return taken;
}

bool Context::wait_cq(Core& core, CompletionQueue& cq, Time deadline) {
  core.sync();
  protocol::Cqe cqe;
  pass_over_overwritten(cq, [&](std::uint32_t index) { return peek_cqe(cq, index, cqe); });
  while (!peek_cqe(cq, cqe) && !cq.failed) {
    if (!cq.written.spin(core, cpu_.poll_cost, cq.written.writes(), deadline)) return false;
  }
  return true;
}

void Context::to_wc(const protocol::Cqe& cqe, Wc& wc) {
  wc = Wc{};
  wc.status = cqe.status;
  wc.vendor_err = cqe.vendor_syndrome;
  wc.qp_num = cqe.qpn;
  wc.byte_len = cqe.byte_count;
  QueuePair* qp = find_qp(cqe.qpn);
  if (qp == nullptr) panic(name(), "a CQE names an unknown queue pair");
  if (cqe.is_responder()) {
    using Kind = protocol::Cqe::Kind;
    wc.opcode = cqe.kind == Kind::kRespWriteImm ? protocol::WcOpcode::kRecvRdmaWithImm
                                                : protocol::WcOpcode::kRecv;
    wc.src_qp = cqe.src_qp;
    wc.slid = cqe.slid;
    wc.sl = cqe.sl;
    wc.imm_data = cqe.imm;
    if (cqe.grh) wc.wc_flags |= Wc::kGrh;
    if (cqe.kind == Kind::kRespWriteImm || cqe.kind == Kind::kRespSendImm) {
      wc.wc_flags |= Wc::kWithImm;
    }
    if (cqe.kind == Kind::kRespSendInv) {
      wc.wc_flags |= Wc::kWithInv;
      wc.invalidated_rkey = cqe.imm;
    }
    if (cqe.unsolicited) {
      wc.wc_flags |= Wc::kUnsolicited;
      return;
    }
    if (SharedReceiveQueue* srq = qp->cap.srq; srq != nullptr) {
      wc.wr_id = srq->wr_ids[cqe.wqe_counter];
      free_srq_slot(*srq, cqe.wqe_counter);
    } else {
      wc.wr_id = qp->recvs.front();
      qp->recvs.pop_front();
    }
    // A message that is too long costs UC and UD one RECV at most (nic.long_message).
    const bool fatal = qp->cap.qp_type == protocol::QpType::kRc ||
                       wc.status != protocol::WcStatus::kLocalLengthError;
    if (wc.status != protocol::WcStatus::kSuccess && fatal) learn_of_error(*qp);
    return;
  }
  switch (cqe.opcode) {
    case WqeOpcode::kWrite:
    case WqeOpcode::kWriteImm:
      wc.opcode = protocol::WcOpcode::kRdmaWrite;
      break;
    case WqeOpcode::kRead:
      wc.opcode = protocol::WcOpcode::kRdmaRead;
      break;
    case WqeOpcode::kAtomicCas:
      wc.opcode = protocol::WcOpcode::kCompSwap;
      break;
    case WqeOpcode::kAtomicFadd:
      wc.opcode = protocol::WcOpcode::kFetchAdd;
      break;
    case WqeOpcode::kBindMw:
      wc.opcode = protocol::WcOpcode::kBindMw;
      break;
    case WqeOpcode::kLocalInval:
      wc.opcode = protocol::WcOpcode::kLocalInv;
      break;
    case WqeOpcode::kFastReg:
      wc.opcode = protocol::WcOpcode::kRegMr;
      break;
    default:
      wc.opcode = protocol::WcOpcode::kSend;
      break;
  }
  // A completion frees its own slot and those of all unsignalled requests before it.
  while (!qp->sends.empty()) {
    const QueuePair::PostedSend done = qp->sends.front();
    qp->sends.pop_front();
    wc.wr_id = done.wr_id;
    if (done.index == cqe.wqe_counter) break;
  }
  if (wc.status == protocol::WcStatus::kSuccess || qp->state == protocol::QpState::kError) return;
  if (qp->cap.qp_type == protocol::QpType::kRc) {
    learn_of_error(*qp);
  } else {
    qp->state = protocol::QpState::kSqe;
  }
}

}  // namespace rnic::host::verbs
