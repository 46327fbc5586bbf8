// SPDX-License-Identifier: Apache-2.0
// On-demand paging: the driver brings pages in when the device misses them, or ahead of time.
#include <algorithm>

#include "host/verbs.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {
namespace {

constexpr std::uint64_t kPrefetchChunk = 2U << 20;

}  // namespace

void Context::handle_page_fault(const protocol::Event& event) {
  ++stats_.page_faults;
  // What the request wants, in units of the driver's own.
  const std::uint64_t unit = memory_config_.odp_granularity;
  const std::uint64_t first = event.address / unit * unit;
  const std::uint64_t end =
      (event.address + std::max<std::uint64_t>(1, event.bytes) + unit - 1) / unit * unit;
  const PageJob job{event.number, first, end - first};
  const auto region = on_demand_.find(event.number);
  const std::uint32_t missing =
      region == on_demand_.end() ? 0 : registrar_.missing(region->second, first, end - first);
  Time& handler = *std::min_element(fault_handlers_.begin(), fault_handlers_.end());
  handler = std::max(handler, sim_now());
  if (missing > 0) {
    handler += memory_config_.odp_fault_cost +
               memory_config_.odp_page_cost * static_cast<std::int64_t>(missing);
  }
  page_jobs_.post(handler, job);
}

void Context::pages_ready(PageJob& job) {
  protocol::FaultResumeDoorbell resume;
  resume.key = job.key;
  const auto region = on_demand_.find(job.key);
  if (region != on_demand_.end()) {  // else who waits learns that the key is gone
    const auto range = registrar_.populate(space_, region->second, job.address, job.bytes);
    stats_.pages_on_demand += range.mapped;
    resume.first_mtt = range.first_mtt;
    resume.count = range.count;
  }
  std::uint8_t bytes[protocol::FaultResumeDoorbell::kBytes];
  resume.encode(bytes);
  store_buffer_.store(sim_now(), protocol::BarLayout::kFaultResume, bytes, sizeof bytes,
                      tlm_ext::Purpose::kDoorbell);
}

Status Context::advise_mr(Core& core, const MemoryRegion& region, std::uint64_t address,
                          std::uint64_t length) {
  enter_kernel(core);
  if (on_demand_.count(region.lkey) == 0 || length == 0 || address < region.iova ||
      length > region.length || address - region.iova > region.length - length) {
    return Status::kEinval;
  }
  prefetcher_ = std::max(prefetcher_, sim_now());
  for (std::uint64_t done = 0; done < length; done += kPrefetchChunk) {
    const std::uint64_t bytes = std::min(kPrefetchChunk, length - done);
    const std::uint32_t pages = registrar_.missing(region, address + done, bytes);
    prefetcher_ += memory_config_.odp_page_cost * static_cast<std::int64_t>(pages);
    page_jobs_.post(prefetcher_, PageJob{region.lkey, address + done, bytes});
  }
  return Status::kOk;
}

}  // namespace rnic::host::verbs
