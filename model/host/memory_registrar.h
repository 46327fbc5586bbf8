// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "config/host_config.h"
#include "config/nic_config.h"
#include "host/address_space.h"
#include "host/context_memory.h"
#include "host/status.h"
#include "protocol/access.h"

namespace rnic::host {

/// A registered memory region, as the application holds it.
struct MemoryRegion {
  std::uint64_t va = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;  ///< first address as work requests name it (0 if zero-based)
  std::uint32_t pd = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  protocol::AccessFlags access = 0;
  std::uint64_t mtt_base = 0;
  std::uint64_t mtt_count = 0;
  std::uint64_t page_size = 0;  ///< what one MTT entry covers, bytes
  std::uint64_t npages = 0;     ///< pages of the operating system that are pinned
  bool implicit = false;        ///< the whole address space, on demand
};

struct RegistrationResult {
  Status status = Status::kOk;
  MemoryRegion region;
  Time cost = kTimeZero;  ///< time the call takes the application
};

struct DeregistrationResult {
  Status status = Status::kOk;
  Time cost = kTimeZero;
};

/// Distinct keys: the local one's entry has no remote rights.
using config::KeyPolicy;

/// The kernel's side of ibv_reg_mr and ibv_dereg_mr: pins the pages, hands the device the
/// translation from virtual to physical addresses (MTT) and the rights behind the keys (MPT), all
/// as bytes in context memory. Device caches of these entries are the caller's to invalidate.
class MemoryRegistrar {
 public:
  /// Length of an implicit on-demand region (SIZE_MAX).
  static constexpr std::uint64_t kWholeSpace = ~std::uint64_t{0};

  MemoryRegistrar(ContextMemory& context, const config::MemoryConfig& config,
                  KeyPolicy policy = KeyPolicy::kShared);

  /// Registers [va, va + length) of `space` in protection domain `pd`. Work requests will name the
  /// first byte `iova`, which must agree with `va` in the low 12 bits (ibv_reg_mr_iova), or 0 when
  /// `zero_based` (or kAccessZeroBased is set).
  ///
  /// With kAccessOnDemand, address 0 and length kWholeSpace it is implicit: everything that the
  /// process has mapped or will map.
  ///
  /// EINVAL: no bytes, an address range that wraps around, flags that do not go together.
  /// EPERM, ENOMEM, EFAULT: from pinning; ENOMEM also when the device's tables are full. A call
  /// that fails changes nothing. Cost: `reg_call_cost`, and `reg_page_cost` for each page of the
  /// operating system when it succeeds.
  RegistrationResult reg_mr(AddressSpace& space, std::uint32_t pd, std::uint64_t va,
                            std::uint64_t length, protocol::AccessFlags access, std::uint64_t iova,
                            bool zero_based = false);
  /// Work requests name the bytes by their virtual addresses.
  RegistrationResult reg_mr(AddressSpace& space, std::uint32_t pd, std::uint64_t va,
                            std::uint64_t length, protocol::AccessFlags access) {
    return reg_mr(space, pd, va, length, access, va);
  }

  /// Brings the pages behind [address, address + bytes) of an on-demand region, as requests name
  /// it, into memory and enters them into its translation. What lies outside the region is left
  /// out.
  struct Populated {
    std::uint64_t first_mtt = 0;
    std::uint32_t count = 0;   ///< entries
    std::uint32_t mapped = 0;  ///< of them new
    bool failed = false;       ///< of them some stand for addresses that are not mapped
  };
  Populated populate(AddressSpace& space, const MemoryRegion& region, std::uint64_t address,
                     std::uint64_t bytes);
  /// How many of those pages are not entered yet.
  std::uint32_t missing(const MemoryRegion& region, std::uint64_t address,
                        std::uint64_t bytes) const;

  /// The region that stands for the gigabyte of `address` in an implicit one, entered into its
  /// translation. Empty: ENOMEM, or no address of a process.
  std::optional<MemoryRegion> make_child(const MemoryRegion& implicit, std::uint64_t address);
  void drop_child(const MemoryRegion& child);

  /// Another protection domain and other rights for the same memory, under the same keys. EINVAL as
  /// for reg_mr, or when the region is not registered.
  Status change_rights(MemoryRegion& region, std::uint32_t pd, protocol::AccessFlags access);

  /// Other memory of `space` under the same keys, as reg_mr; on-demand regions: EINVAL. What it
  /// stood for is unpinned. Cost as of a registration and a deregistration.
  RegistrationResult change_translation(AddressSpace& space, const MemoryRegion& region,
                                        std::uint64_t va, std::uint64_t length);

  /// Invalidates the keys, then frees the translation and unpins the pages. EINVAL when the region
  /// is not registered (any more). Cost: `dereg_call_cost` and `dereg_page_cost` for each page.
  DeregistrationResult dereg_mr(AddressSpace& space, const MemoryRegion& region);

 private:
  /// One run of physically contiguous bytes of the region.
  struct Run {
    std::uint64_t pa;
    std::uint64_t bytes;
  };

  RegistrationResult reg_on_demand(AddressSpace& space, MemoryRegion& region, bool zero_based);
  RegistrationResult reg_implicit(MemoryRegion& region);
  /// Of pinning `pages`, of which the latest pin() had to clear some.
  Time pin_cost(const AddressSpace& space, std::uint64_t pages) const;
  bool allocate_tables(MemoryRegion& region);
  Populated entries_of(const MemoryRegion& region, std::uint64_t address,
                       std::uint64_t bytes) const;
  bool arguments_valid(const MemoryRegion& region, bool zero_based) const;
  std::vector<Run> collect_runs(const AddressSpace& space, MemoryRegion& region) const;
  bool write_tables(MemoryRegion& region, const std::vector<Run>& runs, bool zero_based);
  void write_mtts(const MemoryRegion& region, const std::vector<Run>& runs);
  void write_mpts(const MemoryRegion& region, bool zero_based);
  void invalidate(std::uint32_t key);
  bool is_valid(std::uint32_t key) const;

  ContextMemory& context_;
  Time reg_call_cost_;
  Time reg_page_cost_;
  Time reg_zero_cost_;
  Time dereg_call_cost_;
  Time dereg_page_cost_;
  KeyPolicy policy_;
};

}  // namespace rnic::host
