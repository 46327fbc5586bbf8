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
      has_qp_engines_(config.nic.qp_rate.valid() || config.nic.qp_message_time > kTimeZero ||
                      config.nic.read_engine_rate.valid() ||
                      config.nic.read_engine_time > kTimeZero || config.dc.targets > 1),
      misses_(config.nic.context_misses),
      wqe_misses_(UINT32_MAX),
      identity_(identity),
      encapsulation_(transport::make_encapsulation(
          config.transport.protocol, {config.transport.vlan, config.transport.ip_version == 6,
                                      config.transport.grh, config.tcp.mpa_crc})),
      transport_(transport::make_transport(config, *encapsulation_, identity_)),
      dma("dma", config.pcie, Clock(config.nic.clock_hz).cycles(config.nic.dma.latency),
          Clock(config.nic.clock_hz).cycles(config.nic.dma.interval)),
      translation_agent(config.pcie.atc.enabled
                            ? std::make_unique<pcie::TranslationAgent>("atc", config.pcie.atc,
                                                                       config.iommu.page_size, dma)
                            : nullptr),
      device_memory(config.nic.device_memory == 0
                        ? nullptr
                        : std::make_unique<DeviceMemory>("device_memory", config.nic,
                                                         tables.device_memory, host_path(), dma)),
      doorbell("doorbell", config.nic, queue_pairs, config.pcie.register_read_time),
      scheduler("sq_scheduler", config.nic, *transport_, frames, tx_jobs_,
                config.transport.congestion_control != config::RoceCongestion::kNone),
      qp_contexts("qpc_cache", context_cache(config), config.sim.seed, tables.qpc, misses_,
                  &queue_pairs),
      wqe_fetcher("wqe_fetcher", config.nic),
      translation("translation", config.nic, config.sim.seed, tables.mpt, tables.mtt,
                  tables.mpt_entries, misses_),
      payload_gather("payload_gather", *transport_, frames, tx_jobs_, config.nic.sge_time,
                     moves_bytes(config)),
      packetizer("packetizer", config.nic, *transport_, tx_jobs_,
                 engine(config, config.nic.tcp_tx)),
      port("port", config.nic, config.transport.protocol, link_config, frames),
      rx_pipeline("rx_pipeline", config.nic, *transport_, *encapsulation_, queue_pairs, frames,
                  engine(config, config.nic.tcp_rx)),
      responder("responder", config.nic, *transport_, moves_bytes(config)),
      atomic("atomic", config.nic),
      rq("rq", config.nic),
      completion("completion", config.nic, *transport_),
      cq("cq", &queue_pairs),
      events("events", config.nic),
      keys("keys", tables.mpt, tables.mtt, tables.mpt_entries),
      cq_contexts("cqc_cache", config.nic.cqc_cache, config.sim.seed, tables.cqc, misses_),
      timer("timer", *transport_),
      command("command", config.nic, *transport_, queue_pairs,
              config.transport.protocol != config::Protocol::kIwarp) {
  wire_transmit();
  wire_receive();
  command.set_port(port);
  command.set_multicast_groups(groups_);
  port.set_multicast_groups(groups_);
  rx_pipeline.set_multicast_groups(groups_);
  if (config.nic.write_imm_needs_handle) {
    command.set_address_book(&address_book_);
    responder.set_address_book(&address_book_);
  }
  wire_caches(config);
  doorbell.set_translation_agent(translation_agent.get());
}

pcie::DmaIf& Nic::dma_path() {
  return device_memory != nullptr ? static_cast<pcie::DmaIf&>(*device_memory) : host_path();
}

pcie::DmaIf& Nic::host_path() {
  return translation_agent != nullptr ? static_cast<pcie::DmaIf&>(*translation_agent) : dma;
}

/// The journey of a request, unit by unit.
void Nic::wire_transmit() {
  doorbell.scheduler.bind(scheduler.scheduler);
  doorbell.wqes.bind(wqe_fetcher.wqes);
  doorbell.commands.bind(command.commands);
  scheduler.contexts.bind(qp_contexts.contexts);
  scheduler.wqes.bind(wqe_fetcher.wqes);
  scheduler.transmit.bind(payload_gather.transmit);
  scheduler.timer.bind(timer.timer);
  scheduler.completion.bind(completion.completion);
  qp_contexts.dma.bind(dma_path());
  qp_contexts.completion.bind(completion.completion);
  wqe_fetcher.dma.bind(dma_path());
  wqe_fetcher.scheduler.bind(scheduler.scheduler);
  wqe_fetcher.completion.bind(completion.completion);
  translation.dma.bind(dma_path());
  payload_gather.translation.bind(translation.translation);
  payload_gather.dma.bind(dma_path());
  payload_gather.packetizer.bind(packetizer.packetizer);
  payload_gather.scheduler.bind(scheduler.scheduler);
  payload_gather.completion.bind(completion.completion);
  packetizer.port.bind(port.port);
  packetizer.completion.bind(completion.completion);
  port.scheduler.bind(scheduler.scheduler);
}

/// The journey of what arrives; completions, timers, commands.
void Nic::wire_receive() {
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
  responder.dma.bind(dma_path());
  atomic.dma.bind(dma_path());
  atomic.client.bind(responder.atomic_client);
  rq.dma.bind(dma_path());
  rq.completion_queues.bind(cq.completion_queues);
  completion.completion_queues.bind(cq.completion_queues);
  completion.recv_queues.bind(rq.recv_queues);
  completion.wqes.bind(wqe_fetcher.wqes);
  completion.scheduler.bind(scheduler.scheduler);
  cq.dma.bind(dma_path());
  timer.scheduler.bind(scheduler.scheduler);
  timer.completion.bind(completion.completion);
  command.dma.bind(dma_path());
  command.completion_queues.bind(cq.completion_queues);
  command.completion.bind(completion.completion);
  command.recv_queues.bind(rq.recv_queues);
  command.scheduler.bind(scheduler.scheduler);
  command.wqes.bind(wqe_fetcher.wqes);
  command.responder.bind(responder.responder);
  command.timer.bind(timer.timer);
  command.translation.bind(translation.translation);
  // Operations on keys.
  scheduler.keys.bind(keys.keys);
  responder.keys.bind(keys.keys);
  keys.dma.bind(dma_path());
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
  rq.completion.bind(completion.completion);
  completion.events.bind(events.events);
  rx_pipeline.events.bind(events.events);
  port.events.bind(events.events);
  command.events.bind(events.events);
  events.dma.bind(dma_path());
}

void Nic::wire_caches(const config::Config& config) {
  if (config.dc.targets > 1) {
    connections = std::make_unique<DcUnit>(config.dc, config.sim.seed,
                                           std::string(this->name()) + ".connections");
    scheduler.set_connections(connections.get());
  }
  if (config.nic.qpc_prefetch) doorbell.set_contexts(&qp_contexts);
  cq_contexts.dma.bind(dma_path());
  cq.set_contexts(&cq_contexts);
  if (config.nic.wqe_cache.entries > 0) {
    wqe_cache = std::make_unique<WqeCache>("wqe_cache", config.nic.wqe_cache, config.sim.seed,
                                           tlm_ext::Purpose::kWqe, wqe_misses_);
    wqe_cache->dma.bind(dma_path());
    wqe_fetcher.set_wqe_cache(wqe_cache.get());
    rx_pipeline.set_wqe_cache(wqe_cache.get());
  }
  if (config.nic.rq_wqe_cache.entries > 0) {
    rq_wqe_cache =
        std::make_unique<WqeCache>("rq_wqe_cache", config.nic.rq_wqe_cache, config.sim.seed,
                                   tlm_ext::Purpose::kRqWqe, wqe_misses_);
    rq_wqe_cache->dma.bind(dma_path());
    rq.set_wqe_cache(rq_wqe_cache.get());
  }
}

Time Nic::busiest_engine() const {
  Time busiest = kTimeZero;
  for (std::uint32_t qpn = 0; qpn < queue_pairs.size(); ++qpn) {
    const QpContext* qp = queue_pairs.find(qpn);
    if (qp != nullptr) busiest = std::max(busiest, qp->engine_busy);
  }
  return busiest;
}

void Nic::reset_statistics(Time now) {
  for (std::uint32_t qpn = 0; has_qp_engines_ && qpn < queue_pairs.size(); ++qpn) {
    if (QpContext* qp = queue_pairs.find(qpn)) qp->engine_busy = kTimeZero;
  }
  doorbell.stats().reset(now);
  scheduler.reset_statistics(now);
  qp_contexts.stats().reset(now);
  qp_contexts.cache().reset_statistics();
  if (auto* half = qp_contexts.responder_cache()) half->reset_statistics();
  if (auto* dual = qp_contexts.dual_cache()) dual->reset_statistics();
  cq_contexts.stats().reset(now);
  cq_contexts.cache().reset_statistics();
  for (WqeCache* cache : {wqe_cache.get(), rq_wqe_cache.get()}) {
    if (cache == nullptr) continue;
    cache->stats().reset(now);
    cache->cache().reset_statistics();
  }
  wqe_fetcher.stats().reset(now);
  translation.stats().reset(now);
  translation.mpt_cache().reset_statistics();
  translation.mtt_cache().reset_statistics();
  if (auto* half = translation.responder_mpt_cache()) half->reset_statistics();
  if (auto* half = translation.responder_mtt_cache()) half->reset_statistics();
  payload_gather.stats().reset(now);
  packetizer.stats().reset(now);
  rx_pipeline.stats().reset(now);
  responder.stats().reset(now);
  atomic.reset_statistics(now);
  completion.stats().reset(now);
  dma.reset_statistics(now);
  if (translation_agent != nullptr) translation_agent->reset_statistics(now);
  port.reset_statistics(now);
}

}  // namespace rnic::nic
