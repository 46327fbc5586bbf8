// SPDX-License-Identifier: Apache-2.0
#include "nic/retransmission_timer.h"

#include <algorithm>

namespace rnic::nic {

RetransmissionTimer::RetransmissionTimer(const sc_core::sc_module_name& name,
                                         transport::Transport& transport)
    : sc_module(name),
      transport_(transport),
      deadlines_("deadlines", this, &RetransmissionTimer::expire) {
  timer.bind(*this);
}

Time RetransmissionTimer::next_deadline(const QpContext& qp, Time now) {
  return qp.rnr_until > now ? std::min(qp.rnr_until, qp.retry_deadline) : qp.retry_deadline;
}

void RetransmissionTimer::update(QpContext& qp) {
  const Time now = sim_now();
  const Time deadline = next_deadline(qp, now);
  if (deadline == kTimeNever) return;
  const Time at = std::max(deadline, now);
  if (qp.timer_pending && qp.timer_at <= at) return;  // the pending event will look again
  qp.timer_pending = true;
  qp.timer_at = at;
  deadlines_.post(at, &qp);
}

void RetransmissionTimer::expire(QpContext*& entry) {
  QpContext& qp = *entry;
  const Time now = sim_now();
  if (!qp.timer_pending || qp.timer_at != now) return;  // an earlier deadline took its place
  qp.timer_pending = false;
  if (qp.retry_deadline <= now) {
    const bool alive = transport_.timeout(qp, now);
    completion->retire(qp, now);
    if (!alive && qp.sq.empty()) completion->fail(qp, now);  // no work request tells of it
  }
  if (now >= qp.rnr_until) scheduler->activate(qp, now);
  update(qp);
}

}  // namespace rnic::nic
