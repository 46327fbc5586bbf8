// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "protocol/psn.h"
#include "tests/support/rc_packets.h"

namespace rnic::testbench {

/// What a wire does to packets; probabilities in [0, 1].
struct RcFaults {
  double loss = 0;
  double duplicate = 0;
  double delay = 0;  ///< of up to `most_delay`, so that others overtake
  Time most_delay{0};
  double corrupt = 0;           ///< a bit flips, which a checksum must find
  double burst = 0;             ///< a burst of losses begins ...
  double burst_ends = 1;        ///< ... and ends behind each of its packets
  Time down_from{0};            ///< the wire is down ...
  Time down_until{0};           ///< ... until then
  Time dead_to_a = kTimeNever;  ///< from then on nothing arrives at side a
};

/// Random work in both directions over a faulty wire, and an independent account of what must have
/// happened: every place in memory, every receive completion and every fetched counter is known
/// beforehand.
class RcTraffic {
 public:
  static constexpr std::uint64_t kLocal = 0x0'0000;    ///< sources and READ destinations
  static constexpr std::uint64_t kWritten = 0x2'0000;  ///< destinations of the peer's WRITEs
  static constexpr std::uint64_t kReadable = 0x4'0000;
  static constexpr std::uint64_t kReceive = 0x6'0000;
  static constexpr std::uint64_t kCounter = 0x8'0000;
  static constexpr std::uint64_t kStride = 0x1800;
  static constexpr std::uint32_t kMostBytes = 0x1700;

  struct Operation {
    protocol::WqeOpcode opcode;
    std::uint32_t bytes;
    std::uint32_t imm;
  };

  RcTraffic(std::uint64_t seed, const RcFaults& wire_faults, bool selective_repeat = false,
            config::Protocol protocol = config::Protocol::kRoceV2)
      : faults(wire_faults),
        rng_(seed, "rc traffic"),
        pair(random_config(selective_repeat), protocol) {
    const std::uint32_t mtu = 256U << rng_.below(3);
    for (RcSide* side : {&pair.a, &pair.b}) side->qp.mtu = mtu;
    const auto reads = static_cast<std::uint16_t>(1 + rng_.below(4));
    for (RcSide* side : {&pair.a, &pair.b}) {
      side->qp.max_rd_atomic = side->qp.max_dest_rd_atomic = reads;
    }
    // Close to the wrap, so that most seeds pass it.
    pair.restart(static_cast<std::uint32_t>(0xFF'FFC0 + rng_.below(64)));
    for (RcSide* side : {&pair.a, &pair.b}) {
      for (std::uint32_t i = 0; i < kMostOperations; ++i) {
        fill(*side, kLocal + i * kStride, kMostBytes, i + (side == &pair.a ? 0 : 1000));
        fill(*side, kReadable + i * kStride, kMostBytes, i + 500);
      }
    }
  }

  /// Posts `count` random requests at `side`.
  void post(RcSide& side, std::vector<Operation>& list, std::uint32_t count);
  /// Receive requests for all of the peer's that need one; every `every` one more, or all at once.
  void supply(RcSide& side, const std::vector<Operation>& from_peer, Time every);
  /// Runs until all is complete; false when it is not within `limit`.
  bool run(Time limit);

  /// "" or what is wrong at the requester `side` for the operations that completed successfully.
  std::string check(RcSide& side, RcSide& peer, const std::vector<Operation>& list) const;

  static constexpr std::uint32_t kMostOperations = 20;

  RcFaults faults;

 private:
  transport::RcConfig random_config(bool selective_repeat) {
    transport::RcConfig config;
    config.ack_every = 1U << rng_.below(7);
    config.ack_gap = rng_.below(2) == 0 ? kTimeZero : microseconds(5);
    config.selective_repeat = selective_repeat;
    if (selective_repeat) config.window = 4U << rng_.below(7);
    return config;
  }

  struct Arrival {
    Time at;
    std::uint64_t number;
    bool to_b;
    RcPacket packet;
    bool operator<(const Arrival& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  struct Supply {
    RcSide* side;
    std::uint32_t left;
    std::uint32_t given;
    Time every;
    Time next;
  };

  void step();
  void send(RcSide& from, bool to_b);
  bool lost();
  RcPacket damaged(const RcPacket& packet);
  void give(Supply& supply);
  std::string check_received(const RcSide& side, const RcSide& peer,
                             const std::vector<Operation>& list, std::size_t successes) const;
  std::string check_execution(const RcSide& side, const RcSide& peer,
                              const std::vector<Operation>& list, std::size_t successes) const;
  Time now_{0};
  Rng rng_;
  std::uint64_t numbers_ = 0;
  std::priority_queue<Arrival> wire_;
  std::vector<Supply> supplies_;
  bool in_burst_ = false;

 public:
  RcPair pair;
  std::vector<Operation> from_a;
  std::vector<Operation> from_b;
};

inline bool needs_recv(const RcTraffic::Operation& operation) {
  using protocol::WqeOpcode;
  return operation.opcode == WqeOpcode::kSend || operation.opcode == WqeOpcode::kSendImm ||
         operation.opcode == WqeOpcode::kWriteImm;
}

inline void RcTraffic::post(RcSide& side, std::vector<Operation>& list, std::uint32_t count) {
  using protocol::WqeOpcode;
  constexpr WqeOpcode kOpcodes[] = {WqeOpcode::kWrite,   WqeOpcode::kSend,
                                    WqeOpcode::kRead,    WqeOpcode::kWriteImm,
                                    WqeOpcode::kSendImm, WqeOpcode::kAtomicFadd};
  for (std::uint32_t i = 0; i < count; ++i) {
    Operation operation{kOpcodes[rng_.below(6)], 0, static_cast<std::uint32_t>(rng_.next())};
    const std::uint64_t kind = rng_.below(8);
    operation.bytes = static_cast<std::uint32_t>(
        kind == 0 ? 0 : (kind < 4 ? rng_.below(300) : rng_.below(kMostBytes)));
    if (operation.opcode == WqeOpcode::kAtomicFadd) operation.bytes = 8;
    const bool fence = rng_.below(10) == 0;
    std::uint64_t remote = kWritten + i * kStride;
    if (operation.opcode == WqeOpcode::kRead) remote = kReadable + i * kStride;
    if (operation.opcode == WqeOpcode::kAtomicFadd) remote = kCounter;
    side.post(operation.opcode, kLocal + i * kStride, remote, operation.bytes, operation.imm,
              fence);
    side.qp.sq.back().wqe.swap_or_add = operation.imm;
    list.push_back(operation);
  }
}

inline void RcTraffic::supply(RcSide& side, const std::vector<Operation>& from_peer, Time every) {
  const auto count = std::count_if(from_peer.begin(), from_peer.end(), needs_recv);
  supplies_.push_back({&side, static_cast<std::uint32_t>(count), 0, every, kTimeZero});
}

inline void RcTraffic::give(Supply& supply) {
  while (supply.left > 0 && supply.next <= now_) {
    supply.side->post_recv(kReceive + supply.given * kStride, kMostBytes);
    ++supply.given;
    --supply.left;
    supply.next += supply.every;
  }
}

inline bool RcTraffic::lost() {
  if (now_ >= faults.down_from && now_ < faults.down_until) return true;
  if (in_burst_) {
    in_burst_ = rng_.uniform() >= faults.burst_ends;
    return true;
  }
  if (faults.burst > 0 && rng_.uniform() < faults.burst) in_burst_ = true;
  return in_burst_ || rng_.uniform() < faults.loss;
}

/// The packet with one bit changed somewhere, checksums as they were computed before.
inline RcPacket RcTraffic::damaged(const RcPacket& packet) {
  RcPacket result = packet;
  result.frame = std::make_shared<protocol::Frame>();
  protocol::Frame& frame = *result.frame;
  frame.payload.reserve(packet.frame->payload_bytes + 1);
  protocol::copy_frame(*packet.frame, frame);
  pair.wire->materialize(frame);
  const std::uint64_t at = rng_.below(frame.header_bytes + frame.payload_bytes);
  const auto bit = static_cast<std::uint8_t>(1U << rng_.below(8));
  if (at < frame.header_bytes) {
    frame.header[at] ^= bit;
  } else {
    frame.payload.writable()[at - frame.header_bytes] ^= bit;
  }
  return result;
}

inline void RcTraffic::send(RcSide& from, bool to_b) {
  RcPacket packet;
  const auto& responses = from.qp.responses;
  const bool response_due = !responses.empty() && responses.front().ready <= now_;
  if (!(response_due && from.respond(now_, packet)) && !from.request(now_, packet)) return;
  if (!to_b && now_ >= faults.dead_to_a) return;
  const int copies = rng_.uniform() < faults.duplicate ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (lost()) continue;
    if (rng_.uniform() < faults.corrupt) packet = damaged(packet);
    Time at = now_ + microseconds(1);
    if (rng_.uniform() < faults.delay) {
      at += picoseconds(static_cast<std::int64_t>(
          rng_.below(static_cast<std::uint64_t>(faults.most_delay.count()))));
    }
    wire_.push({at, numbers_++, to_b, packet});
  }
}

inline void RcTraffic::step() {
  now_ += nanoseconds(100);  // one packet a side
  while (!wire_.empty() && wire_.top().at <= now_) {
    const Arrival arrival = wire_.top();
    wire_.pop();
    (arrival.to_b ? pair.b : pair.a).receive(arrival.packet, now_);
  }
  for (Supply& supply : supplies_) give(supply);
  pair.a.expire(now_);
  pair.b.expire(now_);
  send(pair.a, true);
  send(pair.b, false);
}

inline bool RcTraffic::run(Time limit) {
  while (pair.a.completions.size() < from_a.size() || pair.b.completions.size() < from_b.size()) {
    if (now_ > limit) return false;
    step();
  }
  return true;
}

inline std::string RcTraffic::check(RcSide& side, RcSide& peer,
                                    const std::vector<Operation>& list) const {
  using protocol::WqeOpcode;
  std::size_t successes = 0;
  std::uint64_t counter = 0;
  for (std::size_t i = 0; i < side.completions.size(); ++i) {
    if (side.completions[i].tag != i) return "completion out of order at " + std::to_string(i);
    if (side.completions[i].status != protocol::WcStatus::kSuccess) break;
    ++successes;
    const Operation& operation = list[i];
    const std::uint64_t local = kLocal + i * kStride;
    std::uint64_t remote = kWritten + i * kStride;
    if (operation.opcode == WqeOpcode::kRead) remote = kReadable + i * kStride;
    if (operation.opcode == WqeOpcode::kAtomicFadd) {
      std::uint64_t value = 0;
      std::memcpy(&value, side.memory.data() + local, sizeof value);
      if (value != counter) return "atomic fetched a wrong value at " + std::to_string(i);
      counter += operation.imm;
    } else if (operation.opcode != WqeOpcode::kSend && operation.opcode != WqeOpcode::kSendImm &&
               !same_bytes(side, local, peer, remote, operation.bytes)) {
      return "wrong data at " + std::to_string(i);
    }
  }
  const std::string wrong = check_received(side, peer, list, successes);
  return wrong.empty() ? check_execution(side, peer, list, successes) : wrong;
}

inline std::string RcTraffic::check_received(const RcSide& side, const RcSide& peer,
                                             const std::vector<Operation>& list,
                                             std::size_t successes) const {
  std::size_t expected = 0;
  for (std::size_t i = 0; i < successes; ++i) {
    const Operation& operation = list[i];
    if (!needs_recv(operation)) continue;
    const std::size_t k = expected++;
    if (k >= peer.received.size()) return "receive completion missing";
    const RcReceived& received = peer.received[k];
    const bool write = operation.opcode == protocol::WqeOpcode::kWriteImm;
    const bool has_imm = operation.opcode != protocol::WqeOpcode::kSend;
    if (received.bytes != operation.bytes || received.has_imm != has_imm ||
        (has_imm && received.imm != operation.imm)) {
      return "wrong receive completion " + std::to_string(k);
    }
    if (!write &&
        !same_bytes(side, kLocal + i * kStride, peer, kReceive + k * kStride, operation.bytes)) {
      return "wrong data in receive buffer " + std::to_string(k);
    }
  }
  const bool all = successes == list.size();
  return all && peer.received.size() != expected ? "too many receive completions" : "";
}

inline std::string RcTraffic::check_execution(const RcSide& side, const RcSide& peer,
                                              const std::vector<Operation>& list,
                                              std::size_t successes) const {
  // Executed packets in PSN order, each once: a READ or atomic is one, the others have one a MTU.
  std::size_t packets = 0;
  for (std::size_t i = 0; i < successes; ++i) {
    const bool one = list[i].opcode == protocol::WqeOpcode::kRead || list[i].bytes == 0;
    packets += one ? 1 : (list[i].bytes + side.qp.mtu - 1) / side.qp.mtu;
  }
  std::size_t executed = peer.placed_early.size();
  std::set<std::uint32_t> early;
  for (const transport::RxPlan& plan : peer.placed_early) {
    if (!early.insert(plan.psn).second) return "placed twice";
  }
  const transport::RxPlan* last = nullptr;
  for (const transport::RxPlan& plan : peer.executed) {
    if (plan.duplicate) continue;
    if (last != nullptr && protocol::psn_distance(plan.psn, last->psn) <= 0)
      return "executed twice";
    if (early.count(plan.psn) != 0) return "placed early and executed again";
    last = &plan;
    ++executed;
  }
  const bool all = successes == list.size();
  if (executed < packets || (all && executed != packets)) return "wrong number of executed packets";
  return "";
}

}  // namespace rnic::testbench
