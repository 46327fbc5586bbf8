// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace rnic {

void panic(const std::string& module, const std::string& rule) {
  throw SimulationError("invariant broken in " + module + ": " + rule);
}

}  // namespace rnic
