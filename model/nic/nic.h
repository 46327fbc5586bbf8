// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <systemc>

#include "link/link_port.h"
#include "nic/address_book.h"
#include "nic/atomic_unit.h"
#include "nic/command_unit.h"
#include "nic/completion_unit.h"
#include "nic/cq_context_cache.h"
#include "nic/cq_unit.h"
#include "nic/device_memory.h"
#include "nic/doorbell_unit.h"
#include "nic/event_unit.h"
#include "nic/key_unit.h"
#include "nic/multicast_groups.h"
#include "nic/packetizer.h"
#include "nic/payload_gather.h"
#include "nic/port.h"
#include "nic/qp_context_cache.h"
#include "nic/responder.h"
#include "nic/retransmission_timer.h"
#include "nic/rq_unit.h"
#include "nic/rx_pipeline.h"
#include "nic/sq_scheduler.h"
#include "nic/translation_unit.h"
#include "nic/wqe_cache.h"
#include "nic/wqe_fetcher.h"
#include "pcie/dma_engine.h"
#include "transport/encapsulation.h"
#include "transport/transport.h"

namespace rnic::config {
struct Config;
}

namespace rnic::nic {

/// Bus addresses of the device's tables in host memory, as the driver tells the device at start.
struct ContextTables {
  std::uint64_t qpc = 0;
  std::uint64_t mpt = 0;
  std::uint64_t mtt = 0;
  std::uint32_t mpt_entries = 0;
  std::uint64_t cqc = 0;
  std::uint64_t device_memory = 0;  ///< window of the memory on the device
};

/// The NIC: its units and how they are wired, in the order of a WRITE's journey. PCIe attaches at
/// `dma.socket` (requests) and `doorbell.bar` (registers), the cable at `port.link`.
class Nic : public sc_core::sc_module {
 public:
  Nic(const sc_core::sc_module_name& name, const config::Config& config,
      const transport::PortIdentity& identity, const ContextTables& tables,
      const link::LinkPortConfig& link_config, protocol::FramePool& frames);

  /// Zeroes all statistics: the measured window starts at `now`.
  void reset_statistics(Time now);

  /// Whether the rate of one QP is limited (nic.qp_rate, nic.read_engine_rate), and the time that
  /// the busiest QP's engine worked in the measured window.
  bool has_qp_engines() const { return has_qp_engines_; }
  Time busiest_engine() const;

  QpTable queue_pairs;

 private:
  /// Where units send their DMA requests.
  pcie::DmaIf& dma_path();
  /// Those of them that leave the device.
  pcie::DmaIf& host_path();
  void wire_transmit();
  void wire_receive();
  void wire_caches(const config::Config& config);

  bool has_qp_engines_;

  // What units share; built before them.
  MissBudget misses_;
  MissBudget wqe_misses_;  ///< of WQEs that are read again: as many as their caches have under way
  Pool<TxJob> tx_jobs_;
  transport::PortIdentity identity_;
  std::unique_ptr<transport::Encapsulation> encapsulation_;
  std::unique_ptr<transport::Transport> transport_;
  AddressBook address_book_;
  MulticastGroups groups_;

 public:
  transport::Transport& transport() { return *transport_; }
  const transport::Encapsulation& encapsulation() const { return *encapsulation_; }

  pcie::DmaEngine dma;
  std::unique_ptr<pcie::TranslationAgent> translation_agent;  ///< null: no ATS
  std::unique_ptr<DeviceMemory> device_memory;                ///< null: none
  DoorbellUnit doorbell;
  SqScheduler scheduler;
  QpContextCache qp_contexts;
  WqeFetcher wqe_fetcher;
  TranslationUnit translation;
  PayloadGather payload_gather;
  Packetizer packetizer;
  Port port;
  RxPipeline rx_pipeline;
  Responder responder;
  AtomicUnit atomic;
  RqUnit rq;
  CompletionUnit completion;
  CqUnit cq;
  EventUnit events;
  KeyUnit keys;
  CqContextCache cq_contexts;
  std::unique_ptr<DcUnit> connections;     ///< dynamically connected send queues; else null
  std::unique_ptr<WqeCache> wqe_cache;     ///< null: unlimited
  std::unique_ptr<WqeCache> rq_wqe_cache;  ///< likewise
  RetransmissionTimer timer;
  CommandUnit command;
};

}  // namespace rnic::nic
