// SPDX-License-Identifier: Apache-2.0
#include "simulation/traffic.h"

#include <algorithm>
#include <numeric>

#include "base/rng.h"

namespace rnic::testbench {
namespace {

std::vector<HostPair> permutation(std::uint32_t hosts, std::uint64_t seed) {
  // Sattolo's shuffle makes one cycle through all hosts, so that none is its own partner.
  std::vector<std::uint32_t> partner(hosts);
  std::iota(partner.begin(), partner.end(), 0U);
  Rng rng(seed, "traffic.permutation");
  for (std::uint32_t i = hosts - 1; i > 0; --i) {
    std::swap(partner[i], partner[static_cast<std::size_t>(rng.below(i))]);
  }
  std::vector<HostPair> pairs;
  for (std::uint32_t i = 0; i < hosts; ++i) pairs.emplace_back(i, partner[i]);
  return pairs;
}

}  // namespace

std::vector<HostPair> traffic_matrix(const config::Config& config) {
  const std::uint32_t hosts = config.fabric.hosts;
  std::vector<HostPair> pairs;
  switch (config.workload.traffic) {
    case config::Traffic::kPair:
      for (std::uint32_t i = 0; i + 1 < hosts; i += 2) pairs.emplace_back(i, i + 1);
      break;
    case config::Traffic::kIncast:
      for (std::uint32_t i = 1; i < hosts; ++i) pairs.emplace_back(i, 0);
      break;
    case config::Traffic::kAllToAll:
      for (std::uint32_t i = 0; i < hosts; ++i) {
        for (std::uint32_t k = 1; k < hosts; ++k) pairs.emplace_back(i, (i + k) % hosts);
      }
      break;
    case config::Traffic::kPermutation:
      pairs = permutation(hosts, config.sim.seed);
      break;
    case config::Traffic::kLoopback:
      for (std::uint32_t i = 0; i < hosts; ++i) pairs.emplace_back(i, i);
      break;
    case config::Traffic::kRing:
      for (std::uint32_t i = 0; i < hosts; ++i) pairs.emplace_back(i, (i + 1) % hosts);
      break;
  }
  return pairs;
}

namespace {

/// Makes entry `by` (modulo its length) of a repeated list the first.
void rotate(std::vector<std::uint64_t>& list, std::uint32_t by) {
  if (list.empty()) return;
  const auto steps = static_cast<std::ptrdiff_t>(by % list.size());
  std::rotate(list.begin(), list.begin() + steps, list.end());
}

}  // namespace

std::vector<config::Config> thread_configs(const config::Config& config) {
  const std::uint32_t threads = config.workload.threads;
  std::vector<config::Config> shares(threads, config);
  std::uint32_t first_qp = 0;
  for (std::uint32_t t = 0; t < threads; ++t) {
    config::WorkloadConfig& w = shares[t].workload;
    w.qps = config.workload.qps / threads + (t < config.workload.qps % threads ? 1 : 0);
    if (t > 0) w.idle_qps = 0;
    rotate(shares[t].transport.service_level, first_qp);
    rotate(shares[t].transport.response_service_level, first_qp);
    first_qp += w.qps;
  }
  return shares;
}

}  // namespace rnic::testbench
