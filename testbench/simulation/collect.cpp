// SPDX-License-Identifier: Apache-2.0
#include "simulation/collect.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/event_queue.h"
#include "base/sc_time.h"
#include "config/resolved_json.h"
#include "protocol/pfc_headroom.h"
#include "report/bottleneck.h"
#include "simulation/collect_flows.h"
#include "simulation/steady_state.h"
#include "simulation/unmet_faults.h"

namespace rnic::testbench {
namespace {

/// The link of a slot.
void collect_link_units(pcie::Link& pcie, const std::string& name, Time start, Time now,
                        Result& result) {
  const auto direction = [&](pcie::Direction which, const char* suffix) {
    result.units.push_back(unit_result(pcie.unit(which), start, now));
    result.units.back().name = name + suffix;  // as the PCIe direction is reported
  };
  direction(pcie::Direction::kToHost, ".pcie.to_host");
  direction(pcie::Direction::kToDevice, ".pcie.to_device");
}

/// What lies between device and memory.
void collect_host_side(host::Host& host, const std::string& name, Time start, Time now,
                       Result& result) {
  host::RootComplex& root = host.root_complex;
  host::MemorySystem& memory = root.memory_system();
  result.units.push_back(unit_result(root.unit(), start, now));
  if (const host::OrderingPoint* ordering = root.ordering()) {
    result.units.push_back(unit_result(ordering->strict_unit(), start, now));
    result.units.push_back(unit_result(ordering->relaxed_unit(), start, now));
  }
  result.units.push_back(unit_result(memory.dram_unit(), start, now));
  if (memory.is_remote()) result.units.push_back(unit_result(memory.socket_link(), start, now));
  if (host.peer != nullptr) {
    result.units.push_back(unit_result(host.peer->reads(), start, now));
    result.units.push_back(unit_result(host.peer->writes(), start, now));
  }
  if (memory.tracks_cache()) {
    result.caches.push_back({name + ".llc", memory.llc_hits(), memory.llc_misses(), 0});
  }
  if (const host::Iommu* iommu = root.iommu()) {
    result.units.push_back(unit_result(iommu->unit(), start, now));
    result.caches.push_back({name + ".iotlb", iommu->hits(), iommu->misses(), 0});
  }
}

void collect_units(Node& node, Time start, Time now, Result& result) {
  nic::Nic& nic = node.nic;
  const auto add = [&](const stats::UnitStats& unit) {
    result.units.push_back(unit_result(unit, start, now));
  };
  add(nic.doorbell.stats());
  add(nic.scheduler.stats());
  add(nic.qp_contexts.stats());
  if (nic.has_qp_engines()) {
    stats::UnitStats engine(std::string(node.name()) + ".nic.qp_engine");
    engine.add_busy(nic.busiest_engine());
    add(engine);
  }
  add(nic.cq_contexts.stats());
  if (nic.wqe_cache != nullptr) add(nic.wqe_cache->stats());
  if (nic.rq_wqe_cache != nullptr) add(nic.rq_wqe_cache->stats());
  add(nic.wqe_fetcher.stats());
  add(nic.translation.stats());
  add(nic.dma.unit());
  if (nic.translation_agent != nullptr) add(nic.translation_agent->unit());
  add(nic.payload_gather.stats());
  add(nic.packetizer.stats());
  add(nic.rx_pipeline.stats());
  add(nic.responder.stats());
  add(nic.atomic.stats());
  add(nic.atomic.busiest_bucket(now));
  add(nic.completion.stats());
  const auto add_as = [&](const stats::UnitStats& unit, const std::string& name) {
    result.units.push_back(unit_result(unit, start, now));
    result.units.back().name = name;  // as its link or PCIe direction is reported
  };
  const std::string host = node.name();
  add_as(nic.port.link.unit(), host + ".nic.port");
  if (nic.port.loopback().busy() > kTimeZero) add(nic.port.loopback());
  collect_host_side(node.host, host, start, now, result);
  if (node.host.verbs.stats().page_faults > 0) add(node.host.verbs.page_fault_unit());
  if (node.owns_slot()) collect_link_units(node.pcie, host, start, now, result);
}

/// A cache with what belongs to it: its first level, and the responder's half when they are split.
template <typename Entry>
void collect_cache(const std::string& name, nic::ContextCache<Entry>* cache, Result& result) {
  if (cache == nullptr) return;
  const std::uint64_t joined = cache->joined();
  result.caches.push_back({name, cache->cache().hits(), cache->cache().misses() - joined, joined});
  if (auto* near = cache->first_level()) {
    result.caches.push_back({name + ".l0", near->hits(), near->misses(), 0});
  }
}

void collect_caches(Node& node, Result& result) {
  nic::Nic& nic = node.nic;
  nic::TranslationUnit& translation = nic.translation;
  const std::string prefix = std::string(node.name()) + ".nic.";
  collect_cache(prefix + "qpc_cache", &nic.qp_contexts.cache(), result);
  collect_cache(prefix + "qpc_cache.responder", nic.qp_contexts.responder_cache(), result);
  collect_cache(prefix + "qpc_dual_cache", nic.qp_contexts.dual_cache(), result);
  collect_cache(prefix + "mpt_cache", &translation.mpt_cache(), result);
  collect_cache(prefix + "mpt_cache.responder", translation.responder_mpt_cache(), result);
  collect_cache(prefix + "mtt_cache", &translation.mtt_cache(), result);
  collect_cache(prefix + "mtt_cache.responder", translation.responder_mtt_cache(), result);
  collect_cache(prefix + "cqc_cache", &nic.cq_contexts.cache(), result);
  if (const pcie::TranslationAgent* agent = nic.translation_agent.get()) {
    result.caches.push_back({prefix + "atc", agent->hits(), agent->misses(), 0});
  }
  for (nic::WqeCache* cache : {nic.wqe_cache.get(), nic.rq_wqe_cache.get()}) {
    if (cache != nullptr) {
      collect_cache(prefix + (cache == nic.wqe_cache.get() ? "wqe_cache" : "rq_wqe_cache"),
                    &cache->cache(), result);
    }
  }
}

void collect_pcie(const std::string& node, const pcie::Link& link, Result& result) {
  PcieResult pcie;
  pcie.name = node + ".pcie";
  pcie.rate_gbps = link.rate().to_gbps();
  const auto convert = [](const pcie::TlpCounter& c) {
    return TlpResult{c.tlps, c.payload_bytes, c.wire_bytes};
  };
  // Up to the present, which may be a little behind the window: what the last completion took.
  const auto direction = [&](pcie::Direction which, PcieDirectionResult& out) {
    const pcie::TlpCounters crossed = link.crossed(which, sim_now());
    out.total = convert(pcie::sum(crossed));
    out.replays = link.replays(which);
    std::transform(crossed.begin(), crossed.end(), out.by_purpose.begin(), convert);
  };
  direction(pcie::Direction::kToHost, pcie.to_host);
  direction(pcie::Direction::kToDevice, pcie.to_device);
  result.pcie.push_back(std::move(pcie));
}

/// Bytes of a port's buffer for what comes behind the frame that crosses its pause threshold.
std::uint64_t headroom_of(const link::LinkPortConfig& port) {
  const std::uint64_t above = port.rx_buffer - port.pfc_xoff;
  const std::uint64_t crossing = protocol::above_xoff(0, port.max_frame_bytes);
  return above > crossing ? above - crossing : 0;
}

/// Why a port's receive buffer overflows.
std::string drop_reason(const link::LinkPortConfig& port) {
  const bool pauses = port.flow_control == config::FlowControl::kPfc ||
                      port.flow_control == config::FlowControl::kPause;
  if (!pauses) return "nothing stops the sender (link.flow_control=none)";
  const std::uint64_t headroom = headroom_of(port);
  const std::uint64_t needed = link::pfc_headroom(port);
  if (headroom < needed) {
    return "the buffer behind the frame that crosses the pause threshold has " +
           std::to_string(headroom) + " bytes, and " + std::to_string(needed) +
           " may still arrive by the link's rate, delay and frame size (link.pfc_headroom)";
  }
  return "a priority is used that no pause protects (link.pfc_priorities)";
}

std::string oversize_reason() {
  return "frames longer than the port's MTU are dropped and nobody is told, so that reliable "
         "queue pairs end with retry_exceeded_error (link.mtu; remedy: transport.mtu=auto)";
}

LinkResult link_result(const std::string& name, link::LinkPort& port, Time now) {
  LinkResult out;
  out.name = name;
  out.rate_gbps = port.config().rate.to_gbps();
  out.packets = port.sent().frames;
  out.payload_bytes = port.sent().payload_bytes;
  out.wire_bytes = port.sent().wire_bytes;
  out.dropped = port.dropped() + port.oversize();
  out.lossless = port.config().flow_control != config::FlowControl::kNone;
  if (port.dropped() > 0) out.dropped_because = drop_reason(port.config());
  if (port.oversize() > 0) {
    out.dropped_because += (out.dropped_because.empty() ? "" : "; ") + oversize_reason();
  }
  out.paused = port.paused(now);
  out.more = {{"data_packets", port.sent().data_packets},
              {"control_frames", port.sent().control_frames},
              {"received_frames", port.received().frames},
              {"rx_buffer_highest", port.highest_fill()},
              {"dropped_oversize", port.oversize()}};
  if (port.config().flow_control == config::FlowControl::kPfc ||
      port.config().flow_control == config::FlowControl::kPause) {
    const std::uint64_t needed = link::pfc_headroom(port.config());
    out.more.emplace_back("pfc_headroom", headroom_of(port.config()));
    out.more.emplace_back("pfc_headroom_needed", needed);
  }
  return out;
}

/// Lanes whose traffic is told apart: those of the queue pairs, when there are several.
NamedCounts lanes_of(const link::LinkPort& port, bool ib) {
  NamedCounts lanes;
  const std::uint32_t used = port.config().used_lanes;
  if ((used & (used - 1)) == 0) return lanes;
  for (std::uint32_t rest = used; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(rest));
    lanes.emplace_back((ib ? "vl" : "priority") + std::to_string(lane), port.sent_wire_bytes(lane));
  }
  return lanes;
}

/// Place in the report of the port at a cable's first end.
std::size_t first_end(const System& system, std::size_t cable) {
  if (system.fabric_switch != nullptr) return cable;
  if (system.shared_ports.empty()) return 2 * cable;
  // The wire between the shared ports first, then one cable for each device.
  return cable == 0 ? system.nodes.size() : cable - 1;
}

/// Why the shared buffer of `fabric` was full.
std::string switch_full(const System& system, network::Switch& fabric) {
  const std::string text = "the switch's buffer was full (switch.buffer";
  const link::LinkPortConfig& port = fabric.port(0).config();
  if (port.flow_control != config::FlowControl::kPfc &&
      port.flow_control != config::FlowControl::kPause) {
    return text + ")";
  }
  const std::uint64_t needed =
      port.rx_buffer * std::bitset<32>(port.used_lanes).count() * fabric.ports();
  const std::uint64_t buffer = system.config().network_switch.buffer;
  return text + "=" + std::to_string(buffer) + (buffer < needed ? "; pauses need " : " of ") +
         std::to_string(needed) + " bytes: switch.pfc_xoff and headroom of each port)";
}

/// After a pause a port of the switch has what is below XON to send until frames come. XON must
/// hold what a pause's headroom holds: as much comes after its begin as is missed after its end.
Result::PauseLimit pause_limit(const System& system) {
  const link::LinkPortConfig& port = system.fabric_switch->port(0).config();
  if (port.flow_control != config::FlowControl::kPfc &&
      port.flow_control != config::FlowControl::kPause) {
    return {};
  }
  const std::uint64_t needed = link::pfc_headroom(port);
  if (port.pfc_xon >= needed) return {};
  const std::uint64_t lanes =
      std::bitset<32>(port.used_lanes).count() * system.fabric_switch->ports();
  const std::uint64_t buffer = system.config().network_switch.buffer;
  const bool full = buffer < lanes * 2 * needed;
  return {full ? "switch.buffer" : "switch.pfc_xoff",
          "switch.pfc_xon=" + std::to_string(port.pfc_xon) +
              " bytes are sent before frames come over the cable again, which takes " +
              std::to_string(needed) + " bytes of time (remedy: switch.pfc_xon, switch.pfc_xoff" +
              (full ? " and switch.buffer=" + std::to_string(buffer) : std::string()) +
              " larger, or automatic)"};
}

/// What `fabric` dropped because its shared buffer was full: `frames` that came in through `port`.
void add_switch_full(const System& system, network::Switch& fabric, std::uint64_t frames,
                     LinkResult& port) {
  if (frames == 0) return;
  port.dropped += frames;
  port.dropped_because = switch_full(system, fabric) +
                         (port.dropped_because.empty() ? "" : "; " + port.dropped_because);
}

void collect_links(System& system, Time now, std::vector<LinkResult>& links) {
  for (const NamedPort& named : system.ports()) {
    links.push_back(link_result(named.name, *named.port, now));
    links.back().lanes =
        lanes_of(*named.port, system.config().transport.protocol == config::Protocol::kIb);
  }
  // What happened on a cable is reported with the host at its first end.
  for (std::size_t i = 0; i < system.cables.size(); ++i) {
    const network::Cable& cable = *system.cables[i];
    const std::size_t host = first_end(system, i);
    NamedCounts& more = links[host].more;
    more.emplace_back("cable_lost", cable.faults().lost);
    more.emplace_back("cable_corrupted", cable.faults().corrupted);
    more.emplace_back("cable_duplicated", cable.faults().duplicated);
    more.emplace_back("cable_reordered", cable.faults().reordered);
    more.emplace_back("cable_lost_while_down", cable.lost_while_down());
  }
  for (std::size_t h = 0; h < system.shared_ports.size(); ++h) {
    network::Switch& joint = *system.shared_ports[h];
    add_switch_full(system, joint, joint.dropped_full(), links[system.nodes.size() + h]);
  }
  if (system.fabric_switch == nullptr) return;
  for (std::uint32_t i = 0; i < system.fabric_switch->ports(); ++i) {
    add_switch_full(system, *system.fabric_switch, system.fabric_switch->dropped_full(i),
                    links[system.nodes.size() + i]);
  }
  if (system.config().transport.ecn != 0) {
    for (std::uint32_t i = 0; i < system.fabric_switch->ports(); ++i) {
      NamedCounts& more = links[system.nodes.size() + i].more;
      more.emplace_back("ecn_marked", system.fabric_switch->ecn_marked(i));
      more.emplace_back("egress_queue_highest", system.fabric_switch->longest_queue(i));
    }
  }
  const network::Switch& fabric = *system.fabric_switch;
  LinkResult& first = links[system.nodes.size()];  // the switch's first port
  first.more.emplace_back("switch_dropped_full", fabric.dropped_full());
  first.more.emplace_back("switch_dropped_damaged", fabric.dropped_damaged());
  first.more.emplace_back("switch_corrupted", fabric.corrupted());
}

/// Adds to the figure of that name; zeros are not listed.
void add_count(NamedCounts& counts, std::string_view name, std::uint64_t value) {
  if (value == 0) return;
  for (auto& [one, sum] : counts) {
    if (one != name) continue;
    sum += value;
    return;
  }
  counts.emplace_back(name, value);
}

/// Counters of the memory side, behind those of the device.
NamedCounts with_memory(NamedCounts counters, const host::RootComplex& root) {
  const host::MemorySystem& memory = root.memory_system();
  counters.emplace_back("memory_faults", root.faults());
  counters.emplace_back("dram_read_bytes", memory.dram().bytes_read());
  counters.emplace_back("dram_write_bytes", memory.dram().bytes_written());
  counters.emplace_back("partial_line_writes", memory.partial_line_writes());
  return counters;
}

/// Events that the driver took: of completion queues, and asynchronous ones by type.
NamedCounts with_events(NamedCounts counters, const host::verbs::DriverStats& driver) {
  counters.emplace_back("completion_events", driver.completion_events);
  for (std::size_t type = 0; type < driver.async_events.size(); ++type) {
    counters.emplace_back(
        std::string("event_") + protocol::event_name(static_cast<protocol::EventType>(type)),
        driver.async_events[type]);
  }
  return counters;
}

NamedCounts counters_of(Node& node, bool iwarp) {
  nic::Nic& nic = node.nic;
  const transport::TransportCounters& t = nic.transport().counters();
  const nic::RxDrops& drops = nic.rx_pipeline.drops();
  const host::verbs::DriverStats& driver = node.host.verbs.stats();
  return {{"out_of_sequence", t.out_of_sequence},
          {"packet_seq_err", t.packet_seq_err},
          {"implied_nak_seq_err", t.implied_nak_seq_err},
          {"duplicate_request", t.duplicate_request},
          {"local_ack_timeout_err", t.local_ack_timeout_err},
          {"rnr_nak_retry_err", t.rnr_nak_retry_err},
          {"rnr_naks_sent", t.rnr_naks_sent},
          {"retransmitted_packets", t.retransmitted_packets},
          {"tcp_retransmitted_segments", t.tcp_retransmitted_segments},
          {"rx_write_requests", t.rx_write_requests},
          {"rx_read_requests", t.rx_read_requests},
          {"rx_atomic_requests", t.rx_atomic_requests},
          {"rx_send_requests", t.rx_send_requests},
          {"req_remote_access_errors", t.req_remote_access_errors},
          {"req_remote_invalid_request", t.req_remote_invalid_request},
          {"resp_remote_access_errors", t.resp_remote_access_errors},
          {"out_of_buffer", t.out_of_buffer},
          {"dropped_messages", t.dropped_messages},
          {"qkey_violations", t.qkey_violations},
          {"credit_waits", t.credit_waits},
          {"np_ecn_marked_roce_packets", t.np_ecn_marked_roce_packets},
          {"np_cnp_sent", t.np_cnp_sent},
          {"rp_cnp_handled", t.rp_cnp_handled},
          {"acks_sent", t.acks_sent},
          {"acks_received", t.acks_received},
          {"rx_not_mine", drops.not_mine},
          {"rx_bad_checksum", drops.bad_checksum()},
          {"rx_link_crc_errors", drops.link_crc},
          {"rx_ip_checksum_errors", drops.ip_checksum},
          {"rx_icrc_errors", iwarp ? 0 : drops.inner_crc},
          {"rx_tcp_checksum_errors", drops.tcp_checksum},
          {"rx_mpa_crc_errors", iwarp ? drops.inner_crc : 0},
          {"rx_ignored_silent", drops.silent},
          {"rx_bad_state", drops.bad_state},
          {"doorbells", driver.doorbells},
          {"blueflames", driver.blueflames},
          {"blueflames_interleaved", nic.doorbell.interleaved()},
          {"dc_connects", nic.connections != nullptr ? nic.connections->connects() : 0},
          {"wqe_fetches", nic.wqe_fetcher.fetches()},
          {"cqes", nic.cq.written()},
          {"commands", driver.commands},
          {"page_faults", driver.page_faults},
          {"dma_faults", nic.dma.faults()}};
}

/// The program's cores of a host, as the one with the most useful work has it.
HostResult busiest_core(System& system, Node& node, Time start, Time now) {
  HostResult host;
  double useful = -1;
  const auto look_at = [&](const host::Host& of, const host::Core& core) {
    if (&of != &node.host || now <= start) return;
    ++host.cores;
    const auto window = static_cast<double>((now - start).count());
    const double busy = static_cast<double>(core.busy().count()) / window;
    const double polling = static_cast<double>(core.polling().count()) / window;
    if (busy - polling <= useful) return;
    useful = busy - polling;
    host.cpu_busy = busy;
    host.cpu_polling = polling;
    host.cpu_locks = static_cast<double>(core.locks().count()) / window;
  };
  for (const auto& endpoint : system.endpoints) look_at(endpoint->host, endpoint->core);
  if (system.program != nullptr) {
    for (const auto& peer : system.program->peers()) look_at(peer->host, peer->core);
  }
  return host;
}

/// Sets how long the queue pairs that send from `node` were kept from it, on average.
void collect_holds(const System& system, Node& node, std::size_t index, Time window,
                   HostResult& host) {
  std::uint64_t senders = 0;
  for (const auto& flow : system.flows) {
    const std::vector<FlowMeasurement>& directions = flow->measured();
    for (const FlowMeasurement& measured : directions) {
      if (measured.source == index) senders += flow->progress().qps.size() / directions.size();
    }
  }
  if (senders == 0 || window <= kTimeZero) return;
  const double whole = static_cast<double>(window.count()) * static_cast<double>(senders);
  for (std::size_t i = 0; i < host.held.size(); ++i) {
    const Time held = node.nic.scheduler.held(static_cast<transport::Hold>(i));
    host.held[i] = std::min(1.0, static_cast<double>(held.count()) / whole);
  }
}

/// A DMA device has no queue pairs, no program and no port.
void collect_dma_node(DmaNode& node, Time start, Time now, Result& result) {
  const std::string name = node.name();
  for (const stats::UnitStats* unit : {&node.dma.unit(), &node.staging.read_unit(),
                                       &node.staging.write_unit(), &node.staging.memory_unit()}) {
    result.units.push_back(unit_result(*unit, start, now));
  }
  if (const pcie::TranslationAgent* agent = node.translation_agent.get()) {
    result.units.push_back(unit_result(agent->unit(), start, now));
    result.caches.push_back({name + ".atc", agent->hits(), agent->misses(), 0});
  }
  collect_host_side(node.host, name, start, now, result);
  collect_link_units(node.pcie, name, start, now, result);
  collect_pcie(name, node.pcie, result);
  result.counters.push_back(
      with_memory({{"dma_faults", node.dma.faults()}}, node.host.root_complex));
  result.hosts.emplace_back();
}

}  // namespace

void collect_figures(System& system, Time now, Result& result) {
  const Time start = system.window_start();
  for (std::size_t i = 0; i < system.nodes.size(); ++i) {
    Node& node = *system.nodes[i];
    collect_units(node, start, now, result);
    collect_caches(node, result);
    if (node.owns_slot()) collect_pcie(node.name(), node.pcie, result);
    const auto& driver = node.host.verbs.stats();
    result.counters.push_back(with_events(
        with_memory(
            counters_of(node, system.config().transport.protocol == config::Protocol::kIwarp),
            node.host.root_complex),
        driver));
    HostResult host = busiest_core(system, node, start, now);
    const auto& registration = driver.registration;
    host.syscalls = registration.calls + driver.commands + driver.syscalls;
    host.interrupts = driver.interrupts;
    collect_holds(system, node, i, now - start, host);
    result.hosts.push_back(host);
    result.registration.calls += registration.calls;
    result.registration.pages += registration.pages;
    result.registration.time += registration.time;
    result.sim.data_packets += node.nic.packetizer.data_packets();
  }
  if (system.dma_node) collect_dma_node(*system.dma_node, start, now, result);
  collect_links(system, sim_now(), result.links);
  if (system.fabric_switch != nullptr) result.pause_limit = pause_limit(system);
  result.sim.simulated = sim_now();
  result.sim.model_events = ModelEvents::count();
  result.sim.kernel_events = sc_core::sc_delta_count();
}

void collect_losses_before(System& system, Time now, std::vector<LinkResult>& before) {
  constexpr std::string_view kLosses[] = {"dropped_oversize", "cable_lost",
                                          "cable_corrupted",  "cable_duplicated",
                                          "cable_reordered",  "cable_lost_while_down",
                                          "switch_corrupted", "switch_dropped_damaged"};
  std::vector<LinkResult> links;
  collect_links(system, now, links);
  before.resize(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkResult& link = links[i];
    add_count(before[i].before, "dropped", link.dropped);
    add_count(before[i].before, "paused_ns", static_cast<std::uint64_t>(to_ns(link.paused)));
    for (const std::string_view loss : kLosses) {
      add_count(before[i].before, loss, count_of(link.more, loss));
    }
    if (!link.dropped_because.empty()) before[i].dropped_because = link.dropped_because;
  }
}

/// What was lost before the window is told beside what was lost in it.
void take_before(std::vector<LinkResult> before, Result& result) {
  for (std::size_t i = 0; i < std::min(before.size(), result.links.size()); ++i) {
    LinkResult& link = result.links[i];
    link.before = std::move(before[i].before);
    if (link.dropped_because.empty()) link.dropped_because = std::move(before[i].dropped_because);
  }
}

/// How busy everything was while all streams ran, instead of until the last one's end.
void take_shares(Result together, Result& result) {
  result.units = std::move(together.units);
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    result.hosts[i].cpu_busy = together.hosts[i].cpu_busy;
    result.hosts[i].cpu_polling = together.hosts[i].cpu_polling;
    result.hosts[i].cpu_locks = together.hosts[i].cpu_locks;
    result.hosts[i].held = together.hosts[i].held;
  }
  for (std::size_t i = 0; i < result.links.size(); ++i) {
    result.links[i].common_window = together.window;
    result.links[i].common_wire_bytes = together.links[i].wire_bytes;
    result.links[i].common_payload_bytes = together.links[i].payload_bytes;
    result.links[i].lanes = std::move(together.links[i].lanes);
  }
}

Result collect(System& system, const config::LoadedConfig& loaded, SteadyState* replayed,
               std::vector<LinkResult> before, std::optional<Result> together) {
  Result result;
  result.version = RNICSIM_VERSION;
  result.config = config::resolved_json(loaded);
  result.without_effect = loaded.without_effect;
  for (std::string& text : unmet_faults(system)) result.without_effect.push_back(std::move(text));
  result.scenario = scenario_of(system.config(), result.config);
  const Time end = window_end(system);
  if (replayed != nullptr) replayed->extend_measurements();
  collect_flows(system, result);
  collect_figures(system, end, result);
  if (replayed != nullptr) replayed->extend(result, end - system.window_start());
  if (together && common_window(system) > kTimeZero) {
    if (replayed != nullptr) {
      replayed->extend(*together, together->sim.simulated - system.window_start());
    }
    together->window = together->sim.simulated - system.window_start();
    take_shares(std::move(*together), result);
  }
  take_before(std::move(before), result);
  limit_shares(result);
  result.bottleneck = find_bottleneck(result);
  return result;
}

}  // namespace rnic::testbench
