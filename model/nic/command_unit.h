// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/rate_server.h"
#include "config/nic_config.h"
#include "nic/address_book.h"
#include "nic/interfaces.h"
#include "nic/multicast_groups.h"
#include "nic/port.h"
#include "pcie/dma.h"
#include "protocol/command.h"

namespace rnic::nic {

/// The firmware's command interface: reads a mailbox by DMA, takes the command's time, executes it
/// and writes the status back. Commands run one after another.
class CommandUnit : public sc_core::sc_module, public CommandIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<CommandIf> commands{"commands"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<CompletionQueueIf> completion_queues{"completion_queues"};
  sc_core::sc_port<CompletionIf> completion{"completion"};
  sc_core::sc_port<RecvQueueIf> recv_queues{"recv_queues"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<WqeFetchIf> wqes{"wqes"};
  sc_core::sc_port<TimerIf> timer{"timer"};
  sc_core::sc_port<TranslationIf> translation{"translation"};
  sc_core::sc_port<ResponderIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> responder{"responder"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};

  /// `path_mtus`: a path MTU is one of InfiniBand's (iWARP: any MSS will do).
  CommandUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
              transport::Transport& transport, QpTable& queue_pairs, bool path_mtus);

  /// Where address handles are kept.
  void set_address_book(AddressBook* book) { address_book_ = book; }
  /// Where groups of datagram queue pairs are kept.
  void set_multicast_groups(MulticastGroups& groups) { groups_ = &groups; }
  /// Whose state can be asked for.
  void set_port(const Port& port) { port_ = &port; }
  /// To be called before the simulation starts: at `at` the device fails for good.
  void fail_device(Time at) { fails_at_ = at; }

  void execute(std::uint64_t mailbox_address, Time t) override;
  void dma_done(std::uint64_t token) override;
  /// A command that cannot be read is answered as by a device that fails.
  void dma_failed(const pcie::DmaFault& fault) override;

 private:
  struct Command {
    std::uint64_t address = 0;
    bool unreadable = false;
    protocol::CommandMailbox mailbox{};
  };

  void run(Command*& command);
  protocol::CommandStatus dispatch(protocol::CommandMailbox& mailbox, Time now);
  protocol::CommandStatus dispatch_qp(protocol::CommandMailbox& mailbox, Time now);
  protocol::CommandStatus dispatch_queue(const protocol::CommandMailbox& mailbox, Time now);
  void start_of_simulation() override;
  void device_failed(std::uint32_t&);
  protocol::CommandStatus join_group(const protocol::CommandMailbox& mailbox);
  void answer_query(const QpContext& qp, protocol::CommandMailbox& mailbox);
  protocol::CommandStatus migrate_qp(const protocol::MigrateQpCommand& command, Time now);
  protocol::CommandStatus note_address(const protocol::CommandMailbox& mailbox);
  protocol::CommandStatus create_qp(const protocol::CreateQpCommand& create);
  protocol::CommandStatus modify_qp(const protocol::ModifyQpCommand& modify, Time now);
  static void apply(QpContext& qp, const protocol::ModifyQpCommand& modify);
  bool values_valid(const protocol::ModifyQpCommand& modify) const;
  void start_sending(QpContext& qp, Time now);
  void reset(QpContext& qp, Time now);

  transport::Transport& transport_;
  QpTable& queue_pairs_;
  AddressBook* address_book_ = nullptr;  ///< null: the device does not ask
  Time latency_;
  std::uint32_t max_rd_atomic_;
  bool any_mtu_;
  const Port* port_ = nullptr;
  MulticastGroups* groups_ = nullptr;
  std::uint8_t result_ = 0;  ///< of the query in hand
  Time fails_at_ = kTimeNever;
  bool failed_ = false;  ///< the device
  Server firmware_;
  Pool<Command> pool_;
  EventQueue<CommandUnit, Command*> executing_;
  EventQueue<CommandUnit, std::uint32_t> failing_;
};

}  // namespace rnic::nic
