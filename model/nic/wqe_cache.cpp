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
          qp.sq_address + std::uint64_t{position} * kWqeBlockBytes, blocks * kWqeBlockBytes,
          qp.sq_address, ring_blocks * kWqeBlockBytes};
}

WqeCache::WqeCache(const sc_core::sc_module_name& name, const config::CacheConfig& config,
                   std::uint64_t seed, tlm_ext::Purpose purpose, MissBudget& budget)
    : sc_module(name),
      stats_(this->name()),
      cache_(std::string(this->name()), config, seed, purpose, budget, stats::StallCause::kWqe,
             stats_),
      refetch_(config.refetch) {}

LineFetch WqeCache::fetch_of(const Place& place) const {
  if (refetch_ <= place.bytes || refetch_ > place.ring_bytes) {
    return {place.key, place.address, place.bytes, 0, place.key};
  }
  const std::uint64_t offset = (place.address - place.ring) / refetch_ * refetch_;
  return {place.key, place.ring + offset, refetch_, 0, place.key};
}

bool WqeCache::acquire(const Place& place, Time t, Waiter* waiter, bool again) {
  if (cache_.lookup(place.key, again) != nullptr) return true;
  cache_.fetch(fetch_of(place), t, *dma.operator->(), waiter);
  return false;
}

}  // namespace rnic::nic
