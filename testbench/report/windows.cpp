// SPDX-License-Identifier: Apache-2.0
#include "report/windows.h"

#include <algorithm>
#include <string>

#include "report/bottleneck.h"
#include "report/format.h"
#include "report/limit_sentence.h"

namespace rnic::testbench {
namespace {

/// The narrowest of the windows that a workload gives itself.
struct Window {
  std::uint64_t slots;  ///< over all flows
  const char* key;
  bool reads;
};

Window narrowest_window(const Result& result) {
  const Scenario& scenario = result.scenario;
  // DMA alone has one window, whatever its directions.
  const std::uint64_t flows =
      scenario.qps == 0 ? 1 : std::max<std::uint64_t>(result.flows.size(), 1);
  const std::uint64_t qps = flows * std::max(scenario.qps, 1U);
  Window window{qps * std::max(scenario.depth, 1U), "workload.depth", false};
  // A READ in several requests may hold several slots: see read_slots().
  const std::uint64_t reads = scenario.read_segment > 0 ? 0 : qps * scenario.read_window;
  if (reads > 0 && reads < window.slots) window = {reads, "transport.max_rd_atomic", true};
  const std::uint64_t shared = flows * scenario.threads * scenario.outstanding;
  if (shared > 0 && shared < window.slots) window = {shared, "workload.outstanding", false};
  return window;
}

/// Atomics that wait for others of their queue pair at the responder: there is more than one, and
/// of the time for which each holds its slot most passes there.
bool in_turn_at_responder(const Result& result, double held_ns) {
  if (!result.scenario.atomics_in_turn || result.scenario.read_window < 2) return false;
  double there = 0;
  for (const auto stage : {stats::Stage::kRxParse, stats::Stage::kRemoteTranslation,
                           stats::Stage::kAtomicLock, stats::Stage::kResponderRead}) {
    there += result.breakdown.mean_ns(stage);
  }
  return there > kStalledMost * held_ns;
}

}  // namespace

std::optional<Bottleneck> read_slots(const Result& result, const std::vector<Resource>& ranked) {
  if (result.scenario.read_segment == 0) return std::nullopt;
  Bottleneck bottleneck;
  for (const HostResult& host : result.hosts) {
    bottleneck.utilization = std::max(
        bottleneck.utilization, host.held[static_cast<std::size_t>(transport::Hold::kReadSlots)]);
  }
  if (bottleneck.utilization < kStalledMost) return std::nullopt;
  bottleneck.unit = "transport.max_rd_atomic";
  bottleneck.why = busiest_clause(ranked) +
                   ", so the window limits (transport.max_rd_atomic): the next request of a READ "
                   "waits " +
                   percent(bottleneck.utilization) + " of the time for one of " +
                   grouped(result.scenario.read_window) +
                   " READ slots of its queue pair, each of which asks for no more than " +
                   grouped(result.scenario.read_segment) + " B (nic.read_segment)";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

Bottleneck window(const Result& result, const std::vector<Resource>& ranked) {
  const auto [slots, key, reads] = narrowest_window(result);
  // Little's law. A READ that still waits in the send queue holds no READ slot.
  double held_ns = result.latency.mean_ns();
  if (reads) held_ns -= result.breakdown.mean_ns(stats::Stage::kSqWait);
  const double in_flight = std::max(0.0, result.message_rate_mops * held_ns / 1e3);
  const double used = std::min(1.0, in_flight / static_cast<double>(slots));

  Bottleneck bottleneck;
  bottleneck.utilization = used;
  // What waits for a slot is in flight, too, but holds none.
  const double held = std::min(in_flight, static_cast<double>(slots));
  if (held < in_flight) held_ns *= held / in_flight;
  const std::string figures = fixed(held, 1) + " of " + grouped(slots) +
                              (reads ? " READ slots are in use, each for "
                                     : " messages of the window are in flight, each for ") +
                              duration(held_ns) + " on average";
  if (used < kStalledMost) {
    bottleneck.unit = "workload";
    bottleneck.why =
        busiest_clause(ranked) + " and only " + figures + ": the workload asks for no more";
  } else if (reads && in_turn_at_responder(result, held_ns)) {
    bottleneck.unit = "nic.atomics_in_turn";
    bottleneck.why = busiest_clause(ranked) +
                     ", but the responder serves atomics of a queue pair " +
                     "one after another (nic.atomics_in_turn), and most of the time each waits " +
                     "there for those before it: " + figures;
  } else {
    bottleneck.unit = key;
    bottleneck.why =
        busiest_clause(ranked) + ", so the window limits (" + bottleneck.unit + "): " + figures;
  }
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

std::optional<Bottleneck> full_window(const Result& result, const std::vector<Resource>& ranked) {
  Bottleneck full = window(result, ranked);
  if (full.unit == "workload" || full.utilization < kAllTheTime) return std::nullopt;
  return full;
}

}  // namespace rnic::testbench
