// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/queue_pair.h"

namespace rnic::transport {

/// Longest message of the connected services, bytes (IBTA vol 1, 9.7.6).
inline constexpr std::uint32_t kMaxMessageBytes = 1U << 31;

/// What the device finds in a work request before it sends anything of it: kSuccess, or the status
/// that it completes with. Operations that the queue pair's service does not have:
/// kLocalQpOperationError. Longer than a message may be, or an atomic of other than 8 bytes:
/// kLocalLengthError.
protocol::WcStatus check_work(const QueuePair& qp, const protocol::SendWqe& wqe);

/// Whether a send queue of `type` takes `opcode` (IBTA vol 1, table 75; ibv_post_send).
bool service_has(protocol::QpType type, protocol::WqeOpcode opcode);

}  // namespace rnic::transport
