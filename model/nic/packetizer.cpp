// SPDX-License-Identifier: Apache-2.0
#include "nic/packetizer.h"

namespace rnic::nic {

Packetizer::Packetizer(const sc_core::sc_module_name& name, const config::NicConfig& config,
                       transport::Transport& transport, Pool<TxJob>& jobs,
                       const config::StageConfig* extra)
    : sc_module(name),
      transport_(transport),
      jobs_(jobs),
      stage_(this->name(), config.packetizer, Clock(config.clock_hz)) {
  packetizer.bind(*this);
  if (extra != nullptr) {
    engine_ = std::make_unique<PipelineStage>(std::string(this->name()) + ".tcp_engine", *extra,
                                              Clock(config.clock_hz));
  }
}

void Packetizer::packetize(TxJob* job, Time t) {
  Time done = stage_.pass(t);
  if (engine_ != nullptr) done = engine_->pass(done);
  protocol::Frame& frame = *job->frame;
  QpContext& qp = *job->qp;
  frame.frame_class = job->plan.frame_class;
  frame.checksums_deferred = true;
  frame.ecn_marked = false;
  frame.uncounted = false;
  frame.sequence = ++sequence_;
  transport_.build(qp, job->plan, frame);
  if (frame.trace != nullptr) frame.trace->mark(stats::Stage::kPacketize, done);
  if (frame.frame_class == protocol::FrameClass::kData) ++data_packets_;
  jobs_.give(job);
  port->send(&frame, done);
  if (qp.failed && !transport_.response_due(qp)) completion->fail(qp, done);
}

}  // namespace rnic::nic
