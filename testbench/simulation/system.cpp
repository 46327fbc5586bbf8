// SPDX-License-Identifier: Apache-2.0
#include "simulation/system.h"

#include <string>

#include "base/error.h"
#include "base/sc_time.h"
#include "link/link_port_config.h"
#include "simulation/addresses.h"
#include "simulation/traffic.h"

namespace rnic::testbench {
namespace {

nic::ContextTables tables_of(const host::ContextMemory& memory) {
  return {memory.address_of_qpc(0), memory.address_of_mpt(0), memory.address_of_mtt(0),
          memory.layout().mpts, memory.address_of_cqc(0)};
}

network::FaultConfig faults_of(const config::LinkConfig& link) {
  network::FaultConfig faults;
  faults.loss_rate = link.loss_rate;
  faults.corrupt_rate = link.corrupt_rate;
  faults.duplicate_rate = link.duplicate_rate;
  faults.reorder_rate = link.reorder_rate;
  faults.reorder_delay = link.reorder_delay;
  faults.burst_rate = link.burst_rate;
  faults.burst_length = link.burst_length;
  faults.burst_loss = link.burst_loss;
  faults.drop_list = link.drop_list;
  faults.corrupt_list = link.corrupt_list;
  faults.duplicate_list = link.duplicate_list;
  faults.reorder_list = link.reorder_list;
  return faults;
}

/// Checksums of the system's one encapsulation, for cables that damage frames and switches that
/// look for damage.
class EncapsulationChecksums : public network::FrameChecksums {
 public:
  explicit EncapsulationChecksums(const transport::Encapsulation& encapsulation)
      : encapsulation_(encapsulation) {}
  void materialize(protocol::Frame& frame) const override { encapsulation_.materialize(frame); }
  bool intact(const protocol::Frame& frame) const override {
    return encapsulation_.link_crc_ok(frame);
  }
  void reseal(protocol::Frame& frame) const override { encapsulation_.refresh_link_crc(frame); }

 private:
  const transport::Encapsulation& encapsulation_;
};

}  // namespace

Node::Node(const sc_core::sc_module_name& name, const config::Config& config, std::uint32_t index,
           protocol::FramePool& frames)
    : sc_module(name),
      host("host", config),
      pcie("pcie", config.pcie, config.sim.seed),
      nic("nic", config, identity_of(index), tables_of(host.context_memory),
          link::nic_port_config(config, identity_of(index).mac), frames) {
  host.root_complex.set_link(config.pcie);
  nic.dma.socket.bind(pcie.device_target);
  pcie.device_initiator.bind(nic.doorbell.bar);
  pcie.host_initiator.bind(host.root_complex.dma_socket);
  host.root_complex.mmio_socket.bind(pcie.host_target);
  for (const auto& queue : host.verbs.event_queues()) nic.events.create(queue);
  nic.wqe_fetcher.set_instruments(&host.verbs);
  nic.responder.set_instruments(&host.verbs);
}

void Node::reset_statistics(Time now) {
  host.root_complex.reset_statistics(now);
  pcie.reset_statistics(now);
  nic.reset_statistics(now);
}

DmaNode::DmaNode(const sc_core::sc_module_name& name, const config::Config& config)
    : sc_module(name),
      host("host", config),
      pcie("pcie", config.pcie),
      dma("dma", config.pcie, nic::Clock(config.nic.clock_hz).cycles(config.nic.dma.latency),
          nic::Clock(config.nic.clock_hz).cycles(config.nic.dma.interval)),
      staging("staging", config.dma_device, dma) {
  host.root_complex.set_link(config.pcie);
  dma.socket.bind(pcie.device_target);
  pcie.host_initiator.bind(host.root_complex.dma_socket);
  host.root_complex.mmio_socket.bind(pcie.host_target);
}

void DmaNode::reset_statistics(Time now) {
  host.root_complex.reset_statistics(now);
  pcie.reset_statistics(now);
  dma.reset_statistics(now);
  staging.reset_statistics(now);
}

System::System(const config::Config& config)
    : config_(config), thread_configs_(thread_configs(config)) {
  if (config::is_dma(config_.workload.op)) {
    dma_node = std::make_unique<DmaNode>("host0", config_);
    dma_stream = std::make_unique<DmaStream>("dma_stream", config_, dma_node->host,
                                             dma_node->staging, measurement);
  } else {
    build_fabric();
    build_flows();
  }
  measurement.on_warm = [this] { reset_statistics(); };
  measurement.on_done = [] { sc_core::sc_stop(); };
}

void System::build_fabric() {
  for (std::uint32_t i = 0; i < config_.fabric.hosts; ++i) {
    nodes.push_back(
        std::make_unique<Node>(("host" + std::to_string(i)).c_str(), config_, i, frames));
  }
  checksums_ = std::make_unique<EncapsulationChecksums>(nodes.front()->nic.encapsulation());
  if (config_.fabric.topology == "single_switch") {
    connect_through_switch();
  } else {
    connect_back_to_back();
  }
  if (config_.fabric.silent_host != config::kNoHost) {
    nodes[config_.fabric.silent_host]->nic.rx_pipeline.fall_silent(config_.fabric.silent_from);
  }
}

System::~System() = default;

std::vector<NamedPort> System::ports() {
  std::vector<NamedPort> all;
  for (const auto& node : nodes) {
    all.push_back({std::string(node->name()) + ".nic.port", &node->nic.port.link});
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
  cables.push_back(std::make_unique<network::Cable>(name.c_str(), config_.link.delay,
                                                    faults_of(config_.link), config_.sim.seed,
                                                    frames, checksums_.get(), outage));
  cables.back()->connect(a, b);
}

void System::connect_back_to_back() {
  for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
    connect(nodes[i]->nic.port.link, nodes[i + 1]->nic.port.link);
  }
}

void System::connect_through_switch() {
  const bool ib = config_.transport.protocol == config::Protocol::kIb;
  const auto ports = static_cast<std::uint32_t>(nodes.size());
  fabric_switch = std::make_unique<network::Switch>(
      "switch", config_.network_switch, nodes.front()->nic.port.link.config(), ports,
      ib ? network::Addressing::kLid : network::Addressing::kMac, frames, checksums_.get(),
      config_.sim.seed);
  for (std::uint32_t i = 0; i < ports; ++i) {
    connect(nodes[i]->nic.port.link, fabric_switch->port(i));
    const transport::PortIdentity identity = identity_of(i);
    fabric_switch->set_route(ib ? identity.lid : network::route_key(identity.mac), i);
  }
}

void System::build_flows() {
  if (config_.workload.program != config::Program::kNone) {
    program = make_program(config_, nodes[0]->host, nodes[1]->host, measurement);
    return;
  }
  for (const auto& [client, server] : traffic_matrix(config_)) {
    for (const config::Config& thread : thread_configs_) build_flow(client, server, thread);
  }
}

void System::build_flow(std::uint32_t client, std::uint32_t server, const config::Config& thread) {
  for (const std::uint32_t at : {client, server}) {
    endpoints.push_back(std::make_unique<Endpoint>(nodes[at]->host, thread, at));
  }
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
}

}  // namespace rnic::testbench
