// SPDX-License-Identifier: Apache-2.0
#include "nic/qp_context_cache.h"

namespace rnic::nic {

QpContextCache::QpContextCache(const sc_core::sc_module_name& name, const config::NicConfig& config,
                               std::uint64_t seed, std::uint64_t qpc_base, MissBudget& budget)
    : sc_module(name),
      qpc_base_(qpc_base),
      stage_(this->name(), config.qpc_lookup, Clock(config.clock_hz)),
      cache_(std::string(this->name()), config.qpc_cache, seed, tlm_ext::Purpose::kQpc, budget,
             stats::StallCause::kContext, stage_.stats()) {
  contexts.bind(*this);
}

bool QpContextCache::acquire(QpContext& qp, ContextRole /*role*/, Time& t, Waiter* waiter,
                             bool again) {
  const Time looked_up = stage_.pass(t);
  if (cache_.lookup(qp.qpn, again) != nullptr) {
    t = looked_up;
    return true;
  }
  cache_.fetch(qp.qpn, qpc_base_ + std::uint64_t{qp.qpn} * QpcLine::kLineBytes, looked_up,
               *dma.operator->(), waiter);
  return false;
}

}  // namespace rnic::nic
