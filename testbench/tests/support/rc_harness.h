// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/time.h"
#include "protocol/ib_headers.h"
#include "protocol/opcode.h"
#include "transport/encapsulation.h"
#include "transport/queue_pair.h"
#include "transport/rc_transport.h"

namespace rnic::testbench {

/// A frame that a side built, with its headers decoded for inspection. Copies share the frame.
struct RcPacket {
  std::shared_ptr<protocol::Frame> frame;
  protocol::Bth bth;
  protocol::Reth reth;
  protocol::Aeth aeth;
  std::uint32_t imm = 0;
  Time not_before{0};
  bool retransmission = false;
};

/// A completion of a send work request; `tag` is what post() returned.
struct RcCompletion {
  std::uint32_t tag = 0;
  protocol::WcStatus status = protocol::WcStatus::kSuccess;
};

/// A completion of a receive work request.
struct RcReceived {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t imm = 0;
  bool has_imm = false;
};

/// One end of a connection: a queue pair, its transport, flat memory, and what a NIC does around
/// them in zero time. Every instruction of the transport is carried out when it is given, unless
/// `hold_placement` keeps the data of READ responses from reaching memory.
class RcSide {
 public:
  static constexpr std::uint32_t kKey = 0x1234;  ///< of all memory; any other key is refused
  static constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

  RcSide(const transport::Encapsulation& wire, const transport::RcConfig& config, std::uint32_t qpn,
         std::uint32_t peer_qpn)
      : memory(kMemoryBytes), wire_(wire), transport_(config, wire, identity_) {
    qp.qpn = qpn;
    qp.dest_qpn = peer_qpn;
    identity_.ipv4 = qpn;
    identity_.mac = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(qpn)};
    qp.av.source_ipv4 = qpn;
    qp.av.source_mac = identity_.mac;
    qp.av.destination_ipv4 = peer_qpn;
    qp.av.destination_mac = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(peer_qpn)};
    qp.mtu = 256;
    qp.timeout_exponent = 4;  // 65.536 us
    qp.retry_count = 7;
    qp.rnr_retry = 7;
    qp.min_rnr_timer = 1;  // 10 us
    qp.max_rd_atomic = qp.max_dest_rd_atomic = 4;
  }

  /// To RTS with these attributes.
  void start(std::uint32_t send_psn, std::uint32_t receive_psn) {
    qp.next_psn = send_psn;
    qp.expected_psn = receive_psn;
    transport_.connect(qp);
    transport_.start_sending(qp, kTimeZero);
    qp.state = protocol::QpState::kRts;
  }

  std::uint32_t post(protocol::WqeOpcode opcode, std::uint64_t local, std::uint64_t remote,
                     std::uint32_t length, std::uint32_t imm = 0, bool fence = false) {
    transport::SendEntry& entry = qp.sq.push_slot();
    entry.issued = entry.finished = entry.placing = false;
    entry.responded = 0;
    entry.status = protocol::WcStatus::kSuccess;
    protocol::SendWqe& wqe = entry.wqe;
    wqe.opcode = opcode;
    wqe.index = next_tag_;
    wqe.fence = fence;
    wqe.solicited = false;
    wqe.inline_data = false;
    wqe.imm_or_rkey = imm;
    wqe.remote_address = remote;
    wqe.rkey = kKey;
    wqe.length = length;
    wqe.sge_count = 1;
    wqe.sge[0] = protocol::Sge{local, length, kKey};
    return next_tag_++;
  }
  std::uint32_t post_send(std::uint64_t local, std::uint32_t length) {
    return post(protocol::WqeOpcode::kSend, local, 0, length);
  }
  std::uint32_t post_write(std::uint64_t local, std::uint64_t remote, std::uint32_t length) {
    return post(protocol::WqeOpcode::kWrite, local, remote, length);
  }
  std::uint32_t post_read(std::uint64_t local, std::uint64_t remote, std::uint32_t length) {
    return post(protocol::WqeOpcode::kRead, local, remote, length);
  }
  void post_recv(std::uint64_t address, std::uint32_t length) {
    recvs.push_back(protocol::Sge{address, length, kKey});
  }

  /// The next packet that may be sent at `now`, responses first.
  bool send_one(Time now, RcPacket& packet) { return respond(now, packet) || request(now, packet); }

  bool request(Time now, RcPacket& packet) {
    last_status = transport_.plan_request(qp, now, plan_);
    if (last_status != transport::PlanStatus::kPlanned) return false;
    packet = make_packet(plan_);
    return true;
  }

  bool respond(Time now, RcPacket& packet) {
    if (!transport_.response_due(qp) || !transport_.plan_response(qp, now, plan_)) return false;
    if (plan_.ends_answer) transport::Transport::answer_sent(qp);
    packet = make_packet(plan_);
    if (qp.failed && !transport_.response_due(qp)) enter_error();
    return true;
  }

  /// All packets that may be sent at `now`.
  std::vector<RcPacket> send_all(Time now = kTimeZero) {
    std::vector<RcPacket> packets;
    RcPacket packet;
    while (send_one(now, packet)) packets.push_back(packet);
    return packets;
  }

  /// Builds the packet of a plan, also of one that no transport would make.
  RcPacket make_packet(const transport::TxPlan& plan);

  /// Takes a frame from the wire. False when it is not for this side or fails its checks.
  bool receive(const RcPacket& packet, Time now = kTimeZero) {
    const protocol::Frame& frame = *packet.frame;
    if (!wire_.trailer_ok(frame) || transport_.destination(frame) != qp.qpn) return false;
    if (!qp.can_receive()) return false;
    transport::RxPlan plan;
    transport_.receive(qp, frame, now, plan);
    if (plan.action == transport::RxPlan::Action::kHold) {
      held.insert_or_assign(plan.psn, packet);
    } else {
      execute(plan, frame, now);
    }
    retire();
    present_held(now);
    return true;
  }
  void receive_all(const std::vector<RcPacket>& packets, Time now = kTimeZero) {
    for (const RcPacket& packet : packets) receive(packet, now);
  }

  /// Runs the acknowledgement timer if it is due.
  bool expire(Time now) {
    if (qp.retry_deadline > now) return false;
    transport_.timeout(qp, now);
    retire();
    return true;
  }

  /// Data of READ responses that `hold_placement` kept back reaches memory.
  void release_placement() {
    for (std::size_t i = 0; i < qp.sq.size(); ++i) {
      if (!qp.sq[i].placing) continue;
      qp.sq[i].placing = false;
      qp.sq[i].finished = true;
    }
    retire();
  }

  const transport::TransportCounters& counters() const { return transport_.counters(); }
  transport::RcTransport& engine() { return transport_; }

  transport::QueuePair qp;
  std::vector<std::uint8_t> memory;
  std::deque<protocol::Sge> recvs;
  std::vector<RcCompletion> completions;
  std::vector<RcReceived> received;
  std::vector<transport::RxPlan> executed;      ///< every accepted request packet, in order
  std::vector<transport::RxPlan> placed_early;  ///< WRITE packets that came before their turn
  std::map<std::uint32_t, RcPacket> held;       ///< frames that wait for their turn, by PSN
  transport::PlanStatus last_status = transport::PlanStatus::kNoWqe;
  bool hold_placement = false;
  bool bad_recv_sge = false;  ///< receive buffers fail their protection check

 private:
  /// Hands in again what was held and whose turn has come.
  void present_held(Time now) {
    for (auto it = held.begin(); it != held.end(); ++it) {
      if (!transport_.hold_over(qp, it->first)) continue;
      const RcPacket packet = it->second;
      held.erase(it);
      receive(packet, now);
      return;
    }
  }
  void execute(transport::RxPlan& plan, const protocol::Frame& frame, Time now);
  void execute_send(const transport::RxPlan& plan, const protocol::Frame& frame, Time now);
  void execute_remote(transport::RxPlan& plan, const protocol::Frame& frame, Time now);
  void place_response(const transport::RxPlan& plan, const protocol::Frame& frame);
  void complete_recv(const transport::RxPlan& plan, std::uint64_t address, std::uint32_t bytes) {
    received.push_back({address, bytes, plan.imm, plan.has_imm});
    recvs.pop_front();
  }
  void accept(const transport::RxPlan& plan, Time now) {
    (plan.out_of_order ? placed_early : executed).push_back(plan);
    transport_.accept(qp, plan, now, nullptr);
  }
  void retire();
  void enter_error();
  std::uint64_t load(std::uint64_t address) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.data() + address, sizeof value);
    return value;
  }
  void store(std::uint64_t address, std::uint64_t value) {
    std::memcpy(memory.data() + address, &value, sizeof value);
  }

  const transport::Encapsulation& wire_;
  transport::PortIdentity identity_;
  transport::RcTransport transport_;
  transport::TxPlan plan_;
  std::uint16_t next_tag_ = 0;
};

inline RcPacket RcSide::make_packet(const transport::TxPlan& plan) {
  using Payload = transport::TxPlan::Payload;
  RcPacket packet;
  packet.frame = std::make_shared<protocol::Frame>();
  protocol::Frame& frame = *packet.frame;
  frame.checksums_deferred = true;
  frame.has_payload_data = true;
  frame.trace = nullptr;
  frame.frame_class = plan.frame_class;
  frame.payload.reserve(plan.length + 1);
  std::memset(frame.payload.writable(), 0, plan.length);
  if (plan.payload == Payload::kRemote) {
    std::memcpy(frame.payload.writable(), memory.data() + plan.address, plan.length);
  } else if (plan.payload == Payload::kLocal) {
    std::uint8_t* to = frame.payload.writable();
    for (std::uint32_t i = 0; i < plan.piece_count; ++i) {
      std::memcpy(to, memory.data() + plan.pieces[i].address, plan.pieces[i].length);
      to += plan.pieces[i].length;
    }
  }
  transport_.build(qp, plan, frame);
  const std::uint8_t* p = frame.header + wire_.outer_bytes();
  packet.bth = protocol::Bth::decode(p);
  p += protocol::Bth::kBytes;
  const protocol::OpcodeInfo& info = protocol::opcode_info(packet.bth.opcode);
  if (info.has_reth) {
    packet.reth = protocol::Reth::decode(p);
    p += protocol::Reth::kBytes;
  }
  if (info.has_aeth) packet.aeth = protocol::Aeth::decode(p);
  if (info.has_immdt) packet.imm = protocol::ImmDt::decode(p).imm;
  packet.not_before = plan.not_before;
  packet.retransmission = plan.retransmission;
  return packet;
}

inline void RcSide::execute(transport::RxPlan& plan, const protocol::Frame& frame, Time now) {
  using Action = transport::RxPlan::Action;
  switch (plan.action) {
    case Action::kNone:
      return;
    case Action::kSend:
      execute_send(plan, frame, now);
      return;
    case Action::kReadResponse:
    case Action::kAtomicResponse:
      place_response(plan, frame);
      return;
    default:
      execute_remote(plan, frame, now);
      return;
  }
}

inline void RcSide::execute_send(const transport::RxPlan& plan, const protocol::Frame& frame,
                                 Time now) {
  if (recvs.empty()) {
    transport_.refuse(qp, plan, transport::Refusal::kReceiverNotReady, now);
    return;
  }
  const protocol::Sge recv = recvs.front();
  if (plan.message_offset + plan.length > recv.length) {
    transport_.refuse(qp, plan, transport::Refusal::kInvalidRequest, now);
    return;
  }
  if (bad_recv_sge) {
    transport_.refuse(qp, plan, transport::Refusal::kOperational, now);
    return;
  }
  if (plan.length > 0) {
    std::memcpy(memory.data() + recv.address + plan.message_offset, frame.payload.data(),
                plan.length);
  }
  accept(plan, now);
  if (plan.last) complete_recv(plan, recv.address, plan.message_offset + plan.length);
}

inline void RcSide::execute_remote(transport::RxPlan& plan, const protocol::Frame& frame,
                                   Time now) {
  using Action = transport::RxPlan::Action;
  const bool write = plan.action == Action::kWrite;
  const bool needs_recv = write && plan.last && plan.has_imm;
  const std::uint64_t checked = plan.first ? plan.message_length : plan.length;
  const bool allowed =
      checked == 0 || (plan.rkey == kKey && plan.address + checked <= kMemoryBytes);
  if (needs_recv && recvs.empty()) {
    transport_.refuse(qp, plan, transport::Refusal::kReceiverNotReady, now);
    return;
  }
  if (!allowed) {
    if (!plan.duplicate) transport_.refuse(qp, plan, transport::Refusal::kRemoteAccess, now);
    return;
  }
  if (write && plan.length > 0) {
    std::memcpy(memory.data() + plan.address, frame.payload.data(), plan.length);
  }
  if (plan.action == Action::kAtomicRequest) {
    plan.original = load(plan.address);
    const bool cas = plan.opcode == static_cast<std::uint8_t>(protocol::BthOpcode::kCompareSwap);
    if (!cas) store(plan.address, plan.original + plan.swap_or_add);
    if (cas && plan.original == plan.compare) store(plan.address, plan.swap_or_add);
  }
  accept(plan, now);
  if (needs_recv) complete_recv(plan, 0, plan.message_length);
}

inline void RcSide::place_response(const transport::RxPlan& plan, const protocol::Frame& frame) {
  transport::SendEntry* entry = qp.entry(plan.entry_number);
  if (entry == nullptr) return;
  if (plan.action == transport::RxPlan::Action::kAtomicResponse) {
    store(entry->wqe.sge[0].address, plan.original);
  } else if (plan.length > 0) {
    std::memcpy(memory.data() + entry->wqe.sge[0].address + plan.message_offset,
                frame.payload.data(), plan.length);
  }
  if (!plan.last || hold_placement) return;
  entry->finished = true;
  entry->placing = false;
}

inline void RcSide::retire() {
  while (!qp.sq.empty()) {
    transport::SendEntry& entry = qp.sq.front();
    if (qp.state == protocol::QpState::kError && !entry.finished) {
      entry.status = protocol::WcStatus::kWrFlushError;
      entry.finished = true;
      entry.placing = false;
    }
    if (!entry.finished || entry.placing) return;
    const bool failed = entry.status != protocol::WcStatus::kSuccess;
    completions.push_back({entry.wqe.index, entry.status});
    qp.sq.pop_front();
    ++qp.sq_base;
    if (qp.tx_number < qp.sq_base) {
      qp.tx_number = qp.sq_base;
      qp.tx_offset = 0;
    }
    if (failed && qp.state != protocol::QpState::kError) enter_error();
  }
}

inline void RcSide::enter_error() {
  qp.state = protocol::QpState::kError;
  qp.failed = false;
  qp.retry_deadline = kTimeNever;
  retire();
}

/// Two sides back to back: `a` (QP 0x11, first PSN 100) and `b` (QP 0x22, first PSN 500).
struct RcPair {
  static constexpr std::uint32_t kFirstPsn = 100;
  static constexpr std::uint32_t kPeerFirstPsn = 500;

  explicit RcPair(const transport::RcConfig& config = {},
                  config::Protocol protocol = config::Protocol::kRoceV2)
      : wire(transport::make_encapsulation(protocol)),
        a(*wire, config, 0x11, 0x22),
        b(*wire, config, 0x22, 0x11) {
    restart(kFirstPsn);
  }

  /// Both queue pairs anew with the attributes that they have now.
  void restart(std::uint32_t first_psn) {
    a.start(first_psn, kPeerFirstPsn);
    b.start(kPeerFirstPsn, first_psn);
  }

  /// Exchanges packets without loss until nobody has any to send.
  void run(Time now = kTimeZero) {
    for (;;) {
      const auto from_a = a.send_all(now);
      b.receive_all(from_a, now);
      const auto from_b = b.send_all(now);
      a.receive_all(from_b, now);
      if (from_a.empty() && from_b.empty()) return;
    }
  }

  std::unique_ptr<transport::Encapsulation> wire;
  RcSide a;
  RcSide b;
};

}  // namespace rnic::testbench
