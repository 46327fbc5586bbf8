// SPDX-License-Identifier: Apache-2.0
#include "nic/translation_unit.h"

#include <algorithm>

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::nic {

void Translation::resume(Time now) { unit->proceed(*this, now); }

TranslationUnit::TranslationUnit(const sc_core::sc_module_name& name,
                                 const config::NicConfig& config, std::uint64_t seed,
                                 std::uint64_t mpt_base, std::uint64_t mtt_base,
                                 std::uint32_t mpt_entries, MissBudget& budget)
    : sc_module(name),
      mpt_base_(mpt_base),
      mtt_base_(mtt_base),
      mpt_entries_(mpt_entries),
      stage_(this->name(), config.translation, Clock(config.clock_hz)),
      mpt_(std::string(this->name()) + ".mpt_cache", config.mpt_cache, seed, tlm_ext::Purpose::kMpt,
           budget, stats::StallCause::kTranslation, stage_.stats()),
      mtt_(std::string(this->name()) + ".mtt_cache", config.mtt_cache, seed, tlm_ext::Purpose::kMtt,
           budget, stats::StallCause::kTranslation, stage_.stats()) {
  translation.bind(*this);
}

void TranslationUnit::translate(Translation& request, Time t) {
  request.unit = this;
  request.segment_count = 0;
  request.done = 0;
  request.counted = request.mtt_counted = request.mpt_kept = false;
  request.started = t;
  request.result = protocol::AccessResult::kOk;
  proceed(request, stage_.pass(t));
}

void TranslationUnit::proceed(Translation& request, Time t) {
  const std::uint32_t index = protocol::key_index(request.key);
  if (index >= mpt_entries_) {  // no such entry in the table: no fetch to make
    request.result = protocol::AccessResult::kBadKey;
    answer(request, t);
    return;
  }
  if (request.mpt_kept) {
    if (walk(request, request.mpt, t)) answer(request, t);
    return;
  }
  const bool again = request.counted;
  request.counted = false;
  const MptLine* line = mpt_.lookup(index, again);
  if (line == nullptr) {
    request.counted = true;
    mpt_.fetch(index, mpt_base_ + std::uint64_t{index} * MptLine::kLineBytes, t, *dma.operator->(),
               &request);
    return;
  }
  const protocol::MptEntry& mpt = line->entry;
  request.result = protocol::check_access(mpt, request.key, request.pd, request.check_address,
                                          request.check_length, request.needed_access, request.qpn);
  if (request.result != protocol::AccessResult::kOk || walk(request, mpt, t)) answer(request, t);
}

bool TranslationUnit::walk(Translation& request, const protocol::MptEntry& mpt, Time t) {
  while (request.done < request.length) {
    const protocol::MttLocation at = protocol::locate(mpt, request.address + request.done);
    const std::uint64_t line_number = at.index / MttLine::kEntries;
    const bool again = request.mtt_counted;
    request.mtt_counted = false;
    const MttLine* line = mtt_.lookup(line_number, again);
    if (line == nullptr) {
      request.mtt_counted = true;
      // Kept: requests that evict each other's entries would make no progress otherwise.
      request.mpt = mpt;
      request.mpt_kept = true;
      mtt_.fetch(line_number, mtt_base_ + line_number * MttLine::kLineBytes, t, *dma.operator->(),
                 &request);
      return false;
    }
    const protocol::MttEntry& entry = line->entries[at.index % MttLine::kEntries];
    if ((mpt.access & protocol::kAccessOnDemand) != 0 && !entry.present()) {
      return fault(request, at.index);
    }
    const auto bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(request.length - request.done, mpt.page_size() - at.offset));
    append(request, entry.address + at.offset, bytes);
    request.done += bytes;
  }
  return true;
}

bool TranslationUnit::fault(Translation& request, std::uint64_t mtt) {
  if (faults_.insert(mtt).second && events.size() > 0) {
    ++page_faults_;
    const std::uint64_t address = request.address + request.done;
    const std::uint64_t bytes = request.check_address + request.check_length - address;
    events->raise({protocol::EventType::kPageFault, request.key, address, bytes}, sim_now());
  }
  if (request.refuse_faults) {
    request.result = protocol::AccessResult::kPageFault;
    return true;
  }
  // What is translated already may have changed when the page is there.
  request.done = 0;
  request.segment_count = 0;
  request.mpt_kept = false;
  fault_waiters_.push(&request);
  return false;
}

void TranslationUnit::resume_faults(const protocol::FaultResumeDoorbell& resume, Time t) {
  const std::uint64_t end = resume.first_mtt + resume.count;
  faults_.erase(faults_.lower_bound(resume.first_mtt), faults_.lower_bound(end));
  for (std::uint64_t line = resume.first_mtt / MttLine::kEntries; line * MttLine::kEntries < end;
       ++line) {
    mtt_.invalidate(line);
  }
  fault_waiters_.resume_all(t);
}

void TranslationUnit::append(Translation& request, std::uint64_t address, std::uint32_t bytes) {
  if (request.segment_count > 0) {
    BusSegment& last = request.segments[request.segment_count - 1];
    if (last.address + last.bytes == address) {
      last.bytes += bytes;
      return;
    }
  }
  if (request.segment_count == Translation::kMaxSegments) {
    panic("translation", "a packet's payload lies in more runs of pages than a request holds");
  }
  request.segments[request.segment_count++] = BusSegment{address, bytes};
}

void TranslationUnit::answer(Translation& request, Time t) {
  request.client->translated(request, t);
}

void TranslationUnit::invalidate(std::uint32_t key, std::uint32_t first_mtt, std::uint32_t count) {
  mpt_.invalidate(protocol::key_index(key));
  if (count == 0) return;
  faults_.erase(faults_.lower_bound(first_mtt),
                faults_.lower_bound(std::uint64_t{first_mtt} + count));
  const std::uint64_t first_line = first_mtt / MttLine::kEntries;
  const std::uint64_t last_line = (std::uint64_t{first_mtt} + count - 1) / MttLine::kEntries;
  for (std::uint64_t line = first_line; line <= last_line; ++line) mtt_.invalidate(line);
}

}  // namespace rnic::nic
