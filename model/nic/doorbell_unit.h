// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <systemc>
#include <tlm>

#include "base/event_queue.h"
#include "base/pool.h"
#include "nic/interfaces.h"
#include "nic/stage.h"
#include "pcie/translation_agent.h"
#include "protocol/doorbell.h"

namespace rnic::nic {

/// The device's BAR: takes MMIO writes and turns them into work, and answers reads of
/// its registers (only the clock has a value). An 8-byte store to the send
/// register is a doorbell, 64-byte stores are a WQE pushed by BlueFlame, the command register takes
/// the bus address of a mailbox.
class DoorbellUnit : public sc_core::sc_module, private tlm::tlm_fw_transport_if<> {
 public:
  tlm::tlm_target_socket<> bar{"bar"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<WqeFetchIf> wqes{"wqes"};
  sc_core::sc_port<CommandIf> commands{"commands"};
  sc_core::sc_port<CompletionQueueIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> completion_queues{
      "completion_queues"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};
  sc_core::sc_port<TranslationIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> translation{"translation"};
  sc_core::sc_port<RecvQueueIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> recv_queues{"recv_queues"};

  DoorbellUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
               const QpTable& queue_pairs, Time register_read_time = kTimeZero);

  /// Who fetches contexts ahead of their use; null: nobody.
  void set_contexts(ContextIf* contexts) { contexts_ = contexts; }

  /// Who takes the root complex's invalidate requests (ATS); null: there are none.
  void set_translation_agent(pcie::TranslationAgent* agent) { agent_ = agent; }

  stats::UnitStats& stats() { return stage_.stats(); }
  std::uint64_t doorbells() const { return doorbells_; }
  std::uint64_t blueflames() const { return blueflames_; }
  /// WQEs whose blocks were interrupted by the first block of another on the same register.
  std::uint64_t interleaved() const { return interleaved_; }
  /// MMIO writes that named no queue pair or register.
  std::uint64_t ignored() const { return ignored_; }

 private:
  /// The bytes of one MMIO write TLP.
  struct Write {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::array<std::uint8_t, protocol::kWqeBlockBytes> data{};
  };
  /// BlueFlame blocks received so far of the WQE being pushed.
  struct Push {
    std::uint32_t wanted = 0;
    std::uint32_t have = 0;
    std::array<std::uint8_t, std::size_t{protocol::kMaxWqeBlocks} * protocol::kWqeBlockBytes>
        blocks{};
    bool complete() const { return have >= wanted; }
  };

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override;
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override;

  void begin_read(tlm::tlm_generic_payload& payload, Time arrival);
  void answer_read(tlm::tlm_generic_payload*& payload);
  void arrive(Write*& write);
  bool queue_doorbell(const Write& write, Time t);
  /// A request that is posted to `qp` now is never looked at: a quirk of nic.flush_late_sends.
  bool forgets(const QpContext& qp) const { return !flush_late_sends_ && qp.flushes_sends(); }
  void send_doorbell(const Write& write, Time t);
  void blueflame(const Write& write, Time t);
  /// The queue pair of a pushed WQE, told of it as by a doorbell; null: there is none.
  QpContext* ring_for(const Push& push, Time t);

  const QpTable& queue_pairs_;
  ContextIf* contexts_ = nullptr;
  Clock clock_;
  PipelineStage stage_;
  Pool<Write> writes_;
  Push push_;                             ///< of the first register
  std::map<std::uint64_t, Push> pushes_;  ///< of the others
  Time read_time_;
  bool flush_late_sends_;
  pcie::TranslationAgent* agent_ = nullptr;
  std::uint64_t doorbells_ = 0;
  std::uint64_t blueflames_ = 0;
  std::uint64_t ignored_ = 0;
  std::uint64_t interleaved_ = 0;
  EventQueue<DoorbellUnit, Write*> arrivals_;
  EventQueue<DoorbellUnit, tlm::tlm_generic_payload*> reads_;
};

}  // namespace rnic::nic
