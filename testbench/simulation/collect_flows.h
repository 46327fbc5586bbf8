// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/result.h"
#include "simulation/system.h"

namespace rnic::testbench {

/// The measured window is one for all rates and shares: it begins when all flows are past their
/// warm-up (Measurement::window_start) and ends as window_end() says. Of several streams, rates and
/// shares are those of common_window(), if there is one.

/// When the last flow had delivered everything; had sent everything, if some of it was lost behind
/// its last delivery; or had failed. What happens behind it, the last acknowledgements and the wait
/// for messages that do not come, is in no rate and no share. Not later than now.
Time window_end(System& system);

/// The time in which all streams ran, if it stands for the whole; zero otherwise.
Time common_window(System& system);

/// Everything of `result` that the programs have measured.
void collect_flows(System& system, Result& result);

}  // namespace rnic::testbench
