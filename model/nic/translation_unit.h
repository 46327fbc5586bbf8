// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <set>
#include <systemc>

#include "nic/context_cache.h"
#include "nic/interfaces.h"
#include "nic/stage.h"
#include "protocol/mpt.h"
#include "protocol/mtt.h"

namespace rnic::nic {

/// One MPT entry on chip.
struct MptLine {
  static constexpr std::uint32_t kLineBytes = protocol::MptEntry::kBytes;
  protocol::MptEntry entry;
  void load(const std::uint8_t* bytes) { entry = protocol::MptEntry::decode(bytes); }
};

/// Eight consecutive MTT entries on chip.
struct MttLine {
  static constexpr std::uint32_t kEntries = 8;
  static constexpr std::uint32_t kLineBytes = kEntries * protocol::MttEntry::kBytes;
  std::array<protocol::MttEntry, kEntries> entries{};
  void load(const std::uint8_t* bytes) {
    for (std::uint32_t i = 0; i < kEntries; ++i) {
      entries[i] = protocol::MttEntry::decode(bytes + std::size_t{i} * protocol::MttEntry::kBytes);
    }
  }
};

/// Key check and address translation: key -> MPT entry (validity, PD, rights, bounds) -> MTT walk,
/// page by page, contiguous pages merged. Both tables live in host context memory and are cached
/// here; a miss is a DMA read, later requests go on (hit under miss).
class TranslationUnit : public sc_core::sc_module, public TranslationIf {
 public:
  sc_core::sc_export<TranslationIf> translation{"translation"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};

  TranslationUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                  std::uint64_t seed, std::uint64_t mpt_base, std::uint64_t mtt_base,
                  std::uint32_t mpt_entries, MissBudget& budget);

  void translate(Translation& request, Time t) override;
  void invalidate(std::uint32_t key, std::uint32_t first_mtt, std::uint32_t count) override;

  void resume_faults(const protocol::FaultResumeDoorbell& resume, Time t) override;
  /// Pages that were missing when a request came (on-demand regions).
  std::uint64_t page_faults() const { return page_faults_; }

  /// Goes on with a request; from translate() and after a miss.
  void proceed(Translation& request, Time t);

  ContextCache<MptLine>& mpt_cache() { return mpt_; }
  ContextCache<MttLine>& mtt_cache() { return mtt_; }
  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  /// Tells the driver of a missing page; false: the request waits for it.
  bool fault(Translation& request, std::uint64_t mtt);
  bool walk(Translation& request, const protocol::MptEntry& mpt, Time t);
  static void append(Translation& request, std::uint64_t address, std::uint32_t bytes);
  void answer(Translation& request, Time t);

  std::uint64_t mpt_base_;
  std::uint64_t mtt_base_;
  std::uint32_t mpt_entries_;
  PipelineStage stage_;
  ContextCache<MptLine> mpt_;
  ContextCache<MttLine> mtt_;
  std::set<std::uint64_t> faults_;  ///< MTT entries that the driver has been asked for
  WaitList fault_waiters_;
  std::uint64_t page_faults_ = 0;
};

}  // namespace rnic::nic
