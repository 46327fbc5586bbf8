// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "config/transport_config.h"
#include "transport/encapsulation.h"
#include "transport/retransmission_timers.h"
#include "transport/transport.h"

namespace rnic::transport {

struct SelectiveRepeat;

/// Choices of a reliable-connection implementation.
struct RcConfig {
  std::uint32_t ack_every = 256;  ///< AckReq every n packets inside a long message; last always
  Time ack_gap{0};  ///< least time between two ACKs of a QP; those in between are coalesced
  std::uint32_t window = 0;  ///< packets in flight at most, also what a responder reorders; 0: any
  std::uint32_t read_segment = 0;       ///< bytes that one READ request asks for at most; 0: any
  bool selective_repeat = false;        ///< else go-back-N
  bool sequence_nak = true;             ///< go-back-N: a gap is reported
  std::uint32_t reorder_tolerance = 0;  ///< selective repeat: packets that overtake what is lost
  bool marks_free_packets = false;      ///< WRITEs without immediate data may take any path
  bool atomic_waits = false;            ///< until what is before it is acknowledged
  bool end_to_end_credits = false;      ///< ACKs tell of RECVs, SENDs wait for them (9.7.7.2)
  RetransmissionTimers timers{};
  /// Selective repeat: first interval while at most three packets are under way; 0: as the others.
  Time tail_start{0};
  DcqcnParameters dcqcn{};
  std::uint32_t cnp_priority = config::kCnpAsData;  ///< of Ethernet
};

/// Reliable connected service of InfiniBand and RoCE (IBTA vol 1, chapter 9.7): PSN sequencing,
/// acknowledgement and coalescing, go-back-N recovery, RNR flow control, READ responses.
/// `rc_requester.cpp` and `rc_responder.cpp` hold the two halves, `rc_headers.cpp` the bytes.
///
/// Selective repeat is an option, as published for IRN (Mittal et al., SIGCOMM 2018), in
/// `rc_selective_requester.cpp` and `rc_selective_responder.cpp`:
/// - Every WRITE packet carries a RETH, so that it can be placed when it comes early. SENDs, READs,
///   atomics and immediate data that come early are held until their turn. MSN, RECVs and
///   completions stay in PSN order.
/// - For each early packet the responder sends a sequence NAK with its expected PSN, extended by
///   the PSN that arrived (4 bytes behind the AETH). The requester resends what is missing below
///   the newest PSN known to have arrived; of a READ it asks again for the missing run.
/// - What is asked for again of a READ is answered before what else waits at the responder.
/// - IRN finds the loss of a resent packet by the timer only. Here also by whatever was sent later
///   and has arrived, another resent packet, too: both ways keep their order. A part of a READ that
///   was asked for again is lost, too, if others arrive after twice the time that the last ones
///   took.
/// - While three packets or fewer are under way nothing may come behind a lost one: the timer then
///   is a short one (IRN's RTO_low), twice as long each time, up to the one that verbs set. So that
///   it is known, the last four packets of a message with nothing behind ask for their ACKs.
/// - The window counts request packets, which the responder may have to keep; a READ is one.
class RcTransport : public Transport {
 public:
  struct Incoming;  ///< a frame's transport headers, decoded

  RcTransport(const RcConfig& config, const Encapsulation& encapsulation,
              const PortIdentity& identity)
      : encapsulation_(encapsulation),
        config_(config),
        tail_timers_(config.timers),
        identity_(identity) {
    if (config.tail_start == kTimeZero) return;
    tail_timers_.adaptive = true;
    tail_timers_.adaptive_start = config.tail_start;
  }

  void connect(QueuePair& qp) override;
  void start_sending(QueuePair& qp, Time now) override;
  PlanStatus plan_request(QueuePair& qp, Time now, TxPlan& plan) override;
  bool plan_response(QueuePair& qp, Time now, TxPlan& plan) override;
  bool response_due(const QueuePair& qp) const override {
    return qp.cnp_due || (!qp.responses.empty() && !qp.responses.front().pending);
  }
  bool response_owed(const QueuePair& qp) const override { return !qp.responses.empty(); }
  void build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const override;
  std::uint32_t destination(const protocol::Frame& frame) override;
  GroupAddress group_of(const protocol::Frame& frame) const override;
  FrameUse use_of(const protocol::Frame& frame) const override;
  FrameTarget target_of(const protocol::Frame& frame) const override;
  void receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) override;
  void accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) override;
  void answer_atomic(QueuePair& qp, const RxPlan& plan, Time now) override;
  void refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) override;
  void refuse_atomic(QueuePair& qp, const RxPlan& plan, Time now) override;
  void refuse_response(QueuePair& qp, const TxPlan& plan, Refusal why, Time now) override;
  Hold held_by(const QueuePair& qp, Time now) const override;
  bool timeout(QueuePair& qp, Time now) override;
  bool holds(const QueuePair& qp, std::uint32_t psn) const override;
  bool hold_over(const QueuePair& qp, std::uint32_t psn) const override;

 protected:
  // What the unacknowledged services share.
  Incoming decode(const protocol::Frame& frame) const;
  static void issue(QueuePair& qp, SendEntry& entry);
  void plan_segment(QueuePair& qp, const SendEntry& entry, std::uint32_t offset, TxPlan& plan);
  static bool sequence_ok(const QueuePair& qp, const Incoming& in);
  static bool length_ok(const QueuePair& qp, const Incoming& in);
  void fill_request(QueuePair& qp, const Incoming& in, RxPlan& plan);
  /// Notification and reaction point of DCQCN: a marked packet, and a CNP; true for a CNP.
  void note_congestion(QueuePair& qp, Time now);
  bool handle_cnp(QueuePair& qp, const Incoming& in, Time now);

  const Encapsulation& encapsulation_;

 private:
  struct Gap;  ///< PSNs that are to be resent
  enum class Missing : std::uint8_t;

  protocol::AddressVector datagram_path(const protocol::Datagram& datagram) const;
  protocol::AddressVector cnp_path(const protocol::AddressVector& data) const;
  /// `datagram`: where it goes, null for a connection.
  void build_packet(const QueuePair& qp, const TxPlan& plan, const protocol::AddressVector& av,
                    const protocol::Datagram* datagram, protocol::Frame& frame) const;

  // Requester.
  bool fence_passed(const QueuePair& qp, const SendEntry& entry) const;
  bool may_issue(const QueuePair& qp, const SendEntry& entry) const;
  static bool credit_for(const QueuePair& qp, const SendEntry& entry);
  void note_credits(QueuePair& qp, const Incoming& in) const;
  std::uint8_t credit_syndrome(const QueuePair& qp) const;
  bool window_open(const QueuePair& qp, std::uint32_t psn) const;
  std::uint32_t packets_per_request(const QueuePair& qp, const SendEntry& entry) const;
  bool plan_next_read(QueuePair& qp, SendEntry& entry, TxPlan& plan);
  void plan_read(QueuePair& qp, const SendEntry& entry, std::uint32_t skip, std::uint32_t packets,
                 TxPlan& plan);
  void note_sent(QueuePair& qp, TxPlan& plan, std::uint32_t psn_count);
  void handle_ack(QueuePair& qp, const Incoming& in, Time now);
  void handle_nak(QueuePair& qp, const Incoming& in, Time now);
  void handle_rnr_nak(QueuePair& qp, const Incoming& in, Time now);
  void handle_read_response(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  static bool outstanding(const QueuePair& qp, std::uint32_t psn);
  static SendEntry* oldest_unanswered(QueuePair& qp, std::uint64_t& number);
  /// Of a response whose PSN is the expected one: the status with which its request fails if the
  /// response is of the wrong kind or length.
  protocol::WcStatus judge_response(const QueuePair& qp, const SendEntry& entry,
                                    const Incoming& in) const;
  /// False when a READ at or before `psn` lacks its answer: it is asked for again.
  bool acknowledge_up_to(QueuePair& qp, std::uint32_t psn, Time now);
  void advance(QueuePair& qp, std::uint32_t una_psn, Time now);
  static void rewind(QueuePair& qp, std::uint32_t psn);
  static bool spend_retry(QueuePair& qp);
  bool spend_timeout(QueuePair& qp);
  const RetransmissionTimers& timers_of(const QueuePair& qp) const;
  static void fail(QueuePair& qp, protocol::WcStatus status);
  void restart_timer(QueuePair& qp, Time now);

  // Requester, selective repeat.
  static SendEntry* entry_of(QueuePair& qp, std::uint32_t psn, std::uint64_t& number);
  std::uint32_t overtaken_end(const SelectiveRepeat& sr) const;
  void settle(QueuePair& qp, Time now);
  static void begin_recovery(QueuePair& qp);
  void find_losses(QueuePair& qp, std::uint64_t& counter, Time now);
  bool find_lost_requests(QueuePair& qp) const;
  static bool find_lost_responses(QueuePair& qp, Time now);
  static bool gap_at(QueuePair& qp, std::uint32_t psn, std::uint32_t end, Missing missing,
                     Gap& gap);
  bool next_gap(QueuePair& qp, Gap& gap) const;
  static void note_resent(QueuePair& qp, const Gap& gap, Time now);
  bool plan_resend(QueuePair& qp, Time now, TxPlan& plan);
  void selective_ack(QueuePair& qp, const Incoming& in, Time now);
  void selective_rnr_nak(QueuePair& qp, const Incoming& in, Time now);
  void selective_read_response(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  bool selective_timeout(QueuePair& qp, Time now);
  static bool only_a_tail(const QueuePair& qp);
  bool begins_tail(const QueuePair& qp, const SendEntry& entry, std::uint32_t packet) const;
  void hasten_timer(QueuePair& qp, Time now);

  // Responder.
  void handle_request(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  void handle_duplicate(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  void repeat_atomic(QueuePair& qp, const ResponderResource& resource, Time now);
  void push_read_response(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace);
  void push_ack(QueuePair& qp, std::uint32_t psn, Time now);
  /// `psn`: of the answer that cannot be given.
  void refuse_answer(QueuePair& qp, std::uint32_t psn, Refusal why, Time now);
  static void push_nak(QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome, Time now);

  // Responder, selective repeat.
  void handle_early(QueuePair& qp, const Incoming& in, Time now, RxPlan& plan);
  static void push_sack(QueuePair& qp, std::uint32_t psn, Time now);
  static void forget_early(QueuePair& qp, std::uint32_t psn);
  static void answer_again(QueuePair& qp, ResponseEntry& response);
  static void answer_next(QueuePair& qp);
  void execute_placed(QueuePair& qp, Time now);

  void plan_cnp(QueuePair& qp, TxPlan& plan);
  static void plan_read_response(QueuePair& qp, ResponseEntry& response, TxPlan& plan);

  static bool may_take_any_path(const QueuePair& qp, const TxPlan& plan,
                                const protocol::OpcodeInfo& info);
  std::uint32_t extra_header_bytes(const protocol::OpcodeInfo& info, std::uint8_t syndrome) const;

  RcConfig config_;
  RetransmissionTimers tail_timers_;
  const PortIdentity& identity_;
};

}  // namespace rnic::transport
