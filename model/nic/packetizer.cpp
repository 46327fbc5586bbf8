// SPDX-License-Identifier: Apache-2.0
#include "nic/packetizer.h"

namespace rnic::nic {

Packetizer::Packetizer(const sc_core::sc_module_name& name, const config::NicConfig& config,
                       transport::Transport& transport, Pool<TxJob>& jobs,
                       const config::StageConfig* extra)
    : sc_module(name),
      transport_(transport),
      jobs_(jobs),
      stage_(this->name(), config.packetizer, Clock(config.clock_hz)),
      crc_rate_(config.mpa_crc_rate) {
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
  frame.answers_qpn = job->plan.ends_answer ? qp.qpn : 0;
  frame.sequence = ++sequence_;
  transport_.build(qp, job->plan, frame);
  if (engine_ != nullptr && crc_rate_.valid()) {
    done = stage_.occupy(done, crc_rate_.time_for(frame.payload_bytes));
  }
  if (frame.trace != nullptr) frame.trace->mark(stats::Stage::kPacketize, done);
  if (frame.frame_class == protocol::FrameClass::kData) ++data_packets_;
  const bool ends_work = job->plan.ends_work;
  const std::uint64_t number = job->plan.entry_number;
  jobs_.give(job);
  // What nobody acknowledges ends its journey to the completion here.
  if (ends_work && frame.trace != nullptr && frame.trace->ends_at_requester())
    frame.trace = nullptr;
  port->send(&frame, done);
  if (ends_work) {
    if (transport::SendEntry* entry = qp.entry(number)) entry->finished = true;
    completion->retire(qp, done);
  }
  if (qp.failed && !transport_.response_owed(qp)) completion->fail(qp, done);
}

}  // namespace rnic::nic
