// SPDX-License-Identifier: Apache-2.0
#include "nic/retransmission_timer.h"

#include <algorithm>

namespace rnic::nic {

RetransmissionTimer::RetransmissionTimer(const sc_core::sc_module_name& name,
                                         transport::Transport& transport)
    : sc_module(name), transport_(transport),
      deadlines_("deadlines", this, &RetransmissionTimer::expire) {
  timer.bind(*this);
}

Time RetransmissionTimer::next_deadline(const QpContext& qp, Time now) {
  return qp.rnr_until > now ? std::min(qp.rnr_until, qp.retry_deadline) : qp.retry_deadline;
}

void RetransmissionTimer::update(QpContext& qp) {
  if (qp.timer_pending) return;
  const Time now = sim_now();
  const Time deadline = next_deadline(qp, now);
  if (deadline == kTimeNever) return;
  qp.timer_pending = true;
  qp.timer_at = std::max(deadline, now);
  deadlines_.post(qp.timer_at, &qp);
}

void RetransmissionTimer::expire(QpContext*& entry) {
  QpContext& qp = *entry;
  qp.timer_pending = false;
  const Time now = sim_now();
  if (qp.retry_deadline <= now) {
    transport_.timeout(qp, now);
    completion->retire(qp, now);
  }
  if (qp.state == protocol::QpState::kRts && now >= qp.rnr_until) scheduler->activate(qp, now);
  update(qp);
}

}  // namespace rnic::nic
