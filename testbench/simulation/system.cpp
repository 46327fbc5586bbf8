// SPDX-License-Identifier: Apache-2.0
#include "simulation/system.h"

#include <limits>
#include <string>

#include "base/error.h"
#include "base/sc_time.h"
#include "base/timelines.h"
#include "config/pcie_contention.h"
#include "link/link_port_config.h"
#include "simulation/addresses.h"
#include "simulation/paths.h"
#include "simulation/traffic.h"
#include "transport/frame_kind.h"

namespace rnic::testbench {
namespace {

nic::ContextTables tables_of(const host::Host& host) {
  const host::ContextMemory& memory = host.context_memory;
  return {memory.address_of_qpc(0), memory.address_of_mpt(0), memory.address_of_mtt(0),
          memory.layout().mpts,     memory.address_of_cqc(0), host.device_memory()};
}

/// The root complex learns of its slot, and the slot of what is behind it.
void join(host::RootComplex& root, pcie::Link& slot, const config::Config& config) {
  root.set_link(config.pcie);
  if (root.minds_order() || config::requests_queue(config)) slot.deliver_in_order();
}

/// Directions of a cable by the way that they go, as bits of FaultConfig::directions: the host is
/// at the first end.
std::uint32_t directions_of(config::FaultDirection direction) {
  switch (direction) {
    case config::FaultDirection::kFromHost:
      return 1;
    case config::FaultDirection::kToHost:
      return 2;
    case config::FaultDirection::kBoth:
      break;
  }
  return 3;
}

/// Exact frames are those of one cable: on the next one they would be counted, and struck, once
/// more.
network::FaultConfig faults_of(const config::LinkConfig& link, std::size_t cable) {
  network::FaultConfig faults;
  const bool any = link.fault_cable == config::kAllCables;
  if (!any && link.fault_cable != cable) return faults;
  faults.frames = config::kinds_named(link.fault_frames);
  faults.directions = directions_of(link.fault_direction);
  faults.loss_rate = link.loss_rate;
  faults.corrupt_rate = link.corrupt_rate;
  faults.duplicate_rate = link.duplicate_rate;
  faults.reorder_rate = link.reorder_rate;
  faults.reorder_delay = link.reorder_delay;
  faults.burst_rate = link.burst_rate;
  faults.burst_length = link.burst_length;
  faults.burst_loss = link.burst_loss;
  if (any && cable > 0) return faults;
  faults.drop_list = link.drop_list;
  faults.corrupt_list = link.corrupt_list;
  faults.duplicate_list = link.duplicate_list;
  faults.reorder_list = link.reorder_list;
  return faults;
}

std::uint32_t devices_per_host(const config::Config& config) {
  return config.nic.ports * config.nic.functions;
}

/// Checksums of the system's one encapsulation, for cables that damage frames and switches that
/// look for damage.
class EncapsulationChecksums : public network::FrameChecksums {
 public:
  EncapsulationChecksums(const transport::Encapsulation& encapsulation, config::Protocol protocol)
      : encapsulation_(encapsulation), protocol_(protocol) {}
  void materialize(protocol::Frame& frame) const override { encapsulation_.materialize(frame); }
  bool intact(const protocol::Frame& frame) const override {
    return encapsulation_.link_crc_ok(frame);
  }
  void reseal(protocol::Frame& frame) const override { encapsulation_.refresh_link_crc(frame); }
  config::FrameKinds kinds_of(const protocol::Frame& frame) const override {
    return transport::kinds_of(protocol_, encapsulation_, frame);
  }

 private:
  const transport::Encapsulation& encapsulation_;
  config::Protocol protocol_;
};

}  // namespace

Node::Node(const sc_core::sc_module_name& name, const config::Config& config, std::uint32_t index,
           protocol::FramePool& frames, Node* sibling)
    : sc_module(name),
      host("host", config),
      own_pcie_(sibling != nullptr
                    ? nullptr
                    : std::make_unique<pcie::Link>("pcie", config.pcie, config.sim.seed)),
      pcie(sibling != nullptr ? sibling->pcie : *own_pcie_),
      nic("nic", config, identity_of(index), tables_of(host),
          link::nic_port_config(config, identity_of(index).mac), frames) {
  join(host.root_complex, pcie, config);
  host.verbs.name_port(gid_of(config, index), identity_of(index).lid);
  if (sibling != nullptr) {
    bind_shared_slot(*sibling, 1);
    if (!config.pcie.id_based_ordering) {
      host.root_complex.share_order(sibling->host.root_complex);
    }
  } else if (config.nic.ports > 1) {
    device_end_ = std::make_unique<pcie::FunctionMux>("device_end", config.nic.ports);
    host_end_ = std::make_unique<pcie::FunctionMux>("host_end", config.nic.ports);
    device_end_->link_out.bind(pcie.device_target);
    pcie.device_initiator.bind(device_end_->link_in);
    host_end_->link_out.bind(pcie.host_target);
    pcie.host_initiator.bind(host_end_->link_in);
    bind_shared_slot(*this, 0);
  } else {
    bind_slot();
  }
  for (const auto& queue : host.verbs.event_queues()) nic.events.create(queue);
  nic.wqe_fetcher.set_instruments(&host.verbs);
  nic.responder.set_instruments(&host.verbs);
}

void Node::bind_slot() {
  nic.dma.socket.bind(pcie.device_target);
  pcie.device_initiator.bind(nic.doorbell.bar);
  pcie.host_initiator.bind(host.root_complex.dma_socket);
  host.root_complex.mmio_socket.bind(pcie.host_target);
}

void Node::bind_shared_slot(Node& owner, std::size_t function) {
  nic.dma.socket.bind(owner.device_end_->from(function));
  owner.device_end_->to(function).bind(nic.doorbell.bar);
  owner.host_end_->to(function).bind(host.root_complex.dma_socket);
  host.root_complex.mmio_socket.bind(owner.host_end_->from(function));
}

void Node::reset_statistics(Time now) {
  host.root_complex.reset_statistics(now);
  host.verbs.reset_statistics(now);
  if (owns_slot()) pcie.reset_statistics(now);
  nic.reset_statistics(now);
}

DmaNode::DmaNode(const sc_core::sc_module_name& name, const config::Config& config)
    : sc_module(name),
      host("host", config),
      pcie("pcie", config.pcie),
      dma("dma", config.pcie, nic::Clock(config.nic.clock_hz).cycles(config.nic.dma.latency),
          nic::Clock(config.nic.clock_hz).cycles(config.nic.dma.interval)),
      translation_agent(config.pcie.atc.enabled
                            ? std::make_unique<pcie::TranslationAgent>("atc", config.pcie.atc,
                                                                       config.iommu.page_size, dma)
                            : nullptr),
      staging("staging", config.dma_device,
              translation_agent != nullptr ? static_cast<pcie::DmaIf&>(*translation_agent) : dma) {
  join(host.root_complex, pcie, config);
  dma.socket.bind(pcie.device_target);
  pcie.host_initiator.bind(host.root_complex.dma_socket);
  host.root_complex.mmio_socket.bind(pcie.host_target);
}

void DmaNode::reset_statistics(Time now) {
  host.root_complex.reset_statistics(now);
  pcie.reset_statistics(now);
  dma.reset_statistics(now);
  if (translation_agent != nullptr) translation_agent->reset_statistics(now);
  staging.reset_statistics(now);
}

System::System(const config::Config& config)
    : config_(config), groups_(config), thread_configs_(thread_configs(config)) {
  if (config::is_dma(config_.workload.op)) {
    dma_node = std::make_unique<DmaNode>("host0", config_);
    dma_stream = std::make_unique<DmaStream>("dma_stream", config_, dma_node->host,
                                             dma_node->staging, measurement);
  } else {
    build_fabric();
    build_flows();
    groups_.run_apart(*this);
  }
  measurement.frames_under_way = [this] { return frames.in_use() > 0; };
  measurement.on_done = [] { sc_core::sc_pause(); };  // posted writes may still be on their way
}

void System::build_fabric() {
  const std::uint32_t devices = devices_per_host(config_);
  for (std::uint32_t i = 0; i < config_.fabric.hosts * devices; ++i) build_node(i);
  checksums_ = std::make_unique<EncapsulationChecksums>(nodes.front()->nic.encapsulation(),
                                                        config_.transport.protocol);
  if (config_.nic.functions > 1) {
    connect_shared_ports();
  } else if (config_.fabric.topology == "single_switch") {
    connect_through_switch();
  } else {
    connect_back_to_back();
  }
  if (config_.fabric.silent_host != config::kNoHost) {
    nodes[config_.fabric.silent_host]->nic.rx_pipeline.fall_silent(config_.fabric.silent_from);
  }
  if (config_.fabric.fatal_host != config::kNoHost) {
    nodes[config_.fabric.fatal_host]->nic.command.fail_device(config_.fabric.fatal_at);
  }
}

void System::build_node(std::uint32_t i) {
  const Timelines::Scope scope(groups_.timeline_of(i % config_.fabric.hosts));
  config::Config config = config_;
  Node* sibling = nullptr;
  if (i >= config_.fabric.hosts) {
    if (config_.nic.ports > 1) sibling = nodes[i - config_.fabric.hosts].get();
    const std::uint32_t lanes = config_.nic.second_function_lanes;
    if (config_.nic.functions > 1 && lanes > 0) config.pcie.lanes = lanes;
  }
  nodes.push_back(
      std::make_unique<Node>(("host" + std::to_string(i)).c_str(), config, i, frames, sibling));
}

System::~System() = default;

std::vector<NamedPort> System::ports() {
  std::vector<NamedPort> all;
  for (const auto& node : nodes) {
    all.push_back({std::string(node->name()) + ".nic.port", &node->nic.port.link});
  }
  for (std::size_t h = 0; h < shared_ports.size(); ++h) {
    constexpr std::uint32_t kWire = 2;
    all.push_back({"host" + std::to_string(h) + ".port", &shared_ports[h]->port(kWire)});
  }
  for (std::uint32_t i = 0; fabric_switch != nullptr && i < fabric_switch->ports(); ++i) {
    all.push_back({"switch.port" + std::to_string(i), &fabric_switch->port(i)});
  }
  return all;
}

void System::connect(link::LinkPort& a, link::LinkPort& b) {
  const std::string name = "cable" + std::to_string(cables.size());
  const bool fails = cables.size() == config_.link.down_cable;
  const network::Outage outage{config_.link.down_at, fails ? config_.link.down_time : kTimeZero};
  cables.push_back(std::make_unique<network::Cable>(
      name.c_str(), config_.link.delay, faults_of(config_.link, cables.size()), config_.sim.seed,
      frames, checksums_.get(), outage));
  cables.back()->connect(a, b);
  use_paths(*cables.back(), config_, nodes.front()->nic.encapsulation());
}

void System::connect_back_to_back() {
  for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
    connect(nodes[i]->nic.port.link, nodes[i + 1]->nic.port.link);
  }
}

/// Two devices behind one port: what joins them passes frames on at once and shares the wire.
void System::connect_shared_ports() {
  const bool ib = config_.transport.protocol == config::Protocol::kIb;
  const std::uint32_t hosts = config_.fabric.hosts;
  config::SwitchConfig joint = config_.network_switch;
  joint.latency = kTimeZero;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    shared_ports.push_back(std::make_unique<network::Switch>(
        ("port" + std::to_string(h)).c_str(), joint, nodes.front()->nic.port.link.config(), 3,
        ib ? network::Addressing::kLid : network::Addressing::kMac, frames, checksums_.get(),
        config_.sim.seed));
  }
  constexpr std::uint32_t kWire = 2;
  connect(shared_ports[0]->port(kWire), shared_ports[1]->port(kWire));
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const transport::PortIdentity identity = identity_of(i);
    const std::uint64_t key = ib ? identity.lid : network::route_key(identity.mac);
    for (std::uint32_t h = 0; h < hosts; ++h) {
      shared_ports[h]->set_route(key, h == i % hosts ? i / hosts : kWire);
    }
    connect(nodes[i]->nic.port.link, shared_ports[i % hosts]->port(i / hosts));
  }
}

void System::connect_through_switch() {
  const bool ib = config_.transport.protocol == config::Protocol::kIb;
  const auto ports = static_cast<std::uint32_t>(nodes.size());
  config::SwitchConfig settings = config_.network_switch;
  if (config_.transport.ecn == 0) {  // nothing could be marked, so nothing needs a look
    settings.ecn_kmin = settings.ecn_kmax = std::numeric_limits<std::uint64_t>::max();
  }
  fabric_switch = std::make_unique<network::Switch>(
      "switch", settings, nodes.front()->nic.port.link.config(), ports,
      ib ? network::Addressing::kLid : network::Addressing::kMac, frames, checksums_.get(),
      config_.sim.seed, [this](std::uint32_t i) -> Timeline& {
        return groups_.timeline_of(i % config_.fabric.hosts);
      });
  for (std::uint32_t i = 0; i < ports; ++i) {
    const Timelines::Scope scope(groups_.timeline_of(i % config_.fabric.hosts));
    connect(nodes[i]->nic.port.link, fabric_switch->port(i));
    const transport::PortIdentity identity = identity_of(i);
    fabric_switch->set_route(ib ? identity.lid : network::route_key(identity.mac), i);
  }
}

void System::build_flows() {
  if (config_.workload.program != config::Program::kNone) {
    std::vector<host::Host*> hosts;
    for (const auto& node : nodes) hosts.push_back(&node->host);
    program = make_program(config_, hosts, measurement);
    return;
  }
  for (std::size_t i = 0; config_.workload.reg_rate > 0 && i < nodes.size(); ++i) {
    churns.push_back(std::make_unique<RegistrationChurn>(
        ("registration" + std::to_string(i)).c_str(), config_, nodes[i]->host, measurement));
  }
  for (std::uint32_t device = 0; device < devices_per_host(config_); ++device) {
    const std::uint32_t first = device * config_.fabric.hosts;
    for (const auto& [client, server] : traffic_matrix(config_)) {
      for (const config::Config& thread : thread_configs_) {
        build_flow(first + client, first + server, thread);
      }
    }
  }
  if (config_.workload.probe_size == config::kNoProbe) return;
  const auto [client, server] = traffic_matrix(config_).front();
  probe = std::make_unique<Probe>("probe", config_, nodes[client]->host, client,
                                  nodes[server]->host, server, measurement);
}

void System::build_flow(std::uint32_t client, std::uint32_t server, const config::Config& thread) {
  const Timelines::Scope scope(groups_.timeline_of(client % config_.fabric.hosts));
  const config::WorkloadConfig& workload = config_.workload;
  endpoints.push_back(
      std::make_unique<Endpoint>(nodes[client]->host, thread, client, workload.local_memory));
  endpoints.push_back(
      std::make_unique<Endpoint>(nodes[server]->host, thread, server, workload.remote_memory));
  flows.push_back(std::make_unique<Flow>(
      ("flow" + std::to_string(flows.size())).c_str(), thread, *endpoints[endpoints.size() - 2],
      *endpoints.back(), path_between(client, server), path_between(server, client), measurement));
}

void System::reset_statistics() {
  window_start_ = sim_now();
  for (auto& node : nodes) node->reset_statistics(window_start_);
  if (dma_node) dma_node->reset_statistics(window_start_);
  for (auto& endpoint : endpoints) endpoint->core.reset_statistics();
  if (program != nullptr) {
    for (const auto& peer : program->peers()) peer->core.reset_statistics();
  }
  for (auto& cable : cables) cable->reset_statistics();
  if (fabric_switch) fabric_switch->reset_statistics(window_start_);
  for (auto& shared : shared_ports) shared->reset_statistics(window_start_);
}

}  // namespace rnic::testbench
