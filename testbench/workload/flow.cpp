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
      mistakes_(config, measurement.flows_total == 0),
      start_delay_(config.workload.start_gap * measurement.flows_total),
      client_player_{&client,
                     &server,
                     {},
                     AddressPattern(config.workload.access, client.total_slots(),
                                    Rng(config.sim.seed, this->name())),
                     0,
                     {},
                     nullptr,
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
  client_player_.numbers = server_player_.numbers = TurnNumbers(number_bytes());
  measurement_.programs_total += 2;
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

/// In which order messages of a queue pair use the places of a buffer: at both ends alike, so that
/// the n-th RECV has the place of the n-th message.
AddressPattern Flow::slots_of_qp(const Endpoint& end, std::uint32_t qp) const {
  return {config_.workload.access, end.total_slots(),
          Rng(config_.sim.seed, std::string(name()) + ".qp" + std::to_string(qp))};
}

void Flow::prepare_sender(Sender& sender, Endpoint& local, Endpoint& remote, std::size_t result) {
  sender.local = &local;
  sender.remote = &remote;
  sender.result = &measured_[result];
  sender.result->source = local.host_index();
  sender.result->destination = remote.host_index();
  sender.total = total_messages();
  const std::uint32_t qps = config_.workload.qps;
  const config::QpOrder order = config_.workload.qp_order;
  const bool drawn = order != config::QpOrder::kInTurn;
  sender.choice = AddressPattern(
      order == config::QpOrder::kZipf ? config::Access::kZipf : config::Access::kRandom, qps,
      Rng(config_.sim.seed, std::string(name()) + ".qps" + std::to_string(result)));
  sender.qps.resize(qps);
  // Each has as much to send as it will be drawn: equal shares would be used up one by one, and the
  // last messages would go over ever fewer queue pairs.
  std::vector<std::uint64_t> draws(drawn ? qps : 0);
  AddressPattern lot = sender.choice;
  const std::uint64_t batch = std::max(1U, config_.workload.post_batch);
  for (std::uint64_t i = 0; drawn && i < sender.total; i += batch) {
    draws[lot.next()] += std::min(batch, sender.total - i);
  }
  sender.targets = AtomicTargets(qps);
  for (std::uint32_t i = 0; i < qps; ++i) {
    sender.qps[i].quota = drawn ? draws[i] : sender.total / qps + (i < sender.total % qps ? 1 : 0);
    sender.qps[i].touched.resize(local.total_slots());
    sender.patterns.push_back(slots_of_qp(local, i));
  }
}

void Flow::meet() {
  const std::uint32_t meeting = meeting_++;
  if (meeting % 2 == 1) {
    met_.notify(sc_core::SC_ZERO_TIME);
  }
  wait(met_);
}

/// What filling the buffers would leave in the host's caches, without their bytes.
void Flow::touch_buffers(Endpoint& self) {
  host::MemorySystem& memory = self.host.root_complex.memory_system();
  if (!memory.tracks_cache()) return;
  const std::uint64_t bytes = std::min(self.regions * self.region_bytes(), kMaxFilledBytes);
  for (const Endpoint::Buffer& buffer : self.buffers) {
    for (std::uint64_t at = 0; at < bytes; at += kFillChunk) {
      const auto address = self.host.space.translate(buffer.send + at);
      if (address) memory.warm(*address, std::min<std::uint64_t>(kFillChunk, bytes - at));
    }
  }
}

/// Some message takes its payload from this end's memory.
bool Flow::is_source(const Endpoint& self) const {
  const config::WorkloadConfig& w = config_.workload;
  const bool one_way = w.pattern == config::Pattern::kBandwidth && !w.bidirectional &&
                       w.probe_size == config::kNoProbe && !config::is_atomic(w.op);
  return !one_way || &self == (config::returns_data(w.op) ? &server_ : &client_);
}

void Flow::fill_buffers(Endpoint& self, std::uint8_t salt) {
  if (config_.sim.payload == config::PayloadMode::kNone || !is_source(self)) {
    touch_buffers(self);
    return;
  }
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
      self.receive_slots.push_back(slots_of_qp(self, i));
      post_receives(self, i, self.recv_depth);
    }
  }
  self.core.sync();
  measurement_.start_together();
}

SendWr Flow::make_wr(Endpoint& local, Endpoint& remote, std::uint32_t qp, std::uint64_t slot,
                     protocol::Sge* pieces) {
  const config::WorkloadConfig& w = config_.workload;
  const Endpoint::Buffer& mine = local.buffers[qp];
  const Endpoint::Buffer& theirs = remote.buffers[qp];
  const std::size_t region = static_cast<std::size_t>(slot / local.slots);
  const bool read = config::returns_data(w.op);
  SendWr wr;
  wr.opcode = wr_opcode(w.op);
  const std::uint64_t at = local.slot_address(read ? mine.receive : mine.send, slot);
  const std::uint32_t lkey = (read ? mine.receive_regions : mine.send_regions)[region].lkey;
  const auto bytes = static_cast<std::uint32_t>(w.msg_size);
  const std::uint32_t piece = (bytes + w.sges - 1) / w.sges;
  std::uint32_t done = 0;
  while (done < bytes) {  // none of a message of no bytes
    const std::uint32_t length = std::min(piece, bytes - done);
    pieces[wr.num_sge++] = {at + done, length, lkey};
    done += length;
  }
  wr.sg_list = pieces;
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
  if (!read && w.msg_size > 0 && w.msg_size <= w.inline_max) wr.flags |= SendFlags::kInline;
  return wr;
}

void Flow::post_receives(Endpoint& self, std::uint32_t qp, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    ++self.receives_posted[qp];
    const std::uint64_t slot = self.receive_slots[qp].next();
    const Endpoint::Buffer& buffer = self.buffers[qp];
    protocol::Sge sge{self.slot_address(buffer.receive, slot),
                      self.header_room + static_cast<std::uint32_t>(config_.workload.msg_size),
                      buffer.receive_regions[static_cast<std::size_t>(slot / self.slots)].lkey};
    if (&self == &server_ && qp == 0) mistakes_.spoil_recv(self.receives_posted[qp], sge);
    const host::verbs::RecvWr wr{qp * self.total_slots() + slot, &sge, 1};
    if (self.srq != nullptr) {
      self.host.verbs.post_srq_recv(self.core, *self.srq, &wr, 1);
    } else {
      self.host.verbs.post_recv(self.core, *self.qps[qp], &wr, 1);
    }
  }
  if (counts_recvs()) {
    self.core.sync();  // the device has them before the sender knows
    tell_of_recvs(self, qp);
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
    client_.waiting.pause(start_delay_);
    stream(senders_[0]);
    measurement_.flow_done();
    receive_rest(senders_[0]);
  } else if (config::returns_data(config_.workload.op)) {
    completion_latency();
  } else {
    play(client_player_, server_player_);
  }
}

void Flow::server_program() {
  set_up(server_, client_, to_client_);
  if (config_.workload.pattern == config::Pattern::kLatency) {
    if (!config::returns_data(config_.workload.op)) serve(server_player_, client_player_);
    return;
  }
  if (senders_.size() > 1) {
    server_.waiting.pause(start_delay_);
    stream(senders_[1]);
    measurement_.flow_done();
    receive_rest(senders_[1]);
  } else if (two_sided()) {
    receive_stream(server_, senders_[0]);
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

/// Behind a message that is lost, comes twice or out of turn, those that nobody acknowledges lie
/// where the sender does not expect them.
bool Flow::placement_known(const Sender& sender) const {
  if (!unacknowledged()) return true;
  const config::LinkConfig& link = config_.link;
  const bool disturbed = link.duplicate_rate > 0 || link.reorder_rate > 0 ||
                         !link.duplicate_list.empty() || !link.reorder_list.empty();
  return !disturbed && sender.meter.delivered() == sender.total * config_.workload.msg_size;
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
    if (!placement_known(sender)) continue;
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
