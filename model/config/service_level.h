// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "config/config.h"

namespace rnic::config {

/// Service level (Ethernet: priority) of a flow's `qp`-th queue pair, of the end that asks and of
/// the one that answers.
std::uint8_t request_service_level(const Config& config, std::uint32_t qp);
std::uint8_t response_service_level(const Config& config, std::uint32_t qp);

/// The same of the queue pair of workload.probe_size, of both ends.
std::uint8_t probe_service_level(const Config& config);

/// VL of a service level on InfiniBand, priority on Ethernet.
std::uint8_t lane_of_service_level(const Config& config, std::uint8_t level);

/// Bit i: packets of some queue pair use lane i, as the receiver of their bytes finds it.
std::uint32_t used_lanes(const Config& config);

/// ConfigError when a service level leads to a lane that does not exist, is never served, or
/// cannot be told from another by the headers.
void check_service_levels(const Config& config);

}  // namespace rnic::config
