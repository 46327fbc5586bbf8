// SPDX-License-Identifier: Apache-2.0
// On-demand paging: the driver brings pages in when the device misses them, or ahead of time.
#include <algorithm>

#include "host/verbs.h"
#include "protocol/doorbell.h"
#include "protocol/mtt.h"

namespace rnic::host::verbs {
namespace {

constexpr std::uint64_t kPrefetchChunk = 2U << 20;

}  // namespace

Context::PagedRegion* Context::find_paged(std::uint32_t key) {
  const auto found = on_demand_.find(key);
  return found == on_demand_.end() ? nullptr : found->second.get();
}

const MemoryRegion* Context::region_at(const PagedRegion& paged, std::uint64_t address) {
  if (!paged.region.implicit) return &paged.region;
  const auto child = paged.children.find(address >> protocol::kImplicitChildLog2);
  return child == paged.children.end() ? nullptr : &child->second;
}

std::uint32_t Context::missing_pages(const PagedRegion& paged, std::uint64_t address,
                                     std::uint64_t bytes) const {
  const MemoryRegion* region = region_at(paged, address);
  if (region != nullptr) return registrar_.missing(*region, address, bytes);
  return static_cast<std::uint32_t>(page_span(address, bytes) / kPage4KiB);
}

void Context::start_page_job(PageJob job, Time start, Time ready) {
  job.start = start;
  job.number = ++page_job_numbers_;
  page_jobs_open_.push_back(job);
  page_jobs_.post(ready, job);
}

void Context::handle_page_fault(const protocol::Event& event) {
  ++stats_.page_faults;
  // What the request wants, in units of the driver's own.
  const std::uint64_t unit = memory_config_.odp_granularity;
  const std::uint64_t first = event.address / unit * unit;
  std::uint64_t end =
      (event.address + std::max<std::uint64_t>(1, event.bytes) + unit - 1) / unit * unit;
  const PagedRegion* paged = find_paged(event.number);
  if (paged != nullptr && paged->region.implicit) {  // the next gigabyte is another fault
    end = std::min(end, ((first >> protocol::kImplicitChildLog2) + 1)
                            << protocol::kImplicitChildLog2);
  }
  Time& handler = *std::min_element(fault_handlers_.begin(), fault_handlers_.end());
  const Time start = std::max(handler, sim_now());
  // Whose pages are brought in already, or will be before a handler is free for them, goes on with
  // those who asked for them.
  for (const PageJob& open : page_jobs_open_) {
    const bool covers = open.key == event.number && open.start <= start && open.address <= first &&
                        end - open.address <= open.bytes;
    if (covers) return;
  }
  const std::uint32_t missing = paged == nullptr ? 0 : missing_pages(*paged, first, end - first);
  handler = start;
  if (missing > 0) {
    handler += memory_config_.odp_fault_cost +
               memory_config_.odp_page_cost * static_cast<std::int64_t>(missing);
  }
  if (const Time from = std::max(start, page_faults_until_); handler > from) {
    page_fault_unit_.add_busy(from, handler);
    page_faults_until_ = handler;
  }
  start_page_job({event.number, first, end - first}, start, handler);
}

/// The gigabyte of an implicit region that the job touches first; false: there can be none.
bool Context::make_child(PagedRegion& paged, const PageJob& job) {
  const auto child = registrar_.make_child(paged.region, job.address);
  if (child) paged.children[job.address >> protocol::kImplicitChildLog2] = *child;
  protocol::FaultResumeDoorbell resume;
  resume.key = job.key;
  resume.first_mtt = paged.region.mtt_base + (job.address >> protocol::kImplicitChildLog2);
  resume.count = 1;
  resume.failed = !child;
  resume_device(resume);
  return child.has_value();
}

void Context::pages_ready(PageJob& job) {
  page_jobs_open_.erase(
      std::find_if(page_jobs_open_.begin(), page_jobs_open_.end(),
                   [&job](const PageJob& open) { return open.number == job.number; }));
  protocol::FaultResumeDoorbell resume;
  resume.key = job.key;
  PagedRegion* paged = find_paged(job.key);
  if (paged != nullptr) {  // else who waits learns that the key is gone
    if (region_at(*paged, job.address) == nullptr && !make_child(*paged, job)) return;
    const auto range =
        registrar_.populate(space_, *region_at(*paged, job.address), job.address, job.bytes);
    stats_.pages_on_demand += range.mapped;
    resume.first_mtt = range.first_mtt;
    resume.count = range.count;
    resume.failed = range.failed;
  }
  resume_device(resume);
}

void Context::resume_device(const protocol::FaultResumeDoorbell& resume) {
  std::uint8_t bytes[protocol::FaultResumeDoorbell::kBytes];
  resume.encode(bytes);
  store_buffer_.store(sim_now(), protocol::BarLayout::kFaultResume, bytes, sizeof bytes,
                      tlm_ext::Purpose::kDoorbell);
}

void Context::drop_children(Core& core, PagedRegion& paged) {
  for (const auto& [number, child] : paged.children) {
    registrar_.drop_child(child);
    drop_cached_key(core, child);
  }
  paged.children.clear();
}

Status Context::advise_mr(Core& core, const MemoryRegion& region, std::uint64_t address,
                          std::uint64_t length) {
  enter_kernel(core);
  const PagedRegion* paged = find_paged(region.lkey);
  if (paged == nullptr || length == 0 || address < region.iova || length > region.length ||
      address - region.iova > region.length - length) {
    return Status::kEinval;
  }
  prefetcher_ = std::max(prefetcher_, sim_now());
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t at = address + done;
    const std::uint64_t bytes = std::min(kPrefetchChunk - at % kPrefetchChunk, length - done);
    const Time start = prefetcher_;
    prefetcher_ +=
        memory_config_.odp_page_cost * static_cast<std::int64_t>(missing_pages(*paged, at, bytes));
    start_page_job({region.lkey, at, bytes}, start, prefetcher_);
    done += bytes;
  }
  return Status::kOk;
}

}  // namespace rnic::host::verbs
