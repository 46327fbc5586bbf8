// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/sc_time.h"
#include "workload/flow.h"

/// Which message of a ping-pong has come: that of this turn, or one that is late or comes again.
namespace rnic::testbench {

using host::verbs::SendWr;
using host::verbs::Wc;

std::uint32_t Flow::number_bytes() const {
  const config::WorkloadConfig& w = config_.workload;
  if (!unacknowledged()) return 0;
  if (w.op == config::Op::kSendImm || w.op == config::Op::kWriteImm) return TurnNumbers::kMostBytes;
  if (config_.sim.payload == config::PayloadMode::kNone) return 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(TurnNumbers::kMostBytes, w.msg_size));
}

bool Flow::placed_in_turn() const { return !two_sided() || number_bytes() == 0; }

/// In the immediate data, or the last bytes of the payload, little-endian.
void Flow::put_number(const Player& me, SendWr& wr) {
  const std::uint32_t bytes = me.numbers.bytes();
  if (bytes == 0) return;
  const std::uint32_t number = me.numbers.carried(me.turn);
  if (config_.workload.op != config::Op::kSend && config_.workload.op != config::Op::kWrite) {
    wr.imm_data = number;
    return;
  }
  std::array<std::uint8_t, TurnNumbers::kMostBytes> text{};
  for (std::uint32_t i = 0; i < bytes; ++i) text[i] = static_cast<std::uint8_t>(number >> (8 * i));
  const auto qp = static_cast<std::size_t>(me.sent % config_.workload.qps);
  const std::uint64_t end =
      me.self->slot_address(me.self->buffers[qp].send, me.next_slot) + config_.workload.msg_size;
  me.self->host.space.write(end - bytes, text.data(), bytes);
}

/// The number in the last bytes before `end`.
std::uint32_t Flow::number_at(const Player& me, std::uint64_t end) const {
  const std::uint32_t bytes = me.numbers.bytes();
  if (bytes == 0) return 0;
  std::array<std::uint8_t, TurnNumbers::kMostBytes> text{};
  me.self->host.space.read(end - bytes, text.data(), bytes);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < bytes; ++i) number |= std::uint32_t{text[i]} << (8 * i);
  return number;
}

std::uint32_t Flow::recv_qp(const Player& me, const Wc& wc) const {
  const bool took_none = (wc.wc_flags & Wc::kUnsolicited) != 0;
  return static_cast<std::uint32_t>(took_none ? me.sent % config_.workload.qps
                                              : wc.wr_id / me.self->total_slots());
}

std::uint32_t Flow::received_number(const Player& me, const Wc& wc) const {
  if ((wc.wc_flags & Wc::kWithImm) != 0) return wc.imm_data;
  const std::uint64_t slot = wc.wr_id % me.self->total_slots();
  const std::uint64_t at = me.self->slot_address(me.self->buffers[recv_qp(me, wc)].receive, slot);
  return number_at(me, at + me.self->header_room + config_.workload.msg_size);
}

bool Flow::is_current(Player& me, std::uint32_t number) {
  const bool asks = &me == &client_player_;
  const TurnNumbers::Arrival arrival =
      asks ? me.numbers.answer(number, me.turn) : me.numbers.question(number);
  if (arrival == TurnNumbers::Arrival::kAgain) {
    ++me.again;
    return false;
  }
  ++me.seen;
  if (arrival == TurnNumbers::Arrival::kLate) {
    ++me.late;
    return false;
  }
  if (asks) return true;
  // The client may have given the turn up: then the answer will be the late one.
  me.turn = me.numbers.bytes() == 0 ? client_player_.turn : me.numbers.latest();
  if (!placed_in_turn()) me.sent = me.turn;
  return true;
}

Flow::Turn Flow::await_recv(Player& me, Time deadline) {
  host::verbs::Context& verbs = me.self->host.verbs;
  host::Core& core = me.self->core;
  Wc wc;
  while (true) {
    if (!me.self->waiting.wait(*me.self->recv_cq, deadline)) return Turn::kLost;
    if (me.self->recv_cq->failed) return Turn::kFailed;
    if (verbs.poll_cq(core, *me.self->recv_cq, 1, &wc) == 0) continue;
    if (wc.status != protocol::WcStatus::kWrFlushError) measurement_.count_completion(wc.status);
    if (wc.status != protocol::WcStatus::kSuccess) return Turn::kFailed;
    me.taken_qp = recv_qp(me, wc);
    if (is_current(me, received_number(me, wc))) return Turn::kDone;
    post_receives(*me.self, me.taken_qp, 1);
  }
}

/// Waits until the peer's WRITE has landed, or this player's completion queue has failed.
Flow::Turn Flow::await_write(Player& me, Time deadline) {
  const auto qp = static_cast<std::size_t>(me.sent % config_.workload.qps);
  const std::uint64_t end =
      me.self->slot_address(me.self->buffers[qp].receive, me.next_slot) + config_.workload.msg_size;
  while (true) {
    me.waiting = true;
    const bool written = me.self->waiting.wait(me.spot, me.spots_seen, deadline);
    me.waiting = false;
    if (!written) return Turn::kLost;
    if (me.poked) return Turn::kFailed;
    if (me.numbers.bytes() > 0) me.self->core.sync();
    me.spots_seen = me.spot.writes();
    if (is_current(me, number_at(me, end))) return Turn::kDone;
  }
}

/// Behind the last turn: what is still under way is late, not lost.
void Flow::collect_late(Player& me) {
  if (placed_in_turn()) return;
  const Player& server = server_player_;
  Wc wc;
  while (me.posted + server.posted != me.seen + server.seen) {
    wait(to_sc_time(flight_time()));
    bool any = false;
    while (me.self->host.verbs.poll_cq(me.self->core, *me.self->recv_cq, 1, &wc) > 0) {
      any = true;
      measurement_.count_completion(wc.status);
      if (wc.status != protocol::WcStatus::kSuccess) continue;
      is_current(me, received_number(me, wc));
      post_receives(*me.self, recv_qp(me, wc), 1);
    }
    me.self->core.sync();
    if (!any && !measurement_.frames_under_way()) return;
  }
}

/// What became of the messages of both players.
void Flow::account() {
  FlowMeasurement& result = measured_[0];
  for (const Player* player : {&client_player_, &server_player_}) {
    result.sent += player->posted;
    result.delivered += player->seen;
    result.late += player->late;
    result.again += player->again;
  }
}

}  // namespace rnic::testbench
