// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/result.h"

namespace rnic::testbench {

/// What was dropped on the way, where most of it and why, with a space before it; empty when it is
/// below 1 % of the packets, and so are the repetitions that it caused.
std::string drop_sentence(const Result& result);
/// How many packets were sent again, likewise; empty below 1 %.
std::string repetition_sentence(const Result& result);

/// Of the payload that the hosts' wires carry the share (0..1) that is sent again or in vain; 0
/// when nothing was sent again.
double burnt_share(const Result& result);

}  // namespace rnic::testbench
