// SPDX-License-Identifier: Apache-2.0
#include "nic/dc_unit.h"

#include <memory>

namespace rnic::nic {

DcUnit::DcUnit(const config::DcConfig& config, std::uint64_t seed, const std::string& stream)
    : targets_(config.targets),
      connect_time_(config.connect_time),
      connect_interval_(config.connect_interval),
      rng_(seed, stream) {}

Time DcUnit::ready(QpContext& qp, Time now) {
  if (qp.dc == nullptr) qp.dc = std::make_unique<DcState>();
  DcState& dc = *qp.dc;
  if (qp.entry(qp.tx_number) == nullptr) return kTimeZero;
  if (qp.tx_number >= dc.drawn_until) {
    dc.wanted = static_cast<std::uint32_t>(rng_.below(targets_));
    dc.drawn_until = qp.tx_number + 1;
  }
  // What is resent goes where it went: only the newest message may want another peer.
  if (dc.wanted == dc.peer || qp.tx_number + 1 < dc.drawn_until) return dc.connected_at;
  if (dc.waits_since == kTimeNever) dc.waits_since = now;
  if (qp.tx_number != qp.sq_base) return kTimeNever;
  dc.peer = dc.wanted;
  dc.connected_at = connections_.reserve(now, connect_interval_).start + connect_time_;
  qp.engine_busy += dc.connected_at - dc.waits_since;
  dc.waits_since = kTimeNever;
  ++count_;
  return dc.connected_at;
}

}  // namespace rnic::nic
