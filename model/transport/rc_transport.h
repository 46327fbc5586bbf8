// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "transport/encapsulation.h"
#include "transport/transport.h"

namespace rnic::transport {

/// Choices of a reliable-connection implementation.
struct RcConfig {
  std::uint32_t ack_every = 256;  ///< AckReq every n packets inside a long message; last always
  Time ack_gap{0};  ///< least time between two ACKs of a QP; those in between are coalesced
};

/// Reliable connected service of InfiniBand and RoCE (IBTA vol 1, chapter 9.7): PSN sequencing,
/// acknowledgement and coalescing, go-back-N recovery, RNR flow control, READ responses.
/// `rc_requester.cpp` and `rc_responder.cpp` hold the two halves, `rc_headers.cpp` the bytes.
class RcTransport : public Transport {
 public:
  RcTransport(const RcConfig& config, const Encapsulation& encapsulation,
              const PortIdentity& identity)
      : config_(config), encapsulation_(encapsulation), identity_(identity) {}

  void connect(QueuePair& qp) override;
  void start_sending(QueuePair& qp) override;
  PlanStatus plan_request(QueuePair& qp, Time now, TxPlan& plan) override;
  bool plan_response(QueuePair& qp, Time now, TxPlan& plan) override;
  bool response_due(const QueuePair& qp) const override {
    return !qp.responses.empty() && !qp.responses.front().pending;
  }
  bool response_owed(const QueuePair& qp) const override { return !qp.responses.empty(); }
  void build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const override;
  std::uint32_t destination(const protocol::Frame& frame) override;
  FrameUse use_of(const protocol::Frame& frame) const override;
  void receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) override;
  void accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) override;
  void answer_atomic(QueuePair& qp, const RxPlan& plan, Time now) override;
  void refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) override;
  void refuse_response(QueuePair& qp, const TxPlan& plan, Refusal why, Time now) override;
  bool timeout(QueuePair& qp, Time now) override;

 private:
  struct Incoming;  ///< a frame's transport headers, decoded

  // Requester.
  static bool may_issue(const QueuePair& qp, const SendEntry& entry);
  static void issue(QueuePair& qp, SendEntry& entry);
  void plan_segment(QueuePair& qp, SendEntry& entry, TxPlan& plan);
  void plan_read(QueuePair& qp, SendEntry& entry, TxPlan& plan);
  void note_sent(QueuePair& qp, TxPlan& plan, std::uint32_t psn_count);
  void handle_ack(QueuePair& qp, const Incoming& in, Time now);
  void handle_nak(QueuePair& qp, const Incoming& in, Time now);
  void handle_rnr_nak(QueuePair& qp, const Incoming& in, Time now);
  void handle_read_response(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  static bool outstanding(const QueuePair& qp, std::uint32_t psn);
  static SendEntry* oldest_unanswered(QueuePair& qp, std::uint64_t& number);
  static bool response_fits(const QueuePair& qp, const SendEntry& entry, const Incoming& in);
  /// False when a READ at or before `psn` lacks its answer: it is asked for again.
  bool acknowledge_up_to(QueuePair& qp, std::uint32_t psn, Time now);
  static void advance(QueuePair& qp, std::uint32_t una_psn, Time now);
  static void rewind(QueuePair& qp, std::uint32_t psn);
  static bool spend_retry(QueuePair& qp);
  static void fail(QueuePair& qp, protocol::WcStatus status);
  static void restart_timer(QueuePair& qp, Time now);

  // Responder.
  void handle_request(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  void handle_duplicate(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  void repeat_atomic(QueuePair& qp, const ResponderResource& resource, Time now);
  void push_read_response(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace);
  static bool sequence_ok(const QueuePair& qp, const Incoming& in);
  static bool length_ok(const QueuePair& qp, const Incoming& in);
  void fill_request(QueuePair& qp, const Incoming& in, RxPlan& plan);
  void push_ack(QueuePair& qp, std::uint32_t psn, Time now);
  static void push_nak(QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome, Time now);

  static void plan_read_response(QueuePair& qp, ResponseEntry& response, TxPlan& plan);

  Incoming decode(const protocol::Frame& frame) const;

  RcConfig config_;
  const Encapsulation& encapsulation_;
  const PortIdentity& identity_;
};

}  // namespace rnic::transport
