// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/result.h"

namespace rnic::testbench {

/// " (12 % of look-ups hit in host0.nic.mtt_cache)": of the caches of `host` whose names hold
/// `part`, the worst; empty when none was asked.
std::string worst_cache(const Result& result, const std::string& host, const std::string& part);

}  // namespace rnic::testbench
