// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "host/verbs.h"
#include "host/verbs_internal.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;
using protocol::CommandStatus;
using protocol::WqeOpcode;

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

}  // namespace rnic::host::verbs
