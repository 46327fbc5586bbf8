// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/ib_headers.h"
#include "transport/ib_transport.h"

/// Two ports with a queue pair of an unreliable service each, without a network: a test carries the
/// frames over.
namespace rnic::testbench {

inline constexpr std::uint32_t kUnreliableMtu = 256;
inline constexpr std::uint32_t kUnreliableQkey = 0x1234'5678;

/// One port and its one queue pair.
struct UnreliableSide {
  UnreliableSide(const transport::Encapsulation& wire, protocol::QpType type, std::uint32_t number,
                 std::uint32_t peer, std::uint32_t first_psn)
      : transport({}, wire, identity, kUnreliableMtu) {
    identity.mac = mac(number);
    identity.ipv4 = number;
    path.destination_mac = mac(peer);
    path.destination_ipv4 = peer;
    qp.qpn = number;
    qp.type = type;
    qp.mtu = kUnreliableMtu;
    qp.qkey = kUnreliableQkey;
    qp.next_psn = qp.expected_psn = first_psn;
    if (type != protocol::QpType::kUd) {
      qp.dest_qpn = peer;
      qp.av = path;
    }
    transport.connect(qp);
    transport.start_sending(qp, kTimeZero);
    qp.state = protocol::QpState::kRts;
  }

  static protocol::MacAddress mac(std::uint32_t number) {
    return {2, 0, 0, 0, 0, static_cast<std::uint8_t>(number)};
  }

  protocol::SendWqe& post(protocol::WqeOpcode opcode, std::uint32_t length) {
    transport::SendEntry& entry = qp.sq.push_slot();
    entry = transport::SendEntry{};
    entry.wqe.opcode = opcode;
    entry.wqe.length = length;
    entry.wqe.remote_address = 0x4000;
    entry.wqe.rkey = 77;
    entry.wqe.sge_count = 1;
    entry.wqe.sge[0] = {0x8000, length, 5};
    entry.wqe.is_datagram = qp.type == protocol::QpType::kUd;
    return entry.wqe;
  }

  /// All that may be sent now.
  std::vector<std::unique_ptr<protocol::Frame>> send() {
    std::vector<std::unique_ptr<protocol::Frame>> frames;
    transport::TxPlan plan;
    while (transport.plan_request(qp, kTimeZero, plan) == transport::PlanStatus::kPlanned) {
      plans.push_back(plan);
      auto frame = std::make_unique<protocol::Frame>();
      frame->checksums_deferred = true;
      transport.build(qp, plan, *frame);
      frames.push_back(std::move(frame));
    }
    return frames;
  }

  /// What the NIC is asked to do about a frame; it does it.
  transport::RxPlan receive(const protocol::Frame& frame) {
    transport::RxPlan plan;
    if (transport.destination(frame) != qp.qpn) return plan;
    transport.receive(qp, frame, kTimeZero, plan);
    if (plan.action != transport::RxPlan::Action::kNone)
      transport.accept(qp, plan, kTimeZero, nullptr);
    return plan;
  }

  transport::PortIdentity identity;
  protocol::AddressVector path;
  transport::IbTransport transport;
  transport::QueuePair qp;
  std::vector<transport::TxPlan> plans;
};

struct UnreliablePair {
  explicit UnreliablePair(protocol::QpType type, std::uint32_t first_psn = 100)
      : wire(transport::make_encapsulation(config::Protocol::kRoceV2, {})),
        a(*wire, type, 3, 4, first_psn),
        b(*wire, type, 4, 3, first_psn) {}

  protocol::Bth bth(const protocol::Frame& frame) const {
    return protocol::Bth::decode(frame.header + wire->outer_bytes());
  }

  std::unique_ptr<transport::Encapsulation> wire;
  UnreliableSide a;
  UnreliableSide b;
};

inline protocol::Datagram to(const UnreliableSide& side, std::uint32_t qkey = kUnreliableQkey) {
  protocol::Datagram datagram;
  datagram.av.destination_mac = side.identity.mac;
  datagram.av.destination_ipv4 = side.identity.ipv4;
  datagram.destination_qpn = side.qp.qpn;
  datagram.qkey = qkey;
  return datagram;
}

}  // namespace rnic::testbench
