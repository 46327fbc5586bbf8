// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/loader.h"
#include "report/result.h"
#include "simulation/system.h"

namespace rnic::testbench {

/// What the system counted since its measured window began, as a Result (host-dependent figures
/// of `sim` left at zero).
Result collect(System& system, const config::LoadedConfig& loaded);

}  // namespace rnic::testbench
