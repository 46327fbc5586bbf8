// SPDX-License-Identifier: Apache-2.0
#include "transport/work_check.h"

#include "protocol/atomic.h"

namespace rnic::transport {

using protocol::QpType;
using protocol::WcStatus;
using protocol::WqeOpcode;

bool service_has(QpType type, WqeOpcode opcode) {
  switch (opcode) {
    case WqeOpcode::kNop:
    case WqeOpcode::kSend:
    case WqeOpcode::kSendImm:
      return true;
    case WqeOpcode::kRead:
    case WqeOpcode::kAtomicCas:
    case WqeOpcode::kAtomicFadd:
    case WqeOpcode::kSendInval:
      return type == QpType::kRc;
    default:
      return type != QpType::kUd;
  }
}

WcStatus check_work(const QueuePair& qp, const protocol::SendWqe& wqe) {
  if (qp.type != QpType::kRc && !service_has(qp.type, wqe.opcode)) {
    return WcStatus::kLocalQpOperationError;
  }
  // It could never be sent, and would hold up all behind it. (Linux' rdmavt refuses it when
  // posted.)
  const bool answered = wqe.is_atomic() || wqe.opcode == WqeOpcode::kRead;
  if (answered && qp.max_rd_atomic == 0) return WcStatus::kLocalQpOperationError;
  constexpr std::uint32_t kDomainMask = (1U << 20) - 1;  // what a WQE holds of it
  if (wqe.is_datagram && ((wqe.datagram.pd ^ qp.pd) & kDomainMask) != 0) {
    return WcStatus::kLocalQpOperationError;  // IBTA vol 1, 10.2.3: a handle of another domain
  }
  const std::uint32_t longest = qp.type == QpType::kUd ? qp.mtu : kMaxMessageBytes;
  const bool atomic_ok = !wqe.is_atomic() || wqe.length == protocol::kAtomicBytes;
  return wqe.length <= longest && atomic_ok ? WcStatus::kSuccess : WcStatus::kLocalLengthError;
}

}  // namespace rnic::transport
