// SPDX-License-Identifier: Apache-2.0
// Selective repeat, the half that receives requests: what comes early is placed or held.
#include <utility>

#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"
#include "transport/selective_repeat.h"

namespace rnic::transport {

using protocol::OpcodeKind;
using protocol::psn_add;
using protocol::psn_distance;
using State = SelectiveRepeat::Early::State;

bool RcTransport::holds(const QueuePair& qp, std::uint32_t psn) const {
  if (!config_.selective_repeat || qp.connection == nullptr) return false;
  const SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (sr.early.empty() || psn_distance(psn, qp.expected_psn) < 0) return false;
  const auto found = sr.early.find(psn);
  return found != sr.early.end() && found->second.state == State::kHeld;
}

bool RcTransport::hold_over(const QueuePair& qp, std::uint32_t psn) const {
  return psn == qp.expected_psn && holds(qp, psn);
}

void RcTransport::handle_early(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  plan.psn = in.bth.psn;
  if (sr.early.find(in.bth.psn) != sr.early.end()) {
    push_sack(qp, in.bth.psn, now);
    return;
  }
  if (sr.early.size() >= config_.window) return;  // a requester does not send it
  const bool held = in.info.kind != OpcodeKind::kWrite || in.info.has_immdt;
  sr.early.emplace(in.bth.psn, SelectiveRepeat::Early{held ? State::kHeld : State::kPlacing, in});
  if (held) {
    plan.action = RxPlan::Action::kHold;
    push_sack(qp, in.bth.psn, now);
    return;
  }
  plan.action = RxPlan::Action::kWrite;
  plan.out_of_order = true;
  plan.first = true;  // checked on its own
  plan.rkey = in.reth.rkey;
  plan.address = in.reth.va;
  plan.length = in.payload_bytes;
  plan.message_length = in.payload_bytes;
}

void RcTransport::push_sack(QueuePair& qp, std::uint32_t psn, Time now) {
  push_nak(qp, qp.expected_psn, protocol::nak_syndrome(protocol::NakCode::kPsnSequence), now);
  qp.responses.back().sack_psn = psn;
}

void RcTransport::forget_early(QueuePair& qp, std::uint32_t psn) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (!sr.early.empty()) sr.early.erase(psn);
}

/// Executes the placed WRITE packets whose turn has come.
void RcTransport::execute_placed(QueuePair& qp, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (sr.early.empty()) return;
  for (;;) {
    const auto turn = sr.early.find(qp.expected_psn);
    if (turn == sr.early.end() || turn->second.state != State::kPlaced) break;
    const Incoming packet = turn->second.packet;
    sr.early.erase(turn);
    if (!sequence_ok(qp, packet) || !length_ok(qp, packet)) break;  // refused when resent
    RxPlan plan;
    fill_request(qp, packet, plan);
    if (!plan.last) continue;
    qp.msn = (qp.msn + 1) & protocol::kPsnMask;
    ++counters_.rx_write_requests;
  }
  // The requester learns at once that a gap is closed.
  push_ack(qp, psn_add(qp.expected_psn, protocol::kPsnMask), now);
}

/// The newest of what is owed goes before all else but what was asked for again before it.
void RcTransport::answer_next(QueuePair& qp) {
  for (std::size_t i = qp.responses.size() - 1; i > 0 && !qp.responses[i - 1].repeated; --i) {
    std::swap(qp.responses[i], qp.responses[i - 1]);
  }
}

}  // namespace rnic::transport
