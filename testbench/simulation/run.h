// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/loader.h"
#include "report/result.h"

namespace rnic::testbench {

/// Builds the system that `loaded` describes, runs it, and returns what was measured. Throws
/// SimulationError when it gets stuck or breaks an invariant, ConfigError when the workload asks
/// for what the system refuses. One call a process (SystemC elaborates once).
Result simulate(const config::LoadedConfig& loaded);

/// simulate(), then the report on stdout and the files of output.dir; returns the exit status 0.
/// Errors are thrown (see base/error.h).
int run(const config::LoadedConfig& loaded);

}  // namespace rnic::testbench
