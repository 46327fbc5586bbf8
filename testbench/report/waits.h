// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "report/resources.h"
#include "report/result.h"

namespace rnic::testbench {

/// The longest wait for something that is itself not busy, if it lasts for a larger share of the
/// time than `share` (0 to 1). `ranked`: the busiest resources first.
std::optional<Bottleneck> longest_wait(const Result& result, const std::vector<Resource>& ranked,
                                       double share);

/// A port that sends whenever it may, but is paused or without credits for the rest of the time.
std::optional<Bottleneck> held_port(const Result& result, const std::vector<Resource>& ranked);

}  // namespace rnic::testbench
