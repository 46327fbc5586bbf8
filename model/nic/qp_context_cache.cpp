// SPDX-License-Identifier: Apache-2.0
#include "nic/qp_context_cache.h"

namespace rnic::nic {
namespace {

/// A QP's parts are told apart in the low bits of a key; part 0 is the context itself.
constexpr std::uint32_t kPartBits = 6;
constexpr std::uint64_t kResponderPart = 1;
constexpr std::uint64_t kFirstFurtherPart = 2;  ///< of each half in turn

config::CacheConfig half_of(config::CacheConfig whole) {
  whole.entries /= 2;
  return whole;
}

}  // namespace

QpContextCache::QpContextCache(const sc_core::sc_module_name& name, const config::NicConfig& config,
                               std::uint64_t seed, std::uint64_t qpc_base, MissBudget& budget,
                               const QpTable* queue_pairs)
    : sc_module(name),
      qpc_base_(qpc_base),
      fetch_bytes_(config.qpc_fetch),
      queue_pairs_(queue_pairs),
      parted_(config.qpc_layout == config::QpcLayout::kByRole || config.qpc_read_entries > 0),
      by_role_(config.qpc_layout == config::QpcLayout::kByRole),
      write_back_(config.qpc_write_back),
      prefetch_(config.qpc_prefetch),
      dual_entries_(by_role_ ? config.qpc_dual_entries : 0),
      read_entries_(config.qpc_read_entries),
      stage_(this->name(), config.qpc_lookup, Clock(config.clock_hz)),
      cache_(std::string(this->name()),
             config.qpc_cache.split ? half_of(config.qpc_cache) : config.qpc_cache, seed,
             tlm_ext::Purpose::kQpc, budget, stats::StallCause::kContext, stage_.stats()) {
  contexts.bind(*this);
  if (config.qpc_cache.split) {
    responder_cache_ = std::make_unique<ContextCache<QpcLine>>(
        std::string(this->name()) + ".responder", half_of(config.qpc_cache), seed,
        tlm_ext::Purpose::kQpc, budget, stats::StallCause::kContext, stage_.stats());
  }
  if (by_role_ && config.qpc_dual_cache.entries > 0) {
    dual_cache_ = std::make_unique<ContextCache<QpcLine>>(
        std::string(this->name()) + ".dual", config.qpc_dual_cache, seed, tlm_ext::Purpose::kQpc,
        budget, stats::StallCause::kContext, stage_.stats());
  }
  for (ContextCache<QpcLine>* cache : {&cache_, responder_cache_.get(), dual_cache_.get()}) {
    if (cache != nullptr) cache->set_fault_client(this);
  }
}

void QpContextCache::line_unreadable(const LineFetch& line, Time now) {
  const auto qpn = static_cast<std::uint32_t>((line.address - qpc_base_) / QpcLine::kLineBytes);
  QpContext* qp = queue_pairs_ != nullptr ? queue_pairs_->find(qpn) : nullptr;
  if (qp != nullptr && completion.size() > 0) completion->fail_fatally(*qp, now);
}

bool QpContextCache::acquire(QpContext& qp, ContextRole role, Time& t, Waiter* waiter, bool again) {
  const Time looked_up = stage_.pass(t);
  const bool here = parted_ ? acquire_parts(qp, role, looked_up, waiter, again)
                            : acquire_part(cache_of(role), qp.qpn, qp, looked_up, waiter, again);
  if (here) t = looked_up;
  return here;
}

bool QpContextCache::acquire_part(ContextCache<QpcLine>& cache, std::uint64_t key,
                                  const QpContext& qp, Time t, Waiter* waiter, bool again) {
  if (QpcLine* line = cache.lookup(key, again)) {
    line->dirty = write_back_;
    return true;
  }
  // Parts of a QP lie in its 256 B of context memory; what is read is the same for each.
  cache.fetch(LineFetch{key, address_of(qp), fetch_bytes_, 0, key}, t, *dma.operator->(), waiter);
  return false;
}

bool QpContextCache::acquire_parts(QpContext& qp, ContextRole role, Time t, Waiter* waiter,
                                   bool again) {
  const std::uint64_t base = std::uint64_t{qp.qpn} << kPartBits;
  const bool requester = is_requester(role);
  qp.roles_used = static_cast<std::uint8_t>(qp.roles_used | (requester ? 1U : 2U));
  const std::uint32_t further =
      (is_read(role) ? read_entries_ : 0) + (qp.roles_used == 3U ? dual_entries_ : 0);
  // A part that was here stays good while the next is fetched, or small caches made no progress.
  for (std::uint32_t step = again ? waiter->progress : 0U; step <= further; ++step) {
    std::uint64_t part = by_role_ && !requester ? kResponderPart : 0;
    if (step > 0) part = kFirstFurtherPart + 2 * std::uint64_t{step - 1} + (requester ? 0 : 1);
    const bool resumed = again && step == waiter->progress;
    waiter->progress = static_cast<std::uint8_t>(step);
    if (!acquire_part(cache_of(role), base | part, qp, t, waiter, resumed)) return false;
  }
  if (dual_cache_ == nullptr || qp.roles_used != 3U) return true;
  const bool resumed = again && waiter->progress == further + 1;
  waiter->progress = static_cast<std::uint8_t>(further + 1);
  return acquire_part(*dual_cache_, qp.qpn, qp, t, waiter, resumed);
}

void QpContextCache::expect(QpContext& qp, Time t) {
  if (!prefetch_) return;
  const std::uint64_t key = std::uint64_t{qp.qpn} << (parted_ ? kPartBits : 0);
  cache_.prefetch(LineFetch{key, address_of(qp), fetch_bytes_, 0, key}, t, *dma.operator->());
}

}  // namespace rnic::nic
