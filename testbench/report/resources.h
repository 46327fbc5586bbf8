// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/result.h"

namespace rnic::testbench {

/// Something that can be busy all the time.
struct Resource {
  std::string name;
  /// Alike resources of other hosts: to lift the limit means to lift all of them.
  std::string kind;
  double utilization = 0;
  std::string subject;  ///< "the PCIe link host0.pcie towards the device"
  std::string figures;  ///< what it did in that time; may be empty
};

/// Shares that differ by less come from what was under way at the ends of the window.
inline constexpr double kAsBusy = 0.01;
std::string without_digits(const std::string& name);

/// All of a result, the busiest first; equals in the order of the report.
std::vector<Resource> ranked_resources(const Result& result);

}  // namespace rnic::testbench
