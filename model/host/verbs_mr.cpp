// SPDX-License-Identifier: Apache-2.0
#include "host/verbs.h"

namespace rnic::host::verbs {

using protocol::CommandOpcode;

RegistrationResult Context::reg_mr(Core& core, std::uint32_t pd, std::uint64_t addr,
                                   std::uint64_t length, std::uint32_t access) {
  core.sync();
  RegistrationResult result = registrar_.reg_mr(space_, pd, addr, length, access);
  core.spend(result.cost);
  if (result.status == Status::kOk) use_pd(pd);
  ++stats_.registration.calls;
  stats_.registration.pages += result.region.npages;
  stats_.registration.time += result.cost;
  return result;
}

Status Context::dereg_mr(Core& core, const MemoryRegion& region) {
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kInvalidateMkey;
  mailbox.invalidate_mkey = {region.lkey, static_cast<std::uint32_t>(region.mtt_base),
                             static_cast<std::uint32_t>(region.mtt_count)};
  core.sync();
  const DeregistrationResult result = registrar_.dereg_mr(space_, region);
  if (result.status != Status::kOk) return result.status;
  leave_pd(region.pd);
  execute(core, mailbox);
  core.spend(result.cost);
  return Status::kOk;
}

}  // namespace rnic::host::verbs
