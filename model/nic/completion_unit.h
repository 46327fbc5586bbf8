// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "nic/interfaces.h"
#include "nic/stage.h"
#include "transport/transport.h"

namespace rnic::nic {

/// Retires send work in post order: a completion for what was signalled, and for every error; after
/// an error the queue pair is in ERR and the rest is flushed (IBTA vol 1, 10.3.1.5).
class CompletionUnit : public sc_core::sc_module, public CompletionIf {
 public:
  sc_core::sc_export<CompletionIf> completion{"completion"};
  sc_core::sc_port<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<RecvQueueIf> recv_queues{"recv_queues"};
  sc_core::sc_port<WqeFetchIf> wqes{"wqes"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};

  CompletionUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                 transport::Transport& transport);

  void retire(QpContext& qp, Time t) override;
  void fail(QpContext& qp, Time t) override;
  void fail_fatally(QpContext& qp, Time t) override;

  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  void fail_sends(QpContext& qp, Time t);
  void tell_path(QpContext& qp, Time t);
  void raise(protocol::EventType type, const QpContext& qp, Time t);
  void complete(QpContext& qp, transport::SendEntry& entry, Time t);

  transport::Transport& transport_;
  PipelineStage stage_;
};

}  // namespace rnic::nic
