// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/result.h"

namespace rnic::testbench {

/// A resource is taken for the limit when it is busy for this share of the time.
inline constexpr double kSaturated = 0.85;
/// Busy all the time, but for the ends of the window: whatever waits, waits for this.
inline constexpr double kAllTheTime = 0.95;
/// A wait is taken for the limit when it lasts for this share of the time and nothing is saturated.
inline constexpr double kStalledMost = 0.5;

/// Names what limits the run, from everything else in `result`:
/// - the error, if a queue pair failed;
/// - latency pattern: what is always busy, at one end or the other, with long messages; otherwise
///   the longest stage, for one message at a time saturates nothing;
/// - otherwise the busiest of units, CPUs (without polls in vain), PCIe directions and link ports,
///   if it is busy nearly all the time;
/// - otherwise the longest wait (credits, pause, tags, context, translation, WQE), if it is long
/// and
///   longer than anything is busy;
/// - otherwise the busiest, if it is saturated;
/// - otherwise a port that is always sending, paused or without credits;
/// - otherwise what keeps queue pairs from sending what they have (a window of the transport, RECVs
///   of the peer), if it does most of the time;
/// - otherwise recovery from losses, if packets were sent again;
/// - otherwise congestion control, if it was notified;
/// - otherwise the places between scheduler and wire (nic.tx_slots), if none is free;
/// - otherwise the window: `depth`, or outstanding READs.
Bottleneck find_bottleneck(const Result& result);

}  // namespace rnic::testbench
