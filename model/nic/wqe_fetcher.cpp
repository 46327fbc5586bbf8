// SPDX-License-Identifier: Apache-2.0
#include "nic/wqe_fetcher.h"

#include <algorithm>

#include "base/sc_time.h"
#include "transport/work_check.h"

namespace rnic::nic {

using protocol::kWqeBlockBytes;
using stats::Stage;

WqeFetcher::WqeFetcher(const sc_core::sc_module_name& name, const config::NicConfig& config)
    : sc_module(name),
      prefetch_(config.wqe_prefetch),
      buffered_(config.wqe_buffer),
      fetches_of_qp_(std::max(2U, config.wqe_buffer / config.wqe_prefetch) - 1),
      stage_(this->name(), config.wqe_decode, Clock(config.clock_hz)) {
  wqes.bind(*this);
}

/// WQEs that have been decoded and not been sent.
std::size_t WqeFetcher::waiting(const QpContext& qp) {
  return qp.sq.size() -
         static_cast<std::size_t>(std::min<std::uint64_t>(qp.tx_number - qp.sq_base, qp.sq.size()));
}

/// Whether one read more finds room for what it brings. One place is that of the WQE in work.
bool WqeFetcher::room_for(const QpContext& qp) const {
  if (qp.sq_fetches >= fetches_of_qp_) return false;
  const std::size_t taken = waiting(qp) + qp.sq_coming;
  return taken == 0 || taken + prefetch_ < buffered_;
}

void WqeFetcher::fetch(QpContext& qp, Time t) {
  if (qp.sq_read_failures >= kReadAttempts) return;
  // A WQE that the last read cut says in its first block how many more it has.
  const bool keeps = qp.sq_cut != nullptr;
  const auto kept = static_cast<std::uint32_t>(keeps ? qp.sq_cut->size() / kWqeBlockBytes : 0);
  while (room_for(qp)) {
    const std::uint32_t known = kept + qp.sq_coming;
    const std::uint32_t posted = static_cast<std::uint16_t>(qp.sq_producer - qp.sq_fetched) - known;
    if (posted == 0) return;
    const bool cut = kept > 0 && qp.sq_coming == 0;
    const std::uint32_t missing = cut ? protocol::peek_wqe_blocks(qp.sq_cut->data()) - kept : 0;
    start(qp, qp.sq_fetched + known, std::min(posted, std::max(prefetch_, missing)), t);
  }
}

void WqeFetcher::start(QpContext& qp, std::uint32_t first, std::uint32_t blocks, Time t) {
  const std::uint32_t ring_blocks = 1U << qp.sq_log_blocks;
  const std::uint32_t position = first & (ring_blocks - 1);
  WqeFetch* fetch = fetches_pool_.take();
  fetch->qp = &qp;
  fetch->next = nullptr;
  fetch->blocks = blocks;
  fetch->bytes.resize(std::size_t{blocks} * kWqeBlockBytes);
  fetch->failed = fetch->forsaken = false;
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(in_flight_.size()));
    in_flight_.push_back(nullptr);
  }
  fetch->slot = free_slots_.back();
  free_slots_.pop_back();
  in_flight_[fetch->slot] = fetch;
  ++qp.sq_fetches;
  qp.sq_coming += blocks;
  (qp.sq_newest != nullptr ? qp.sq_newest->next : qp.sq_oldest) = fetch;
  qp.sq_newest = fetch;
  ++fetches_;
  fetch->idle = scheduler->idle_time();
  const std::uint32_t before_wrap = std::min(blocks, ring_blocks - position);
  fetch->parts = before_wrap < blocks ? 2 : 1;
  std::uint8_t* into = fetch->bytes.data();
  dma->dma_read(t, qp.sq_address + std::uint64_t{position} * kWqeBlockBytes,
                before_wrap * kWqeBlockBytes, into, tlm_ext::Purpose::kWqe, this, fetch->slot);
  if (before_wrap < blocks) {
    dma->dma_read(t, qp.sq_address, (blocks - before_wrap) * kWqeBlockBytes,
                  into + std::size_t{before_wrap} * kWqeBlockBytes, tlm_ext::Purpose::kWqe, this,
                  fetch->slot);
  }
}

void WqeFetcher::dma_done(std::uint64_t token) {
  WqeFetch* fetch = in_flight_[token];
  if (--fetch->parts > 0) return;
  if (fetch->forsaken) {
    give(fetch);
  } else {
    take(*fetch->qp, sim_now());
  }
}

/// What follows the `used` blocks of `bytes` is the beginning of a WQE.
void WqeFetcher::keep_cut(QpContext& qp, const std::vector<std::uint8_t>& bytes,
                          std::uint32_t used) {
  const auto rest = bytes.begin() + std::ptrdiff_t{used} * std::ptrdiff_t{kWqeBlockBytes};
  if (qp.sq_cut == nullptr && rest == bytes.end()) return;
  if (qp.sq_cut == nullptr) qp.sq_cut = std::make_unique<std::vector<std::uint8_t>>();
  qp.sq_cut->assign(rest, bytes.end());
}

void WqeFetcher::take(QpContext& qp, Time now) {
  while (qp.sq_oldest != nullptr && qp.sq_oldest->parts == 0) {
    WqeFetch* fetch = qp.sq_oldest;
    qp.sq_oldest = fetch->next;
    if (qp.sq_oldest == nullptr) qp.sq_newest = nullptr;
    --qp.sq_fetches;
    qp.sq_coming -= fetch->blocks;
    if (fetch->failed) {
      give(fetch);
      forsake(qp);
      read_failed(qp, now);
      return;
    }
    const bool idle = transport::Transport::idle(qp);
    if (waiting(qp) == 0) count_starvation(*fetch);
    const Time first_start = stage_.start_of(now);
    std::vector<std::uint8_t>& bytes = fetch->bytes;
    if (qp.sq_cut != nullptr) bytes.insert(bytes.begin(), qp.sq_cut->begin(), qp.sq_cut->end());
    const std::uint32_t used =
        decode(qp, bytes.data(), static_cast<std::uint32_t>(bytes.size() / kWqeBlockBytes), now);
    qp.sq_fetched = static_cast<std::uint16_t>(qp.sq_fetched + used);
    keep_cut(qp, bytes, used);
    give(fetch);
    if (qp.flushes_sends()) {
      completion->retire(qp, now);
    } else if (idle) {
      scheduler->activate(qp, used == 0 ? now : first_start + stage_.latency());
    }
  }
}

void WqeFetcher::give(WqeFetch* fetch) {
  in_flight_[fetch->slot] = nullptr;
  free_slots_.push_back(fetch->slot);
  fetches_pool_.give(fetch);
}

void WqeFetcher::dma_failed(const pcie::DmaFault& fault) {
  in_flight_[fault.token]->failed = true;
  dma_done(fault.token);
}

/// What comes behind a read that failed has no beginning, either.
void WqeFetcher::forsake(QpContext& qp) {
  for (WqeFetch* fetch = qp.sq_oldest; fetch != nullptr;) {
    WqeFetch* next = fetch->next;
    fetch->forsaken = true;
    if (fetch->parts == 0) give(fetch);
    fetch = next;
  }
  qp.sq_oldest = qp.sq_newest = nullptr;
  qp.sq_fetches = qp.sq_coming = 0;
}

/// Nobody knows what the work is: the queue pair is lost (mlx5: a catastrophic error of its work
/// queue). What was posted is read once more, to be flushed.
void WqeFetcher::read_failed(QpContext& qp, Time now) {
  if (qp.state == protocol::QpState::kReset) return;
  ++qp.sq_read_failures;
  if (qp.state == protocol::QpState::kError) {
    completion->retire(qp, now);
  } else {
    completion->fail_fatally(qp, now);
  }
}

void WqeFetcher::count_starvation(const WqeFetch& fetch) {
  const Time idle = scheduler->idle_time();
  const Time from = std::max(fetch.idle, idle_counted_);
  if (idle <= from) return;
  stage_.stats().add_stall(stats::StallCause::kWqe, idle - from);
  idle_counted_ = idle;
}

bool WqeFetcher::blueflame(QpContext& qp, const std::uint8_t* blocks, std::uint32_t count, Time t) {
  const auto expected = static_cast<std::uint16_t>(qp.sq_fetched + count);
  if (qp.sq_fetches > 0 || qp.sq_producer != expected) return false;
  const std::uint32_t used = decode(qp, blocks, count, t);
  qp.sq_fetched = static_cast<std::uint16_t>(qp.sq_fetched + used);
  return used == count;
}

std::uint32_t WqeFetcher::decode(QpContext& qp, const std::uint8_t* bytes, std::uint32_t count,
                                 Time t) {
  std::uint32_t used = 0;
  while (used < count) {
    const std::uint8_t* at = bytes + std::size_t{used} * kWqeBlockBytes;
    const std::uint32_t size = std::max(1U, protocol::peek_wqe_blocks(at));
    if (used + size > count) break;
    const Time decoded = stage_.pass(t);
    qp.sq_decoded = decoded - stage_.latency();
    transport::SendEntry& entry = qp.sq.push_slot();
    entry.issued = entry.finished = entry.placing = false;
    entry.status = protocol::WcStatus::kSuccess;
    entry.responded = 0;
    entry.decode_start = qp.sq_decoded;
    if (!protocol::decode_wqe(at, std::size_t{size} * kWqeBlockBytes, entry.wqe, qp.type)) {
      entry.wqe.blocks = static_cast<std::uint8_t>(size);
      entry.status = protocol::WcStatus::kLocalQpOperationError;
      entry.finished = true;
    } else if (const auto status = transport::check_work(qp, entry.wqe);
               status != protocol::WcStatus::kSuccess) {
      entry.status = status;
      entry.finished = true;
    }
    const auto index = static_cast<std::uint16_t>(qp.sq_fetched + used);
    entry.wqe.index = index;
    if (cache_ != nullptr && !entry.finished && (entry.wqe.is_read() || entry.wqe.is_atomic())) {
      cache_->hold(WqeCache::of_send(qp, entry.wqe));
    }
    entry.trace = traces_ != nullptr ? traces_->trace_of(qp.qpn, index) : nullptr;
    if (entry.trace != nullptr) {
      entry.trace->mark(Stage::kDoorbell, qp.doorbell_at);
      entry.trace->mark(Stage::kSqSchedule, qp.picked_at);
      entry.trace->mark(Stage::kQpContext, qp.context_at);
      entry.trace->mark(Stage::kWqeFetch, decoded);
    }
    used += size;
  }
  return used;
}

}  // namespace rnic::nic
