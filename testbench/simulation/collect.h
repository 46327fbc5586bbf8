// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "config/loader.h"
#include "report/result.h"
#include "simulation/system.h"

namespace rnic::testbench {

class SteadyState;

/// What the units have counted since the measured window began: everything of a Result that does
/// not come from the programs. Shares are of the window up to `end`, which is not later than now.
void collect_figures(System& system, Time end, Result& result);

/// Adds what was lost on each link until now, `now`, to `before`, as LinkResult::before: the
/// measured window begins and the ports will count anew.
void collect_losses_before(System& system, Time now, std::vector<LinkResult>& before);

/// What the system counted since its measured window began, as a Result (host-dependent figures
/// of `sim` left at zero). `replayed`: what else happened, or null; `before`: losses before the
/// window; `together`: figures at the end of the time in which all streams ran, if there was one.
Result collect(System& system, const config::LoadedConfig& loaded, SteadyState* replayed,
               std::vector<LinkResult> before, std::optional<Result> together);

}  // namespace rnic::testbench
