// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/ring.h"
#include "base/time.h"
#include "protocol/address_vector.h"
#include "protocol/qp_state.h"
#include "protocol/wqe.h"
#include "stats/stage.h"
#include "transport/dcqcn.h"
#include "transport/hold.h"

namespace rnic::transport {

/// Base of what a transport keeps for a connection beyond the IB-style state below (iWARP: TCP).
class ConnectionState {
 public:
  virtual ~ConnectionState() = default;
};

/// A work request between its decode and its completion.
struct SendEntry {
  protocol::SendWqe wqe;
  std::uint32_t first_psn = 0;      ///< iWARP: MSN of its untagged message
  std::uint32_t psn_count = 0;      ///< packets of a SEND/WRITE, response packets of a READ
  std::uint32_t responded = 0;      ///< READ: response packets (iWARP: bytes) received in order
  std::uint32_t requested = 0;      ///< READ: response packets asked for so far (nic.read_segment)
  std::uint64_t end_of_stream = 0;  ///< iWARP: TCP sequence (64-bit) just behind the message
  bool issued = false;              ///< its first packet was planned; PSNs are assigned
  bool finished = false;            ///< may complete once everything before it has
  bool placing = false;             ///< READ: last response byte on its way to memory
  bool holds_slot = false;          ///< READ, atomic, selective repeat: counts as outstanding
  bool sacked = false;  ///< READ, atomic: its request waits at the responder for its turn
  protocol::WcStatus status = protocol::WcStatus::kSuccess;
  Time decode_start{0};  ///< when the NIC begins to decode it
  stats::MessageTrace* trace = nullptr;

  /// READs and atomics: the peer's answer completes them, not an acknowledgement.
  bool answered_by_response() const { return wqe.is_read() || wqe.is_atomic(); }
};

/// Why the responder half refuses a request (IBTA vol 1, 9.7.5.2.8: NAK codes; RNR).
enum class Refusal : std::uint8_t {
  kReceiverNotReady,
  kInvalidRequest,
  kRemoteAccess,
  kOperational
};

/// Something the responder half owes its peer, in PSN order.
struct ResponseEntry {
  enum class Kind : std::uint8_t { kAck, kNak, kReadResponse, kAtomicResponse };
  Kind kind = Kind::kAck;
  std::uint8_t syndrome = 0;
  std::uint32_t psn = 0;
  std::uint32_t msn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t sent = 0;       ///< bytes of a READ response already planned
  std::uint32_t sink_stag = 0;  ///< iWARP READ: where the requester wants the data
  std::uint64_t sink_address = 0;
  std::uint64_t original = 0;  ///< atomic: value before the operation
  std::uint32_t sack_psn = 0;  ///< selective repeat: the packet that a sequence NAK answers
  Time ready{0};               ///< not to be sent before
  bool pending = false;        ///< atomic: not executed yet
  bool repeated = false;       ///< READ: answers a duplicate request, holds no responder resource
  stats::MessageTrace* trace = nullptr;
};

/// A READ or atomic that was executed, kept to answer duplicates of its request.
struct ResponderResource {
  std::uint32_t psn = 0;
  std::uint32_t psn_count = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint64_t address = 0;
  std::uint64_t original = 0;  ///< atomic: value before the operation
  bool atomic = false;
  bool pending = false;  ///< atomic: not executed yet, `original` is still to come
};

/// The message a responder is in the middle of.
struct InboundMessage {
  enum class Kind : std::uint8_t { kNone, kSend, kWrite };
  Kind kind = Kind::kNone;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;  ///< WRITE: of the message's first byte
  std::uint32_t length = 0;   ///< WRITE: announced in the RETH
  std::uint32_t received = 0;
};

/// Counters of a port's RDMA transport; names as mlx5 drivers print them (hw_counters).
struct TransportCounters {
  std::uint64_t out_of_sequence = 0;
  std::uint64_t packet_seq_err = 0;
  std::uint64_t implied_nak_seq_err = 0;
  std::uint64_t duplicate_request = 0;
  std::uint64_t local_ack_timeout_err = 0;
  std::uint64_t rnr_nak_retry_err = 0;
  std::uint64_t rnr_naks_sent = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t rx_write_requests = 0;
  std::uint64_t rx_read_requests = 0;
  std::uint64_t rx_atomic_requests = 0;
  std::uint64_t rx_send_requests = 0;
  std::uint64_t req_remote_access_errors = 0;
  std::uint64_t req_remote_invalid_request = 0;
  std::uint64_t resp_remote_access_errors = 0;
  std::uint64_t credit_waits = 0;  ///< SENDs held back because the responder has no RECV for them
  std::uint64_t acks_sent = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t tcp_retransmitted_segments = 0;
  std::uint64_t out_of_buffer = 0;     ///< UC, UD: dropped for want of a RECV
  std::uint64_t dropped_messages = 0;  ///< UC, UD: all that were dropped
  std::uint64_t qkey_violations = 0;
  std::uint64_t np_ecn_marked_roce_packets = 0;
  std::uint64_t np_cnp_sent = 0;
  std::uint64_t rp_cnp_handled = 0;
};

/// Path migration of a queue pair (IBTA vol 1, 17.2.8).
struct MigrationPath {
  protocol::PathMigration state = protocol::PathMigration::kMigrated;
  bool moved = false;    ///< it uses the path that was the alternate one, and says so (MigReq)
  bool refused = false;  ///< the peer's wish for another path was reported
  protocol::AddressVector alternate;
  std::uint8_t timeout_exponent = 0;  ///< on the alternate path
};

/// What an asynchronous event is still to tell of a queue pair's path.
enum class PathNews : std::uint8_t { kNone, kMigrated, kRefused };

/// Protocol state of a queue pair, both halves. Kernel-free; time comes in as arguments.
struct QueuePair {
  std::uint32_t qpn = 0;
  protocol::QpType type = protocol::QpType::kRc;
  std::uint32_t pd = 0;
  std::uint32_t send_cqn = 0;
  std::uint32_t recv_cqn = 0;
  protocol::QpState state = protocol::QpState::kReset;
  std::uint32_t access = 0;
  std::uint32_t dest_qpn = 0;
  std::uint32_t mtu = 1024;
  std::uint16_t max_rd_atomic = 1;
  std::uint16_t max_dest_rd_atomic = 1;
  // In the widths that they have on the wire and in the verbs: see `hold` below.
  std::uint8_t timeout_exponent = 0;  ///< 5 bits
  std::uint8_t min_rnr_timer = 0;     ///< 5 bits
  std::uint8_t retry_count = 0;       ///< 3 bits
  std::uint8_t rnr_retry = 0;         ///< 3 bits
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  std::uint8_t quick_retries = 0;  ///< of adaptive retransmission, since progress
  protocol::AddressVector av;
  std::uint32_t qkey = 0;  ///< datagrams: what arrives must name it

  // One byte each, together: a hundred thousand idle queue pairs are not a rare set-up.
  Hold hold = Hold::kNone;      ///< why it could not send when it was last asked to
  bool implied_nak = false;     ///< a lost READ response was noticed and asked for; until progress
  bool resend_due = false;      ///< selective repeat: a gap may have to be filled
  bool credit_limited = false;  ///< the responder tells how many RECVs it has
  bool sequence_nak_sent = false;
  bool failed = false;             ///< a fatal NAK was queued; the QP goes to ERR when it is sent
  std::optional<Refusal> refusal;  ///< why, when `failed` because the responder half refused
  PathNews path_news = PathNews::kNone;
  bool cnp_due = false;

  // Requester. `sq` holds decoded WQEs from the oldest not completed to the newest fetched.
  Ring<SendEntry> sq;
  std::uint64_t sq_base = 0;       ///< number of sq.front() since creation
  std::uint64_t tx_number = 0;     ///< entry being sent
  std::uint32_t tx_offset = 0;     ///< bytes of it already planned
  std::uint32_t next_psn = 0;      ///< for the next entry to be issued
  std::uint32_t una_psn = 0;       ///< oldest unacknowledged
  std::uint32_t max_sent_psn = 0;  ///< one past the highest PSN ever planned
  std::uint32_t outstanding_reads = 0;
  std::uint32_t next_ssn = 1;        ///< send sequence number of the next message to be issued
  std::uint32_t credit_limit = 0;    ///< LSN: messages up to this one find a RECV
  std::uint32_t credit_wait = 0;     ///< SSN of the last message that had to wait for a RECV
  Time retry_deadline = kTimeNever;  ///< acknowledgement timer, kTimeNever when not running
  Time rnr_until{0};                 ///< no requests before (RNR NAK)
  Time held_since{0};                ///< since when it could not send: see `hold`

  // Responder.
  std::uint32_t expected_psn = 0;
  std::uint32_t msn = 0;
  std::uint32_t receives_posted = 0xFFFF'FFFF;  ///< RECVs not taken, as the NIC knows; shared: many
  std::uint32_t reads_in_service = 0;           ///< READs and atomics whose answer has not left
  InboundMessage inbound;
  InboundMessage inbound_before;  ///< as it was before the packet in hand, should it be refused
  Time next_ack_at{0};            ///< ACK moderation: none before
  Ring<ResponseEntry> responses;
  Ring<ResponderResource> resources;  ///< the max_dest_rd_atomic newest

  std::unique_ptr<ConnectionState> connection;
  std::unique_ptr<MigrationPath> migration;  ///< null: there never was an alternate path

  // Congestion control.
  std::unique_ptr<DcqcnReactionPoint> rate;  ///< null: as fast as the line
  Time next_cnp_at{0};                       ///< no CNP before

  SendEntry* entry(std::uint64_t number) {
    return number < sq_base || number - sq_base >= sq.size()
               ? nullptr
               : &sq[static_cast<std::size_t>(number - sq_base)];
  }
  const SendEntry* entry(std::uint64_t number) const {
    return number < sq_base || number - sq_base >= sq.size()
               ? nullptr
               : &sq[static_cast<std::size_t>(number - sq_base)];
  }
  bool can_receive() const {
    return state == protocol::QpState::kRtr || state == protocol::QpState::kRts ||
           state == protocol::QpState::kSqd || state == protocol::QpState::kSqe;
  }
  /// Requests may go out; in SQD only those that were begun before.
  bool may_send() const {
    return state == protocol::QpState::kRts || state == protocol::QpState::kSqd;
  }
  /// Send work comes back unexecuted.
  bool flushes_sends() const {
    return state == protocol::QpState::kError || state == protocol::QpState::kSqe;
  }
};

}  // namespace rnic::transport
