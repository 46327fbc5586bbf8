// SPDX-License-Identifier: Apache-2.0
#include "host/verbs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "config/config.h"
#include "protocol/cqe.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::kWqeBlockBytes;
using protocol::WqeOpcode;

namespace {

constexpr std::uint32_t kFirstQpn = 0x10;  // 0 and 1 are the management queue pairs
constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint32_t kMaxBlueFlameBlocks = 4;  // 256 B buffer, as mlx5's
constexpr std::uint64_t kRingChunk = 1U << 20;

std::uint32_t ceil_log2(std::uint64_t n) {
  std::uint32_t log = 0;
  while ((std::uint64_t{1} << log) < n) ++log;
  return log;
}

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

Context::Context(const sc_core::sc_module_name& name, const config::Config& config,
                 PhysicalMemory& memory, AddressSpace& space, ContextMemory& context_memory,
                 MmioPort& mmio)
    : sc_module(name),
      nic_(config.nic),
      cpu_(config.cpu),
      memory_(memory),
      space_(space),
      registrar_(context_memory, config.memory),
      store_buffer_("store_buffer", mmio) {
  mailbox_address_ = allocate_ring(sizeof(protocol::CommandMailbox));
  memory_.watch(mailbox_address_ + protocol::kCommandStatusOffset, 1, &mailbox_written_);
}

std::uint64_t Context::allocate_ring(std::uint64_t bytes) {
  const std::uint64_t rounded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  if (rounded > kRingChunk) {
    const auto address = memory_.allocate_contiguous(rounded);
    if (!address) throw ConfigError("the host has no memory left for queue rings");
    return *address;
  }
  if (rounded > ring_chunk_left_) {
    const auto address = memory_.allocate_contiguous(kRingChunk);
    if (!address) throw ConfigError("the host has no memory left for queue rings");
    ring_chunk_ = *address;
    ring_chunk_left_ = kRingChunk;
  }
  const std::uint64_t address = ring_chunk_;
  ring_chunk_ += rounded;
  ring_chunk_left_ -= rounded;
  return address;
}

CommandStatus Context::execute(Core& core, const protocol::CommandMailbox& mailbox) {
  ++stats_.commands;
  core.sync();
  memory_.write(mailbox_address_, &mailbox, sizeof mailbox);
  const std::uint64_t seen = mailbox_written_.writes();
  std::uint8_t address[8];
  protocol::store_be64(address, mailbox_address_);
  core.spend(cpu_.doorbell_cost);
  store_buffer_.store(core.now(), protocol::BarLayout::kCommand, address, sizeof address,
                      tlm_ext::Purpose::kCommand);
  mailbox_written_.spin(core, cpu_.poll_cost, seen);
  std::uint8_t status = 0;
  memory_.read(mailbox_address_ + protocol::kCommandStatusOffset, &status, 1);
  return static_cast<CommandStatus>(status);
}

RegistrationResult Context::reg_mr(Core& core, std::uint32_t pd, std::uint64_t addr,
                                   std::uint64_t length, std::uint32_t access) {
  core.sync();
  RegistrationResult result = registrar_.reg_mr(space_, pd, addr, length, access);
  core.spend(result.cost);
  ++stats_.registration.calls;
  stats_.registration.pages += result.region.npages;
  stats_.registration.time += result.cost;
  return result;
}

Status Context::dereg_mr(Core& core, const MemoryRegion& region) {
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kInvalidateMkey;
  mailbox.invalidate_mkey = {region.lkey, static_cast<std::uint32_t>(region.mtt_base),
                             static_cast<std::uint32_t>(region.mtt_count)};
  core.sync();
  const DeregistrationResult result = registrar_.dereg_mr(space_, region);
  if (result.status != Status::kOk) return result.status;
  execute(core, mailbox);
  core.spend(result.cost);
  return Status::kOk;
}

CompletionQueue* Context::create_cq(Core& core, std::uint32_t entries) {
  auto cq = std::make_unique<CompletionQueue>();
  cq->cqn = next_cqn_++;
  cq->log_entries = ceil_log2(std::max(1U, entries));
  const std::uint64_t bytes = std::uint64_t{protocol::kCqeBytes} << cq->log_entries;
  cq->ring_address = allocate_ring(bytes);
  // Every CQE starts out invalid, or the first pass would see owner bit 0 as "new".
  constexpr std::uint8_t kInvalid = 0xF0;
  for (std::uint64_t at = protocol::kCqeOwnerOffset; at < bytes; at += protocol::kCqeBytes) {
    memory_.write(cq->ring_address + at, &kInvalid, 1);
  }
  memory_.watch(cq->ring_address, bytes, &cq->written);
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kCreateCq;
  mailbox.create_cq = {cq->cqn, cq->log_entries, cq->ring_address};
  if (execute(core, mailbox) != CommandStatus::kOk) return nullptr;
  cqs_.push_back(std::move(cq));
  return cqs_.back().get();
}

QueuePair* Context::create_qp(Core& core, std::uint32_t pd, CompletionQueue& send_cq,
                              CompletionQueue& recv_cq, const QpInitAttr& attr) {
  if (attr.max_inline_data > nic_.max_inline || attr.max_send_sge > nic_.max_sge ||
      attr.max_recv_sge > nic_.max_sge || attr.max_send_wr == 0) {
    return nullptr;
  }
  auto qp = std::make_unique<QueuePair>();
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
  if (execute(core, mailbox) != CommandStatus::kOk) return nullptr;
  qps_.push_back(std::move(qp));
  return qps_.back().get();
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
  if (execute(core, mailbox) != CommandStatus::kOk) return Status::kEinval;
  qp.state = attr.qp_state;
  if (attr.qp_state == protocol::QpState::kReset) {
    qp.sends.clear();
    qp.recvs.clear();
    qp.sq_head = qp.rq_head = 0;
  }
  return Status::kOk;
}

QueuePair* Context::find_qp(std::uint32_t qpn) {
  const std::uint32_t index = qpn - kFirstQpn;
  return index < qps_.size() ? qps_[index].get() : nullptr;
}

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

void Context::ring_doorbell(Core& core, QueuePair& qp, std::uint32_t posted,
                            std::uint32_t last_blocks) {
  std::uint8_t record[4];
  protocol::store_be32(record, qp.sq_head);
  memory_.write(qp.doorbell_record + protocol::DoorbellRecord::kSendOffset, record, sizeof record);
  if (nic_.blueflame && posted == 1 && last_blocks <= kMaxBlueFlameBlocks) {
    // Write combining: the core fills the lines, then the fence waits until they have left.
    ++stats_.blueflames;
    core.spend(cpu_.doorbell_cost +
               cpu_.blueflame_cost_per_64b * static_cast<std::int64_t>(last_blocks));
    store_buffer_.store(core.now(), protocol::BarLayout::kSendDoorbell, scratch_bytes_.data(),
                        last_blocks * kWqeBlockBytes, tlm_ext::Purpose::kBlueFlame);
    return;
  }
  ++stats_.doorbells;
  core.spend(cpu_.doorbell_cost);
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

bool Context::peek_cqe(const CompletionQueue& cq, protocol::Cqe& cqe) const {
  const std::uint32_t slot = cq.consumer & ((1U << cq.log_entries) - 1);
  std::uint8_t bytes[protocol::kCqeBytes];
  memory_.read(cq.ring_address + std::uint64_t{slot} * protocol::kCqeBytes, bytes, sizeof bytes);
  cqe = protocol::decode_cqe(bytes);
  const bool owner = ((cq.consumer >> cq.log_entries) & 1) != 0;
  return cqe.kind != protocol::Cqe::Kind::kInvalid && cqe.owner == owner;
}

std::uint32_t Context::poll_cq(Core& core, CompletionQueue& cq, std::uint32_t count, Wc* wcs) {
  core.spend(cpu_.poll_cost);
  core.sync();
  ++stats_.polls;
  std::uint32_t taken = 0;
  protocol::Cqe cqe;
  while (taken < count && peek_cqe(cq, cqe)) {
    to_wc(cqe, wcs[taken++]);
    ++cq.consumer;
    core.spend(cpu_.cqe_cost);
  }
  return taken;
}

void Context::wait_cq(Core& core, CompletionQueue& cq) {
  core.sync();
  protocol::Cqe cqe;
  while (!peek_cqe(cq, cqe)) cq.written.spin(core, cpu_.poll_cost, cq.written.writes());
}

void Context::to_wc(const protocol::Cqe& cqe, Wc& wc) {
  wc = Wc{};
  wc.status = cqe.status;
  wc.qp_num = cqe.qpn;
  wc.byte_len = cqe.byte_count;
  QueuePair* qp = find_qp(cqe.qpn);
  if (qp == nullptr) panic(name(), "a CQE names an unknown queue pair");
  if (cqe.is_responder()) {
    using Kind = protocol::Cqe::Kind;
    wc.opcode = cqe.kind == Kind::kRespWriteImm ? protocol::WcOpcode::kRecvRdmaWithImm
                                                : protocol::WcOpcode::kRecv;
    wc.src_qp = cqe.src_qp;
    wc.imm_data = cqe.imm;
    if (cqe.kind == Kind::kRespWriteImm || cqe.kind == Kind::kRespSendImm) {
      wc.wc_flags |= Wc::kWithImm;
    }
    wc.wr_id = qp->recvs.front();
    qp->recvs.pop_front();
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
  if (wc.status != protocol::WcStatus::kSuccess) qp->state = protocol::QpState::kError;
}

stats::DeliveryMeter* Context::meter_of(std::uint32_t qpn) {
  const QueuePair* qp = find_qp(qpn);
  return qp == nullptr ? nullptr : qp->meter;
}

stats::MessageTrace* Context::trace_of(std::uint32_t qpn, std::uint16_t wqe_index) {
  const QueuePair* qp = find_qp(qpn);
  if (qp == nullptr || qp->traces.empty()) return nullptr;
  return qp->traces[wqe_index & (qp->traces.size() - 1)];
}

}  // namespace rnic::host::verbs
