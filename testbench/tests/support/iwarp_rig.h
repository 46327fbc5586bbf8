// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "transport/iwarp_transport.h"

namespace rnic::testbench {

using protocol::Frame;
using transport::RxPlan;
using transport::TxPlan;

/// One end of an iWARP connection with a flat memory of one region: what a NIC does between a
/// transport's plans and the wire, without time.
class IwarpEnd {
 public:
  static constexpr std::uint32_t kKey = 0xAABB'CC01;  ///< of all memory, local and remote
  static constexpr std::uint32_t kMemoryBytes = 1U << 20;
  static constexpr std::uint64_t kRecvAddress = 0x8'0000;
  static constexpr std::uint32_t kRecvBytes = 0x4'0000;

  struct Received {
    std::uint32_t bytes;
    bool has_imm;
    std::uint32_t imm;
    bool solicited;
  };

  IwarpEnd(const config::TcpConfig& tcp, const config::TransportConfig& config, std::uint32_t qpn,
           std::uint32_t dest_qpn, std::uint8_t host, std::uint8_t peer)
      : encapsulation(transport::make_encapsulation(config::Protocol::kIwarp)),
        identity{{2, 0, 0, 0, 0, host}, 0x0A00'0000U + host, {}, 0},
        transport(tcp, config, *encapsulation, identity),
        memory(kMemoryBytes) {
    qp.qpn = qpn;
    qp.dest_qpn = dest_qpn;
    qp.retry_count = 7;
    qp.max_rd_atomic = qp.max_dest_rd_atomic = 4;
    qp.next_psn = 0x1000U * host;
    qp.expected_psn = 0x1000U * peer;
    qp.av.source_mac = identity.mac;
    qp.av.destination_mac = {2, 0, 0, 0, 0, peer};
    qp.av.source_ipv4 = identity.ipv4;
    qp.av.destination_ipv4 = 0x0A00'0000U + peer;
    qp.state = protocol::QpState::kRtr;
    transport.connect(qp);
    qp.state = protocol::QpState::kRts;
    transport.start_sending(qp, kTimeZero);
  }

  /// Posts a work request; data comes from or goes to `local` unless `inline_data`.
  transport::SendEntry& post(protocol::WqeOpcode opcode, std::uint32_t length,
                             std::uint64_t local = 0, std::uint64_t remote = 0) {
    transport::SendEntry entry;
    entry.wqe.opcode = opcode;
    entry.wqe.length = length;
    entry.wqe.remote_address = remote;
    entry.wqe.rkey = kKey;
    entry.wqe.sge_count = 1;
    entry.wqe.sge[0] = {local, length, kKey};
    return qp.sq.push_back(std::move(entry));
  }

  /// The next frame this end may send, built and with its payload; null when there is none.
  Frame* next_frame(Time now) {
    TxPlan plan;
    const bool response = transport.response_due(qp) && transport.plan_response(qp, now, plan);
    if (!response && transport.plan_request(qp, now, plan) != transport::PlanStatus::kPlanned) {
      return nullptr;
    }
    Frame* frame = frames.take();
    frame->payload.reserve(plan.length);
    frame->has_payload_data = true;
    frame->checksums_deferred = true;
    frame->frame_class = plan.frame_class;
    frame->trace = plan.trace;
    if (!gather(plan, *frame)) {
      transport.refuse_response(qp, plan, transport::Refusal::kRemoteAccess, now);
      frames.give(frame);
      return next_frame(now);
    }
    transport.build(qp, plan, *frame);
    if (plan.ends_answer) transport::Transport::answer_sent(qp);
    plans.push_back(plan);
    if (qp.failed && !transport.response_due(qp)) enter_error();
    return frame;
  }

  /// Carries out an arriving frame; it goes back to its owner's pool with give().
  void deliver(Frame& frame, Time now) {
    if (transport.destination(frame) != qp.qpn) panic("rig", "a frame went astray");
    if (!qp.can_receive()) return;
    RxPlan plan;
    transport.receive(qp, frame, now, plan);
    execute(frame, plan, now);
    retire();
  }

  /// As deliver(); a frame that is to be held stays here until its turn. It goes back to `owner`.
  void take(Frame* frame, protocol::FramePool& owner, Time now) {
    if (transport.destination(*frame) != qp.qpn) panic("rig", "a frame went astray");
    RxPlan plan;
    if (qp.can_receive()) transport.receive(qp, *frame, now, plan);
    if (plan.action == RxPlan::Action::kHold) {
      held.push_back({frame, &owner, plan.psn});
      ++held_frames;
    } else {
      if (plan.out_of_order) ++placed_early;
      execute(*frame, plan, now);
      owner.give(frame);
    }
    retire();
    for (std::size_t i = 0; i < held.size(); ++i) {
      const Held due = held[i];
      const bool wanted = qp.can_receive() && transport.holds(qp, due.sequence);
      if (wanted && !transport.hold_over(qp, due.sequence)) continue;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      if (wanted) {
        take(due.frame, *due.owner, now);
      } else {
        due.owner->give(due.frame);
      }
      return;
    }
  }

  void expire(Time now) {
    if (qp.retry_deadline > now) return;
    transport.timeout(qp, now);
    retire();
  }

  /// Moves finished work to `completions`, in order, as the completion unit does.
  void retire() {
    while (!qp.sq.empty()) {
      transport::SendEntry& entry = qp.sq.front();
      if (qp.state == protocol::QpState::kError && !entry.finished) {
        entry.finished = true;
        entry.status = protocol::WcStatus::kWrFlushError;
      }
      if (!entry.finished || entry.placing) return;
      completions.push_back(entry.status);
      const bool failed = entry.status != protocol::WcStatus::kSuccess;
      qp.sq.pop_front();
      ++qp.sq_base;
      qp.tx_number = std::max(qp.tx_number, qp.sq_base);
      if (failed) enter_error();
    }
  }

  std::unique_ptr<transport::Encapsulation> encapsulation;
  transport::PortIdentity identity;
  transport::IwarpTransport transport;
  transport::QueuePair qp;
  std::vector<std::uint8_t> memory;
  protocol::FramePool frames;
  std::vector<TxPlan> plans;  ///< of all frames sent
  std::vector<protocol::WcStatus> completions;
  std::vector<Received> received;
  std::uint32_t recvs_posted = 0;  ///< buffers of kRecvBytes, all at kRecvAddress
  std::uint64_t placed_early = 0;  ///< segments placed before their turn
  std::uint64_t held_frames = 0;   ///< segments that were held until their turn
  bool reads_fail = false;         ///< the data of READ responses cannot be read

 private:
  struct Held {
    Frame* frame;
    protocol::FramePool* owner;
    std::uint32_t sequence;
  };
  std::vector<Held> held;

  static bool inside(std::uint64_t address, std::uint64_t length) {
    return address <= kMemoryBytes && length <= kMemoryBytes - address;
  }

  void enter_error() {
    qp.state = protocol::QpState::kError;
    qp.failed = false;
    qp.retry_deadline = kTimeNever;
  }

  bool gather(const TxPlan& plan, Frame& frame) {
    std::uint8_t* out = frame.payload.writable();
    if (plan.payload == TxPlan::Payload::kRemote) {
      if (reads_fail) return false;
      std::memcpy(out, &memory[plan.address], plan.length);
    } else if (plan.payload == TxPlan::Payload::kInline) {
      std::memcpy(out, qp.entry(plan.entry_number)->wqe.inline_bytes.data() + plan.message_offset,
                  plan.length);
    } else {
      for (std::uint32_t i = 0; i < plan.piece_count; ++i) {
        std::memcpy(out, &memory[plan.pieces[i].address], plan.pieces[i].length);
        out += plan.pieces[i].length;
      }
    }
    return true;
  }

  void execute(const Frame& frame, RxPlan& plan, Time now) {
    using Action = RxPlan::Action;
    switch (plan.action) {
      case Action::kNone:
        return;
      case Action::kReadResponse:
      case Action::kAtomicResponse:
        place_response(frame, plan);
        return;
      case Action::kSend:
        if (recvs_posted == 0) {
          transport.refuse(qp, plan, transport::Refusal::kReceiverNotReady, now);
          return;
        }
        if (plan.message_offset + plan.length > kRecvBytes) {
          transport.refuse(qp, plan, transport::Refusal::kInvalidRequest, now);
          return;
        }
        std::memcpy(&memory[kRecvAddress + plan.message_offset], frame.payload.data(), plan.length);
        break;
      default: {
        const bool read = plan.action == Action::kReadRequest;
        const std::uint64_t length = read ? plan.message_length : plan.length;
        if (length > 0 && (plan.rkey != kKey || !inside(plan.address, length))) {
          transport.refuse(qp, plan, transport::Refusal::kRemoteAccess, now);
          return;
        }
        if (plan.action == Action::kWrite && length > 0) {
          std::memcpy(&memory[plan.address], frame.payload.data(), plan.length);
        }
        break;
      }
    }
    transport.accept(qp, plan, now, nullptr);
    if (plan.last && (plan.action == Action::kSend || plan.has_imm)) {
      --recvs_posted;
      received.push_back(
          {plan.message_offset + plan.length, plan.has_imm, plan.imm, plan.solicited});
    }
  }

  void place_response(const Frame& frame, const RxPlan& plan) {
    transport::SendEntry* entry = qp.entry(plan.entry_number);
    const std::uint64_t address = entry->wqe.sge[0].address + plan.message_offset;
    if (plan.action == RxPlan::Action::kAtomicResponse) {
      std::memcpy(&memory[address], &plan.original, sizeof plan.original);
    } else if (plan.length > 0) {
      std::memcpy(&memory[address], frame.payload.data(), plan.length);
    }
    if (plan.last) {
      entry->finished = true;
      entry->placing = false;
    }
  }
};

/// Two ends, 10.0.0.1 (QP 0x12) and 10.0.0.2 (QP 0x13), and a wire of 1 us that keeps order.
class IwarpRig {
 public:
  static config::TcpConfig tcp_config() {
    config::TcpConfig c{};
    c.window = 1U << 20;
    c.initial_cwnd = 100;
    c.delayed_ack = 2;
    c.delayed_ack_time = microseconds(100);
    c.min_rto = microseconds(1000);
    c.connect_timeout = microseconds(60'000'000);
    c.mpa_crc = true;
    return c;
  }
  static config::TransportConfig transport_config(std::uint32_t mtu = 1500) {
    config::TransportConfig c{};
    c.protocol = config::Protocol::kIwarp;
    c.mtu = mtu;
    return c;
  }

  explicit IwarpRig(const config::TcpConfig& tcp = tcp_config(),
                    const config::TransportConfig& config = transport_config())
      : a(tcp, config, 0x12, 0x13, 1, 2), b(tcp, config, 0x13, 0x12, 2, 1) {}

  /// Runs until both ends have nothing more to say. `drop(n)`: the n-th frame of the run is lost.
  void run(const std::function<bool(std::uint64_t)>& drop = nullptr) {
    while (step(drop)) {
    }
  }

  IwarpEnd a;
  IwarpEnd b;
  Time now{0};
  std::uint64_t sent = 0;  ///< frames, lost ones included

 private:
  struct Flying {
    Frame* frame;
    IwarpEnd* from;
    Time arrival;
  };

  bool step(const std::function<bool(std::uint64_t)>& drop) {
    for (IwarpEnd* end : {&a, &b}) {
      while (Frame* frame = end->next_frame(now)) {
        const bool lost = drop && drop(sent);
        ++sent;
        if (lost) {
          end->frames.give(frame);
        } else {
          wire_.push_back({frame, end, now + microseconds(1)});
        }
      }
      end->retire();
    }
    const Time timer = std::min(a.qp.retry_deadline, b.qp.retry_deadline);
    if (wire_.empty() && timer == kTimeNever) return false;
    if (wire_.empty() || timer < wire_.front().arrival) {
      now = std::max(now, timer);
      a.expire(now);
      b.expire(now);
      return true;
    }
    const Flying flying = wire_.front();
    wire_.pop_front();
    now = std::max(now, flying.arrival);
    IwarpEnd& to = flying.from == &a ? b : a;
    to.take(flying.frame, flying.from->frames, now);
    return true;
  }

  std::deque<Flying> wire_;
};

}  // namespace rnic::testbench
