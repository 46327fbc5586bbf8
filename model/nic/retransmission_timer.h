// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/event_queue.h"
#include "nic/interfaces.h"

namespace rnic::nic {

/// Acknowledgement and RNR timers of all queue pairs. Lazy: a deadline that moves costs nothing;
/// one event a QP is outstanding at most, and looks again when it fires early.
class RetransmissionTimer : public sc_core::sc_module, public TimerIf {
 public:
  sc_core::sc_export<TimerIf> timer{"timer"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<CompletionIf> completion{"completion"};

  RetransmissionTimer(const sc_core::sc_module_name& name, transport::Transport& transport);

  void update(QpContext& qp) override;

 private:
  static Time next_deadline(const QpContext& qp, Time now);
  void expire(QpContext*& qp);

  transport::Transport& transport_;
  EventQueue<RetransmissionTimer, QpContext*> deadlines_;
};

}  // namespace rnic::nic
