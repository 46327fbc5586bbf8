// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "report/resources.h"
#include "report/result.h"

namespace rnic::testbench {

/// READs are several requests each (nic.read_segment), of which the next waits most of the time.
std::optional<Bottleneck> read_slots(const Result& result, const std::vector<Resource>& ranked);

/// The narrowest of the windows that a workload gives itself, or that it asks for no more.
Bottleneck window(const Result& result, const std::vector<Resource>& ranked);

/// That window, if it is full all the time.
std::optional<Bottleneck> full_window(const Result& result, const std::vector<Resource>& ranked);

}  // namespace rnic::testbench
