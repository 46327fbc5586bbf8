// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;
using protocol::kSrqNextBytes;

namespace {

std::uint32_t stride_of(const SharedReceiveQueue& srq) {
  return kSrqNextBytes + srq.cap.max_sge * protocol::kWqeSegmentBytes;
}

}  // namespace

SharedReceiveQueue* Context::create_srq(Core& core, std::uint32_t pd, const SrqInitAttr& attr) {
  if (!pd_exists(pd) || attr.max_wr == 0 || attr.max_wr > kMaxSrqWr || attr.max_sge == 0 ||
      attr.max_sge > nic_.max_sge) {
    return nullptr;
  }
  auto created = std::make_unique<SharedReceiveQueue>();
  SharedReceiveQueue* const srq = created.get();
  srq->srqn = static_cast<std::uint32_t>(srqs_.size()) + 1;
  srq->pd = pd;
  srq->cap = attr;
  // One slot stays free: the last RECV's WQE must name a slot for the next.
  srq->log_entries = ceil_log2(std::uint64_t{attr.max_wr} + 1);
  const std::uint32_t slots = 1U << srq->log_entries;
  srq->ring_address = allocate_ring(std::uint64_t{stride_of(*srq)} << srq->log_entries);
  srq->doorbell_record = allocate_ring(kCacheLine);
  srq->wr_ids.resize(slots);
  srq->next.resize(slots);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    srq->next[slot] = static_cast<std::uint16_t>(slot + 1);
  }
  srq->tail = static_cast<std::uint16_t>(slots - 1);
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kCreateSrq;
  mailbox.create_srq = {
      srq->srqn, srq->log_entries, srq->ring_address, srq->doorbell_record, attr.max_sge, pd};
  srqs_.push_back(std::move(created));  // as a CQ
  if (execute_status(core, mailbox) != Status::kOk) {
    srqs_[srq->srqn - 1].reset();
    return nullptr;
  }
  use_pd(pd);
  return srq;
}

Status Context::modify_srq(Core& core, SharedReceiveQueue& srq, std::uint32_t limit) {
  if (limit > srq.cap.max_wr) return Status::kEinval;
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kArmSrq;
  mailbox.arm_srq = {srq.srqn, limit};
  srq.limit = limit;  // before the event that may follow at once
  return execute_status(core, mailbox);
}

/// The new ring starts with the old one's slots, so that the list of what is posted and of what is
/// free stays as it is, and has further free ones behind them.
Status Context::resize_srq(Core& core, SharedReceiveQueue& srq, std::uint32_t max_wr) {
  core.sync();
  if (max_wr == 0 || max_wr > kMaxSrqWr || max_wr < srq.outstanding || srq.next_ring != 0) {
    return Status::kEinval;
  }
  const std::uint32_t log_entries = ceil_log2(std::uint64_t{max_wr} + 1);
  if (log_entries <= srq.log_entries) {
    srq.cap.max_wr = max_wr;
    return Status::kOk;
  }
  const std::uint32_t old_slots = 1U << srq.log_entries;
  const std::uint64_t old_bytes = std::uint64_t{stride_of(srq)} << srq.log_entries;
  srq.next_ring = allocate_ring(std::uint64_t{stride_of(srq)} << log_entries);
  std::vector<std::uint8_t> content(old_bytes);
  memory_.read(srq.ring_address, content.data(), content.size());
  memory_.write(srq.next_ring, content.data(), content.size());
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kResizeSrq;
  mailbox.resize_srq = {srq.srqn, log_entries, srq.next_ring};
  const Status status = execute_status(core, mailbox);
  const std::uint64_t ring = srq.next_ring;
  srq.next_ring = 0;
  if (status != Status::kOk) return status;
  srq.ring_address = ring;
  srq.log_entries = log_entries;
  srq.cap.max_wr = max_wr;
  srq.wr_ids.resize(1U << log_entries);
  srq.next.resize(1U << log_entries);
  for (std::uint32_t slot = old_slots; slot < 1U << log_entries; ++slot) {
    srq.next[srq.tail] = static_cast<std::uint16_t>(slot);
    srq.tail = static_cast<std::uint16_t>(slot);
  }
  return Status::kOk;
}

void Context::write_shared_recv(const SharedReceiveQueue& srq, std::uint64_t ring,
                                const RecvWr& wr) {
  const std::uint64_t at = ring + std::uint64_t{srq.head} * stride_of(srq);
  std::uint8_t next[kSrqNextBytes];
  protocol::encode_srq_next(srq.next[srq.head], next);
  memory_.write(at, next, sizeof next);
  write_recv(at + kSrqNextBytes, wr, srq.cap.max_sge);
}

Status Context::destroy_srq(Core& core, SharedReceiveQueue* srq) {
  if (srq->users > 0) return Status::kEbusy;
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kDestroySrq;
  mailbox.object = {srq->srqn};
  const Status status = execute_status(core, mailbox);
  if (status != Status::kOk) return status;
  leave_pd(srq->pd);
  srqs_[srq->srqn - 1].reset();
  return Status::kOk;
}

Status Context::post_srq_recv(Core& core, SharedReceiveQueue& srq, const RecvWr* wrs,
                              std::uint32_t count, std::uint32_t* bad) {
  Status status = Status::kOk;
  std::uint32_t posted = 0;
  for (; posted < count; ++posted) {
    const RecvWr& wr = wrs[posted];
    if (wr.num_sge > srq.cap.max_sge || (wr.num_sge == 0 && !nic_.empty_recv)) {
      status = Status::kEinval;
      break;
    }
    if (srq.outstanding >= srq.cap.max_wr) {
      status = Status::kEnomem;
      break;
    }
    const std::uint16_t slot = srq.head;
    write_shared_recv(srq, srq.ring_address, wr);
    if (srq.next_ring != 0) write_shared_recv(srq, srq.next_ring, wr);
    srq.wr_ids[slot] = wr.wr_id;
    srq.head = srq.next[slot];
    ++srq.posted;
    ++srq.outstanding;
    core.spend(cpu_.post_cost);
  }
  if (posted > 0) {
    std::uint8_t record[4];
    protocol::store_be32(record, srq.posted);
    memory_.write(srq.doorbell_record + protocol::DoorbellRecord::kRecvOffset, record,
                  sizeof record);
  }
  if (bad != nullptr) *bad = posted;
  return status;
}

void Context::free_srq_slot(SharedReceiveQueue& srq, std::uint16_t slot) {
  srq.next[srq.tail] = slot;
  srq.tail = slot;
  --srq.outstanding;
}

}  // namespace rnic::host::verbs
