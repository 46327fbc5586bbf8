// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "protocol/frame.h"
#include "protocol/mpt.h"
#include "transport/encapsulation.h"
#include "transport/iwarp_setup.h"
#include "transport/queue_pair.h"

namespace rnic::transport {

/// Parts of a scatter/gather list; a datagram's network header may split one element more.
using PieceList = std::array<protocol::Sge, protocol::kMaxSge + 1>;

/// A packet that a queue pair may send now: decided by the transport, carried out by the NIC's
/// transmit pipeline. Holds everything the header needs, so that the entry it came from may retire
/// while the packet is still in the pipeline.
struct TxPlan {
  enum class Payload : std::uint8_t {
    kNone,    ///< header only
    kLocal,   ///< gathered from `pieces`
    kInline,  ///< came with the WQE; already copied into the frame
    kRemote,  ///< READ response: `length` bytes at `address` of the region `rkey`
  };

  Payload payload = Payload::kNone;
  protocol::FrameClass frame_class = protocol::FrameClass::kData;
  bool last = false;  ///< last packet of its message
  bool is_response = false;
  bool retransmission = false;
  std::uint8_t opcode = 0;    ///< BTH opcode; iWARP: RDMAP opcode
  std::uint8_t syndrome = 0;  ///< AETH
  bool ack_request = false;
  bool solicited = false;
  bool goes_on = false;    ///< earlier messages of its work request went before (iWARP)
  bool ends_work = false;  ///< nothing will acknowledge it: its work request is over
  bool ends_answer =
      false;  ///< last of a READ's or atomic's answer: answer_sent() once it has left
  std::uint32_t psn = 0;
  std::uint32_t msn = 0;
  std::uint32_t sack_psn = 0;  ///< selective repeat: the packet that a sequence NAK answers
  std::uint32_t length = 0;    ///< payload bytes of this packet
  std::uint32_t message_offset = 0;
  std::uint32_t message_length = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t imm = 0;
  std::uint64_t swap_or_add = 0;  ///< atomics; AtomicAckETH: the original value
  std::uint64_t compare = 0;
  std::uint32_t sink_stag = 0;  ///< iWARP READ request
  std::uint64_t sink_address = 0;
  std::uint64_t stream = 0;  ///< iWARP: TCP sequence of the segment's first byte (64-bit)
  std::uint64_t stream_ack = 0;
  std::uint32_t stream_window = 0;  ///< bytes
  SetupSegment setup = SetupSegment::kNone;
  bool closes_stream = false;   ///< TCP: with FIN
  std::uint32_t timestamp = 0;  ///< TCP timestamp option
  std::uint32_t timestamp_echo = 0;
  std::uint64_t entry_number = 0;
  Time not_before{0};
  stats::MessageTrace* trace = nullptr;

  std::uint32_t piece_count = 0;
  PieceList pieces;
};

/// Why a queue pair has no request to send.
enum class PlanStatus : std::uint8_t {
  kPlanned,
  kNoWqe,    ///< nothing decoded to send
  kBlocked,  ///< window, outstanding READs, fence: progress of earlier work will unblock it
  kDelayed,  ///< RNR wait: the timer will unblock it
};

/// What an arriving frame asks of the NIC, transport-neutral.
struct RxPlan {
  enum class Action : std::uint8_t {
    kNone,         ///< handled (acknowledgement) or dropped
    kWrite,        ///< place `length` bytes at `address` of `rkey`
    kSend,         ///< place into the current RECV at `message_offset`
    kReadRequest,  ///< respond with `message_length` bytes at `address` of `rkey`
    kAtomicRequest,
    kHold,          ///< came early: keep the frame and hand it in again at its turn
    kReadResponse,  ///< place at `message_offset` of the entry's scatter list
    kAtomicResponse,
  };

  Action action = Action::kNone;
  bool first = false;
  bool last = false;
  bool has_imm = false;
  bool invalidates = false;  ///< SEND: ends the key `imm` before its RECV completes
  bool solicited = false;
  bool ack_request = false;
  bool deferred = false;      ///< atomic: accepted before it is executed; answer_atomic() follows
  bool duplicate = false;     ///< READ request seen before: answer again, count nothing
  bool out_of_order = false;  ///< WRITE that came early: placed now, executed at its turn
  bool sequence_gap = false;  ///< UC: something was lost before it
  bool disconnected = false;  ///< the peer has closed the connection: the queue pair is in error
  /// Of a refused request: what the check of its key found.
  protocol::AccessResult fault = protocol::AccessResult::kOk;
  std::uint8_t opcode = 0;
  std::uint32_t psn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t message_offset = 0;
  std::uint32_t message_length = 0;
  std::uint32_t written_before = 0;  ///< bytes of the WRITE that a message of its own ends (iWARP)
  std::uint32_t imm = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  std::uint64_t original = 0;
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_address = 0;
  std::uint64_t entry_number = 0;
  std::uint32_t source_qpn = 0;  ///< datagram: the sender's queue pair
};

/// What an arriving frame touches of its queue pair.
struct FrameUse {
  bool for_requester = false;  ///< answers a request of this end
  bool read = false;           ///< belongs to a READ or an atomic
};

/// Where a request's frame itself says that its message goes to, or comes from; no bytes: it does
/// not say.
struct FrameTarget {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;  ///< of the whole message
};

/// Reliability and framing that differ between the wires, without time of its own: it decides, the
/// NIC's units spend the time. One object a NIC; per-connection state lives in the QueuePair.
class Transport {
 public:
  virtual ~Transport() = default;

  /// A QP reached RTR with its attributes: initial responder state.
  virtual void connect(QueuePair& qp) = 0;
  /// A QP reached RTS: initial requester state.
  virtual void start_sending(QueuePair& qp, Time now) = 0;
  /// A QP went to ERR or RESET, or is destroyed: nothing that arrives is for it any more. True when
  /// the peer is to be told, by one more response.
  virtual bool disconnect(QueuePair& /*qp*/) { return false; }

  /// Plans the next request packet of `qp`. kPlanned fills `plan`.
  virtual PlanStatus plan_request(QueuePair& qp, Time now, TxPlan& plan) = 0;
  /// Why plan_request() has just answered kBlocked or kDelayed.
  virtual Hold held_by(const QueuePair& /*qp*/, Time /*now*/) const { return Hold::kNone; }
  /// No decoded work is waiting to be sent: a WQE that comes has its turn at once. Behind others it
  /// has it when they have been sent, and they have a turn, or what will wake them.
  static bool idle(const QueuePair& qp) {
    return qp.tx_number - qp.sq_base >= qp.sq.size() && !qp.resend_due;
  }

  /// Its next request needs a READ slot, and none is free. What was refused needs none.
  static bool waits_for_read_slot(const QueuePair& qp) {
    const SendEntry* next = qp.entry(qp.tx_number);
    return next != nullptr && !next->issued && !next->finished && !qp.resend_due &&
           next->answered_by_response() && qp.outstanding_reads >= qp.max_rd_atomic;
  }

  /// Plans the next response (acknowledgement, READ response); false when none is due.
  virtual bool plan_response(QueuePair& qp, Time now, TxPlan& plan) = 0;
  virtual bool response_due(const QueuePair& qp) const = 0;
  /// A packet planned with `ends_answer` is on the wire: its responder resource is free. No sooner,
  /// or a requester with more READs outstanding than agreed would not be noticed; and not later
  /// than the answer arrives, or one that keeps to the agreement would be refused.
  static void answer_sent(QueuePair& qp) {
    if (qp.reads_in_service > 0) --qp.reads_in_service;  // none left if it was reset meanwhile
  }
  /// A response is owed, due now or once an atomic is over.
  virtual bool response_owed(const QueuePair& qp) const { return response_due(qp); }

  /// Writes the header bytes of a planned packet whose payload is in `frame` and sets its sizes.
  virtual void build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const = 0;

  /// Queue pair that a frame is for: 0 when it is not for this NIC or cannot be parsed.
  virtual std::uint32_t destination(const protocol::Frame& frame) = 0;

  /// The multicast group that a datagram is for, and who sent it.
  struct GroupAddress {
    protocol::Gid group{};         ///< all zeros: it is for none
    std::uint32_t source_qpn = 0;  ///< of this port; 0: of another
  };
  virtual GroupAddress group_of(const protocol::Frame& /*frame*/) const { return {}; }

  /// What a frame that destination() accepted touches. A stream transport has one state for both
  /// halves, which counts as the responder's.
  virtual FrameUse use_of(const protocol::Frame& /*frame*/) const { return {}; }

  /// Where a frame that destination() accepted wants memory to be accessed, before its turn.
  virtual FrameTarget target_of(const protocol::Frame& /*frame*/) const { return {}; }

  /// Runs an arriving frame through the connection's state machine.
  virtual void receive(QueuePair& qp, const protocol::Frame& frame, Time now, RxPlan& plan) = 0;
  /// What the receive buffer of a datagram starts with.
  virtual NetworkHeader network_header(const protocol::Frame& /*frame*/) const { return {}; }
  /// The NIC executed a request plan: count it, acknowledge when asked. READ requests queue their
  /// response.
  virtual void accept(QueuePair& qp, const RxPlan& plan, Time now, stats::MessageTrace* trace) = 0;
  /// An atomic that was accepted as `deferred` is over; `plan.original` is its answer.
  virtual void answer_atomic(QueuePair& qp, const RxPlan& plan, Time now) = 0;
  /// An atomic that was accepted as `deferred` could not be executed: the requester must learn of
  /// it, and the connection is over.
  virtual void refuse_atomic(QueuePair& qp, const RxPlan& plan, Time now) {
    refuse(qp, plan, Refusal::kOperational, now);
  }
  /// A request can be put off with "receiver not ready".
  virtual bool can_put_off() const { return true; }
  /// The NIC could not execute it.
  virtual void refuse(QueuePair& qp, const RxPlan& plan, Refusal why, Time now) = 0;

  /// Whether the frame whose plan said kHold with this `psn` is still wanted.
  virtual bool holds(const QueuePair& /*qp*/, std::uint32_t /*psn*/) const { return false; }
  /// Whether its turn has come.
  virtual bool hold_over(const QueuePair& /*qp*/, std::uint32_t /*psn*/) const { return false; }

  /// Data of a planned response could not be read: the requester must learn of it.
  virtual void refuse_response(QueuePair& qp, const TxPlan& plan, Refusal why, Time now) = 0;

  /// The acknowledgement timer of `qp` ran out. False when the connection has failed; the front
  /// entry, if there is one, then carries the status.
  virtual bool timeout(QueuePair& qp, Time now) = 0;

  const TransportCounters& counters() const { return counters_; }
  TransportCounters& counters() { return counters_; }

 protected:
  TransportCounters counters_;
};

/// Splits `length` bytes at `offset` of a scatter/gather list into `out`; returns the count.
std::uint32_t slice_sges(const protocol::Sge* list, std::uint32_t list_count, std::uint32_t offset,
                         std::uint32_t length, PieceList& out);

}  // namespace rnic::transport
