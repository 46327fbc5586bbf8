// SPDX-License-Identifier: Apache-2.0
#include "report/bottleneck.h"

#include <algorithm>
#include <optional>

#include "protocol/work_request.h"
#include "report/drops.h"
#include "report/format.h"
#include "report/limit_sentence.h"
#include "report/resources.h"
#include "report/waits.h"
#include "report/windows.h"

namespace rnic::testbench {
namespace {

/// Losses: what find_bottleneck() calls the unit then.
constexpr const char* kRecovery = "transport.recovery";

bool is_flush(const std::string& status) {
  return status == wc_status_name(protocol::WcStatus::kWrFlushError);
}

/// Nothing is lost, and still packets are sent again.
Bottleneck hasty_timer(const Result& result, const std::vector<Resource>& ranked) {
  Bottleneck bottleneck;
  bottleneck.unit = "transport.ack_timeout";
  bottleneck.utilization = ranked.empty() ? 0 : ranked.front().utilization;
  bottleneck.why =
      busiest_clause(ranked) + ": nothing was lost, but timers ran out " +
      grouped(sum_counter(result, "local_ack_timeout_err")) +
      " times before acknowledgements came, and " +
      grouped(sum_counter(result, "retransmitted_packets")) +
      " packets were sent again in vain (transport.ack_timeout is shorter than packets wait)";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

/// A wire that is busy, but to a good part with what was sent before.
std::optional<Bottleneck> busy_recovery(const Result& result, const std::vector<Resource>& ranked) {
  constexpr double kMuch = 0.1;
  if (ranked.empty() || ranked.front().kind != "wire") return std::nullopt;
  const double burnt = burnt_share(result);
  if (burnt < kMuch) return std::nullopt;
  if (timer_is_too_short(result)) return hasty_timer(result, ranked);
  const Resource& wire = ranked.front();
  Bottleneck bottleneck;
  bottleneck.unit = kRecovery;
  bottleneck.utilization = burnt;
  bottleneck.why =
      wire.subject + " is busy " + percent(wire.utilization) + " of the time, but " +
      percent(burnt) +
      " of the payload that is carried is sent again or was lost: recovery from losses "
      "limits (transport.recovery)";
  add_next(bottleneck, next_resource(ranked, wire.kind));
  return bottleneck;
}

Bottleneck saturated(const std::vector<Resource>& ranked) {
  const Resource& first = ranked.front();
  Bottleneck bottleneck;
  bottleneck.unit = first.name;
  bottleneck.utilization = first.utilization;
  bottleneck.why = first.subject + " is busy " + percent(first.utilization) + " of the time";
  if (!first.figures.empty()) bottleneck.why += ": " + first.figures;
  add_next(bottleneck, next_resource(ranked, first.kind));
  return bottleneck;
}

/// A program, whose operations are not followed stage by stage.
Bottleneck without_stages(const std::vector<Resource>& ranked) {
  if (!ranked.empty() && ranked.front().utilization >= kSaturated) return saturated(ranked);
  Bottleneck bottleneck;
  bottleneck.unit = ranked.empty() ? "none" : "workload";
  bottleneck.utilization = ranked.empty() ? 0 : ranked.front().utilization;
  bottleneck.why = busiest_clause(ranked) + ": the workload asks for no more";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

/// Messages that go one way and the other in turn keep alike resources of both ends busy in turn.
bool goes_to_and_fro(const Scenario& scenario) {
  return scenario.op == "write" || scenario.op == "write_imm" || scenario.op == "send" ||
         scenario.op == "send_imm";
}

/// One message at a time, but so long a one, or so slow a resource, that this is always busy: with
/// messages to and fro, at one end or the other.
std::optional<Bottleneck> busy_with_one(const Result& result, const std::vector<Resource>& ranked) {
  if (ranked.empty()) return std::nullopt;
  if (ranked.front().utilization >= kSaturated) return saturated(ranked);
  if (!goes_to_and_fro(result.scenario) || result.flows.size() != 1) return std::nullopt;
  const Resource& first = ranked.front();
  double both = 0;
  for (const Resource& resource : ranked) {
    if (resource.kind == first.kind) both += resource.utilization;
  }
  if (both < kSaturated) return std::nullopt;
  Bottleneck bottleneck;
  bottleneck.unit = first.name;
  bottleneck.utilization = std::min(1.0, both);
  bottleneck.why = first.subject + ", or that of the other end, is busy " +
                   percent(bottleneck.utilization) +
                   " of the time: one of the two with each message";
  add_next(bottleneck, nullptr);
  return bottleneck;
}

Bottleneck longest_stage(const Result& result, const std::vector<Resource>& ranked) {
  std::vector<stats::Stage> stages;
  for (std::size_t i = 0; i < stats::kStageCount; ++i) {
    stages.push_back(static_cast<stats::Stage>(i));
  }
  std::stable_sort(stages.begin(), stages.end(), [&](stats::Stage a, stats::Stage b) {
    return result.breakdown.sum_ps(a) > result.breakdown.sum_ps(b);
  });
  const double total = result.breakdown.total_mean_ns();
  if (!(total > 0)) return without_stages(ranked);

  Bottleneck bottleneck;
  const double first = result.breakdown.mean_ns(stages[0]);
  bottleneck.unit = std::string(stats::stage_name(stages[0]));
  bottleneck.utilization = first / total;
  bottleneck.why = "One message at a time saturates nothing";
  if (!ranked.empty()) {
    bottleneck.why += " (the busiest unit, " + ranked.front().name + ", is busy " +
                      percent(ranked.front().utilization) + " of the time)";
  }
  bottleneck.why += ", so latency is the sum of the stages, and the longest is " + bottleneck.unit +
                    " with " + duration(first) + " of " + duration(total) + " (" +
                    percent(bottleneck.utilization) + ")";
  const double second = result.breakdown.mean_ns(stages[1]);
  if (second > 0) {
    bottleneck.next_unit = std::string(stats::stage_name(stages[1]));
    bottleneck.next_utilization = second / total;
    bottleneck.why += "; the next is " + bottleneck.next_unit + " with " + duration(second) + " (" +
                      percent(bottleneck.next_utilization) + ")";
  }
  bottleneck.why += ".";
  return bottleneck;
}

/// The places between scheduler and wire are taken for `share` of the time or longer, and nothing
/// behind them is busy.
std::optional<Bottleneck> transmit_slots(const Result& result, const std::vector<Resource>& ranked,
                                         double share) {
  constexpr auto kFull = static_cast<std::size_t>(stats::StallCause::kDownstreamFull);
  const auto waits_less = [](const UnitResult& a, const UnitResult& b) {
    return a.stalled[kFull] < b.stalled[kFull];
  };
  const auto unit = std::max_element(result.units.begin(), result.units.end(), waits_less);
  if (unit == result.units.end() || unit->stalled[kFull] < share) return std::nullopt;
  Bottleneck bottleneck;
  const bool buffer = result.scenario.buffer_before_slots;
  bottleneck.unit = buffer ? "nic.tx_buffer" : "nic.tx_slots";
  bottleneck.utilization = std::min(1.0, unit->stalled[kFull]);
  bottleneck.why =
      busiest_clause(ranked) + ", but " + unit->name + " waits " + percent(bottleneck.utilization) +
      " of the time for " +
      (buffer ? "room in the nic.tx_buffer bytes of payload between it and the wire: too small"
              : "one of the nic.tx_slots packets between it and the wire: too few") +
      " for the time that each packet takes through there (translation, reading payload "
      "over PCIe, packetizer)";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

struct HoldText {
  const char* unit;
  const char* why;
};

/// Of holds that are a limit of their own; READ slots are one of the windows of the workload.
std::optional<HoldText> hold_text(transport::Hold hold) {
  using transport::Hold;
  switch (hold) {
    case Hold::kWindow:
      return HoldText{"transport.window", "until packets are acknowledged (transport.window)"};
    case Hold::kFence:
      return HoldText{"fence", "behind a fence, until the READs and atomics before it are done"};
    case Hold::kReceiveCredits:
      return HoldText{"workload.recv_depth",
                      "for credits: the peer has told of no more RECVs (workload.recv_depth, "
                      "workload.recv_batch, workload.recv_cost)"};
    case Hold::kPeerWindow:
      return HoldText{"tcp.window",
                      "for the peer's window: less than the rate times the round "
                      "trip (tcp.window)"};
    case Hold::kCongestionWindow:
      return HoldText{"tcp.congestion_control",
                      "for the congestion window (tcp.congestion_control, tcp.initial_cwnd)"};
    default:
      return std::nullopt;
  }
}

/// Queue pairs have something to send most of the time and may not.
std::optional<Bottleneck> longest_hold(const Result& result, const std::vector<Resource>& ranked) {
  double share = kStalledMost;
  std::optional<HoldText> text;
  std::size_t of = 0;
  for (std::size_t host = 0; host < result.hosts.size(); ++host) {
    const auto& held = result.hosts[host].held;
    for (std::size_t i = 0; i < held.size(); ++i) {
      const auto named = hold_text(static_cast<transport::Hold>(i));
      if (!named || held[i] < share || (text && held[i] <= share)) continue;
      share = held[i];
      text = named;
      of = host;
    }
  }
  if (!text) return std::nullopt;
  Bottleneck bottleneck;
  bottleneck.unit = text->unit;
  bottleneck.utilization = share;
  bottleneck.why = busiest_clause(ranked) + ", but requests of host" + std::to_string(of) +
                   " wait " + percent(share) + " of the time " + text->why;
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

/// Congestion notifications came, and nothing else limits.
std::optional<Bottleneck> congestion(const Result& result, const std::vector<Resource>& ranked) {
  const std::uint64_t notified = sum_counter(result, "rp_cnp_handled");
  if (notified == 0) return std::nullopt;
  Bottleneck bottleneck;
  bottleneck.unit = "transport.congestion_control";
  bottleneck.utilization = ranked.empty() ? 0 : ranked.front().utilization;
  bottleneck.why = busiest_clause(ranked) +
                   ": congestion control has reduced the rates of queue pairs, after " +
                   grouped(notified) + " congestion notifications";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

/// Messages wait for RECVs more often than for what was lost.
std::optional<Bottleneck> receiver_not_ready(const Result& result,
                                             const std::vector<Resource>& ranked) {
  const std::uint64_t naks = sum_counter(result, "rnr_naks_sent");
  const std::uint64_t losses =
      sum_counter(result, "packet_seq_err") + sum_counter(result, "local_ack_timeout_err");
  // A handful in millions costs nothing worth naming.
  if (naks == 0 || naks < losses || naks * 10'000 < result.sim.data_packets) return std::nullopt;
  Bottleneck bottleneck;
  bottleneck.unit = "workload.recv_depth";
  for (const HostResult& host : result.hosts) {
    bottleneck.utilization =
        std::max(bottleneck.utilization,
                 host.held[static_cast<std::size_t>(transport::Hold::kReceiverNotReady)]);
  }
  if (const std::uint64_t faults = sum_counter(result, "page_faults"); 2 * faults >= naks) {
    bottleneck.unit = "transport.min_rnr_timer";
    bottleneck.why = busiest_clause(ranked) + ", but pages of the receiver were missing " +
                     grouped(faults) +
                     " times (workload.odp), which it answers with RNR NAK, and " +
                     "senders waited " + percent(bottleneck.utilization) +
                     " of the time (transport.min_rnr_timer); workload.odp_prefetch or a larger "
                     "memory.odp_granularity would help";
    add_next(bottleneck, next_resource(ranked, ""));
    return bottleneck;
  }
  bottleneck.why = busiest_clause(ranked) + ", but the receiver had no RECV ready " +
                   grouped(naks) + " times (RNR NAK), and senders waited " +
                   percent(bottleneck.utilization) +
                   " of the time for it (transport.min_rnr_timer); more RECVs "
                   "(workload.recv_depth), or posting them sooner (workload.recv_batch, "
                   "workload.recv_cost), would help";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

std::optional<Bottleneck> recovery(const Result& result, const std::vector<Resource>& ranked) {
  const std::uint64_t again = sum_counter(result, "retransmitted_packets");
  // A handful in millions costs nothing worth naming.
  if (again * 10'000 < result.sim.data_packets || again == 0) return std::nullopt;
  if (timer_is_too_short(result)) return hasty_timer(result, ranked);
  Bottleneck bottleneck;
  bottleneck.unit = kRecovery;
  bottleneck.utilization = result.sim.data_packets == 0
                               ? 0
                               : std::min(1.0, static_cast<double>(again) /
                                                   static_cast<double>(result.sim.data_packets));
  bottleneck.why =
      (result.uneven
           ? std::string(
                 "Flows that lost packets waited while others had the network to themselves")
           : busiest_clause(ranked)) +
      ": the time goes into recovery from losses, with " + grouped(again) + " packets sent again";
  add_next(bottleneck, next_resource(ranked, ""));
  return bottleneck;
}

/// A queue pair failed, and what was measured ends there. A flushed request says nothing of why.
std::optional<Bottleneck> failure(const Result& result) {
  std::uint64_t before = 0;
  std::string causes;
  for (const auto& [status, count] : result.completions) {
    if (status == wc_status_name(protocol::WcStatus::kSuccess)) {
      before = count;
    } else if (count > 0 && !is_flush(status)) {
      causes += (causes.empty() ? "" : " and ") + status;
    }
  }
  const bool flushed =
      std::any_of(result.completions.begin(), result.completions.end(),
                  [](const auto& one) { return one.second > 0 && is_flush(one.first); });
  if (causes.empty() && !flushed) return std::nullopt;
  Bottleneck bottleneck;
  bottleneck.unit = "none";
  bottleneck.why = "A queue pair failed with " + (causes.empty() ? "wr_flush_error" : causes) +
                   " after " + grouped(before) +
                   " completions with success: throughput and shares are those of what came "
                   "before, and of the time that finding the error took.";
  return bottleneck;
}

/// The busiest is a wire, which is idle now and then: something else lets it. A wire whose own
/// figures are of a longer time than the throughput that it carries is none of these.
bool wire_has_gaps(const Result& result, const std::vector<Resource>& ranked) {
  if (ranked.empty() || ranked.front().kind != "wire" ||
      ranked.front().utilization >= kAllTheTime) {
    return false;
  }
  for (const LinkResult& link : result.links) {
    if (link.name != ranked.front().name || link.payload_bytes == 0) continue;
    const double wire_gbps = result.throughput_gbps * static_cast<double>(link.wire_bytes) /
                             static_cast<double>(link.payload_bytes);
    return wire_gbps < kAllTheTime * link.rate_gbps;
  }
  return false;
}

Bottleneck limit_of(const Result& result) {
  const std::vector<Resource> ranked = ranked_resources(result);
  if (auto failed = failure(result)) return *failed;
  if (result.scenario.latency_pattern) {
    const std::optional<Bottleneck> busy = busy_with_one(result, ranked);
    return busy ? *busy : longest_stage(result, ranked);
  }
  const double busiest = ranked.empty() ? 0 : ranked.front().utilization;
  // Shares of uneven flows mean something only when they are of the time in which all ran.
  const bool together = std::any_of(result.links.begin(), result.links.end(), [](const auto& link) {
    return link.common_window > kTimeZero;
  });
  if (busiest >= kSaturated) {
    if (auto burnt = busy_recovery(result, ranked)) return *burnt;
  }
  if (busiest >= kAllTheTime && (together || !result.uneven)) return saturated(ranked);
  if (result.uneven) {
    if (auto recvs = receiver_not_ready(result, ranked)) return *recvs;
    if (auto losses = recovery(result, ranked)) return *losses;
  }
  if (auto wait = longest_wait(result, ranked, std::max(busiest, kStalledMost))) return *wait;
  const std::optional<Bottleneck> port = held_port(result, ranked);
  // A wire that is idle now and then, though there is always something to send, waits for the
  // transmit path.
  if (busiest >= kSaturated && busiest < kAllTheTime && !port && ranked.front().kind == "wire") {
    if (auto slots = transmit_slots(result, ranked, kAllTheTime)) return *slots;
  }
  const bool dry = port && !result.pause_limit.key.empty() && port->unit == result.pause_limit.key;
  const bool gaps = busiest >= kSaturated && wire_has_gaps(result, ranked);
  if (gaps && !port) {
    if (auto recvs = receiver_not_ready(result, ranked)) return *recvs;
    if (auto hold = longest_hold(result, ranked)) return *hold;
    if (auto reads = read_slots(result, ranked)) return *reads;
    if (auto full = full_window(result, ranked)) return *full;
  }
  if (busiest >= kSaturated && !dry && !(gaps && port)) return saturated(ranked);
  if (port) return *port;
  if (auto recvs = receiver_not_ready(result, ranked)) return *recvs;
  if (auto hold = longest_hold(result, ranked)) return *hold;
  if (auto losses = recovery(result, ranked)) return *losses;
  if (auto rates = congestion(result, ranked)) return *rates;
  if (auto slots = transmit_slots(result, ranked, kSaturated)) return *slots;
  if (auto reads = read_slots(result, ranked)) return *reads;
  return window(result, ranked);
}

}  // namespace

Bottleneck find_bottleneck(const Result& result) {
  Bottleneck bottleneck = limit_of(result);
  const std::string drops = drop_sentence(result);
  // What is busy may be so with packets that are sent in vain.
  const bool tells =
      !drops.empty() || bottleneck.why.find("packets sent again") != std::string::npos;
  bottleneck.why += tells ? drops : repetition_sentence(result);
  return bottleneck;
}

}  // namespace rnic::testbench
