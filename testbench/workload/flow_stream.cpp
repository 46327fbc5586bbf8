// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/sc_time.h"
#include "workload/flow.h"

/// Bandwidth programs of perftest: many messages in flight.
namespace rnic::testbench {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using stats::Stage;

void Flow::stream(Sender& sender) {
  host::Core& core = sender.local->core;
  host::verbs::Context& verbs = sender.local->host.verbs;
  start_meter(sender);
  constexpr std::uint32_t kPollBatch = 16;
  std::array<Wc, kPollBatch> wcs;
  while (sender.completed < sender.total && !sender.stopped) {
    const bool posted =
        config_.workload.outstanding == 0 ? fill_queues(sender) : fill_window(sender);
    std::uint32_t count = verbs.poll_cq(core, *sender.local->send_cq, kPollBatch, wcs.data());
    if (count == 0 && !posted) {
      await_progress(sender);
      count = verbs.poll_cq(core, *sender.local->send_cq, kPollBatch, wcs.data());
    }
    for (std::uint32_t i = 0; i < count; ++i) reap(sender, wcs[i]);
    if (unacknowledged()) warm_by_sending(sender);
    // No completion will come any more: the application learns of it by CQ_ERR.
    if (count == 0 && sender.local->send_cq->failed) sender.stopped = true;
  }
  core.sync();
  sender.sent_all = sim_now();
  if (sender.stopped) {
    sender.meter.end(sim_now());
    collect_flushed(sender);
  }
  if (unacknowledged()) drain(sender);
  read_meter(sender);
}

/// Long enough for what was sent to arrive, but for queues.
Time Flow::flight_time() const { return microseconds(20) + 4 * config_.link.delay; }

/// A stream whose first messages are lost is past its warm-up when they have been sent, and what
/// became of them is known.
void Flow::warm_by_sending(Sender& sender) {
  if (sender.meter.started() || sender.completed < config_.sim.warmup) return;
  const Time now = sender.local->core.now();
  if (sender.warmed == kTimeNever) sender.warmed = now;
  if (now < sender.warmed + flight_time()) return;
  sender.local->core.sync();
  if (!sender.meter.started()) sender.meter.start(sim_now());
}

bool Flow::counts_recvs() const {
  return config_.transport.protocol == config::Protocol::kIwarp && config_.workload.recv_credits &&
         config_.workload.pattern == config::Pattern::kBandwidth && two_sided();
}

void Flow::tell_of_recvs(const Endpoint& receiver, std::uint32_t qp) {
  const std::size_t to_server = &receiver == &server_ ? 0 : 1;
  if (to_server >= senders_.size()) return;
  Sender& sender = senders_[to_server];
  if (qp < sender.qps.size()) sender.qps[qp].recvs = receiver.receives_posted[qp];
}

std::uint64_t Flow::recvs_left(const Sender& sender, std::uint32_t qp) const {
  if (!counts_recvs() || sender.receiver_gone) return std::numeric_limits<std::uint64_t>::max();
  if (!config_.workload.srq) return sender.qps[qp].recvs - sender.qps[qp].posted;
  std::uint64_t left = 0;  // of a shared queue whoever comes first takes the next one
  for (const Sender::PerQp& each : sender.qps) left += each.recvs - each.posted;
  return left;
}

Flow::Need Flow::need(const Sender& sender) const {
  const config::WorkloadConfig& w = config_.workload;
  if (w.outstanding > 0 && sender.posted - sender.completed >= w.outstanding) {
    return Need::kCompletion;
  }
  Need need = Need::kCompletion;
  for (std::uint32_t qp = 0; qp < sender.qps.size(); ++qp) {
    const Sender::PerQp& state = sender.qps[qp];
    const std::uint64_t batch =
        std::min<std::uint64_t>(std::max(1U, w.post_batch), state.quota - state.posted);
    if (batch == 0 || state.posted - state.done + batch > w.depth) continue;
    if (recvs_left(sender, qp) >= batch) return Need::kNothing;
    need = Need::kRecv;
  }
  return need;
}

/// Nothing could be posted: waits for a completion, or for RECVs if that is what is missing.
void Flow::await_progress(Sender& sender) {
  Endpoint& local = *sender.local;
  if (!counts_recvs() || need(sender) == Need::kCompletion) {
    local.waiting.wait(*local.send_cq);
    return;
  }
  // The program looks at the peer's count in memory as well as for completions.
  constexpr Time kLook = nanoseconds(100);
  while (need(sender) == Need::kRecv && !local.send_cq->failed &&
         !local.host.verbs.has_completion(*local.send_cq)) {
    local.core.spend(config_.cpu.poll_cost);
    local.waiting.pause(std::max(kLook, config_.workload.poll_interval));
  }
}

bool Flow::unacknowledged() const { return config_.transport.type != config::TransportType::kRc; }

/// Nothing tells whether unacknowledged messages have arrived: waits until no more do, and no frame
/// waits in a queue any more, where it may stay for longer than between two arrivals.
void Flow::drain(Sender& sender) {
  std::uint64_t seen = 0;
  do {
    seen = sender.meter.delivered();
    wait(to_sc_time(flight_time()));
    if (!sender.meter.started()) sender.meter.start(sim_now());
  } while (sender.meter.delivered() != seen || measurement_.frames_under_way());
  if (sender.meter.left() > 0) sender.meter.extend(sender.sent_all);
}

/// Behind a failure everything that was posted comes back, signalled or not.
void Flow::collect_flushed(Sender& sender) {
  host::Core& core = sender.local->core;
  Wc wc;
  do {
    while (sender.local->host.verbs.poll_cq(core, *sender.local->send_cq, 1, &wc) > 0) {
      reap(sender, wc);
    }
    core.sync();
    wait(to_sc_time(kQuiet));
  } while (sender.local->host.verbs.has_completion(*sender.local->send_cq));
}

void Flow::start_meter(Sender& sender) {
  // READs and atomics deliver to the requester, everything else to the peer.
  Endpoint& receiver = config::returns_data(config_.workload.op) ? *sender.local : *sender.remote;
  // Messages of no bytes are counted one by one, by who sent them.
  const std::uint64_t unit = std::max<std::uint64_t>(config_.workload.msg_size, 1);
  measurement_.meters.push_back(&sender.meter);
  sender.meter.expect(
      config_.sim.warmup * unit, sender.total * unit, [this] { measurement_.flow_warm(); },
      [this, &sender] { measurement_.stream_delivered(sender.meter.window_end()); });
  for (std::uint32_t qp = 0; qp < sender.qps.size(); ++qp) {
    receiver.qps[qp]->meter = &sender.meter;
  }
  if (config_.sim.warmup == 0) sender.meter.start(sender.local->core.now());
}

void Flow::read_meter(Sender& sender) {
  FlowMeasurement& result = *sender.result;
  const std::uint64_t size = config_.workload.msg_size;
  result.window_start = sender.meter.window_start();
  const std::uint64_t unit = std::max<std::uint64_t>(size, 1);
  result.window_end = sender.meter.window_end();
  result.messages = sender.meter.counted() / unit;
  result.bytes = size == 0 ? 0 : sender.meter.counted();
  result.drained = sender.meter.drained();
  result.sent = sender.completed;
  result.delivered = std::min(sender.completed, sender.meter.delivered() / unit);
  result.common_messages = static_cast<double>(sender.meter.common()) / static_cast<double>(unit);
  result.common_bytes = size == 0 ? 0 : sender.meter.common();
  result.common_drained = sender.meter.common_drained();
  result.whole_messages = static_cast<double>(sender.meter.whole()) / static_cast<double>(unit);
  result.whole_bytes = size == 0 ? 0 : sender.meter.whole();
}

bool Flow::fill_queues(Sender& sender) {
  bool any = false;
  for (std::uint32_t qp = 0; qp < sender.qps.size(); ++qp) {
    while (post(sender, qp, config_.workload.depth)) any = true;
  }
  return any;
}

bool Flow::fill_window(Sender& sender) {
  const auto qps = static_cast<std::uint32_t>(sender.qps.size());
  bool any = false;
  for (std::uint32_t refused = 0; refused < qps;) {
    const std::uint64_t in_flight = sender.posted - sender.completed;
    if (in_flight >= config_.workload.outstanding) break;
    if (refused == 0) sender.next_qp = choose_qp(sender);
    const bool posted = post(sender, sender.next_qp, config_.workload.outstanding - in_flight);
    sender.next_qp = (sender.next_qp + 1) % qps;
    refused = posted ? 0 : refused + 1;
    any |= posted;
  }
  return any;
}

/// Where the next post is tried first; when there is no room, the QPs after it follow.
std::uint32_t Flow::choose_qp(Sender& sender) const {
  if (config_.workload.qp_order == config::QpOrder::kInTurn) return sender.next_qp;
  return static_cast<std::uint32_t>(sender.choice.next());
}

bool Flow::post(Sender& sender, std::uint32_t qp, std::uint64_t window) {
  const config::WorkloadConfig& w = config_.workload;
  Sender::PerQp& state = sender.qps[qp];
  const std::uint64_t room =
      std::min({window, w.depth - (state.posted - state.done), recvs_left(sender, qp)});
  const std::uint64_t left = state.quota - state.posted;
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>({room, left, std::max(1U, w.post_batch)}));
  // A batch is posted whole or not yet, but for the last one.
  if (count == 0 || (count < w.post_batch && left > count)) return false;
  sender.batch.resize(count);
  sender.sges.resize(std::size_t{count} * w.sges);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t slot = sender.patterns[qp].next();
    state.touched[static_cast<std::size_t>(slot)] = true;
    SendWr& wr = sender.batch[i];
    protocol::Sge* sges = sender.sges.data() + std::size_t{i} * w.sges;
    wr = make_wr(*sender.local, *sender.remote, qp, slot, sges);
    if (w.registration == config::Registration::kEach && wr.num_sge > 0) {
      const host::MemoryRegion region =
          sender.local->register_for_message(sges[0].address, w.msg_size);
      for (std::uint32_t piece = 0; piece < wr.num_sge; ++piece) sges[piece].lkey = region.lkey;
      state.regions.push_back(region);
    }
    wr.wr_id = ++state.posted;
    if (&sender == senders_.data()) {
      mistakes_.spoil_send(sender.posted + i + 1, *sender.local, *sender.remote, wr, *sges);
    }
    if (state.posted % w.signal_every == 0 || state.posted == state.quota) {
      wr.flags |= SendFlags::kSignaled;
    }
    if (w.solicited_only &&
        (state.posted % w.solicited_every == 0 || state.posted == state.quota)) {
      wr.flags |= SendFlags::kSolicited;
    }
    wr.trace = traces_.take();
    wr.trace->start(sender.local->core.now(), stats::Journey::kToCompletion);
    state.traces.push_back(wr.trace);
  }
  sender.posted += count;
  if (w.qp_sharers > 1) {
    sender.local->core.spend(config_.cpu.lock_wait + (w.qp_sharers - 2) * config_.cpu.lock_crowd);
  }
  const std::uint32_t list = w.batch_as_list ? count : 1;
  for (std::uint32_t i = 0; i < count; i += list) {
    std::uint32_t bad = 0;
    const host::Status status = sender.local->host.verbs.post_send(
        sender.local->core, *sender.local->qps[qp], &sender.batch[i], list, &bad);
    if (status != host::Status::kOk) {
      throw SimulationError(std::string(name()) + ": post_send fails with " +
                            host::status_name(status));
    }
  }
  return true;
}

void Flow::reap(Sender& sender, const Wc& wc) {
  if (wc.opcode == protocol::WcOpcode::kRecv || wc.opcode == protocol::WcOpcode::kRecvRdmaWithImm) {
    ++sender.received;
    if (wc.status == protocol::WcStatus::kSuccess) {
      repost_receive(*sender.local, sender.local->index_of(wc.qp_num));
    } else {
      sender.receiver_gone = true;
    }
    return;
  }
  measurement_.count_completion(wc.status);
  const std::uint32_t qp = sender.local->index_of(wc.qp_num);
  // A completion stands for all unsignalled messages before it, one with an error, too.
  Sender::PerQp& state = sender.qps[qp];
  const Time now = sender.local->core.now();
  if (wc.status != protocol::WcStatus::kSuccess) {
    sender.stopped = true;
    while (!state.failed && state.done + 1 < wc.wr_id) complete(sender, qp, now);
    state.failed = true;
    return;
  }
  const std::uint64_t every = config_.workload.signal_every;
  const std::uint64_t upto = std::min(state.quota, (state.done / every + 1) * every);
  while (state.done < upto) complete(sender, qp, now);
}

void Flow::complete(Sender& sender, std::uint32_t qp, Time now) {
  Sender::PerQp& state = sender.qps[qp];
  stats::MessageTrace* trace = state.traces.front();
  state.traces.pop_front();
  ++state.done;
  ++sender.completed;
  ++measurement_.messages_done;
  if (!state.regions.empty()) {
    sender.local->give_back(state.regions.front());
    state.regions.pop_front();
  }
  trace->mark(Stage::kPoll, now);
  if (config_.workload.msg_size == 0 && !unacknowledged()) sender.meter.deliver(1, now, now);
  if (sender.completed > config_.sim.warmup) {
    measurement_.breakdown.add(*trace);
    sender.result->latency.add(trace->total());
  }
  if (measurement_.observer != nullptr) {
    measurement_.observer->message_completed(*sender.result, qp, trace->total(), now);
  }
  traces_.give(trace);
}

bool Flow::measuring() const {
  return std::all_of(senders_.begin(), senders_.end(), [this](const Sender& sender) {
    return sender.meter.started() && sender.completed > config_.sim.warmup;
  });
}

FlowProgress Flow::progress() const {
  FlowProgress all;
  for (const Sender& sender : senders_) {
    const std::uint64_t lap = sender.local->total_slots();
    for (const Sender::PerQp& qp : sender.qps) {
      all.qps.push_back({qp.posted, qp.done, qp.quota, lap});
    }
    all.completed.push_back(sender.completed);
    all.delivered.push_back(config_.workload.msg_size == 0 ? 0 : sender.meter.delivered());
  }
  return all;
}

std::uint64_t Flow::least_left() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const Sender& sender : senders_) least = std::min(least, sender.meter.to_next());
  return least;
}

void Flow::shorten(const std::vector<std::uint64_t>& messages) {
  auto less = messages.begin();
  for (Sender& sender : senders_) {
    for (Sender::PerQp& qp : sender.qps) {
      qp.quota -= *less;
      sender.total -= *less;
      sender.meter.shorten(*less * std::max<std::uint64_t>(config_.workload.msg_size, 1));
      measurement_.messages_total -= *less;
      ++less;
    }
  }
}

void Flow::receive_rest(Sender& sender) {
  if (!config_.workload.bidirectional || !two_sided()) return;
  host::verbs::Context& verbs = sender.local->host.verbs;
  Wc wc;
  while (sender.received < sender.total && !sender.stopped && !sender.local->send_cq->failed) {
    sender.local->waiting.wait(*sender.local->send_cq);
    if (verbs.poll_cq(sender.local->core, *sender.local->send_cq, 1, &wc) > 0) reap(sender, wc);
  }
}

void Flow::receive_stream(Endpoint& self, Sender& sender) {
  constexpr std::uint32_t kPollBatch = 16;
  std::array<Wc, kPollBatch> wcs;
  for (std::uint64_t received = 0; received < sender.total;) {
    self.waiting.wait(*self.recv_cq);
    const std::uint32_t count =
        self.host.verbs.poll_cq(self.core, *self.recv_cq, kPollBatch, wcs.data());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (wcs[i].status == protocol::WcStatus::kWrFlushError) {
        sender.receiver_gone = true;
        return;
      }
      if (wcs[i].status != protocol::WcStatus::kSuccess)
        measurement_.count_completion(wcs[i].status);
      repost_receive(self, self.index_of(wcs[i].qp_num));
    }
    received += count;
    if (count == 0 && self.recv_cq->failed) {
      sender.receiver_gone = true;
      return;
    }
  }
}

}  // namespace rnic::testbench
