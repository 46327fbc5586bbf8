// SPDX-License-Identifier: Apache-2.0
#include "workload/flow.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/sc_time.h"
#include "config/service_level.h"
#include "simulation/addresses.h"

namespace rnic::testbench {

using config::Op;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using stats::Stage;

namespace {

constexpr std::uint64_t kMaxFilledBytes = std::uint64_t{64} << 20;
constexpr std::size_t kFillChunk = 4096;

WrOpcode wr_opcode(Op op) {
  switch (op) {
    case Op::kWrite:
      return WrOpcode::kRdmaWrite;
    case Op::kWriteImm:
      return WrOpcode::kRdmaWriteWithImm;
    case Op::kRead:
      return WrOpcode::kRdmaRead;
    case Op::kSend:
      return WrOpcode::kSend;
    case Op::kSendImm:
      return WrOpcode::kSendWithImm;
    case Op::kAtomicCas:
      return WrOpcode::kAtomicCmpAndSwp;
    case Op::kAtomicFadd:
      return WrOpcode::kAtomicFetchAndAdd;
    case Op::kDmaRead:
    case Op::kDmaWrite:
    case Op::kDmaReadWrite:
      break;  // no work requests
  }
  return WrOpcode::kSend;
}

}  // namespace

Flow::Flow(const sc_core::sc_module_name& name, const config::Config& config, Endpoint& client,
           Endpoint& server, const protocol::AddressVector& to_server,
           const protocol::AddressVector& to_client, Measurement& measurement)
    : sc_module(name),
      config_(config),
      client_(client),
      server_(server),
      to_server_(to_server),
      to_client_(to_client),
      measurement_(measurement),
      client_player_{&client,
                     &server,
                     {},
                     AddressPattern(config.workload.access, client.total_slots(),
                                    Rng(config.sim.seed, this->name())),
                     0,
                     {},
                     nullptr,
                     0},
      server_player_{&server,
                     &client,
                     {},
                     AddressPattern(config.workload.access, client.total_slots(),
                                    Rng(config.sim.seed, this->name())),
                     0,
                     {},
                     nullptr,
                     0} {
  const bool both =
      config.workload.bidirectional && config.workload.pattern == config::Pattern::kBandwidth;
  measured_.resize(both ? 2 : 1);
  senders_.resize(measured_.size());
  prepare_sender(senders_[0], client_, server_, 0);
  if (both) prepare_sender(senders_[1], server_, client_, 1);
  measurement_.flows_total += static_cast<std::uint32_t>(measured_.size());
  measurement_.messages_total += total_messages() * measured_.size();
  SC_HAS_PROCESS(Flow);
  SC_THREAD(run_client);
  SC_THREAD(run_server);
}

std::uint64_t Flow::total_messages() const {
  return config_.sim.warmup + config_.workload.iterations;
}

bool Flow::two_sided() const { return config::takes_recv(config_.workload.op); }

void Flow::prepare_sender(Sender& sender, Endpoint& local, Endpoint& remote, std::size_t result) {
  sender.local = &local;
  sender.remote = &remote;
  sender.result = &measured_[result];
  sender.result->source = local.host_index();
  sender.result->destination = remote.host_index();
  sender.total = total_messages();
  const std::uint32_t qps = config_.workload.qps;
  sender.qps.resize(qps);
  sender.targets = AtomicTargets(qps);
  for (std::uint32_t i = 0; i < qps; ++i) {
    sender.qps[i].quota = sender.total / qps + (i < sender.total % qps ? 1 : 0);
    sender.qps[i].touched.resize(local.total_slots());
    sender.patterns.emplace_back(
        two_sided() ? config::Access::kSequential : config_.workload.access, local.total_slots(),
        Rng(config_.sim.seed, std::string(name()) + ".qp" + std::to_string(i)));
  }
}

void Flow::meet() {
  const std::uint32_t meeting = meeting_++;
  if (meeting % 2 == 1) {
    met_.notify(sc_core::SC_ZERO_TIME);
  }
  wait(met_);
}

void Flow::fill_buffers(Endpoint& self, std::uint8_t salt) {
  if (config_.sim.payload == config::PayloadMode::kNone) return;
  std::array<std::uint8_t, kFillChunk> chunk{};
  for (std::size_t q = 0; q < self.buffers.size(); ++q) {
    Rng rng(config_.sim.seed,
            std::string(name()) + ".data" + std::to_string(salt) + std::to_string(q));
    const std::uint64_t bytes = std::min(self.regions * self.region_bytes(), kMaxFilledBytes);
    for (std::uint64_t at = 0; at < bytes; at += kFillChunk) {
      for (std::size_t i = 0; i < kFillChunk; i += 8) {
        const std::uint64_t word = rng.next();
        std::copy_n(reinterpret_cast<const std::uint8_t*>(&word), 8, chunk.data() + i);
      }
      self.host.space.write(self.buffers[q].send + at, chunk.data(),
                            std::min<std::uint64_t>(kFillChunk, bytes - at));
    }
  }
}

void Flow::set_up(Endpoint& self, Endpoint& peer, const protocol::AddressVector& path) {
  self.create();
  fill_buffers(self, &self == &client_ ? 1 : 2);
  self.core.sync();
  meet();
  for (std::uint32_t i = 0; i < self.qps.size(); ++i) {
    const std::uint8_t level = &self == &client_ ? config::request_service_level(config_, i)
                                                 : config::response_service_level(config_, i);
    self.connect(i, peer.info(i),
                 path_of_qp(config_, path, level, self.info(i).qpn, peer.info(i).qpn));
    if (i < config_.workload.qps && two_sided()) {
      post_receives(self, i, self.recv_depth);
    }
  }
  self.core.sync();
  meet();
}

SendWr Flow::make_wr(Endpoint& local, Endpoint& remote, std::uint32_t qp, std::uint64_t slot,
                     protocol::Sge& sge) {
  const config::WorkloadConfig& w = config_.workload;
  const Endpoint::Buffer& mine = local.buffers[qp];
  const Endpoint::Buffer& theirs = remote.buffers[qp];
  const std::size_t region = static_cast<std::size_t>(slot / local.slots);
  const bool read = config::returns_data(w.op);
  SendWr wr;
  wr.opcode = wr_opcode(w.op);
  sge.address = local.slot_address(read ? mine.receive : mine.send, slot);
  sge.length = static_cast<std::uint32_t>(w.msg_size);
  sge.lkey = (read ? mine.receive_regions : mine.send_regions)[region].lkey;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.remote_addr = remote.slot_address(read ? theirs.send : theirs.receive, slot);
  wr.rkey = (read ? theirs.send_regions : theirs.receive_regions)[region].rkey;
  wr.imm_data = static_cast<std::uint32_t>(slot);
  if (config_.transport.type == config::TransportType::kUd) {
    const QpInfo peer = remote.info(qp);
    wr.ah = local.paths[qp];
    wr.remote_qpn = peer.qpn;
    wr.remote_qkey = peer.qkey;
  }
  if (config::is_atomic(w.op)) {
    const std::uint64_t found = senders_[&local == &client_ ? 0 : 1].targets.next(remote, qp, slot);
    wr.compare_add = w.op == Op::kAtomicCas ? found : 1;
    wr.swap = found + 1;
  }
  if (!read && w.msg_size <= w.inline_max) wr.flags |= SendFlags::kInline;
  return wr;
}

void Flow::post_receives(Endpoint& self, std::uint32_t qp, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t slot = self.receives_posted[qp]++ % self.total_slots();
    const Endpoint::Buffer& buffer = self.buffers[qp];
    const protocol::Sge sge{
        self.slot_address(buffer.receive, slot),
        self.header_room + static_cast<std::uint32_t>(config_.workload.msg_size),
        buffer.receive_regions[static_cast<std::size_t>(slot / self.slots)].lkey};
    const host::verbs::RecvWr wr{slot, &sge, 1};
    if (self.srq != nullptr) {
      self.host.verbs.post_srq_recv(self.core, *self.srq, &wr, 1);
    } else {
      self.host.verbs.post_recv(self.core, *self.qps[qp], &wr, 1);
    }
  }
}

/// The application is done with a received message, and with it with the RECV's buffer.
void Flow::repost_receive(Endpoint& self, std::uint32_t qp) {
  if (config_.workload.recv_cost > kTimeZero) {
    self.core.spend(config_.workload.recv_cost);
    self.core.sync();  // the device must not see the RECV before the work is done
  }
  if (++self.receives_used[qp] < config_.workload.recv_batch) return;
  post_receives(self, qp, self.receives_used[qp]);
  self.receives_used[qp] = 0;
}

void Flow::client_program() {
  set_up(client_, server_, to_server_);
  if (config_.workload.pattern == config::Pattern::kBandwidth) {
    stream(senders_[0]);
  } else if (config::returns_data(config_.workload.op)) {
    completion_latency();
  } else {
    play(client_player_, server_player_, false);
  }
  measurement_.flow_done();
  receive_rest(senders_[0]);
}

void Flow::server_program() {
  set_up(server_, client_, to_client_);
  if (config_.workload.pattern == config::Pattern::kLatency) {
    if (!config::returns_data(config_.workload.op)) play(server_player_, client_player_, true);
    return;
  }
  if (senders_.size() > 1) {
    stream(senders_[1]);
    measurement_.flow_done();
    receive_rest(senders_[1]);
  } else if (two_sided()) {
    receive_stream(server_, senders_[0].total);
  }
}

void Flow::run_client() {
  guard([this] { client_program(); });
}

void Flow::run_server() {
  guard([this] { server_program(); });
}

template <typename Program>
void Flow::guard(Program program) {
  try {
    program();
  } catch (const sc_core::sc_unwind_exception&) {
    throw;  // the kernel's own way to end a thread
  } catch (...) {
    // The kernel would turn it into a report; keep what was thrown and why: the first time.
    if (measurement_.failure) return;
    measurement_.failure = std::current_exception();
    sc_core::sc_stop();
  }
}

// Latency ------------------------------------------------------------------------------------

void Flow::arm(Player& me) {
  me.next_slot = me.pattern.next();
  if (two_sided()) return;
  const auto qp = static_cast<std::size_t>(me.sent % config_.workload.qps);
  const std::uint64_t last_byte =
      me.self->slot_address(me.self->buffers[qp].receive, me.next_slot) +
      std::max<std::uint64_t>(1, config_.workload.msg_size) - 1;
  host::PhysicalMemory& memory = me.self->host.memory;
  memory.unwatch(me.watch);
  me.watch = memory.watch(*me.self->host.space.translate(last_byte), 1, &me.spot);
  me.spots_seen = me.spot.writes();
}

void Flow::hit(Player& me) {
  const auto qp = static_cast<std::uint32_t>(me.sent % config_.workload.qps);
  protocol::Sge sge;
  SendWr wr = make_wr(*me.self, *me.peer, qp, me.next_slot, sge);
  wr.flags |= SendFlags::kSignaled;
  stats::MessageTrace* trace = traces_.take();
  // A turn begins where the last one ended, so that pings and pongs fill the round trip.
  trace->start(me.turn_started, config::returns_data(config_.workload.op)
                                    ? stats::Journey::kToCompletion
                                    : stats::Journey::kToPeer);
  me.in_flight = trace;
  wr.trace = trace;
  host::verbs::Context& verbs = me.self->host.verbs;
  const auto post = [&] { return verbs.post_send(me.self->core, *me.self->qps[qp], &wr, 1); };
  host::Status status = post();
  while (status == host::Status::kEnomem) {
    // A short queue, and the completion of its last message is still on its way.
    Wc wc;
    me.self->waiting.wait(*me.self->send_cq);
    if (verbs.poll_cq(me.self->core, *me.self->send_cq, 1, &wc) == 0) continue;
    measurement_.count_completion(wc.status);
    status = post();
  }
  if (status != host::Status::kOk) {
    throw SimulationError(std::string(name()) + ": post_send is refused in the latency program");
  }
}

void Flow::await(Player& me, Player& other) {
  host::verbs::Context& verbs = me.self->host.verbs;
  host::Core& core = me.self->core;
  Wc wc;
  if (two_sided()) {
    do {
      me.self->waiting.wait(*me.self->recv_cq);
    } while (verbs.poll_cq(core, *me.self->recv_cq, 1, &wc) == 0);
    measurement_.count_completion(wc.status);
  } else {
    me.self->waiting.wait(me.spot, me.spots_seen);
  }
  core.sync();
  me.turn_started = sim_now();
  // Counted at once: the acknowledgement of this message may still mark its trace.
  other.in_flight->mark(Stage::kPoll, me.turn_started);
  if (me.sent >= config_.sim.warmup) measurement_.breakdown.add(*other.in_flight);
  traces_.give(other.in_flight);
  // The completion of this player's own previous message is long there; perftest polls it now.
  while (verbs.poll_cq(core, *me.self->send_cq, 1, &wc) > 0) {
    measurement_.count_completion(wc.status);
  }
  if (two_sided()) {
    post_receives(*me.self, static_cast<std::uint32_t>(me.sent % config_.workload.qps), 1);
  }
}

void Flow::play(Player& me, Player& other, bool serve_first) {
  const std::uint64_t total = total_messages();
  me.turn_started = me.self->core.now();
  for (me.sent = 0; me.sent < total; ++me.sent) {
    arm(me);
    if (serve_first) {
      await(me, other);
      hit(me);
      continue;
    }
    if (config_.workload.gap > kTimeZero) {
      me.self->waiting.pause(config_.workload.gap);
      me.turn_started = sim_now();
    }
    const Time round_start = me.turn_started;
    if (me.sent == config_.sim.warmup) {
      measured_[0].window_start = round_start;
      measurement_.flow_warm();
    }
    hit(me);
    await(me, other);
    record_latency((me.turn_started - round_start) / 2, me.sent, me.turn_started);
  }
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
    me.self->waiting.pause(config_.workload.gap);
    me.turn_started = core.now();
    hit(me);
    Wc wc;
    do {
      client_.waiting.wait(*client_.send_cq);
    } while (client_.host.verbs.poll_cq(core, *client_.send_cq, 1, &wc) == 0);
    core.sync();
    measurement_.count_completion(wc.status);
    me.in_flight->mark(Stage::kPoll, sim_now());
    if (me.sent >= config_.sim.warmup) measurement_.breakdown.add(*me.in_flight);
    record_latency(me.in_flight->total(), me.sent, sim_now());
    traces_.give(me.in_flight);
  }
}

// Bandwidth ----------------------------------------------------------------------------------

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
      sender.local->waiting.wait(*sender.local->send_cq);
      count = verbs.poll_cq(core, *sender.local->send_cq, kPollBatch, wcs.data());
    }
    for (std::uint32_t i = 0; i < count; ++i) reap(sender, wcs[i]);
  }
  core.sync();
  if (unacknowledged()) drain(sender);
  read_meter(sender);
}

bool Flow::unacknowledged() const { return config_.transport.type != config::TransportType::kRc; }

/// Nothing tells whether unacknowledged messages have arrived: waits until no more do.
void Flow::drain(const Sender& sender) {
  const Time quiet = microseconds(20) + 4 * config_.link.delay;
  std::uint64_t seen = 0;
  do {
    seen = sender.meter.delivered();
    wait(to_sc_time(quiet));
  } while (sender.meter.delivered() != seen);
}

void Flow::start_meter(Sender& sender) {
  // READs and atomics deliver to the requester, everything else to the peer.
  Endpoint& receiver = config::returns_data(config_.workload.op) ? *sender.local : *sender.remote;
  sender.meter.expect(config_.sim.warmup * config_.workload.msg_size,
                      [this] { measurement_.flow_warm(); });
  for (std::uint32_t qp = 0; qp < sender.qps.size(); ++qp) {
    receiver.qps[qp]->meter = &sender.meter;
  }
  // Messages of no bytes show on no meter, so all of them count.
  if (config_.sim.warmup == 0 || config_.workload.msg_size == 0) {
    sender.meter.start(sender.local->core.now());
  }
}

void Flow::read_meter(Sender& sender) {
  FlowMeasurement& result = *sender.result;
  const std::uint64_t size = config_.workload.msg_size;
  result.window_start = sender.meter.window_start();
  result.window_end = size == 0 ? sim_now() : sender.meter.window_end();
  result.bytes = sender.meter.counted();
  result.messages = size == 0 ? sender.completed : result.bytes / size;
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
    const bool posted = post(sender, sender.next_qp, config_.workload.outstanding - in_flight);
    sender.next_qp = (sender.next_qp + 1) % qps;
    refused = posted ? 0 : refused + 1;
    any |= posted;
  }
  return any;
}

bool Flow::post(Sender& sender, std::uint32_t qp, std::uint64_t window) {
  const config::WorkloadConfig& w = config_.workload;
  Sender::PerQp& state = sender.qps[qp];
  const std::uint64_t room = std::min(window, w.depth - (state.posted - state.done));
  const std::uint64_t left = state.quota - state.posted;
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>({room, left, std::max(1U, w.post_batch)}));
  // A batch is posted whole or not yet, but for the last one.
  if (count == 0 || (count < w.post_batch && left > count)) return false;
  sender.batch.resize(count);
  sender.sges.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t slot = sender.patterns[qp].next();
    state.touched[static_cast<std::size_t>(slot)] = true;
    SendWr& wr = sender.batch[i];
    wr = make_wr(*sender.local, *sender.remote, qp, slot, sender.sges[i]);
    ++state.posted;
    if (state.posted % w.signal_every == 0 || state.posted == state.quota) {
      wr.flags |= SendFlags::kSignaled;
    }
    wr.trace = traces_.take();
    wr.trace->start(sender.local->core.now(), stats::Journey::kToCompletion);
    state.traces.push_back(wr.trace);
  }
  sender.posted += count;
  std::uint32_t bad = 0;
  const host::Status status = sender.local->host.verbs.post_send(
      sender.local->core, *sender.local->qps[qp], sender.batch.data(), count, &bad);
  if (status != host::Status::kOk) {
    throw SimulationError(std::string(name()) + ": post_send fails with " +
                          host::status_name(status));
  }
  return true;
}

void Flow::reap(Sender& sender, const Wc& wc) {
  if (wc.opcode == protocol::WcOpcode::kRecv || wc.opcode == protocol::WcOpcode::kRecvRdmaWithImm) {
    ++sender.received;
    if (wc.status == protocol::WcStatus::kSuccess) {
      repost_receive(*sender.local, sender.local->index_of(wc.qp_num));
    }
    return;
  }
  measurement_.count_completion(wc.status);
  const std::uint32_t qp = sender.local->index_of(wc.qp_num);
  if (wc.status != protocol::WcStatus::kSuccess) {
    sender.stopped = true;
    return;
  }
  // A completion stands for all unsignalled messages before it.
  Sender::PerQp& state = sender.qps[qp];
  const std::uint64_t every = config_.workload.signal_every;
  const std::uint64_t upto = std::min(state.quota, (state.done / every + 1) * every);
  const Time now = sender.local->core.now();
  while (state.done < upto) complete(sender, qp, now);
}

void Flow::complete(Sender& sender, std::uint32_t qp, Time now) {
  Sender::PerQp& state = sender.qps[qp];
  stats::MessageTrace* trace = state.traces.front();
  state.traces.pop_front();
  ++state.done;
  ++sender.completed;
  ++measurement_.messages_done;
  trace->mark(Stage::kPoll, now);
  if (sender.completed > config_.sim.warmup) {
    measurement_.breakdown.add(*trace);
    sender.result->latency.add(trace->total());
  }
  traces_.give(trace);
}

void Flow::receive_rest(Sender& sender) {
  if (!config_.workload.bidirectional || !two_sided()) return;
  host::verbs::Context& verbs = sender.local->host.verbs;
  Wc wc;
  while (sender.received < sender.total && !sender.stopped) {
    sender.local->waiting.wait(*sender.local->send_cq);
    if (verbs.poll_cq(sender.local->core, *sender.local->send_cq, 1, &wc) > 0) reap(sender, wc);
  }
}

void Flow::receive_stream(Endpoint& self, std::uint64_t total) {
  constexpr std::uint32_t kPollBatch = 16;
  std::array<Wc, kPollBatch> wcs;
  for (std::uint64_t received = 0; received < total;) {
    self.waiting.wait(*self.recv_cq);
    const std::uint32_t count =
        self.host.verbs.poll_cq(self.core, *self.recv_cq, kPollBatch, wcs.data());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (wcs[i].status != protocol::WcStatus::kSuccess) return;
      repost_receive(self, self.index_of(wcs[i].qp_num));
    }
    received += count;
  }
}

std::uint64_t Flow::verify() {
  if (config_.sim.payload == config::PayloadMode::kNone) return 0;
  // Messages of several queue pairs are placed in the order in which they arrive: where, is known
  // only to who received them.
  if (config_.workload.srq && two_sided() && config_.workload.qps > 1) return 0;
  const bool read = config_.workload.op == Op::kRead;
  const auto size = static_cast<std::size_t>(config_.workload.msg_size);
  std::vector<std::uint8_t> sent(size);
  std::vector<std::uint8_t> got(size);
  std::uint64_t wrong = 0;
  for (Sender& sender : senders_) {
    if (sender.stopped) continue;  // not everything that was posted was carried out
    // Behind a lost message, the others lie where nobody expects them.
    if (unacknowledged() && sender.meter.delivered() < sender.total * size) continue;
    if (config::is_atomic(config_.workload.op)) {
      wrong += sender.targets.wrong_words(*sender.remote) * sizeof(std::uint64_t);
      continue;
    }
    Endpoint& from = read ? *sender.remote : *sender.local;
    Endpoint& to = read ? *sender.local : *sender.remote;
    for (std::size_t qp = 0; qp < sender.qps.size(); ++qp) {
      for (std::uint64_t slot = 0; slot < sender.qps[qp].touched.size(); ++slot) {
        if (!sender.qps[qp].touched[static_cast<std::size_t>(slot)]) continue;
        from.host.space.read(from.slot_address(from.buffers[qp].send, slot), sent.data(), size);
        to.host.space.read(to.header_room + to.slot_address(to.buffers[qp].receive, slot),
                           got.data(), size);
        for (std::size_t i = 0; i < size; ++i) wrong += sent[i] != got[i] ? 1U : 0U;
      }
    }
  }
  return wrong;
}

}  // namespace rnic::testbench
