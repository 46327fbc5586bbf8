// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/sc_time.h"
#include "workload/flow.h"

/// Latency programs of perftest: one message at a time.
namespace rnic::testbench {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using stats::Stage;

namespace {

/// A player's traces of a turn that is over. Where they may still be marked, they are not used
/// again so soon.
template <typename Player>
void give_back(TracePool& traces, Player& player) {
  for (stats::MessageTrace** trace : {&player.in_flight, &player.arrived}) {
    if (*trace != nullptr) traces.give(*trace);
    *trace = nullptr;
  }
}

}  // namespace

void Flow::arm(Player& me) {
  me.next_slot = me.pattern.next();
  if (two_sided()) return;
  const auto qp = static_cast<std::size_t>(me.sent % config_.workload.qps);
  const std::uint64_t last_byte =
      me.self->slot_address(me.self->buffers[qp].receive, me.next_slot) +
      std::max<std::uint64_t>(1, config_.workload.msg_size) - 1;
  host::PhysicalMemory& memory = me.self->host.memory;
  memory.unwatch(me.watch);
  std::uint8_t seen = 0;  // looking at the byte brings its page in, where nothing has pinned it
  me.self->host.space.read(last_byte, &seen, 1);
  me.watch = memory.watch(*me.self->host.space.translate(last_byte), 1, &me.spot);
  me.spots_seen = me.spot.writes();
}

void Flow::hit(Player& me) {
  const auto qp = static_cast<std::uint32_t>(me.sent % config_.workload.qps);
  sges_.resize(config_.workload.sges);
  SendWr wr = make_wr(*me.self, *me.peer, qp, me.next_slot, sges_.data());
  wr.flags |= SendFlags::kSignaled;
  if (config_.workload.solicited_only) wr.flags |= SendFlags::kSolicited;
  put_number(me, wr);
  // perftest's WRITE changes the byte that its peer looks at; its other messages stay as they are.
  // The device has read that line: the core gets it back from the last-level cache, and the
  // device's read has to get it out of the core's.
  if (config_.workload.op == config::Op::kWrite && config_.workload.msg_size > 0 &&
      (wr.flags & SendFlags::kInline) == 0) {
    me.self->core.spend(2 * config_.cpu.cqe_cost);
  }
  if (&me == &client_player_) {
    mistakes_.spoil_send(me.turn + 1, *me.self, *me.peer, wr, sges_.front());
  }
  stats::MessageTrace* trace = traces_.take();
  // A turn begins where the last one ended, so that pings and pongs fill the round trip.
  trace->start(me.turn_started, config::returns_data(config_.workload.op)
                                    ? stats::Journey::kToCompletion
                                    : stats::Journey::kToPeer);
  if (me.in_flight != nullptr) late_traces_.lay_aside(me.in_flight, traces_);
  me.in_flight = trace;
  me.in_flight_turn = me.turn;
  ++me.posted;
  wr.trace = trace;
  const host::Status status =
      me.self->host.verbs.post_send(me.self->core, *me.self->qps[qp], &wr, 1);
  if (status != host::Status::kOk) {
    throw SimulationError(std::string(name()) + ": post_send is refused in the latency program");
  }
}

/// Polls until the completion of the message just posted is there, as perftest's loop does before
/// it looks for the peer's: while that is on its way, so that polling costs the round trip nothing.
/// False when the message has failed, or no completion will come.
bool Flow::reap_own(Player& me) {
  Wc wc;
  do {
    me.self->waiting.wait(*me.self->send_cq);
    if (me.self->send_cq->failed) return false;
  } while (me.self->host.verbs.poll_cq(me.self->core, *me.self->send_cq, 1, &wc) == 0);
  measurement_.count_completion(wc.status);
  return wc.status == protocol::WcStatus::kSuccess;
}

Flow::Turn Flow::await(Player& me, Player& other, Time deadline) {
  const Turn turn = two_sided() ? await_recv(me, deadline) : await_write(me, deadline);
  if (turn != Turn::kDone) return turn;
  me.self->core.sync();
  me.turn_started = sim_now();
  // As it is now: the acknowledgement of this message may still mark its trace. None: the peer has
  // taken it for lost.
  if (other.in_flight != nullptr && other.in_flight_turn == me.turn) {
    other.in_flight->mark(Stage::kPoll, me.turn_started);
    other.arrived = traces_.take();
    *other.arrived = *other.in_flight;
  }
  if (two_sided()) post_receives(*me.self, me.taken_qp, 1);
  return Turn::kDone;
}

bool Flow::look_for_failure() {
  bool any = false;
  for (Player* player : {&client_player_, &server_player_}) {
    if (!player->waiting || !player->self->send_cq->failed) continue;
    player->poked = any = true;
    player->spot.memory_written(0, 0);
  }
  return any;
}

/// Pause before message `number`, counted from 0.
Time Flow::gap_before(std::uint64_t number) const {
  const config::WorkloadConfig& w = config_.workload;
  return w.long_gap > kTimeZero && number % 2 == 1 ? w.long_gap : w.gap;
}

/// The server answers as long as there are messages: those that are lost never were, for it. What
/// is numbered may come late, behind the last turn, too.
void Flow::serve(Player& me, Player& other) {
  me.turn_started = me.self->core.now();
  arm(me);
  while (me.sent < total_messages() || !placed_in_turn()) {
    bool good = await(me, other, kTimeNever) != Turn::kFailed;
    if (good) {
      hit(me);
      // The client may have this answer, and write again, before this player knows of its
      // completion.
      ++me.sent;
      arm(me);
      good = reap_own(me);
    }
    if (good) continue;
    // Its own failure, or what it did to the client's message, reaches the client, too.
    me.self->waiting.pause(kQuiet);
    return finish();
  }
}

/// A reliable service tells of what it cannot deliver; of the others nobody hears.
Time Flow::answer_deadline() const {
  const Time limit = config_.workload.answer_timeout;
  return !unacknowledged() || limit == kTimeZero ? kTimeNever : sim_now() + limit;
}

void Flow::play(Player& me, Player& other) {
  me.turn_started = me.self->core.now();
  bool armed = false;
  for (; me.turn < total_messages(); ++me.turn) {
    if (!armed) arm(me);
    if (const Time gap = gap_before(me.turn); gap > kTimeZero) {
      me.self->waiting.pause(gap);
      me.turn_started = sim_now();
    }
    const Time started = me.turn_started;
    if (me.turn == config_.sim.warmup) {
      measured_[0].window_start = started;
      measurement_.flow_warm();
    }
    hit(me);
    if (!reap_own(me)) break;
    const Turn outcome = await(me, other, answer_deadline());
    if (outcome == Turn::kFailed) break;
    if (outcome == Turn::kDone) {
      count_turn(me, other, started);
    } else {
      lose_turn(me, other);
    }
    // A server that has not answered still waits for the message of this turn.
    armed = outcome == Turn::kLost && placed_in_turn() && other.sent == me.sent;
    if (!armed) ++me.sent;
  }
  client_done_ = me.turn == total_messages();
  if (client_done_) collect_late(me);
  finish();
}

/// There and back: both messages count, and their stages sum to what the turn took.
void Flow::count_turn(Player& me, Player& other, Time started) {
  for (Player* player : {&me, &other}) {
    if (player->arrived != nullptr && me.turn >= config_.sim.warmup) {
      measurement_.breakdown.add(*player->arrived);
    }
    give_back(traces_, *player);
  }
  record_latency((me.turn_started - started) / 2, me.turn, me.turn_started);
}

/// The message or its answer is lost, or too late.
void Flow::lose_turn(Player& me, Player& other) {
  ++measurement_.messages_done;
  for (Player* player : {&me, &other}) {
    for (stats::MessageTrace** trace : {&player->in_flight, &player->arrived}) {
      if (*trace != nullptr) late_traces_.lay_aside(*trace, traces_);
      *trace = nullptr;
    }
  }
  me.turn_started = sim_now();
  if (me.turn >= config_.sim.warmup) measured_[0].window_end = me.turn_started;
}

/// The program is over, for both players when one cannot go on.
void Flow::finish() {
  const bool failed = !client_done_;
  if (failed && !finished_) wait(to_sc_time(kQuiet));
  if (finished_) return;
  finished_ = true;
  account();
  senders_[0].stopped = failed;
  measurement_.flow_done();
}

void Flow::record_latency(Time latency, std::uint64_t index, Time now) {
  ++measurement_.messages_done;
  if (index < config_.sim.warmup) return;
  FlowMeasurement& result = measured_[0];
  result.latency.add(latency);
  const std::uint64_t messages = config::returns_data(config_.workload.op) ? 1 : 2;
  result.messages += messages;
  result.bytes += config_.workload.msg_size * messages;
  result.window_end = now;
}

void Flow::completion_latency() {
  host::Core& core = client_.core;
  Player& me = client_player_;
  const std::uint64_t total = total_messages();
  for (me.sent = 0; me.sent < total; ++me.sent) {
    if (me.sent == config_.sim.warmup) {
      measured_[0].window_start = core.now();
      measurement_.flow_warm();
    }
    me.next_slot = me.pattern.next();
    me.self->waiting.pause(gap_before(me.sent));
    me.turn_started = core.now();
    me.turn = me.sent;
    hit(me);
    Wc wc;
    do {
      client_.waiting.wait(*client_.send_cq);
      if (client_.send_cq->failed) return finish();
    } while (client_.host.verbs.poll_cq(core, *client_.send_cq, 1, &wc) == 0);
    core.sync();
    measurement_.count_completion(wc.status);
    if (wc.status != protocol::WcStatus::kSuccess) break;
    me.in_flight->mark(Stage::kPoll, sim_now());
    if (me.sent >= config_.sim.warmup) measurement_.breakdown.add(*me.in_flight);
    record_latency(me.in_flight->total(), me.sent, sim_now());
    traces_.give(me.in_flight);
    me.in_flight = nullptr;
  }
  client_done_ = me.sent == total;
  finish();
}

}  // namespace rnic::testbench
