// SPDX-License-Identifier: Apache-2.0
#include "host/post_check.h"

#include <algorithm>

namespace rnic::host::verbs {
namespace {

using protocol::QpState;
using protocol::QpType;

constexpr PostVerdict kAllowed{};

constexpr PostVerdict no(const char* reason) { return {Status::kEinval, reason}; }

bool returns_data(WrOpcode opcode) {
  return opcode == WrOpcode::kRdmaRead || opcode == WrOpcode::kAtomicCmpAndSwp ||
         opcode == WrOpcode::kAtomicFetchAndAdd;
}

std::uint64_t bytes_of(const SendWr& wr) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  return bytes;
}

bool has_oversized(const SendWr& wr) {
  constexpr std::uint32_t kElementBits = 31;
  return std::any_of(wr.sg_list, wr.sg_list + wr.num_sge,
                     [](const protocol::Sge& sge) { return sge.length >> kElementBits != 0; });
}

PostVerdict judge_datagram(const SendWr& wr) {
  if (wr.opcode != WrOpcode::kSend && wr.opcode != WrOpcode::kSendWithImm) {
    return no("UD has SEND and SEND with immediate only");
  }
  if (wr.ah == nullptr) return no("a datagram needs an address handle");
  return kAllowed;
}

/// IBTA vol 1, table 75.
PostVerdict judge_service(const QueuePair& qp, const SendWr& wr) {
  switch (qp.cap.qp_type) {
    case QpType::kUd:
      return judge_datagram(wr);
    case QpType::kUc:
      if (returns_data(wr.opcode)) return no("UC has no READ and no atomics");
      // ibv_post_send(3) lists it, but no packet could carry it (IBTA vol 1, table 38).
      if (wr.opcode == WrOpcode::kSendWithInv) return no("UC has no SEND with invalidate");
      return kAllowed;
    default:
      return kAllowed;
  }
}

PostVerdict judge_iwarp(const SendWr& wr) {
  if (wr.opcode == WrOpcode::kSendWithImm) {
    return no("iWARP has no SEND with immediate (RFC 7306 has immediate data after a WRITE)");
  }
  if (wr.opcode == WrOpcode::kRdmaRead && wr.num_sge > 1) {
    return no("iWARP's READ names one sink (RFC 5040, 4.4)");
  }
  return kAllowed;
}

}  // namespace

bool accepts_work(QpState state) {
  return state == QpState::kRts || state == QpState::kSqd || state == QpState::kSqe ||
         state == QpState::kError;
}

PostVerdict judge_send(const PostRules& rules, const QueuePair& qp, const SendWr& wr) {
  if (!accepts_work(qp.state)) return no("the queue pair's state takes no send work");
  if (wr.num_sge > qp.cap.max_send_sge) return no("more gather elements than max_send_sge");
  if (has_oversized(wr)) return no("a gather element of 2 GiB or more: WQEs have 31 bits for it");
  if (qp.cap.qp_type != QpType::kRc || rules.iwarp) {
    const PostVerdict verdict = rules.iwarp ? judge_iwarp(wr) : judge_service(qp, wr);
    if (verdict.status != Status::kOk) return verdict;
  }
  if (qp.sends.size() >= qp.cap.max_send_wr) return {Status::kEnomem, "the send queue is full"};
  if ((wr.flags & SendFlags::kInline) == 0) return kAllowed;
  if (returns_data(wr.opcode)) return no("READ and atomics send no inline data");
  if (bytes_of(wr) > qp.cap.max_inline_data) return no("more inline data than max_inline_data");
  return kAllowed;
}

}  // namespace rnic::host::verbs
