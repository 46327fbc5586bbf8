// SPDX-License-Identifier: Apache-2.0
#include "transport/ib_transport.h"

#include "protocol/psn.h"
#include "transport/path_migration.h"
#include "transport/rc_incoming.h"

namespace rnic::transport {

using protocol::BthTransport;
using protocol::psn_add;
using protocol::QpType;

namespace {

BthTransport service_of(QpType type) {
  switch (type) {
    case QpType::kUc:
      return BthTransport::kUc;
    case QpType::kUd:
      return BthTransport::kUd;
    default:
      return BthTransport::kRc;
  }
}

}  // namespace

void IbTransport::connect(QueuePair& qp) {
  RcTransport::connect(qp);
  if (qp.type == QpType::kUd) qp.mtu = port_mtu_;
}

PlanStatus IbTransport::plan_request(QueuePair& qp, Time now, TxPlan& plan) {
  if (qp.type == QpType::kRc) return RcTransport::plan_request(qp, now, plan);
  return plan_unacknowledged(qp, plan);
}

PlanStatus IbTransport::plan_unacknowledged(QueuePair& qp, TxPlan& plan) {
  if (!qp.may_send()) return PlanStatus::kNoWqe;
  SendEntry* entry = qp.entry(qp.tx_number);
  if (entry == nullptr) return PlanStatus::kNoWqe;
  if (entry->finished) return PlanStatus::kBlocked;  // failed: the queue stops here
  if (!entry->issued) {
    if (qp.state == protocol::QpState::kSqd) return PlanStatus::kBlocked;
    issue(qp, *entry);
  }
  plan = TxPlan{};
  plan.entry_number = qp.tx_number;
  plan.message_length = entry->wqe.length;
  plan.rkey = entry->wqe.rkey;
  plan_segment(qp, *entry, qp.tx_offset, plan);
  qp.tx_offset = plan.last ? 0 : qp.tx_offset + plan.length;
  if (plan.last) ++qp.tx_number;
  plan.opcode = static_cast<std::uint8_t>(
      protocol::with_transport(service_of(qp.type), static_cast<protocol::BthOpcode>(plan.opcode)));
  plan.ack_request = false;
  plan.ends_work = plan.last;
  return PlanStatus::kPlanned;
}

void IbTransport::receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) {
  if (qp.type == QpType::kRc) {
    RcTransport::receive(qp, frame, now, plan);
    return;
  }
  plan = RxPlan{};
  const Incoming in = decode(frame);
  if (frame.ecn_marked) {
    if (qp.type == QpType::kUc) {
      note_congestion(qp, now);
    } else {
      // A datagram's sender has no rate of its own to lower.
      ++counters_.np_ecn_marked_roce_packets;
    }
  }
  if (handle_cnp(qp, in, now)) return;
  if (in.info.transport != service_of(qp.type) || !pkeys_match(in.bth.pkey, qp.av.pkey)) return;
  if (qp.migration != nullptr) note_migration(qp, in.bth.migration, frame, encapsulation_);
  plan.psn = in.bth.psn;
  if (qp.type == QpType::kUd) {
    receive_datagram(qp, in, plan);
  } else {
    receive_connected(qp, in, plan);
  }
}

void IbTransport::receive_connected(QueuePair& qp, const Incoming& in, RxPlan& plan) {
  using Kind = InboundMessage::Kind;
  if (in.info.starts_message()) {
    if (qp.inbound.kind != Kind::kNone) drop_message(qp);  // its end was lost
    if (in.bth.psn != qp.expected_psn) {
      plan.sequence_gap = true;
      ++counters_.out_of_sequence;
    }
    qp.expected_psn = in.bth.psn;
  } else if (in.bth.psn != qp.expected_psn) {
    ++counters_.out_of_sequence;
    drop_message(qp);
    return;
  }
  if (!sequence_ok(qp, in) || !length_ok(qp, in)) {
    drop_message(qp);
    return;
  }
  fill_request(qp, in, plan);
}

void IbTransport::receive_datagram(const QueuePair& qp, const Incoming& in, RxPlan& plan) {
  if (in.deth.qkey != qp.qkey) {
    ++counters_.qkey_violations;
    return;
  }
  if (in.payload_bytes > port_mtu_ || in.bth.pad_count != protocol::pad_to_word(in.payload_bytes)) {
    ++counters_.dropped_messages;
    return;
  }
  plan.action = RxPlan::Action::kSend;
  plan.first = plan.last = true;
  plan.has_imm = in.info.has_immdt;
  plan.imm = in.imm;
  plan.solicited = in.bth.solicited;
  plan.length = in.payload_bytes;
  plan.message_offset = kNetworkHeaderArea;  // the data lie behind the place of the GRH
  plan.source_qpn = in.deth.source_qpn;
}

/// What is left of the message is dropped as it comes: it continues nothing.
void IbTransport::drop_message(QueuePair& qp) {
  if (qp.inbound.kind == InboundMessage::Kind::kNone) return;
  qp.inbound.kind = InboundMessage::Kind::kNone;
  ++counters_.dropped_messages;
}

void IbTransport::accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) {
  if (qp.type == QpType::kRc) {
    RcTransport::accept(qp, plan, now, trace);
  } else if (plan.last) {
    ++(plan.action == RxPlan::Action::kWrite ? counters_.rx_write_requests
                                             : counters_.rx_send_requests);
  }
}

void IbTransport::refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) {
  if (qp.type == QpType::kRc) {
    RcTransport::refuse(qp, plan, why, now);
    return;
  }
  if (why == Refusal::kReceiverNotReady) ++counters_.out_of_buffer;
  qp.inbound.kind = InboundMessage::Kind::kNone;
  ++counters_.dropped_messages;
  // A receive queue that does not work is an error of this side, reported by its completion.
  if (why != Refusal::kOperational) return;
  qp.refusal = why;
  qp.failed = true;
}

NetworkHeader IbTransport::network_header(const protocol::Frame& frame) const {
  return encapsulation_.network_header(frame);
}

}  // namespace rnic::transport
