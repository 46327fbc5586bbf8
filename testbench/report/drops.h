// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/result.h"

namespace rnic::testbench {

/// What was dropped on the way in the whole run, where most of it and why, with a space before it.
/// Where links may lose frames it is empty below 1 % of the packets, if the repetitions that it
/// caused are, too.
std::string drop_sentence(const Result& result);
/// How many packets were sent again, likewise; empty below 1 %.
std::string repetition_sentence(const Result& result);

/// Packets were sent again because their acknowledgements came too late for the timer, though
/// nothing was lost, damaged or out of order.
bool timer_is_too_short(const Result& result);

/// Of the payload that the hosts' wires carry the share (0..1) that is sent again or in vain; 0
/// when nothing was sent again.
double burnt_share(const Result& result);

}  // namespace rnic::testbench
