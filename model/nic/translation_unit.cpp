// SPDX-License-Identifier: Apache-2.0
#include "nic/translation_unit.h"

#include <algorithm>

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::nic {
namespace {

/// What one of the caches is like when each half of a QP has its own.
config::CacheConfig shared_part(config::CacheConfig cache) {
  if (cache.split) cache.entries /= 2;
  return cache;
}

}  // namespace

void Translation::resume(Time now) {
  if (failed) {
    failed = false;
    unit->unreadable(*this, now);
  } else {
    unit->proceed(*this, now);
  }
}

void TranslationUnit::unreadable(Translation& request, Time t) {
  request.result = protocol::AccessResult::kUnreadable;
  answer(request, t);
}

TranslationUnit::TranslationUnit(const sc_core::sc_module_name& name,
                                 const config::NicConfig& config, std::uint64_t seed,
                                 std::uint64_t mpt_base, std::uint64_t mtt_base,
                                 std::uint32_t mpt_entries, MissBudget& budget)
    : sc_module(name),
      mpt_base_(mpt_base),
      mtt_base_(mtt_base),
      mpt_entries_(mpt_entries),
      mtt_line_log2_(static_cast<std::uint32_t>(__builtin_ctz(config.mtt_line))),
      mtt_reach_(config.mtt_reach),
      mtt_fanout_(config.mtt_fanout),
      order_(config.translation_order),
      flushes_(config.dereg_flushes_mtt),
      stage_(this->name(), config.translation, Clock(config.clock_hz)),
      page_interval_(Clock(config.clock_hz).cycles(config.translation_page_interval)),
      mpt_(std::string(this->name()) + ".mpt_cache", shared_part(config.mpt_cache), seed,
           tlm_ext::Purpose::kMpt, budget, stats::StallCause::kTranslation, stage_.stats(),
           Clock(config.clock_hz).cycles(config.translation_l1_latency)),
      mtt_(std::string(this->name()) + ".mtt_cache", shared_part(config.mtt_cache), seed,
           tlm_ext::Purpose::kMtt, budget, stats::StallCause::kTranslation, stage_.stats(),
           Clock(config.clock_hz).cycles(config.translation_l1_latency)) {
  translation.bind(*this);
  const Time second_level = Clock(config.clock_hz).cycles(config.translation_l1_latency);
  if (config.mpt_cache.split) {
    responder_mpt_ = std::make_unique<ContextCache<MptLine>>(
        std::string(this->name()) + ".mpt_cache.responder", shared_part(config.mpt_cache), seed,
        tlm_ext::Purpose::kMpt, budget, stats::StallCause::kTranslation, stage_.stats(),
        second_level);
  }
  if (config.mtt_cache.split) {
    responder_mtt_ = std::make_unique<ContextCache<MttLine>>(
        std::string(this->name()) + ".mtt_cache.responder", shared_part(config.mtt_cache), seed,
        tlm_ext::Purpose::kMtt, budget, stats::StallCause::kTranslation, stage_.stats(),
        second_level);
  }
  mpt_of_ = {&mpt_, responder_mpt_ != nullptr ? responder_mpt_.get() : &mpt_};
  mtt_of_ = {&mtt_, responder_mtt_ != nullptr ? responder_mtt_.get() : &mtt_};
}

std::uint32_t TranslationUnit::directories(std::uint64_t mtt_count) const {
  std::uint32_t levels = 0;
  for (std::uint64_t reach = mtt_reach_; mtt_count > reach; reach *= mtt_fanout_) ++levels;
  return levels;
}

TranslationUnit::Queue& TranslationUnit::queue_of(const Translation& request) {
  const bool strict = order_ == config::TranslationOrder::kStrict;
  return queues_[strict ? 0 : 2 * std::uint64_t{request.qpn} + (request.responder ? 1 : 0)];
}

void TranslationUnit::translate(Translation& request, Time t) {
  request.unit = this;
  request.segment_count = 0;
  request.done = request.pages = 0;
  request.counted = request.follows_check;
  request.mtt_counted = request.mpt_kept = false;
  request.child = 0;
  request.resolved = request.queued = false;
  request.started = t;
  request.result = protocol::AccessResult::kOk;
  if (waiting_ > 0) {
    // Somebody waits for a miss: those who must not overtake him line up behind.
    Queue& queue = queue_of(request);
    if (!queue.empty()) {
      request.queued = true;
      ++waiting_;
      queue.push_back(&request);
    }
  }
  proceed(request, request.follows_check ? t : stage_.pass(t));
}

void TranslationUnit::expect(const ExpectedAccess& access, Time t) {
  const std::uint32_t index = protocol::key_index(access.key);
  if (order_ != config::TranslationOrder::kFree || access.bytes == 0 || index >= mpt_entries_) {
    return;
  }
  const std::size_t half = access.responder ? 1 : 0;
  t = stage_.pass(t);
  const MptLine* line = mpt_of_[half]->lookup(index, true);
  if (line == nullptr) {
    const std::uint64_t at = mpt_base_ + std::uint64_t{index} * MptLine::kLineBytes;
    mpt_of_[half]->expect(LineFetch{index, at, MptLine::kLineBytes, 0, index}, t,
                          *dma.operator->());
    return;
  }
  const protocol::MptEntry& mpt = line->entry;
  const bool inside = mpt.key == access.key && mpt.state == protocol::MptState::kValid &&
                      mpt.type != protocol::MptType::kImplicit && access.address >= mpt.start &&
                      access.bytes <= mpt.length &&
                      access.address - mpt.start <= mpt.length - access.bytes;
  if (!inside) return;  // it will be refused, or needs more than one step
  const std::uint32_t bytes = protocol::MttEntry::kBytes << mtt_line_log2_;
  const std::uint64_t first = protocol::locate(mpt, access.address).index >> mtt_line_log2_;
  const std::uint64_t last =
      protocol::locate(mpt, access.address + access.bytes - 1).index >> mtt_line_log2_;
  for (std::uint64_t number = first; number <= last; ++number) {
    mtt_of_[half]->expect(
        LineFetch{number, mtt_base_ + number * bytes, bytes, directories(mpt.mtt_count), number}, t,
        *dma.operator->());
  }
}

void TranslationUnit::wait_for_turn(Translation& request) {
  if (request.queued || order_ == config::TranslationOrder::kFree) return;
  request.queued = true;
  ++waiting_;
  queue_of(request).push_back(&request);
}

void TranslationUnit::go_on(Translation& request, const protocol::MptEntry& mpt, Time t) {
  if (walk(request, mpt, t)) answer(request, t);
}

void TranslationUnit::proceed(Translation& request, Time t) {
  const std::uint32_t index = protocol::key_index(request.child != 0 ? request.child : request.key);
  if (index >= mpt_entries_) {  // no such entry in the table: no fetch to make
    request.result = protocol::AccessResult::kBadKey;
    answer(request, t);
    return;
  }
  if (request.mpt_kept) {
    go_on(request, request.mpt, t);
    return;
  }
  const bool again = request.counted;
  request.counted = false;
  ContextCache<MptLine>& cache = *mpt_of_[request.responder ? 1 : 0];
  const MptLine* line = cache.lookup(index, again, t);
  if (line == nullptr) {
    request.counted = true;
    wait_for_turn(request);
    cache.fetch(index, mpt_base_ + std::uint64_t{index} * MptLine::kLineBytes, t, *dma.operator->(),
                &request);
    return;
  }
  const protocol::MptEntry& mpt = line->entry;
  if (request.child != 0) {  // reached through its parent, which has been checked
    if (mpt.key == request.child && mpt.state == protocol::MptState::kValid) {
      go_on(request, mpt, t);
    } else {
      request.result = protocol::AccessResult::kInvalidState;
      answer(request, t);
    }
    return;
  }
  request.result = protocol::check_access(mpt, request.key, request.pd, request.check_address,
                                          request.check_length, request.needed_access, request.qpn);
  const bool no_such_key = request.result == protocol::AccessResult::kBadKey ||
                           request.result == protocol::AccessResult::kInvalidState;
  if (no_such_key) {
    // The driver may register another region there without a word to the device: not to be kept.
    cache.invalidate(index);
    answer(request, t);
    return;
  }
  if (request.result != protocol::AccessResult::kOk || request.length == 0) {
    answer(request, t);
  } else if (mpt.type == protocol::MptType::kImplicit) {
    find_child(request, mpt, t);
  } else {
    go_on(request, mpt, t);
  }
}

/// The part of an implicit region that the next byte lies in.
void TranslationUnit::find_child(Translation& request, const protocol::MptEntry& implicit, Time t) {
  const std::uint64_t number = (request.address + request.done) >> protocol::kImplicitChildLog2;
  if (number >= implicit.mtt_count) {  // above what a process can have
    request.result = protocol::AccessResult::kOutOfBounds;
    answer(request, t);
    return;
  }
  const std::uint64_t index = implicit.mtt_base + number;
  ContextCache<MttLine>& cache = *mtt_of_[request.responder ? 1 : 0];
  const bool again = request.mtt_counted;
  request.mtt_counted = false;
  const MttLine* line = cache.lookup(index >> mtt_line_log2_, again, t);
  if (line == nullptr) {
    request.mtt_counted = true;
    request.mpt = implicit;
    wait_for_turn(request);
    fetch_mtt(cache, request, index >> mtt_line_log2_, t);
    return;
  }
  const protocol::MttEntry& entry = line->entries[index & ((1U << mtt_line_log2_) - 1)];
  if (!entry.present()) {
    if (fault(request, index)) answer(request, t);
    return;
  }
  request.child = entry.child_key();
  proceed(request, t);
}

bool TranslationUnit::walk(Translation& request, const protocol::MptEntry& mpt, Time& when) {
  Time t = when;
  ContextCache<MttLine>& cache = *mtt_of_[request.responder ? 1 : 0];
  while (request.done < request.length) {
    if (mpt.type == protocol::MptType::kImplicitChild &&
        request.address + request.done - mpt.start >= mpt.length) {
      request.child = 0;  // on into the next one
      request.mpt_kept = false;
      proceed(request, t);
      return false;
    }
    const protocol::MttLocation at = protocol::locate(mpt, request.address + request.done);
    const std::uint64_t line_number = at.index >> mtt_line_log2_;
    const bool again = request.mtt_counted;
    request.mtt_counted = false;
    const MttLine* line = cache.lookup(line_number, again, t);
    if (line == nullptr) {
      request.mtt_counted = true;
      // Kept: requests that evict each other's entries would make no progress otherwise.
      request.mpt = mpt;
      request.mpt_kept = true;
      wait_for_turn(request);
      fetch_mtt(cache, request, line_number, t);
      return false;
    }
    const protocol::MttEntry& entry = line->entries[at.index & ((1U << mtt_line_log2_) - 1)];
    if ((mpt.access & protocol::kAccessOnDemand) != 0 && !entry.present()) {
      when = t;
      return fault(request, at.index);
    }
    const auto bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(request.length - request.done, mpt.page_size() - at.offset));
    append(request, entry.address + at.offset, bytes);
    request.done += bytes;
    ++request.pages;
  }
  when = t;
  return true;
}

bool TranslationUnit::fault(Translation& request, std::uint64_t mtt) {
  if (refused_.erase(mtt) > 0) {
    request.result = protocol::AccessResult::kOutOfBounds;
    return true;
  }
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
  request.child = 0;
  fault_waiters_.push(&request);
  return false;
}

void TranslationUnit::resume_faults(const protocol::FaultResumeDoorbell& resume, Time t) {
  const auto first = faults_.lower_bound(resume.first_mtt);
  const auto end = faults_.lower_bound(resume.first_mtt + resume.count);
  if (resume.failed) refused_.insert(first, end);
  faults_.erase(first, end);
  if (resume.count > 0) invalidate_mtts(resume.first_mtt, resume.count);
  fault_waiters_.resume_all(t);
}

void TranslationUnit::fetch_mtt(ContextCache<MttLine>& cache, Translation& request,
                                std::uint64_t line, Time t) {
  const protocol::MptEntry& mpt = request.mpt;
  const std::uint32_t bytes = protocol::MttEntry::kBytes << mtt_line_log2_;
  const std::uint64_t last = (mpt.mtt_base + mpt.mtt_count - 1) >> mtt_line_log2_;
  cache.fetch(LineFetch{line, mtt_base_ + line * bytes, bytes, directories(mpt.mtt_count), last}, t,
              *dma.operator->(), &request);
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
  if (page_interval_ > kTimeZero && request.pages > 1) {
    t = stage_.occupy(t, page_interval_ * static_cast<std::int64_t>(request.pages - 1));
  }
  if (!request.queued) {
    request.client->translated(request, t);
    return;
  }
  request.resolved = true;
  request.resolved_at = t;
  deliver(queue_of(request), t);
}

void TranslationUnit::deliver(Queue& queue, Time t) {
  // A client may ask for more from within its answer; it lines up behind.
  while (!queue.empty() && queue.front()->resolved) {
    Translation* request = queue.front();
    queue.pop_front();
    --waiting_;
    t = std::max(t, request->resolved_at);
    request->client->translated(*request, t);
  }
}

void TranslationUnit::invalidate(std::uint32_t key, std::uint32_t first_mtt, std::uint32_t count) {
  const std::uint32_t index = protocol::key_index(key);
  mpt_.invalidate(index);
  if (responder_mpt_ != nullptr) responder_mpt_->invalidate(index);
  if (count == 0) return;
  for (std::set<std::uint64_t>* marks : {&faults_, &refused_}) {
    marks->erase(marks->lower_bound(first_mtt),
                 marks->lower_bound(std::uint64_t{first_mtt} + count));
  }
  invalidate_mtts(first_mtt, count);
  if (!flushes_) return;
  mtt_.forget_all();
  if (responder_mtt_ != nullptr) responder_mtt_->forget_all();
}

void TranslationUnit::invalidate_mtts(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t first_line = first >> mtt_line_log2_;
  const std::uint64_t last_line = (first + count - 1) >> mtt_line_log2_;
  for (std::uint64_t line = first_line; line <= last_line; ++line) {
    mtt_.invalidate(line);
    if (responder_mtt_ != nullptr) responder_mtt_->invalidate(line);
  }
}

}  // namespace rnic::nic
