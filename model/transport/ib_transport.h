// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rc_transport.h"

namespace rnic::transport {

/// The services of an InfiniBand or RoCE port: reliable connection, and the two that acknowledge
/// nothing, unreliable connection and unreliable datagram (IBTA vol 1, 9.8.2 and 9.8.3). RC is the
/// base class, so that its packets take one comparison more and no second dispatch.
///
/// - A work request of UC or UD is over when its last packet has been built; nothing is sent again.
/// - UC: a message with a missing, late or ill-formed packet, or one that the responder cannot
///   execute, is dropped from there on; the next first packet, whatever its PSN, begins anew. A
///   RECV of a dropped SEND stays for the next one.
/// - UD: one packet a message, which names its queue pair's Q_Key; another key, no RECV or one too
///   short drop it. PSNs are counted but not looked at.
class IbTransport final : public RcTransport {
 public:
  /// `port_mtu`: largest datagram, bytes.
  IbTransport(const RcConfig& config, const Encapsulation& encapsulation,
              const PortIdentity& identity, std::uint32_t port_mtu)
      : RcTransport(config, encapsulation, identity), port_mtu_(port_mtu) {}

  void connect(QueuePair& qp) override;
  PlanStatus plan_request(QueuePair& qp, Time now, TxPlan& plan) override;
  void receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) override;
  void accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) override;
  void refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) override;
  NetworkHeader network_header(const protocol::Frame& frame) const override;

 private:
  PlanStatus plan_unacknowledged(QueuePair& qp, TxPlan& plan);
  void receive_connected(QueuePair& qp, const Incoming& in, RxPlan& plan);
  void receive_datagram(const QueuePair& qp, const Incoming& in, RxPlan& plan);
  void drop_message(QueuePair& qp);

  std::uint32_t port_mtu_;
};

}  // namespace rnic::transport
