// SPDX-License-Identifier: Apache-2.0
#include "protocol/opcode.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"

/// Congestion control of RoCEv2: CNPs (IBTA annex A17, 17.9) and what DCQCN makes of them.
namespace rnic::transport {

/// A switch has marked a packet that arrived.
void RcTransport::note_congestion(QueuePair& qp, Time now) {
  ++counters_.np_ecn_marked_roce_packets;
  if (!config_.dcqcn.notifies || qp.cnp_due || now < qp.next_cnp_at) return;
  qp.cnp_due = true;
  qp.next_cnp_at = now + config_.dcqcn.cnp_interval;
}

bool RcTransport::handle_cnp(QueuePair& qp, const Incoming& in, Time now) {
  if (in.info.kind != protocol::OpcodeKind::kCnp) return false;
  ++counters_.rp_cnp_handled;
  if (qp.rate != nullptr) qp.rate->on_cnp(now);
  return true;
}

/// Outside the sequence of PSNs; nobody acknowledges it.
void RcTransport::plan_cnp(QueuePair& qp, TxPlan& plan) {
  qp.cnp_due = false;
  ++counters_.np_cnp_sent;
  plan = TxPlan{};
  plan.is_response = true;
  plan.frame_class = protocol::FrameClass::kAck;
  plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kCnp);
  plan.last = true;
}

/// A CNP takes the way of its queue pair, perhaps in a class of its own, in which it does not wait
/// behind the data that it is about.
protocol::AddressVector RcTransport::cnp_path(const protocol::AddressVector& data) const {
  protocol::AddressVector path = data;
  if (config_.cnp_priority == config::kCnpAsData) return path;
  constexpr std::uint8_t kEcnBits = 0x03;
  constexpr std::uint32_t kClassSelectorShift = 5;  // DSCP 8 x priority
  path.lane = path.service_level = static_cast<std::uint8_t>(config_.cnp_priority);
  path.traffic_class = static_cast<std::uint8_t>((config_.cnp_priority << kClassSelectorShift) |
                                                 (data.traffic_class & kEcnBits));
  return path;
}

}  // namespace rnic::transport
