// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/status.h"
#include "host/verbs.h"

namespace rnic::host::verbs {

/// Answer of ibv_post_send to one work request, and why when it is no.
struct PostVerdict {
  Status status = Status::kOk;
  const char* reason = "";
};

/// Whether post_send() takes work in that state at all.
bool accepts_work(protocol::QpState state);

/// EINVAL: what the queue pair's state, service, capabilities or wire do not allow; ENOMEM: the
/// queue is full, or more gather elements than it was created with.
PostVerdict judge_send(const PostRules& rules, const QueuePair& qp, const SendWr& wr);

}  // namespace rnic::host::verbs
