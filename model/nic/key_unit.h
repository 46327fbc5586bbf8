// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <systemc>
#include <vector>

#include "base/pool.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"
#include "protocol/mpt.h"

namespace rnic::nic {

/// Carries out the operations of send queues on memory keys: binding a memory window, fast
/// registration, local invalidation; and the invalidation that a peer's SEND asks for. Each reads
/// the entries that it concerns from context memory, checks that the change is allowed, writes them
/// back and makes the translation unit forget what it holds of them. What is not allowed completes
/// with a memory window bind error; a peer may end only what gives it some right.
class KeyUnit : public sc_core::sc_module, public KeyIf, public pcie::DmaClient {
 public:
  sc_core::sc_export<KeyIf> keys{"keys"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<TranslationIf> translation{"translation"};
  sc_core::sc_port<CompletionIf> completion{"completion"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};

  KeyUnit(const sc_core::sc_module_name& name, std::uint64_t mpt_base, std::uint64_t mtt_base,
          std::uint32_t mpt_entries);

  void execute(QpContext& qp, std::uint64_t entry_number, Time t) override;
  void invalidate_for_peer(RxJob* frame, KeyClient& client, Time t) override;
  void dma_done(std::uint64_t token) override;
  /// A key whose entry cannot be read or written: the operation fails.
  void dma_failed(const pcie::DmaFault& fault) override;

 private:
  enum class Step : std::uint8_t { kEntry, kRegion, kPages, kPagesWritten };

  struct Job {
    QpContext* qp = nullptr;
    std::uint64_t number = 0;     ///< of the send queue's entry
    RxJob* frame = nullptr;       ///< of the peer's SEND with invalidate; else null
    KeyClient* client = nullptr;  ///< of that
    Step step = Step::kEntry;
    // Of the work request.
    protocol::WqeOpcode opcode = protocol::WqeOpcode::kNop;
    std::uint32_t key = 0;         ///< afterwards; invalidation: now
    std::uint32_t region_key = 0;  ///< of the region that a window is bound to
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint64_t page_list = 0;
    std::uint32_t access = 0;
    std::uint8_t log2_page_size = 0;
    // Read from memory.
    std::array<std::uint8_t, protocol::MptEntry::kBytes> entry_bytes{};
    std::array<std::uint8_t, protocol::MptEntry::kBytes> region_bytes{};
    std::vector<std::uint8_t> pages;
  };

  void read_entry(Job* job, std::uint32_t key, std::uint8_t* into, Step step, Time t);
  void invalidate(Job* job, protocol::MptEntry& entry, Time t);
  void bind(Job* job, protocol::MptEntry& window, Time t);
  void fast_register(Job* job, const protocol::MptEntry& entry, Time t);
  void write_pages(Job* job, Time t);
  void write_entry(Job* job, const protocol::MptEntry& entry, Time t);
  void finish(Job* job, bool allowed, Time t);

  std::uint64_t mpt_base_;
  std::uint64_t mtt_base_;
  std::uint32_t mpt_entries_;
  Pool<Job> jobs_;
};

}  // namespace rnic::nic
