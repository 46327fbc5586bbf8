// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "simulation/system.h"

namespace rnic::testbench {

/// Who waits for what, in one line: for a simulation that cannot go on.
std::string explain(const System& system);

}  // namespace rnic::testbench
