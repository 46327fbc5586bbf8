// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "config/transport_config.h"
#include "protocol/mpa.h"
#include "transport/encapsulation.h"
#include "transport/iwarp_connection.h"
#include "transport/tcp/connection_table.h"
#include "transport/transport.h"

namespace rnic::transport {

/// RDMA over TCP: RDMAP (RFC 5040, RFC 7306) in DDP (RFC 5041) in MPA (RFC 5044) in one TCP
/// connection a queue pair. `iwarp_stream.cpp` turns messages into segments,
/// `iwarp_requester.cpp` and `iwarp_responder.cpp` hold the two halves, `iwarp_headers.cpp` the
/// bytes.
///
/// - Every TCP segment carries exactly one FPDU. Requests and responses of a queue pair share one
///   stream and are never interleaved inside a message: plan_request() and plan_response() both
///   continue the message that is under way, and start one of their own kind otherwise.
/// - A queue pair that reaches RTS sets its connection up (`iwarp_connect.cpp`): SYN with sequence
///   number `sq_psn`, then MPA's start-up frames of 20 bytes; the end with the lower address is the
///   initiator. A SYN that comes before its queue pair is ready waits in a backlog. With
///   tcp.handshake=false both ends are connected as if that had happened. The responder may send
///   once its reply is acknowledged. With tcp.mpa_revision=2 the frames carry 4 bytes more, which
///   limit both ends' outstanding READs to what the other takes, and in peer-to-peer mode
///   (tcp.mpa_rtr) agree on the message without data that must come first (RFC 6581, 9).
/// - A queue pair that goes to ERR or RESET resets its connection (RST), which moves the peer's
///   queue pair to ERR and flushes its work. A terminate message closes its direction (FIN), and so
///   does the acknowledgement that answers it. With tcp.tear_down=false nothing is told.
/// - With SACK a segment that comes behind a gap is kept: an RDMA Write is placed at once (RFC
/// 5041,
///   5.4), everything else is held until its turn. SACK blocks travel on ACKs without data, so that
///   the MULPDU stays what it is.
/// - A WRITE or SEND completes when TCP has acknowledged its last byte, which this end does once
///   the data is placed. The peer answers what it cannot execute with a terminate message, after
///   which both ends are in error; a terminate message that is lost is not resent (the requester
///   then runs into its retransmission limit, `retry_count` timeouts in a row).
/// - Nothing waits for ever: a set-up ends after tcp.connect_timeout, and while READs or atomics
/// are
///   unanswered a quiet peer is probed (tcp.keepalive_*). Both end as a retransmission limit does.
///   (Connections without such work are not probed, so that a simulation comes to rest.)
/// - SEND with immediate does not exist (RFC 7306 has no such message): it completes with a local
///   operation error, as does a READ of more than one scatter element. WRITE with immediate is an
///   RDMA Write and an Immediate Data message right behind it (RFC 7306, 6), which takes the RECV;
///   the completion of that counts the bytes of the WRITE, as libibverbs' users expect.
/// - Markers (tcp.mpa_markers, both ends) are in the bytes of the wire and in all sizes; a frame's
///   own header and payload are without them (Frame::marker_count).
class IwarpTransport : public Transport {
 public:
  IwarpTransport(const config::TcpConfig& tcp, const config::TransportConfig& transport,
                 const Encapsulation& encapsulation, const PortIdentity& identity);

  void connect(QueuePair& qp) override;
  void start_sending(QueuePair& qp, Time now) override;
  bool disconnect(QueuePair& qp) override;
  PlanStatus plan_request(QueuePair& qp, Time now, TxPlan& plan) override;
  bool plan_response(QueuePair& qp, Time now, TxPlan& plan) override;
  bool response_due(const QueuePair& qp) const override;
  bool response_owed(const QueuePair& qp) const override;
  void build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const override;
  std::uint32_t destination(const protocol::Frame& frame) override;
  void receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) override;
  void accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) override;
  void answer_atomic(QueuePair& qp, const RxPlan& plan, Time now) override;
  bool can_put_off() const override { return false; }
  void refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) override;
  void refuse_atomic(QueuePair& qp, const RxPlan& plan, Time now) override;
  Hold held_by(const QueuePair& qp, Time now) const override;
  void refuse_response(QueuePair& qp, const TxPlan& plan, Refusal why, Time now) override;
  bool timeout(QueuePair& qp, Time now) override;
  bool holds(const QueuePair& qp, std::uint32_t sequence) const override;
  bool hold_over(const QueuePair& qp, std::uint32_t sequence) const override;

  /// Largest ULPDU of a segment: IP MTU less IP and TCP headers, options and MPA framing.
  std::uint32_t mulpdu() const { return mulpdu_; }
  /// TCP sequence number of the first FPDU's first byte on a side whose SYN had `psn`: behind SYN
  /// and an MPA frame of `mpa_bytes`.
  static constexpr std::uint32_t first_sequence(
      std::uint32_t psn, std::uint32_t mpa_bytes = protocol::MpaConnect::kBytes) {
    return psn + 1 + mpa_bytes;
  }
  /// State of a connected queue pair; null before connect().
  static const IwarpConnection* connection_of(const QueuePair& qp) {
    return static_cast<const IwarpConnection*>(qp.connection.get());
  }

 private:
  struct Segment;  ///< an arriving segment, decoded

  static IwarpConnection& connection(QueuePair& qp) {
    return static_cast<IwarpConnection&>(*qp.connection);
  }
  static const IwarpConnection& connection(const QueuePair& qp) {
    return static_cast<const IwarpConnection&>(*qp.connection);
  }
  static void update_deadline(QueuePair& qp);
  bool probe(QueuePair& qp, Time now);
  void open_receive(IwarpConnection& c, std::uint32_t psn) const;
  std::uint64_t address_key(std::uint32_t ipv4, const protocol::Gid& gid) const;
  void choose_ports(const QueuePair& qp, IwarpConnection& c) const;

  // Stream.
  std::uint32_t capacity(protocol::RdmapOpcode opcode) const;
  std::uint32_t segment_payload(const DdpMessage& message, std::uint32_t offset) const;
  /// Stream bytes of an FPDU `behind` bytes behind the first one of its direction.
  std::uint32_t stream_bytes(std::uint64_t behind, std::uint32_t ulpdu) const {
    const std::uint32_t bytes = protocol::fpdu_bytes(ulpdu);
    if (!config_.mpa_markers) return bytes;
    return static_cast<std::uint32_t>(protocol::fpdu_stream_bytes(behind, bytes, true));
  }
  std::uint32_t segment_bytes(const IwarpConnection& c, const DdpMessage& message,
                              std::uint32_t offset, std::uint64_t at) const;
  std::uint32_t first_segment_bytes(const IwarpConnection& c, const ResponseEntry& response) const;
  std::uint32_t first_segment_bytes(const IwarpConnection& c, const protocol::SendWqe& wqe) const;
  DdpMessage& append(IwarpConnection& c, const DdpMessage& message) const;
  bool plan_segment(QueuePair& qp, Time now, TxPlan& plan);
  void plan_ack(QueuePair& qp, Time now, TxPlan& plan);
  void plan_terminate(QueuePair& qp, Time now, TxPlan& plan);
  static bool answers_first(const QueuePair& qp, const IwarpConnection& c);
  void plan_probe(QueuePair& qp, Time now, TxPlan& plan);
  void fill_tcp(IwarpConnection& c, Time now, bool bare, TxPlan& plan) const;
  void seek(IwarpConnection& c) const;
  static void release_acknowledged(QueuePair& qp);

  // Requester.
  static bool executable(const protocol::SendWqe& wqe);
  static bool may_issue(const QueuePair& qp, const SendEntry& entry);
  void issue(QueuePair& qp, SendEntry& entry) const;
  static void describe_request(const SendEntry& entry, const DdpMessage& message, TxPlan& plan);
  void handle_ack(QueuePair& qp, const Segment& in, Time now);
  void handle_read_response(QueuePair& qp, const Segment& in, Time now, RxPlan& plan);
  void handle_atomic_response(QueuePair& qp, const Segment& in, Time now, RxPlan& plan);
  void handle_terminate(QueuePair& qp, const Segment& in, Time now);
  static SendEntry* offender(QueuePair& qp, const Segment& in,
                             const protocol::RdmapTerminate& terminate);
  static bool fail(QueuePair& qp, SendEntry* entry, protocol::WcStatus status);

  // Responder.
  static void describe_response(DdpMessage& message, TxPlan& plan);
  static DdpMessage response_message(const ResponseEntry& response);
  void handle_data(QueuePair& qp, const Segment& in, Time now, RxPlan& plan);
  void handle_early(QueuePair& qp, const Segment& in, RxPlan& plan);
  void take_segment(QueuePair& qp, std::uint32_t bytes, Time now);
  void handle_untagged(QueuePair& qp, const Segment& in, Time now, RxPlan& plan);
  void fill_send(QueuePair& qp, const Segment& in, RxPlan& plan);
  void fill_read_request(QueuePair& qp, const Segment& in, RxPlan& plan);
  void terminate_for_key(QueuePair& qp, const RxPlan& plan);
  void terminate_stream(QueuePair& qp, protocol::TerminateLayer layer, std::uint8_t error_type,
                        std::uint8_t error_code);

  // Set-up.
  void start_setup(QueuePair& qp, Time now);
  bool enhanced() const { return mpa_bytes_ > protocol::MpaConnect::kBytes; }
  protocol::MpaEnhanced own_terms(const QueuePair& qp, bool initiator) const;
  void negotiate(QueuePair& qp, SetupSegment segment, const std::uint8_t* terms);
  void send_ready(QueuePair& qp, ReadyToReceive agreed) const;
  void receive_ready(QueuePair& qp, const Segment& in, Time now);
  void remember_request(const ConnectionKey& key, const protocol::Frame& frame,
                        std::uint32_t tcp_offset);
  void plan_reset(QueuePair& qp, Time now, TxPlan& plan);
  void handle_reset(QueuePair& qp, const Segment& in, RxPlan& plan);
  void plan_setup(QueuePair& qp, Time now, TxPlan& plan);
  void build_setup(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const;
  SetupSegment setup_segment(const protocol::Frame& frame) const;
  bool receive_setup(QueuePair& qp, const protocol::Frame& frame, Time now);

  bool decode(const protocol::Frame& frame, Segment& in) const;

  /// A connection request whose queue pair is not ready.
  struct Waiting {
    ConnectionKey key;
    std::uint32_t sequence;
  };

  config::TcpConfig config_;
  const Encapsulation& encapsulation_;
  const PortIdentity& identity_;
  TcpParameters tcp_;
  std::uint32_t tcp_header_bytes_;
  bool ipv6_;
  std::uint8_t window_scale_ = 0;
  std::uint32_t mulpdu_;
  std::uint32_t mss_option_ = 0;
  std::uint32_t mpa_bytes_;  ///< of a set-up frame
  ConnectionTable connections_;
  std::vector<Waiting> backlog_;
};

}  // namespace rnic::transport
