// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/result.h"

namespace rnic::testbench {

/// The report for people, at most 100 columns: what came out, where the time went, what limits and
/// why, then unit by unit what was going on. What was zero is left out.
std::string text_report(const Result& result);

}  // namespace rnic::testbench
