// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::kWqeBlockBytes;
using protocol::WqeOpcode;

namespace {

WqeOpcode wqe_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kRdmaWrite:
      return WqeOpcode::kWrite;
    case WrOpcode::kRdmaWriteWithImm:
      return WqeOpcode::kWriteImm;
    case WrOpcode::kSend:
      return WqeOpcode::kSend;
    case WrOpcode::kSendWithImm:
      return WqeOpcode::kSendImm;
    case WrOpcode::kRdmaRead:
      return WqeOpcode::kRead;
    case WrOpcode::kAtomicCmpAndSwp:
      return WqeOpcode::kAtomicCas;
    case WrOpcode::kAtomicFetchAndAdd:
      return WqeOpcode::kAtomicFadd;
  }
  return WqeOpcode::kNop;
}

}  // namespace

Status Context::check_send(const QueuePair& qp, const SendWr& wr) const {
  if (qp.state != protocol::QpState::kRts && qp.state != protocol::QpState::kSqd &&
      qp.state != protocol::QpState::kError) {
    return Status::kEinval;
  }
  if (wr.num_sge > qp.cap.max_send_sge) return Status::kEinval;
  if (qp.sends.size() >= qp.cap.max_send_wr) return Status::kEnomem;
  if ((wr.flags & SendFlags::kInline) != 0) {
    if (wr.opcode == WrOpcode::kRdmaRead || wr.opcode == WrOpcode::kAtomicCmpAndSwp ||
        wr.opcode == WrOpcode::kAtomicFetchAndAdd) {
      return Status::kEinval;
    }
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
    if (bytes > qp.cap.max_inline_data) return Status::kEinval;
  }
  return Status::kOk;
}

Status Context::fill_wqe(const SendWr& wr, const QueuePair& qp) {
  protocol::SendWqe& wqe = scratch_;
  wqe.opcode = wqe_opcode(wr.opcode);
  wqe.signaled = qp.cap.sq_sig_all || (wr.flags & SendFlags::kSignaled) != 0;
  wqe.fence = (wr.flags & SendFlags::kFence) != 0;
  wqe.solicited = (wr.flags & SendFlags::kSolicited) != 0;
  wqe.inline_data = (wr.flags & SendFlags::kInline) != 0;
  wqe.imm_or_rkey = wr.imm_data;
  wqe.remote_address = wr.remote_addr;
  wqe.rkey = wr.rkey;
  wqe.swap_or_add = wr.opcode == WrOpcode::kAtomicCmpAndSwp ? wr.swap : wr.compare_add;
  wqe.compare = wr.opcode == WrOpcode::kAtomicCmpAndSwp ? wr.compare_add : 0;
  wqe.length = 0;
  wqe.sge_count = 0;
  if (wqe.inline_data) {
    wqe.inline_bytes.reserve(qp.cap.max_inline_data);
    for (std::uint32_t i = 0; i < wr.num_sge; ++i) {
      const protocol::Sge& sge = wr.sg_list[i];
      if (sge.length == 0) continue;
      const Status status =
          space_.read(sge.address, wqe.inline_bytes.data() + wqe.length, sge.length);
      if (status != Status::kOk) return status;
      wqe.length += sge.length;
    }
  } else {
    for (std::uint32_t i = 0; i < wr.num_sge; ++i) {
      wqe.sge[wqe.sge_count++] = wr.sg_list[i];
      wqe.length += wr.sg_list[i].length;
    }
  }
  wqe.blocks = static_cast<std::uint8_t>(protocol::wqe_blocks(wqe));
  return Status::kOk;
}

void Context::write_ring(std::uint64_t base, std::uint32_t ring_bytes, std::uint32_t offset,
                         const std::uint8_t* bytes, std::uint32_t count) {
  const std::uint32_t before_wrap = std::min(count, ring_bytes - offset);
  memory_.write(base + offset, bytes, before_wrap);
  if (before_wrap < count) memory_.write(base, bytes + before_wrap, count - before_wrap);
}

Status Context::post_send(Core& core, QueuePair& qp, const SendWr* wrs, std::uint32_t count,
                          std::uint32_t* bad) {
  Status status = Status::kOk;
  std::uint32_t posted = 0;
  std::uint32_t blocks = 0;
  for (; posted < count; ++posted) {
    const SendWr& wr = wrs[posted];
    status = check_send(qp, wr);
    if (status == Status::kOk) status = fill_wqe(wr, qp);
    if (status != Status::kOk) break;
    scratch_.index = qp.sq_head;
    blocks = scratch_.blocks;
    const std::uint32_t bytes = blocks * kWqeBlockBytes;
    scratch_bytes_.resize(bytes);
    protocol::encode_wqe(scratch_, qp.qpn, scratch_bytes_.data());
    const std::uint32_t mask = (1U << qp.sq_log_blocks) - 1;
    const std::uint32_t slot = qp.sq_head & mask;
    write_ring(qp.sq_address, kWqeBlockBytes << qp.sq_log_blocks, slot * kWqeBlockBytes,
               scratch_bytes_.data(), bytes);
    if (wr.trace != nullptr || !qp.traces.empty()) {
      if (qp.traces.empty()) qp.traces.resize(std::size_t{mask} + 1);
      qp.traces[slot] = wr.trace;
    }
    qp.sends.push_back({wr.wr_id, qp.sq_head, scratch_.blocks});
    qp.sq_head = static_cast<std::uint16_t>(qp.sq_head + blocks);
    core.spend(cpu_.post_cost);
    if (wr.num_sge > 1) core.spend(cpu_.sge_cost * static_cast<std::int64_t>(wr.num_sge - 1));
    if (scratch_.inline_data) {
      core.spend(cpu_.inline_cost_per_64b *
                 static_cast<std::int64_t>((scratch_.length + kCacheLine - 1) / kCacheLine));
    }
  }
  if (bad != nullptr) *bad = posted;
  if (posted > 0) ring_doorbell(core, qp, posted, blocks);
  for (std::uint32_t i = 0; i < posted; ++i) {
    if (wrs[i].trace != nullptr) wrs[i].trace->mark(stats::Stage::kPost, core.now());
  }
  return status;
}

void Context::use_register(Core& core, const QueuePair& qp, Time cost) {
  if (doorbell_registers_.empty()) {
    core.spend(cost);
    return;
  }
  core.sync();  // who comes first gets the lock first
  Server& shared = doorbell_registers_[qp.qpn % doorbell_registers_.size()];
  core.spend(shared.reserve(core.now(), cost).end - core.now());
}

void Context::ring_doorbell(Core& core, QueuePair& qp, std::uint32_t posted,
                            std::uint32_t last_blocks) {
  std::uint8_t record[4];
  protocol::store_be32(record, qp.sq_head);
  memory_.write(qp.doorbell_record + protocol::DoorbellRecord::kSendOffset, record, sizeof record);
  if (nic_.blueflame && posted == 1 && last_blocks <= nic_.blueflame_blocks) {
    // Write combining: the core fills the lines, then the fence waits until they have left.
    ++stats_.blueflames;
    use_register(
        core, qp,
        cpu_.doorbell_cost + cpu_.blueflame_cost_per_64b * static_cast<std::int64_t>(last_blocks));
    store_buffer_.store(core.now(), protocol::BarLayout::kSendDoorbell, scratch_bytes_.data(),
                        last_blocks * kWqeBlockBytes, tlm_ext::Purpose::kBlueFlame);
    return;
  }
  ++stats_.doorbells;
  use_register(core, qp, cpu_.doorbell_cost);
  std::uint8_t bytes[protocol::SendDoorbell::kBytes];
  protocol::SendDoorbell{qp.qpn, qp.sq_head}.encode(bytes);
  store_buffer_.store(core.now(), protocol::BarLayout::kSendDoorbell, bytes, sizeof bytes,
                      tlm_ext::Purpose::kDoorbell);
}

Status Context::post_recv(Core& core, QueuePair& qp, const RecvWr* wrs, std::uint32_t count,
                          std::uint32_t* bad) {
  const std::uint32_t max_sge = std::max(1U, qp.cap.max_recv_sge);
  const std::uint32_t stride = max_sge * protocol::kWqeSegmentBytes;
  Status status = Status::kOk;
  std::uint32_t posted = 0;
  for (; posted < count; ++posted) {
    const RecvWr& wr = wrs[posted];
    if (qp.state == protocol::QpState::kReset || wr.num_sge > qp.cap.max_recv_sge) {
      status = Status::kEinval;
      break;
    }
    if (qp.recvs.size() >= qp.cap.max_recv_wr) {
      status = Status::kEnomem;
      break;
    }
    scratch_bytes_.assign(stride, 0);
    protocol::encode_recv_wqe(wr.sg_list, wr.num_sge, max_sge, scratch_bytes_.data());
    const std::uint32_t slot = qp.rq_head & ((1U << qp.rq_log_entries) - 1);
    memory_.write(qp.rq_address + std::uint64_t{slot} * stride, scratch_bytes_.data(), stride);
    qp.recvs.push_back(wr.wr_id);
    ++qp.rq_head;
    core.spend(cpu_.post_cost);
  }
  if (posted > 0) {
    std::uint8_t record[4];
    protocol::store_be32(record, qp.rq_head);
    memory_.write(qp.doorbell_record + protocol::DoorbellRecord::kRecvOffset, record,
                  sizeof record);
  }
  if (bad != nullptr) *bad = posted;
  return status;
}

}  // namespace rnic::host::verbs
