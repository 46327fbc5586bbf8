// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "capture/port_capture.h"
#include "simulation/system.h"

namespace rnic::testbench {

/// The captures of a run: one file for each port, as output.traces asks for.
class Captures {
 public:
  /// Taps the ports of `system`, which must outlive this object and not run yet. Throws
  /// OutputError.
  explicit Captures(System& system);

  /// Completes all files. Throws OutputError.
  void finish();

 private:
  std::vector<std::unique_ptr<PortCapture>> ports_;
};

}  // namespace rnic::testbench
