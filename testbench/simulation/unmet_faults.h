// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "simulation/system.h"

namespace rnic::testbench {

/// Faults that were ordered for frames or reads by their number (`link.drop_list` ...,
/// `pcie.fault.lost`, `pcie.fault.poisoned`) beyond the last one that there was, or for a time
/// (`link.down_at`, `fabric.silent_from`, `fabric.fatal_at`) at which nothing came by or the run
/// was over: each key, with what there was instead.
std::vector<std::string> unmet_faults(const System& system);

}  // namespace rnic::testbench
