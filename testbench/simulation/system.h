// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "config/config.h"
#include "host/host.h"
#include "network/cable.h"
#include "network/frame_checksums.h"
#include "network/switch.h"
#include "nic/nic.h"
#include "pcie/dma_engine.h"
#include "pcie/function_mux.h"
#include "pcie/link.h"
#include "programs/program.h"
#include "simulation/host_groups.h"
#include "workload/dma_staging.h"
#include "workload/dma_stream.h"
#include "workload/flow.h"
#include "workload/probe.h"
#include "workload/registration_churn.h"

namespace rnic::testbench {

/// One server: host, PCIe link and NIC.
class Node : public sc_core::sc_module {
 public:
  /// `sibling`: the device of the same adapter whose slot this one shares; null: it has its own.
  Node(const sc_core::sc_module_name& name, const config::Config& config, std::uint32_t index,
       protocol::FramePool& frames, Node* sibling = nullptr);

  void reset_statistics(Time now);
  /// Whether the slot's link is reported with this node.
  bool owns_slot() const { return own_pcie_ != nullptr; }

  host::Host host;

 private:
  void bind_slot();
  void bind_shared_slot(Node& owner, std::size_t function);

  std::unique_ptr<pcie::Link> own_pcie_;
  std::unique_ptr<pcie::FunctionMux> device_end_;  ///< of a slot with several devices
  std::unique_ptr<pcie::FunctionMux> host_end_;

 public:
  pcie::Link& pcie;
  nic::Nic nic;
};

/// A host with a device that is nothing but a DMA engine, as a pcie-bench card.
class DmaNode : public sc_core::sc_module {
 public:
  DmaNode(const sc_core::sc_module_name& name, const config::Config& config);

  void reset_statistics(Time now);

  host::Host host;
  pcie::Link pcie;
  pcie::DmaEngine dma;
  std::unique_ptr<pcie::TranslationAgent> translation_agent;  ///< null: no ATS
  DmaStaging staging;
};

/// A port under the name that reports and captures give it.
struct NamedPort {
  std::string name;
  link::LinkPort* port;
};

/// The simulated system: nodes, fabric, and the programs that use it. Its parts are modules at the
/// top of the hierarchy, so that names read host0.nic.translation.
class System {
 public:
  explicit System(const config::Config& config);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  /// All statistics start again: the measured window.
  void reset_statistics();

  const config::Config& config() const { return config_; }
  /// All ports: those of the NICs, then those of the switch.
  std::vector<NamedPort> ports();
  Time window_start() const { return window_start_; }
  protocol::FramePool frames;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<network::Cable>> cables;
  std::unique_ptr<network::Switch> fabric_switch;
  std::vector<std::unique_ptr<network::Switch>> shared_ports;  ///< of adapters with two functions
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<std::unique_ptr<Flow>> flows;
  std::unique_ptr<Probe> probe;  ///< with workload.probe_size
  /// Instead of nodes and flows when the workload is DMA alone.
  std::unique_ptr<DmaNode> dma_node;
  std::unique_ptr<DmaStream> dma_stream;
  std::vector<std::unique_ptr<RegistrationChurn>> churns;  ///< of each host, workload.reg_rate
  std::unique_ptr<Program> program;  ///< instead of flows when workload.program names one
  Measurement measurement;

 private:
  void connect(link::LinkPort& a, link::LinkPort& b);
  void connect_back_to_back();
  void connect_through_switch();
  void connect_shared_ports();
  /// Makes device `i` of all: hosts' first ones, then their second ones.
  void build_node(std::uint32_t i);
  void build_flows();
  void build_flow(std::uint32_t client, std::uint32_t server, const config::Config& thread);
  void build_fabric();

  const config::Config config_;
  const HostGroups groups_;
  std::vector<config::Config> thread_configs_;  ///< by thread of a flow
  std::unique_ptr<network::FrameChecksums> checksums_;
  Time window_start_{0};
};

}  // namespace rnic::testbench
