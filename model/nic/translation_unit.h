// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <set>
#include <systemc>
#include <unordered_map>

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

/// Consecutive MTT entries on chip, as many as nic.mtt_cache.line.
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
/// here; a miss is a DMA read (one more for each level of directories that a large region needs),
/// later requests go on meanwhile. Answers may overtake each other as nic.translation_order allows.
class TranslationUnit : public sc_core::sc_module, public TranslationIf {
 public:
  sc_core::sc_export<TranslationIf> translation{"translation"};
  sc_core::sc_port<pcie::DmaIf> dma{"dma"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};

  TranslationUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                  std::uint64_t seed, std::uint64_t mpt_base, std::uint64_t mtt_base,
                  std::uint32_t mpt_entries, MissBudget& budget);

  void translate(Translation& request, Time t) override;
  void expect(const ExpectedAccess& access, Time t) override;
  /// Reads that must be made one after the other, before that of a line, for a region of
  /// `mtt_count` translations.
  std::uint32_t directories(std::uint64_t mtt_count) const;
  void invalidate(std::uint32_t key, std::uint32_t first_mtt, std::uint32_t count) override;

  void resume_faults(const protocol::FaultResumeDoorbell& resume, Time t) override;
  /// Pages that were missing when a request came (on-demand regions).
  std::uint64_t page_faults() const { return page_faults_; }

  /// Goes on with a request; from translate() and after a miss.
  void proceed(Translation& request, Time t);
  /// Ends a request for which context memory could not be read.
  void unreadable(Translation& request, Time t);

  ContextCache<MptLine>& mpt_cache() { return mpt_; }
  ContextCache<MttLine>& mtt_cache() { return mtt_; }
  /// The responder's halves; null where both share one.
  ContextCache<MptLine>* responder_mpt_cache() { return responder_mpt_.get(); }
  ContextCache<MttLine>* responder_mtt_cache() { return responder_mtt_.get(); }
  stats::UnitStats& stats() { return stage_.stats(); }

 private:
  /// Requests of one half of a QP (or all, in strict order) that wait for their turn to be
  /// answered.
  using Queue = Ring<Translation*>;

  /// Tells the driver of a missing page; false: the request waits for it.
  bool fault(Translation& request, std::uint64_t mtt);
  void invalidate_mtts(std::uint64_t first, std::uint64_t count);
  bool walk(Translation& request, const protocol::MptEntry& mpt, Time& when);
  void go_on(Translation& request, const protocol::MptEntry& mpt, Time t);
  void find_child(Translation& request, const protocol::MptEntry& implicit, Time t);
  void fetch_mtt(ContextCache<MttLine>& cache, Translation& request, std::uint64_t line, Time t);
  void wait_for_turn(Translation& request);
  Queue& queue_of(const Translation& request);
  void deliver(Queue& queue, Time t);
  static void append(Translation& request, std::uint64_t address, std::uint32_t bytes);
  void answer(Translation& request, Time t);

  std::uint64_t mpt_base_;
  std::uint64_t mtt_base_;
  std::uint32_t mpt_entries_;
  std::uint32_t mtt_line_log2_;
  std::uint64_t mtt_reach_;
  std::uint64_t mtt_fanout_;
  config::TranslationOrder order_;
  bool flushes_;  ///< a deregistration empties the MTT cache
  PipelineStage stage_;
  Time page_interval_;
  ContextCache<MptLine> mpt_;
  ContextCache<MttLine> mtt_;
  std::set<std::uint64_t> faults_;   ///< MTT entries that the driver has been asked for
  std::set<std::uint64_t> refused_;  ///< of those: the process has no such address
  WaitList fault_waiters_;
  std::uint64_t page_faults_ = 0;
  std::unique_ptr<ContextCache<MptLine>> responder_mpt_;
  std::unique_ptr<ContextCache<MttLine>> responder_mtt_;
  std::array<ContextCache<MptLine>*, 2> mpt_of_;  ///< of the requester, of the responder
  std::array<ContextCache<MttLine>*, 2> mtt_of_;
  std::uint64_t waiting_ = 0;  ///< requests in all queues
  std::unordered_map<std::uint64_t, Queue> queues_;
};

}  // namespace rnic::nic
