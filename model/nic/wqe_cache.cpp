// SPDX-License-Identifier: Apache-2.0
#include "nic/wqe_cache.h"

#include <algorithm>

namespace rnic::nic {

using protocol::kWqeBlockBytes;

WqeCache::Place WqeCache::of_send(const QpContext& qp, const protocol::SendWqe& wqe) {
  const std::uint32_t ring_blocks = 1U << qp.sq_log_blocks;
  const std::uint32_t position = wqe.index & (ring_blocks - 1);
  // Of one that wraps around the ring's end, the first part stands for all.
  const std::uint32_t blocks = std::clamp<std::uint32_t>(wqe.blocks, 1, ring_blocks - position);
  return {(std::uint64_t{qp.qpn} << 16) | wqe.index,
          qp.sq_address + std::uint64_t{position} * kWqeBlockBytes, blocks * kWqeBlockBytes};
}

WqeCache::WqeCache(const sc_core::sc_module_name& name, const config::CacheConfig& config,
                   std::uint64_t seed, tlm_ext::Purpose purpose, MissBudget& budget)
    : sc_module(name),
      stats_(this->name()),
      cache_(std::string(this->name()), config, seed, purpose, budget, stats::StallCause::kWqe,
             stats_) {}

bool WqeCache::acquire(const Place& place, Time t, Waiter* waiter, bool again) {
  if (cache_.lookup(place.key, again) != nullptr) return true;
  cache_.fetch(LineFetch{place.key, place.address, place.bytes, 0, place.key}, t, *dma.operator->(),
               waiter);
  return false;
}

}  // namespace rnic::nic
