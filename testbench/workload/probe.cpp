// SPDX-License-Identifier: Apache-2.0
#include "workload/probe.h"

#include "base/error.h"
#include "base/sc_time.h"
#include "config/service_level.h"
#include "simulation/addresses.h"

namespace rnic::testbench {
namespace {

/// Of the workload, what a single small WRITE at a time leaves.
config::Config probe_config(const config::Config& config) {
  config::Config own = config;
  config::WorkloadConfig& w = own.workload;
  w.op = config::Op::kWrite;
  w.msg_size = config.workload.probe_size;
  w.qps = w.threads = w.qp_sharers = 1;
  w.depth = 2;  // the next one may be posted before the last one's WQE is given back
  w.outstanding = 0;
  w.signal_every = w.post_batch = 1;
  w.recv_depth = w.recv_batch = 1;
  w.sges = w.mrs = 1;
  w.mr_size = 0;
  w.alignment = 64;
  w.offset = 0;
  w.idle_qps = 0;
  w.srq = w.bidirectional = w.solicited_only = false;
  w.mr_per_qp = true;
  w.local_memory = w.remote_memory = config::BufferMemory::kHost;
  w.completion = config::Completion::kPoll;
  w.cq_count = 1;
  w.poll_interval = kTimeZero;
  w.mistake = config::Mistake::kNone;
  return own;
}

}  // namespace

Probe::Probe(const sc_core::sc_module_name& name, const config::Config& config, host::Host& from,
             std::uint32_t client, host::Host& to, std::uint32_t server, Measurement& measurement)
    : sc_module(name),
      config_(probe_config(config)),
      measurement_(measurement),
      client_(from, config_, client),
      server_(to, config_, server) {
  result_.size = config_.workload.probe_size;
  result_.interval = config_.workload.probe_interval;
  ++measurement_.programs_total;
  SC_HAS_PROCESS(Probe);
  SC_THREAD(run);
}

void Probe::connect(Endpoint& self, Endpoint& peer) {
  const protocol::AddressVector path = path_between(self.host_index(), peer.host_index());
  self.connect(0, peer.info(0),
               path_of_qp(config_, path, config::probe_service_level(config_), self.info(0).qpn,
                          peer.info(0).qpn));
  self.core.sync();
}

/// One thread for both ends: what is measured begins when it is over.
void Probe::set_up() {
  client_.create();
  client_.core.sync();
  server_.create();
  server_.core.sync();
  connect(server_, client_);
  connect(client_, server_);
  measurement_.start_together();
}

bool Probe::streams_run() const {
  return measurement_.flows_warm == measurement_.flows_total && measurement_.flows_done == 0;
}

bool Probe::write() {
  host::verbs::Context& verbs = client_.host.verbs;
  protocol::Sge piece{client_.buffers[0].send, static_cast<std::uint32_t>(result_.size),
                      client_.buffers[0].send_regions.front().lkey};
  host::verbs::SendWr wr;
  wr.opcode = host::verbs::WrOpcode::kRdmaWrite;
  wr.flags = host::verbs::SendFlags::kSignaled;
  wr.num_sge = result_.size > 0 ? 1 : 0;
  wr.sg_list = &piece;
  wr.remote_addr = server_.buffers[0].receive;
  wr.rkey = server_.buffers[0].receive_regions.front().rkey;
  const bool counts = streams_run();
  const Time posted = client_.core.now();
  if (verbs.post_send(client_.core, *client_.qps[0], &wr, 1) != host::Status::kOk) {
    throw SimulationError(std::string(name()) + ": post_send is refused");
  }
  ++result_.posted;
  host::verbs::Wc wc;
  do {
    client_.waiting.wait(*client_.send_cq);
    if (client_.send_cq->failed) {
      ++result_.failed;
      return false;
    }
  } while (verbs.poll_cq(client_.core, *client_.send_cq, 1, &wc) == 0);
  client_.core.sync();
  if (wc.status != protocol::WcStatus::kSuccess) {
    ++result_.failed;
    return false;
  }
  if (counts && streams_run()) result_.latency.add(sim_now() - posted);
  return true;
}

void Probe::run() {
  try {
    set_up();
    Time next = sim_now();
    while (measurement_.flows_done < measurement_.flows_total && write()) {
      next = std::max(next + result_.interval, sim_now());
      client_.waiting.pause(next - sim_now());
    }
  } catch (const sc_core::sc_unwind_exception&) {
    throw;  // the kernel's own way to end a thread
  } catch (...) {
    if (measurement_.failure) return;
    measurement_.failure = std::current_exception();
    sc_core::sc_stop();
  }
}

}  // namespace rnic::testbench
