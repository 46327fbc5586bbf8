// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"

namespace rnic::testbench {

/// Whether something may happen in the middle of a run that has not happened before: a fault, a
/// mistake, an outage, a choice by chance, a page that is not there, what others do meanwhile.
bool surprises(const config::Config& config);

}  // namespace rnic::testbench
