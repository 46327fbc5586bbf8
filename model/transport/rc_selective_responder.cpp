// SPDX-License-Identifier: Apache-2.0
// Selective repeat, the half that receives requests: what comes early is placed or held.
#include "protocol/aeth.h"
#include "protocol/psn.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"
#include "transport/selective_repeat.h"

namespace rnic::transport {

using protocol::OpcodeKind;
using protocol::psn_add;
using protocol::psn_distance;
using State = SelectiveRepeat::Slot::State;

namespace {

std::size_t power_of_two_at_least(std::uint32_t n) {
  std::size_t size = 1;
  while (size < n) size *= 2;
  return size;
}

}  // namespace

bool RcTransport::holds(const QueuePair& qp, std::uint32_t psn) const {
  if (!config_.selective_repeat || qp.connection == nullptr) return false;
  const SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (sr.occupied == 0 || psn_distance(psn, qp.expected_psn) < 0) return false;
  const SelectiveRepeat::Slot& slot = sr.slots[psn & (sr.slots.size() - 1)];
  return slot.state == State::kHeld && slot.packet.bth.psn == psn;
}

bool RcTransport::hold_over(const QueuePair& qp, std::uint32_t psn) const {
  return psn == qp.expected_psn && holds(qp, psn);
}

void RcTransport::handle_early(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  const auto ahead = static_cast<std::uint32_t>(psn_distance(in.bth.psn, qp.expected_psn));
  if (ahead >= config_.window) return;  // a requester does not send it
  if (sr.slots.empty()) sr.slots.resize(power_of_two_at_least(config_.window));
  SelectiveRepeat::Slot& slot = sr.slot(in.bth.psn);
  plan.psn = in.bth.psn;
  if (slot.state != State::kFree) {
    push_sack(qp, in.bth.psn, now);
    return;
  }
  ++sr.occupied;
  slot.packet = in;
  if (in.info.kind != OpcodeKind::kWrite || in.info.has_immdt) {
    slot.state = State::kHeld;
    plan.action = RxPlan::Action::kHold;
    push_sack(qp, in.bth.psn, now);
    return;
  }
  slot.state = State::kPlacing;
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
  if (sr.occupied == 0) return;
  SelectiveRepeat::Slot& slot = sr.slot(psn);
  if (slot.state != State::kFree && slot.packet.bth.psn == psn) sr.release(slot);
}

/// Executes the placed WRITE packets whose turn has come.
void RcTransport::execute_placed(QueuePair& qp, Time now) {
  SelectiveRepeat& sr = SelectiveRepeat::of(qp);
  if (sr.occupied == 0) return;
  for (;;) {
    SelectiveRepeat::Slot& slot = sr.slot(qp.expected_psn);
    if (slot.state != State::kPlaced) break;
    sr.release(slot);
    if (!sequence_ok(qp, slot.packet) || !length_ok(qp, slot.packet)) break;  // refused when resent
    RxPlan plan;
    fill_request(qp, slot.packet, plan);
    if (!plan.last) continue;
    qp.msn = (qp.msn + 1) & protocol::kPsnMask;
    ++counters_.rx_write_requests;
  }
  // The requester learns at once that a gap is closed.
  push_ack(qp, psn_add(qp.expected_psn, protocol::kPsnMask), now);
}

}  // namespace rnic::transport
