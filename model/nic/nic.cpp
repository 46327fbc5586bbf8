// SPDX-License-Identifier: Apache-2.0
#include "nic/nic.h"

#include "config/config.h"
#include "transport/factory.h"

namespace rnic::nic {
namespace {

bool moves_bytes(const config::Config& config) {
  return config.sim.payload == config::PayloadMode::kBytes;
}

const config::StageConfig* engine(const config::Config& config, const config::StageConfig& stage) {
  return config.transport.protocol == config::Protocol::kIwarp ? &stage : nullptr;
}

/// The NIC as its context cache sees it: a connection that takes several entries leaves room for
/// fewer. Its fetch stays one line; what follows the first is overlapped.
config::NicConfig context_cache(const config::Config& config) {
  config::NicConfig nic = config.nic;
  if (config.transport.protocol != config::Protocol::kIwarp) return nic;
  config::CacheConfig& cache = nic.qpc_cache;
  const auto fewer = cache.entries / config.tcp.context_lines / cache.ways * cache.ways;
  cache.entries = fewer < cache.ways ? cache.ways : fewer;
  return nic;
}

}  // namespace

Nic::Nic(const sc_core::sc_module_name& name, const config::Config& config,
         const transport::PortIdentity& identity, const ContextTables& tables,
         const link::LinkPortConfig& link_config, protocol::FramePool& frames)
    : sc_module(name),
      misses_(config.nic.context_misses),
      identity_(identity),
      encapsulation_(transport::make_encapsulation(
          config.transport.protocol, {config.transport.vlan, config.transport.ip_version == 6,
                                      config.transport.grh, config.tcp.mpa_crc})),
      transport_(transport::make_transport(config, *encapsulation_, identity_)),
      dma("dma", config.pcie, Clock(config.nic.clock_hz).cycles(config.nic.dma.latency),
          Clock(config.nic.clock_hz).cycles(config.nic.dma.interval)),
      doorbell("doorbell", config.nic, queue_pairs),
      scheduler("sq_scheduler", config.nic, *transport_, frames, tx_jobs_),
      qp_contexts("qpc_cache", context_cache(config), config.sim.seed, tables.qpc, misses_),
      wqe_fetcher("wqe_fetcher", config.nic),
      translation("translation", config.nic, config.sim.seed, tables.mpt, tables.mtt,
                  tables.mpt_entries, misses_),
      payload_gather("payload_gather", *transport_, frames, tx_jobs_, moves_bytes(config)),
      packetizer("packetizer", config.nic, *transport_, tx_jobs_,
                 engine(config, config.nic.tcp_tx)),
      port("port", link_config, frames),
      rx_pipeline("rx_pipeline", config.nic, *transport_, *encapsulation_, queue_pairs, frames,
                  engine(config, config.nic.tcp_rx)),
      responder("responder", config.nic, *transport_, moves_bytes(config)),
      atomic("atomic", config.nic),
      rq("rq", config.nic),
      completion("completion", config.nic),
      cq("cq", &queue_pairs),
      events("events", config.nic),
      keys("keys", tables.mpt, tables.mtt, tables.mpt_entries),
      timer("timer", *transport_),
      command("command", config.nic, *transport_, queue_pairs,
              config.transport.protocol != config::Protocol::kIwarp) {
  // The journey of a request, unit by unit.
  doorbell.scheduler.bind(scheduler.scheduler);
  doorbell.wqes.bind(wqe_fetcher.wqes);
  doorbell.commands.bind(command.commands);
  scheduler.contexts.bind(qp_contexts.contexts);
  scheduler.wqes.bind(wqe_fetcher.wqes);
  scheduler.transmit.bind(payload_gather.transmit);
  scheduler.timer.bind(timer.timer);
  scheduler.completion.bind(completion.completion);
  qp_contexts.dma.bind(dma);
  wqe_fetcher.dma.bind(dma);
  wqe_fetcher.scheduler.bind(scheduler.scheduler);
  wqe_fetcher.completion.bind(completion.completion);
  translation.dma.bind(dma);
  payload_gather.translation.bind(translation.translation);
  payload_gather.dma.bind(dma);
  payload_gather.packetizer.bind(packetizer.packetizer);
  payload_gather.scheduler.bind(scheduler.scheduler);
  payload_gather.completion.bind(completion.completion);
  packetizer.port.bind(port.port);
  packetizer.completion.bind(completion.completion);
  port.scheduler.bind(scheduler.scheduler);
  // The journey of what arrives.
  port.set_receive_pipeline(rx_pipeline);
  rx_pipeline.contexts.bind(qp_contexts.contexts);
  rx_pipeline.responder.bind(responder.responder);
  rx_pipeline.scheduler.bind(scheduler.scheduler);
  rx_pipeline.completion.bind(completion.completion);
  rx_pipeline.timer.bind(timer.timer);
  rx_pipeline.port.bind(port.port);
  responder.pipeline.bind(rx_pipeline.pipeline);
  responder.translation.bind(translation.translation);
  responder.recv_queues.bind(rq.recv_queues);
  responder.completion_queues.bind(cq.completion_queues);
  responder.completion.bind(completion.completion);
  responder.atomics.bind(atomic.atomics);
  responder.scheduler.bind(scheduler.scheduler);
  responder.dma.bind(dma);
  atomic.dma.bind(dma);
  atomic.client.bind(responder.atomic_client);
  rq.dma.bind(dma);
  rq.completion_queues.bind(cq.completion_queues);
  // Completions, timers, commands.
  completion.completion_queues.bind(cq.completion_queues);
  completion.recv_queues.bind(rq.recv_queues);
  completion.wqes.bind(wqe_fetcher.wqes);
  cq.dma.bind(dma);
  timer.scheduler.bind(scheduler.scheduler);
  timer.completion.bind(completion.completion);
  command.dma.bind(dma);
  command.completion_queues.bind(cq.completion_queues);
  command.completion.bind(completion.completion);
  command.recv_queues.bind(rq.recv_queues);
  command.scheduler.bind(scheduler.scheduler);
  command.translation.bind(translation.translation);
  // Operations on keys.
  scheduler.keys.bind(keys.keys);
  keys.dma.bind(dma);
  keys.translation.bind(translation.translation);
  keys.completion.bind(completion.completion);
  keys.scheduler.bind(scheduler.scheduler);
  // Events.
  doorbell.completion_queues.bind(cq.completion_queues);
  doorbell.events.bind(events.events);
  doorbell.recv_queues.bind(rq.recv_queues);
  doorbell.translation.bind(translation.translation);
  translation.events.bind(events.events);
  cq.events.bind(events.events);
  cq.completion.bind(completion.completion);
  rq.events.bind(events.events);
  completion.events.bind(events.events);
  rx_pipeline.events.bind(events.events);
  command.events.bind(events.events);
  events.dma.bind(dma);
}

void Nic::reset_statistics(Time now) {
  doorbell.stats().reset(now);
  scheduler.stats().reset(now);
  qp_contexts.stats().reset(now);
  qp_contexts.cache().cache().reset_statistics();
  wqe_fetcher.stats().reset(now);
  translation.stats().reset(now);
  translation.mpt_cache().cache().reset_statistics();
  translation.mtt_cache().cache().reset_statistics();
  payload_gather.stats().reset(now);
  packetizer.stats().reset(now);
  rx_pipeline.stats().reset(now);
  responder.stats().reset(now);
  atomic.reset_statistics(now);
  completion.stats().reset(now);
  dma.reset_statistics(now);
  port.link.reset_statistics(now);
}

}  // namespace rnic::nic
