// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "config/config.h"

namespace rnic::testbench {

/// Client and server host of one flow.
using HostPair = std::pair<std::uint32_t, std::uint32_t>;

/// Who talks to whom under `workload.traffic`, in the order of the clients. A permutation is drawn
/// from `sim.seed`: every host is the client of one flow and the server of another, never of its
/// own.
std::vector<HostPair> traffic_matrix(const config::Config& config);

/// The configuration as each thread of a flow sees it: `workload.qps` queue pairs are dealt out to
/// `workload.threads` threads, the first ones getting one more; idle queue pairs go to the first.
std::vector<config::Config> thread_configs(const config::Config& config);

}  // namespace rnic::testbench
