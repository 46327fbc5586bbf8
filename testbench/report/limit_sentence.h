// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/resources.h"
#include "report/result.h"

namespace rnic::testbench {

/// How busy the busiest is, for sentences about something else. `ranked`: the busiest first.
std::string busiest_clause(const std::vector<Resource>& ranked);

/// The busiest resource of another kind than `kind`; null: there is none that is busy at all.
const Resource* next_resource(const std::vector<Resource>& ranked, const std::string& kind);

/// Completes `bottleneck`, whose `why` lacks the next limit (null: none is known) and the full
/// stop.
void add_next(Bottleneck& bottleneck, const Resource* next);

}  // namespace rnic::testbench
