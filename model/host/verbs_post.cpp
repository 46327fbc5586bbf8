// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "host/post_check.h"
#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"
#include "protocol/mpt.h"

namespace rnic::host::verbs {

using protocol::kWqeBlockBytes;
using protocol::WqeOpcode;

namespace {

constexpr std::uint8_t kFastPageLog2 = 12;  // page lists are of 4 KiB pages

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
    case WrOpcode::kLocalInv:
      return WqeOpcode::kLocalInval;
    case WrOpcode::kBindMw:
      return WqeOpcode::kBindMw;
    case WrOpcode::kRegMr:
      return WqeOpcode::kFastReg;
    case WrOpcode::kSendWithInv:
      return WqeOpcode::kSendInval;
  }
  return WqeOpcode::kNop;
}

bool is_key_operation(WrOpcode opcode) {
  return opcode == WrOpcode::kLocalInv || opcode == WrOpcode::kBindMw || opcode == WrOpcode::kRegMr;
}

}  // namespace

Status Context::check_send(const QueuePair& qp, const SendWr& wr) {
  if (is_key_operation(wr.opcode) && accepts_work(qp.state)) {
    refusal_ = "";
    return check_key_operation(qp, wr);
  }
  const PostVerdict verdict = judge_send(post_rules_, qp, wr);
  refusal_ = verdict.reason;
  return verdict.status;
}

Status Context::check_key_operation(const QueuePair& qp, const SendWr& wr) {
  if (wr.num_sge != 0 || (wr.flags & SendFlags::kInline) != 0 ||
      qp.cap.qp_type == protocol::QpType::kUd) {
    return Status::kEinval;
  }
  if (qp.sends.size() >= qp.cap.max_send_wr) return Status::kEnomem;
  if (wr.opcode == WrOpcode::kBindMw) {
    const MwBind& bind = wr.bind;
    constexpr std::uint32_t kRights = protocol::kAccessRemoteMask | protocol::kAccessZeroBased;
    // Type 1 windows are bound by bind_mw, which chooses the key.
    if (bind.window == nullptr || bind.window->pd != qp.pd || (bind.access & ~kRights) != 0 ||
        protocol::key_index(bind.rkey) != protocol::key_index(bind.window->rkey)) {
      return Status::kEinval;
    }
    if (bind.window->type == MwType::kType2 && bind.length == 0) return Status::kEinval;
    if (bind.window->type == MwType::kType1 && (bind.access & protocol::kAccessZeroBased) != 0) {
      return Status::kEinval;
    }
  }
  if (wr.opcode == WrOpcode::kRegMr) {
    const RegMr& reg = wr.reg;
    if (reg.region == nullptr || reg.region->length == 0 || reg.region->pd != qp.pd ||
        protocol::key_index(reg.key) != protocol::key_index(reg.region->key)) {
      return Status::kEinval;
    }
  }
  return Status::kOk;
}

void Context::fill_key_operation(const SendWr& wr) {
  protocol::SendWqe& wqe = scratch_;
  wqe.rkey = 0;
  wqe.remote_address = wqe.swap_or_add = wqe.compare = 0;
  wqe.inline_data = false;
  switch (wr.opcode) {
    case WrOpcode::kLocalInv:
      wqe.imm_or_rkey = wr.invalidate_key;
      break;
    case WrOpcode::kBindMw:
      wqe.imm_or_rkey = wr.bind.lkey;
      wqe.rkey = wr.bind.rkey;
      wqe.remote_address = wr.bind.address;
      wqe.compare = wr.bind.length;
      wqe.key_access = wr.bind.access;
      wr.bind.window->rkey = wr.bind.rkey;
      break;
    default: {
      FastRegion& region = *wr.reg.region;
      wqe.rkey = wr.reg.key;
      wqe.remote_address = region.va;
      wqe.compare = region.length;
      wqe.swap_or_add = region.page_list;
      wqe.key_access = wr.reg.access;
      wqe.log2_page_size = kFastPageLog2;
      region.key = wr.reg.key;
      break;
    }
  }
}

Status Context::fill_wqe(const SendWr& wr, const QueuePair& qp) {
  protocol::SendWqe& wqe = scratch_;
  wqe.opcode = wqe_opcode(wr.opcode);
  wqe.signaled = qp.cap.sq_sig_all || (wr.flags & SendFlags::kSignaled) != 0;
  wqe.fence = (wr.flags & SendFlags::kFence) != 0;
  wqe.solicited = (wr.flags & SendFlags::kSolicited) != 0;
  wqe.inline_data = (wr.flags & SendFlags::kInline) != 0;
  wqe.imm_or_rkey = wr.opcode == WrOpcode::kSendWithInv ? wr.invalidate_key : wr.imm_data;
  wqe.is_datagram = qp.cap.qp_type == protocol::QpType::kUd;
  if (wqe.is_datagram) wqe.datagram = {wr.ah->av, wr.ah->pd, wr.remote_qpn, wr.remote_qkey};
  wqe.remote_address = wr.remote_addr;
  wqe.rkey = wr.rkey;
  wqe.swap_or_add = wr.opcode == WrOpcode::kAtomicCmpAndSwp ? wr.swap : wr.compare_add;
  wqe.compare = wr.opcode == WrOpcode::kAtomicCmpAndSwp ? wr.compare_add : 0;
  wqe.length = 0;
  wqe.sge_count = 0;
  if (wqe.is_key_operation()) {
    fill_key_operation(wr);
  } else if (wqe.inline_data) {
    wqe.inline_bytes.reserve(qp.cap.max_inline_data);
    for (std::uint32_t i = 0; i < wr.num_sge; ++i) {
      const protocol::Sge& sge = wr.sg_list[i];
      if (sge.length == 0) continue;
      const Status status =
          space_.read(sge.address, wqe.inline_bytes.writable() + wqe.length, sge.length);
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
  std::uint32_t push_blocks = 0;
  for (; posted < count; ++posted) {
    const SendWr& wr = wrs[posted];
    status = check_send(qp, wr);
    if (status == Status::kOk) status = fill_wqe(wr, qp);
    if (status != Status::kOk) break;
    scratch_.index = qp.sq_head;
    const std::uint32_t blocks = scratch_.blocks;
    push_blocks = may_push(scratch_) ? blocks : 0;
    const std::uint32_t bytes = blocks * kWqeBlockBytes;
    scratch_bytes_.resize(bytes);
    protocol::encode_wqe(scratch_, qp.qpn, scratch_bytes_.data());
    const std::uint32_t mask = (1U << qp.sq_log_blocks) - 1;
    const std::uint32_t slot = qp.sq_head & mask;
    write_ring(qp.sq_address, kWqeBlockBytes << qp.sq_log_blocks, slot * kWqeBlockBytes,
               scratch_bytes_.data(), bytes);
    if (wr.trace != nullptr || qp.extras != nullptr) note_trace(qp, slot, wr.trace);
    qp.sends.push_back({wr.wr_id, qp.sq_head, scratch_.blocks});
    qp.sq_head = static_cast<std::uint16_t>(qp.sq_head + blocks);
    core.spend(posted == 0 ? cpu_.post_cost
                           : std::max(kTimeZero, cpu_.post_cost - cpu_.list_saving));
    if (wr.num_sge > 1) core.spend(cpu_.sge_cost * static_cast<std::int64_t>(wr.num_sge - 1));
    if (scratch_.inline_data) {
      core.spend(cpu_.inline_cost_per_64b *
                 static_cast<std::int64_t>((scratch_.length + kCacheLine - 1) / kCacheLine));
    }
  }
  if (bad != nullptr) *bad = posted;
  if (posted > 0) ring_doorbell(core, qp, posted, push_blocks);
  for (std::uint32_t i = 0; i < posted; ++i) {
    if (wrs[i].trace != nullptr) wrs[i].trace->mark(stats::Stage::kPost, core.now());
  }
  return status;
}

/// In a ring of traces as long as the send ring, once any message has one.
void Context::note_trace(QueuePair& qp, std::uint32_t slot, stats::MessageTrace* trace) {
  std::vector<stats::MessageTrace*>& traces = qp.with_extras().traces;
  if (traces.empty() && trace == nullptr) return;
  if (traces.empty()) traces.resize(std::size_t{1} << qp.sq_log_blocks);
  traces[slot] = trace;
}

void Context::use_register(Core& core, const QueuePair& qp, Time cost, Time stall) {
  if (doorbell_registers_.empty() || !cpu_.doorbell_lock) {
    core.spend(cost);
    return;
  }
  core.sync();  // who comes first gets the lock first
  DoorbellRegister& shared = doorbell_registers_[qp.qpn % doorbell_registers_.size()];
  const Time now = core.now();
  const Time alone = cost;
  while (!shared.ends.empty() && shared.ends.front() <= now) shared.ends.pop_front();
  if (shared.last != &core) {
    // From whoever had it last, and to each that spins for it meanwhile.
    const std::size_t moves =
        std::max<std::size_t>(shared.ends.size(), shared.last != nullptr ? 1 : 0);
    cost += cpu_.lock_transfer * static_cast<std::int64_t>(moves);
    shared.last = &core;
  }
  // The stores must have left before anybody else's: the core waits for that under the lock.
  const Time end = shared.lock.reserve(now, cost + stall).end;
  shared.ends.push_back(end);
  core.spend(end - stall - now);
  core.add_lock_wait(end - stall - now - alone);
}

bool Context::may_push(const protocol::SendWqe& wqe) const {
  if (!nic_.blueflame || wqe.blocks > nic_.blueflame_blocks) return false;
  if (nic_.blueflame_ops == config::BlueFlameOps::kAll) return true;
  // As mlx4_post_send's `inl` (rdma-core, providers/mlx4/qp.c).
  if (wqe.inline_data) return wqe.length > 0;
  const bool is_write = wqe.opcode == WqeOpcode::kWrite || wqe.opcode == WqeOpcode::kWriteImm;
  return wqe.opcode == WqeOpcode::kRead || (is_write && wqe.sge_count == 0);
}

void Context::ring_doorbell(Core& core, QueuePair& qp, std::uint32_t posted,
                            std::uint32_t push_blocks) {
  std::uint8_t record[4];
  protocol::store_be32(record, qp.sq_head);
  memory_.write(qp.doorbell_record + protocol::DoorbellRecord::kSendOffset, record, sizeof record);
  if (posted == 1 && push_blocks > 0) {
    // Write combining: the core fills the lines, then the fence waits until they have left.
    ++stats_.blueflames;
    const Time stall = cpu_.doorbell_stall + cpu_.blueflame_stall;
    // Waiting for a register lets other threads post meanwhile, so the bytes move away first.
    std::array<std::uint8_t, std::size_t{protocol::kMaxWqeBlocks} * kWqeBlockBytes> push;
    std::copy_n(scratch_bytes_.data(), push_blocks * kWqeBlockBytes, push.begin());
    use_register(core, qp,
                 cpu_.doorbell_cost + 2 * cpu_.fence_cost +
                     cpu_.blueflame_cost_per_64b * static_cast<std::int64_t>(push_blocks),
                 stall);
    const Time leaves =
        cpu_.wc_line_interval > kTimeZero ? combine_writes(core, push_blocks) : core.now();
    if (cpu_.doorbell_lock) {
      store_buffer_.store(leaves, protocol::BarLayout::kSendDoorbell, push.data(),
                          push_blocks * kWqeBlockBytes, tlm_ext::Purpose::kBlueFlame);
    } else {
      store_blocks(qp, leaves, push.data(), push_blocks);
    }
    if (cpu_.doorbell_readback) read_register(core, protocol::BarLayout::kClock);
    core.spend(stall);
    return;
  }
  ++stats_.doorbells;
  use_register(core, qp, cpu_.doorbell_cost + cpu_.fence_cost, cpu_.doorbell_stall);
  std::uint8_t bytes[protocol::SendDoorbell::kBytes];
  protocol::SendDoorbell{qp.qpn, qp.sq_head}.encode(bytes);
  store_buffer_.store(core.now(), protocol::BarLayout::kSendDoorbell, bytes, sizeof bytes,
                      tlm_ext::Purpose::kDoorbell);
  if (cpu_.doorbell_readback) read_register(core, protocol::BarLayout::kClock);
  core.spend(cpu_.doorbell_stall);
}

void Context::store_blocks(const QueuePair& qp, Time last, const std::uint8_t* push,
                           std::uint32_t blocks) {
  const std::uint64_t index =
      doorbell_registers_.empty() ? qp.qpn : qp.qpn % doorbell_registers_.size();
  const std::uint64_t at = protocol::BarLayout::blueflame_register(index);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const Time after = cpu_.blueflame_cost_per_64b * static_cast<std::int64_t>(blocks - 1 - i);
    store_buffer_.store(last - after, at + std::uint64_t{i} * kWqeBlockBytes,
                        push + std::size_t{i} * kWqeBlockBytes, kWqeBlockBytes,
                        tlm_ext::Purpose::kBlueFlame);
  }
}

Time Context::combine_writes(Core& core, std::uint32_t lines) {
  core.sync();  // lines of several cores leave in the order of their stores
  const Time interval = cpu_.wc_line_interval;
  const Time last =
      write_combining_.reserve(core.now(), interval * static_cast<std::int64_t>(lines)).end;
  const Time room = last - interval * static_cast<std::int64_t>(cpu_.wc_buffers);
  if (room > core.now()) core.spend(room - core.now());
  return last;
}

void Context::write_recv(std::uint64_t at, const RecvWr& wr, std::uint32_t max_sge) {
  const std::uint32_t bytes = max_sge * protocol::kWqeSegmentBytes;
  scratch_bytes_.assign(bytes, 0);
  protocol::encode_recv_wqe(wr.sg_list, wr.num_sge, max_sge, scratch_bytes_.data());
  memory_.write(at, scratch_bytes_.data(), bytes);
}

Status Context::post_recv(Core& core, QueuePair& qp, const RecvWr* wrs, std::uint32_t count,
                          std::uint32_t* bad) {
  const std::uint32_t max_sge = std::max(1U, qp.cap.max_recv_sge);
  const std::uint32_t stride = max_sge * protocol::kWqeSegmentBytes;
  Status status = Status::kOk;
  std::uint32_t posted = 0;
  for (; posted < count; ++posted) {
    const RecvWr& wr = wrs[posted];
    if (qp.state == protocol::QpState::kReset || qp.cap.srq != nullptr ||
        wr.num_sge > qp.cap.max_recv_sge || (wr.num_sge == 0 && !nic_.empty_recv)) {
      status = Status::kEinval;
      break;
    }
    if (qp.recvs.size() >= qp.cap.max_recv_wr) {
      status = Status::kEnomem;
      break;
    }
    const std::uint32_t slot = qp.rq_head & ((1U << qp.rq_log_entries) - 1);
    write_recv(qp.rq_address + std::uint64_t{slot} * stride, wr, max_sge);
    qp.recvs.push_back(wr.wr_id);
    ++qp.rq_head;
    core.spend(cpu_.post_cost);
  }
  if (posted > 0) {
    std::uint8_t record[4];
    protocol::store_be32(record, qp.rq_head);
    memory_.write(qp.doorbell_record + protocol::DoorbellRecord::kRecvOffset, record,
                  sizeof record);
    if (qp.state == protocol::QpState::kError) {
      core.spend(cpu_.doorbell_cost);
      ring_flush_doorbell(qp, core.now());
    }
  }
  if (bad != nullptr) *bad = posted;
  return status;
}

void Context::learn_of_error(QueuePair& qp) {
  if (qp.state == protocol::QpState::kError) return;
  qp.state = protocol::QpState::kError;
  if (!qp.recvs.empty()) ring_flush_doorbell(qp, sim_now());
}

void Context::ring_flush_doorbell(const QueuePair& qp, Time at) {
  std::uint8_t bytes[protocol::RecvDoorbell::kBytes];
  protocol::RecvDoorbell{qp.qpn}.encode(bytes);
  store_buffer_.store(at, protocol::BarLayout::kRecvDoorbell, bytes, sizeof bytes,
                      tlm_ext::Purpose::kDoorbell);
}

}  // namespace rnic::host::verbs
