// SPDX-License-Identifier: Apache-2.0
#include "report/waits.h"

#include <algorithm>
#include <string>

#include "report/bottleneck.h"
#include "report/cache_clause.h"
#include "report/format.h"
#include "report/limit_sentence.h"

namespace rnic::testbench {
namespace {

std::string host_of(const UnitResult& unit) { return unit.name.substr(0, unit.name.find('.')); }

/// Whether a unit is that direction of a PCIe link.
bool is_pcie(const std::string& unit, const std::string& direction) {
  return unit.find(".pcie." + direction) != std::string::npos;
}

/// What the wait is for; empty when it follows from a limit elsewhere.
std::string wait_clause(const Result& result, const UnitResult& unit, stats::StallCause cause) {
  switch (cause) {
    case stats::StallCause::kNoCredit:
      if (is_pcie(unit.name, "to_host")) {
        return "PCIe credits of the root complex: its buffers (pcie.root_credits) are smaller than "
               "the rate times the round trip, or it takes writes too slowly (memory.bandwidth, "
               "pcie.ordering_time, pcie.relaxed_time)";
      }
      if (is_pcie(unit.name, "to_device")) {
        return "PCIe credits of the device: its buffers (pcie.device_credits) are smaller than the "
               "rate times the round trip";
      }
      return "flow-control credits: the buffer behind it is smaller than the rate times the round "
             "trip (nic.rx_buffer, switch.buffer; an InfiniBand lane never has more than 128 KiB) "
             "or is freed too slowly";
    case stats::StallCause::kPaused:
      return "the end of a pause, because the other end frees its buffers too slowly";
    case stats::StallCause::kNoTag:
      return "PCIe read tags: pcie.read_tags is too small for the round trip to host memory";
    case stats::StallCause::kContext:
      return "QP contexts from host memory" + worst_cache(result, host_of(unit), "qpc_cache");
    case stats::StallCause::kTranslation:
      return "address translations from host memory" +
             worst_cache(result, host_of(unit), "t_cache");
    case stats::StallCause::kWqe:
      if (unit.name.find("wqe_cache") != std::string::npos) {
        return "WQEs that had to give way and are read from host memory again" +
               worst_cache(result, host_of(unit), "wqe_cache");
      }
      return "WQEs from host memory: nic.wqe_buffer (three times nic.wqe_prefetch for two fetches "
             "at a time) or more QPs would overlap the fetches";
    default:
      return {};
  }
}

/// Read tags are used up because the requests that hold them wait for credits on the same link.
bool credits_hold_tags(const Result& result, const UnitResult& waiting) {
  const std::string host = host_of(waiting);
  const auto credit = static_cast<std::size_t>(stats::StallCause::kNoCredit);
  return std::any_of(result.units.begin(), result.units.end(), [&](const UnitResult& unit) {
    return unit.name.rfind(host + ".pcie.", 0) == 0 && unit.stalled[credit] >= kStalledMost;
  });
}

/// A port waits for a receiver that waits itself, to write to its host: what the PCIe link there
/// waits for is the reason of both.
bool follows_from_pcie(const Result& result, const UnitResult& waiting, stats::StallCause cause) {
  const bool for_receiver =
      cause == stats::StallCause::kNoCredit || cause == stats::StallCause::kPaused;
  if (!for_receiver || waiting.name.find(".port") == std::string::npos) return false;
  const auto credit = static_cast<std::size_t>(stats::StallCause::kNoCredit);
  return std::any_of(result.units.begin(), result.units.end(), [&](const UnitResult& unit) {
    return is_pcie(unit.name, "to_host") && unit.stalled[credit] >= kStalledMost;
  });
}

/// Of what a port waits for, the part that its receiver's caches are to blame for: the unit at
/// another host that waits longest for what it reads from host memory. Null: none does for long.
struct SlowReceiver {
  const UnitResult* unit = nullptr;
  stats::StallCause cause{};
};
SlowReceiver slow_receiver(const Result& result, const UnitResult& port, stats::StallCause waits) {
  constexpr double kBlamed = 0.2;
  SlowReceiver slow;
  if (waits != stats::StallCause::kNoCredit && waits != stats::StallCause::kPaused) return slow;
  if (port.name.find("nic.port") == std::string::npos) return slow;
  double share = kBlamed;
  for (const UnitResult& unit : result.units) {
    if (host_of(unit) == host_of(port)) continue;
    for (const auto cause : {stats::StallCause::kTranslation, stats::StallCause::kContext}) {
      const double stalled = unit.stalled[static_cast<std::size_t>(cause)];
      if (stalled <= share) continue;
      share = stalled;
      slow = {&unit, cause};
    }
  }
  return slow;
}

/// What `waiting` waits for, and whose fault that is: the unit that is to be named.
const UnitResult& explain_wait(const Result& result, const UnitResult& waiting,
                               stats::StallCause cause, std::string& why) {
  const SlowReceiver slow = slow_receiver(result, waiting, cause);
  if (slow.unit == nullptr) {
    why += wait_clause(result, waiting, cause);
    return waiting;
  }
  const double share = slow.unit->stalled[static_cast<std::size_t>(slow.cause)];
  why += std::string(cause == stats::StallCause::kPaused ? "the end of a pause"
                                                         : "flow-control credits") +
         ", because " + slow.unit->name + " waits " + percent(share) + " of the time for " +
         wait_clause(result, *slow.unit, slow.cause);
  return *slow.unit;
}

/// Whether a pause of the switch lasts so long that what it holds is gone.
bool runs_dry(const Result& result, const UnitResult& port) {
  return !result.pause_limit.key.empty() && port.name.find("nic.port") != std::string::npos;
}

}  // namespace

std::optional<Bottleneck> longest_wait(const Result& result, const std::vector<Resource>& ranked,
                                       double share) {
  const UnitResult* longest = nullptr;
  stats::StallCause longest_cause{};
  for (const UnitResult& unit : result.units) {
    for (std::size_t i = 0; i < unit.stalled.size(); ++i) {
      const auto cause = static_cast<stats::StallCause>(i);
      if (unit.stalled[i] < share || wait_clause(result, unit, cause).empty()) continue;
      if (longest != nullptr && unit.stalled[i] <= share) continue;
      // Of alike units that wait as much, the first host's: it sends in most workloads.
      if (longest != nullptr && unit.stalled[i] <= share + kAsBusy &&
          without_digits(unit.name) == without_digits(longest->name)) {
        continue;
      }
      if (cause == stats::StallCause::kNoTag && credits_hold_tags(result, unit)) continue;
      if (follows_from_pcie(result, unit, cause)) continue;
      longest = &unit;
      longest_cause = cause;
      share = unit.stalled[i];
    }
  }
  if (longest == nullptr) return std::nullopt;
  Bottleneck bottleneck;
  bottleneck.why = busiest_clause(ranked) + ", but " + longest->name + " waits " + percent(share) +
                   " of the time for ";
  const UnitResult& named = explain_wait(result, *longest, longest_cause, bottleneck.why);
  bottleneck.unit = named.name;
  bottleneck.utilization = named.utilization;
  add_next(bottleneck, next_resource(ranked, without_digits(longest->name)));
  return bottleneck;
}

std::optional<Bottleneck> held_port(const Result& result, const std::vector<Resource>& ranked) {
  constexpr double kNoticed = 0.05;
  const UnitResult* held = nullptr;
  stats::StallCause why{};
  double share = kNoticed;
  for (const UnitResult& unit : result.units) {
    for (const auto cause : {stats::StallCause::kPaused, stats::StallCause::kNoCredit}) {
      const double stalled = unit.stalled[static_cast<std::size_t>(cause)];
      if (stalled < share || stalled + unit.utilization < kAllTheTime) continue;
      held = &unit;
      why = cause;
      share = stalled;
    }
  }
  if (held == nullptr) return std::nullopt;
  Bottleneck bottleneck;
  const bool dry = why == stats::StallCause::kPaused && runs_dry(result, *held);
  bottleneck.why = held->name + " sends whenever it may (" + percent(held->utilization) +
                   " of the time), but waits " + percent(share) + " of the time for ";
  if (dry) {
    bottleneck.unit = result.pause_limit.key;
    bottleneck.utilization = held->utilization;
    bottleneck.why +=
        "the end of a pause, after which the switch runs dry: " + result.pause_limit.why;
  } else {
    const UnitResult& named = explain_wait(result, *held, why, bottleneck.why);
    bottleneck.unit = named.name;
    bottleneck.utilization = named.utilization;
  }
  add_next(bottleneck, next_resource(ranked, without_digits(held->name)));
  return bottleneck;
}

}  // namespace rnic::testbench
