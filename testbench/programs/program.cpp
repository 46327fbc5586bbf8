// SPDX-License-Identifier: Apache-2.0
#include "programs/program.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "programs/programs.h"

namespace rnic::testbench {

Program::Program(const sc_core::sc_module_name& name, const config::Config& config,
                 host::Host& client_host, host::Host& server_host, Measurement& measurement,
                 std::uint32_t client_count)
    : sc_module(name), config_(config), measurement_(measurement) {
  for (std::uint32_t i = 0; i < client_count; ++i) {
    peers_.push_back(std::make_unique<Peer>(client_host, config, 0));
    peers_.push_back(std::make_unique<Peer>(server_host, config, 1));
  }
  start();
}

Program::Program(const sc_core::sc_module_name& name, const config::Config& config,
                 host::Host& client_host, const std::vector<host::Host*>& servers,
                 Measurement& measurement)
    : sc_module(name), config_(config), measurement_(measurement) {
  for (std::uint32_t i = 0; i < servers.size(); ++i) {
    peers_.push_back(std::make_unique<Peer>(client_host, config, 0));
    peers_.push_back(std::make_unique<Peer>(*servers[i], config, i + 1));
  }
  start();
}

void Program::start() {
  measured_.source = 0;
  measured_.destination = 1;
  ++measurement_.flows_total;
  measurement_.messages_total += config_.sim.warmup + config_.workload.iterations;
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    sc_core::sc_spawn([this, i] { run(i); }, sc_core::sc_gen_unique_name("process"));
  }
}

void Program::meet() {
  if (++arrived_ == peers_.size()) {
    arrived_ = 0;
    met_.notify(sc_core::SC_ZERO_TIME);
  }
  sc_core::wait(met_);
}

void Program::run(std::uint32_t peer) {
  try {
    play(peer);
  } catch (const sc_core::sc_unwind_exception&) {
    throw;  // the kernel's own way to end a thread
  } catch (const ProcessFailure& failure) {
    end_early(failure);
  } catch (...) {
    if (measurement_.failure) return;
    measurement_.failure = std::current_exception();
    sc_core::sc_stop();
  }
}

void Program::play(std::uint32_t peer) {
  Peer& self = *peers_[peer];
  const bool is_client = peer % 2 == 0;
  const std::uint32_t number = peer / 2;
  self.open();
  prepare(self, number);
  self.core.sync();
  meet();
  self.connect(*peers_[peer ^ 1U]);
  prepare_connected(self, number);
  self.core.sync();
  meet();
  if (!is_client) {
    server(self, number);
    return;
  }
  if (number == 0 && config_.sim.warmup == 0) {
    measured_.window_start = self.core.now();
    measurement_.flow_warm();
  }
  client(self, number);
  self.core.sync();
  if (++finished_ == clients() && ended_early_.empty()) measurement_.flow_done();
}

/// The first process that fails ends all, as its peer and those who share its work would notice by
/// their connections beside the RDMA one. What fails behind it is told in the counts only.
void Program::end_early(const ProcessFailure& failure) {
  if (failure.status) measurement_.count_completion(*failure.status);
  if (!ended_early_.empty() || finished_ == clients()) return;
  ended_early_ = failure.what + ", after " + std::to_string(done_) + " of " +
                 std::to_string(config_.sim.warmup + config_.workload.iterations) + " operations";
  measurement_.flow_done();
}

Time Program::begin(Peer& self) {
  const config::WorkloadConfig& w = config_.workload;
  self.waiting.pause(w.long_gap > kTimeZero && begun_++ % 2 == 1 ? w.long_gap : w.gap);
  return self.core.now();
}

std::uint64_t Program::operations(std::uint32_t number) const {
  const std::uint64_t total = config_.sim.warmup + config_.workload.iterations;
  return total / clients() + (number < total % clients() ? 1 : 0);
}

void Program::done(const Peer& self, Time started, std::uint64_t bytes) {
  ++measurement_.messages_done;
  measurement_.count_completion(protocol::WcStatus::kSuccess);
  ++done_;
  if (done_ <= config_.sim.warmup) {
    if (done_ < config_.sim.warmup) return;
    measured_.window_start = self.core.now();
    measurement_.flow_warm();
    return;
  }
  measured_.latency.add(self.core.now() - started);
  ++measured_.messages;
  measured_.bytes += bytes;
  measured_.window_end = self.core.now();
}

void Program::compare(const Bytes& found, const Bytes& expected) {
  if (config_.sim.payload == config::PayloadMode::kNone) return;
  if (found.size() != expected.size()) {
    throw SimulationError("a message of " + std::to_string(expected.size()) + " bytes arrives as " +
                          std::to_string(found.size()));
  }
  if (found == expected) return;
  for (std::size_t i = 0; i < found.size(); ++i) {
    measurement_.corrupt_bytes += found[i] != expected[i] ? 1U : 0U;
  }
}

std::unique_ptr<Program> make_program(const config::Config& config,
                                      const std::vector<host::Host*>& hosts,
                                      Measurement& measurement) {
  host::Host& clients = *hosts[0];
  host::Host& servers = *hosts[1];
  using config::Program;
  switch (config.workload.program) {
    case Program::kPingPong:
      return std::make_unique<PingPong>("ping_pong", config, clients, servers, measurement);
    case Program::kKvStore:
      return std::make_unique<KvStore>("kv_store", config, clients, servers, measurement);
    case Program::kRingBuffer:
      return std::make_unique<RingBuffer>("ring_buffer", config, clients, servers, measurement);
    case Program::kRendezvous:
      return std::make_unique<Rendezvous>("rendezvous", config, clients, servers, measurement);
    case Program::kSpinLock:
      return std::make_unique<SpinLock>("spin_lock", config, clients, servers, measurement,
                                        config.workload.qps);
    case Program::kMulticast:
      return std::make_unique<Multicast>("multicast", config, clients,
                                         std::vector<host::Host*>(hosts.begin() + 1, hosts.end()),
                                         measurement);
    case Program::kNone:
      break;
  }
  panic("programs", "no such program");
}

Bytes Program::pattern(std::uint64_t seed, std::uint64_t bytes) {
  Rng rng(seed, "program");
  Bytes result(static_cast<std::size_t>(bytes));
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (std::size_t at = 0; at < result.size(); at += kWord) {
    const std::uint64_t word = rng.next();
    std::memcpy(result.data() + at, &word, std::min(kWord, result.size() - at));
  }
  return result;
}

}  // namespace rnic::testbench
