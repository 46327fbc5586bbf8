// SPDX-License-Identifier: Apache-2.0
#include "host/verbs.h"
#include "host/verbs_internal.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;

namespace {

constexpr std::uint64_t kEverything = ~std::uint64_t{0};

}  // namespace

RegistrationResult Context::reg_mr(Core& core, std::uint32_t pd, std::uint64_t addr,
                                   std::uint64_t length, std::uint32_t access) {
  core.sync();
  if (!pd_exists(pd)) {
    RegistrationResult refused;
    refused.status = Status::kEinval;
    return refused;
  }
  RegistrationResult result = registrar_.reg_mr(space_, pd, addr, length, access);
  core.spend(result.cost);
  if (result.status == Status::kOk) {
    use_pd(pd);
    if ((access & protocol::kAccessOnDemand) != 0) {
      const auto paged = std::make_shared<PagedRegion>(PagedRegion{result.region, {}});
      on_demand_[result.region.lkey] = on_demand_[result.region.rkey] = paged;
    }
  }
  ++stats_.registration.calls;
  stats_.registration.pages += result.region.npages;
  stats_.registration.time += result.cost;
  return result;
}

Status Context::dereg_mr(Core& core, const MemoryRegion& region) {
  core.sync();
  if (has_windows(region)) return Status::kEbusy;
  const DeregistrationResult result = registrar_.dereg_mr(space_, region);
  if (result.status != Status::kOk) return result.status;
  leave_pd(region.pd);
  if (PagedRegion* paged = find_paged(region.lkey)) drop_children(core, *paged);
  on_demand_.erase(region.lkey);
  on_demand_.erase(region.rkey);
  drop_cached_key(core, region);
  if (unmap_cost_ > kTimeZero) unmap_for_device(core, region);
  core.spend(result.cost);
  return Status::kOk;
}

void Context::unmap_for_device(Core& core, const MemoryRegion& region) {
  core.spend(unmap_cost_);
  core.sync();
  // An IOMMU's driver has the region in one piece; mapped to itself it may be in many, and then
  // everything is flushed, as drivers do for long lists.
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t va = region.va; va < region.va + region.length;) {
    const std::uint64_t page = space_.page_size_at(va);
    const auto pa = space_.translate(va);
    if (page == 0 || !pa) break;
    if (bytes == 0) first = *pa;
    if (*pa != first + bytes) {
      first = 0;
      bytes = kEverything;
      break;
    }
    const std::uint64_t chunk = page - va % page;
    bytes += chunk;
    va += chunk;
  }
  DeviceAnswer answer;
  if (!mmio_.invalidate(first, bytes, answer)) return;
  const Time asked = sim_now();
  answer.await();
  core.add_polling(sim_now() - asked);
}

Status Context::rereg_mr(Core& core, MemoryRegion& region, std::uint32_t pd, std::uint32_t access) {
  core.sync();
  if (!pd_exists(pd)) return Status::kEinval;
  const std::uint32_t old_pd = region.pd;
  const Status status = registrar_.change_rights(region, pd, access);
  core.spend(memory_config_.reg_call_cost);
  if (status != Status::kOk) return status;
  leave_pd(old_pd);
  use_pd(pd);
  drop_cached_key(core, region);
  return Status::kOk;
}

Status Context::rereg_mr_translation(Core& core, MemoryRegion& region, std::uint64_t addr,
                                     std::uint64_t length) {
  core.sync();
  if (has_windows(region)) return Status::kEbusy;
  const RegistrationResult result = registrar_.change_translation(space_, region, addr, length);
  core.spend(result.cost);
  if (result.status != Status::kOk) return result.status;
  const MemoryRegion before = region;
  region = result.region;
  drop_cached_key(core, before);
  if (unmap_cost_ > kTimeZero) unmap_for_device(core, before);
  return Status::kOk;
}

void Context::drop_cached_key(Core& core, const MemoryRegion& region) {
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kInvalidateMkey;
  mailbox.invalidate_mkey = {region.lkey, static_cast<std::uint32_t>(region.mtt_base),
                             static_cast<std::uint32_t>(region.mtt_count)};
  execute(core, mailbox);
  if (region.rkey == region.lkey) return;
  mailbox.invalidate_mkey = {region.rkey, 0, 0};
  execute(core, mailbox);
}

}  // namespace rnic::host::verbs
