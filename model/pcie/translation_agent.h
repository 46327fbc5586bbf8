// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/ring.h"
#include "base/set_assoc_cache.h"
#include "config/pcie_config.h"
#include "pcie/dma.h"
#include "stats/unit_stats.h"
#include "tlm/payload_pool.h"

namespace rnic::pcie {

/// Address Translation Services in front of the DMA engine (PCI Express Base, 10): the device keeps
/// translations of pages in a cache of its own (ATC) and asks the root complex for those it lacks,
/// by translation requests that are TLPs as any others. A request goes on when all its pages are
/// known; reads that hit overtake reads that wait, writes stay in order, and no read passes a write
/// that waits. A page that is asked for already is waited for. The mapping is the identity: what is
/// simulated is its cost.
class TranslationAgent : public sc_core::sc_module, public DmaIf, private DmaClient {
 public:
  /// `page_size`: of the IOMMU's mappings, a power of two. `engine` carries requests and takes
  /// translated addresses.
  TranslationAgent(const sc_core::sc_module_name& name, const config::AtcConfig& config,
                   std::uint64_t page_size, DmaIf& engine);

  void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes, std::uint8_t* into,
                tlm_ext::Purpose purpose, DmaClient* client, std::uint64_t token) override;
  Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                 const std::uint8_t* from, tlm_ext::Purpose purpose, DmaClient* client,
                 std::uint64_t token) override;
  void dma_atomic(Time earliest, std::uint64_t address, const tlm_ext::AtomicOperands& operands,
                  std::uint8_t* into, DmaClient* client, std::uint64_t token) override;

  /// An invalidate request of the root complex for [address, address + bytes), which arrives at
  /// `t`: forgets the pages and answers.
  void invalidate(std::uint64_t address, std::uint64_t bytes, Time t);

  /// Pages looked up; a page that is already asked for is a miss.
  std::uint64_t hits() const { return cache_.hits(); }
  std::uint64_t misses() const { return cache_.misses(); }
  /// Occupancy: requests that wait for translations; stalled: at least one does.
  const stats::UnitStats& unit() const { return unit_; }
  std::uint64_t invalidations() const { return invalidations_; }
  void reset_statistics(Time now);

 private:
  struct Nothing {};
  enum class Kind : std::uint8_t { kRead, kWrite, kAtomic };
  /// A request that cannot go on yet.
  struct Held {
    Held() = default;
    Held(Kind what, std::uint64_t at, std::uint32_t length, tlm_ext::Purpose why, DmaClient* whose,
         std::uint64_t tag)
        : kind(what), address(at), bytes(length), purpose(why), client(whose), token(tag) {}

    Kind kind = Kind::kRead;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint8_t* into = nullptr;
    const std::uint8_t* from = nullptr;
    tlm_ext::Purpose purpose = tlm_ext::Purpose::kPayload;
    DmaClient* client = nullptr;
    std::uint64_t token = 0;
    std::uint32_t missing = 0;  ///< pages that have not come yet
    bool in_order = false;      ///< waits in `in_order_` too
    tlm_ext::AtomicOperands operands;
    std::array<std::uint8_t, tlm_ext::PooledPayload::kInlineBytes> copy{};  ///< of a short write
  };
  struct Wait {
    std::uint64_t page = 0;
    Held* held = nullptr;
  };
  struct Asked {
    std::uint64_t page = 0;
    Time at{0};
  };

  /// Looks up the pages of a request and asks for those that are missing; their number. `held` is
  /// who waits, made when the first is missing.
  bool known(Time t, std::uint64_t address, std::uint32_t bytes, Held*& held);
  void ask(Time t, std::uint64_t page);
  void hold(Held* held, const Held& what, bool in_order);
  Time issue(const Held& held, Time t);
  void release(Held* held, Time t);
  void dma_done(std::uint64_t page) override;
  void dma_failed(const DmaFault& fault) override { dma_done(fault.token); }
  void note_waiting(Time now, int change);

  DmaIf& engine_;
  Time latency_;
  std::uint64_t page_size_;
  SetAssocCache<Nothing> cache_;
  std::vector<Asked> asked_;
  std::vector<Wait> waits_;
  Ring<Held*> in_order_;  ///< a write that waits, and what came after it
  Pool<Held> pool_;
  std::uint32_t waiting_ = 0;
  Time waiting_since_{0};
  Time round_trip_{0};  ///< of the last translation request
  std::uint64_t invalidations_ = 0;
  stats::UnitStats unit_;
};

}  // namespace rnic::pcie
