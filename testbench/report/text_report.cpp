// SPDX-License-Identifier: Apache-2.0
#include "report/text_report.h"

#include <algorithm>
#include <cmath>

#include "report/format.h"
#include "report/selection.h"
#include "stats/stage.h"

namespace rnic::testbench {
namespace {

using Align = Table::Align;
constexpr std::size_t kWidth = 100;
/// Rows of a table beyond which the rest is only in result.json.
constexpr std::size_t kMaxRows = 24;

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? body : "\n" + title + "\n" + body;
}

std::string and_more(std::size_t count) {
  return count <= kMaxRows ? std::string()
                           : "  and " + grouped(count - kMaxRows) + " more in result.json\n";
}

std::string title(const Result& result) {
  const Scenario& scenario = result.scenario;
  std::string text =
      "rnicsim " + result.version + ": " + size(scenario.msg_size) + " " + scenario.op + ", " +
      (scenario.latency_pattern   ? "one at a time"
       : scenario.outstanding > 0 ? grouped(scenario.outstanding) + " in flight of each thread"
                                  : grouped(scenario.depth) + " in flight");
  if (scenario.qps > 0) {
    const bool per_qp = !scenario.latency_pattern && scenario.outstanding == 0;
    text += std::string(per_qp ? " on each QP" : "") + ", " + counted(scenario.qps, "QP");
  }
  if (scenario.threads > 1) text += ", " + counted(scenario.threads, "thread");
  if (!scenario.protocol.empty()) {
    text += ", " + scenario.protocol + " " + scenario.type + " at " + readable(scenario.link_gbps) +
            " Gb/s between " + counted(scenario.hosts, "host");
  }
  return wrapped(text, 0, kWidth);
}

std::string headline(const Result& result) {
  std::string text = "  Throughput    " + readable(result.throughput_gbps) + " Gb/s of payload, " +
                     readable(result.message_rate_mops) + " M messages/s, measured for " +
                     duration(to_ns(result.window)) + "\n";
  for (const auto& [status, count] : result.completions) {
    if (count > 0) text += "  CQEs polled   " + grouped(count) + " " + status + "\n";
  }
  if (!result.ended_early.empty()) {
    text += wrapped("Ended early: " + result.ended_early, 2, kWidth);
  }
  if (result.messages && result.messages->lost() > 0) {
    text += "  Lost          " + grouped(result.messages->lost()) + " of " +
            counted(result.messages->sent, "message") +
            ", which nobody sends again; throughput counts whole messages\n";
  }
  if (result.messages && result.messages->late > 0) {
    text += "  Late          " + counted(result.messages->late, "message") +
            ", behind workload.answer_timeout: their turns count for nothing\n";
  }
  if (result.messages && result.messages->duplicates > 0) {
    text += "  Duplicates    " + counted(result.messages->duplicates, "message") +
            " that had been seen before\n";
  }
  for (const std::string& option : result.without_effect) {
    text += wrapped("No effect here: " + option, 2, kWidth);
  }
  return text;
}

/// One row of quantiles.
Table quantiles(const stats::Histogram& histogram) {
  Table table({{"min", Align::kRight},
               {"mean", Align::kRight},
               {"p50", Align::kRight},
               {"p90", Align::kRight},
               {"p99", Align::kRight},
               {"p99.9", Align::kRight},
               {"max", Align::kRight},
               {"", Align::kLeft}});
  const auto ns = [](Time time) { return fixed(to_ns(time), 1); };
  table.add({ns(histogram.min()), fixed(histogram.mean_ns(), 1), ns(histogram.quantile(0.5)),
             ns(histogram.quantile(0.9)), ns(histogram.quantile(0.99)),
             ns(histogram.quantile(0.999)), ns(histogram.max()), "ns"});
  return table;
}

std::string latency(const Result& result) {
  const stats::Histogram& histogram = result.latency;
  if (histogram.empty()) return {};
  std::string meaning = "Over " + counted(histogram.count(), "message");
  if (!result.scenario.latency_meaning.empty()) meaning += ", " + result.scenario.latency_meaning;
  return section("Latency", quantiles(histogram).text() + wrapped(meaning + ".", 2, kWidth));
}

std::string probe(const Result& result) {
  if (!result.probe) return {};
  const ProbeResult& p = *result.probe;
  std::string about = counted(p.latency.count(), "WRITE") + " of " + size(p.size) + ", one each " +
                      duration(to_ns(p.interval)) +
                      " at most, while all streams ran, from post to completion";
  if (p.failed > 0) about += "; " + grouped(p.failed) + " failed";
  return section("Probe beside the streams",
                 (p.latency.empty() ? std::string() : quantiles(p.latency).text()) +
                     wrapped(about + ".", 2, kWidth));
}

std::string breakdown(const Result& result) {
  const stats::Breakdown& stages = result.breakdown;
  const double total = stages.total_mean_ns();
  if (!(total > 0)) return {};
  Table table({{"stage", Align::kLeft},
               {"mean ns", Align::kRight},
               {"p50 ns", Align::kRight},
               {"p99 ns", Align::kRight},
               {"share", Align::kRight},
               {"", Align::kLeft}});
  constexpr double kBarLength = 40;
  for (std::size_t i = 0; i < stats::kStageCount; ++i) {
    const auto stage = static_cast<stats::Stage>(i);
    const double mean = stages.mean_ns(stage);
    if (stages.sum_ps(stage) == 0) continue;
    const auto bar = static_cast<std::size_t>(std::lround(mean / total * kBarLength));
    table.add({std::string(stats::stage_name(stage)), fixed(mean, 1),
               fixed(to_ns(stages.quantile(stage, 0.5)), 1),
               fixed(to_ns(stages.quantile(stage, 0.99)), 1), fixed(mean / total * 100, 1) + " %",
               std::string(bar, '#')});
  }
  table.add({"sum", fixed(total, 1), "", "", "100.0 %", ""});
  std::string text = table.text();
  const double mean = result.latency.mean_ns();
  if (mean > 0 && std::fabs(total - mean) > mean / 1000) {
    text +=
        wrapped("Caution: the stages sum to " + percent(total / mean) + " of the mean latency; " +
                    counted(stages.messages(), "message") + " were traced.",
                2, kWidth);
  }
  return section("Where the time of a message goes, in the order of its journey", text);
}

std::string bottleneck(const Result& result) {
  return section("What limits", wrapped(result.bottleneck.why, 2, kWidth));
}

/// Of a single flow.
std::string threads(const std::vector<ThreadResult>& threads) {
  if (threads.size() < 2) return {};
  Table table({{"thread", Align::kLeft},
               {"Gb/s", Align::kRight},
               {"M messages/s", Align::kRight},
               {"mean ns", Align::kRight},
               {"p99 ns", Align::kRight}});
  for (std::size_t i = 0; i < std::min(threads.size(), kMaxRows); ++i) {
    table.add({std::to_string(i), readable(threads[i].throughput_gbps),
               readable(threads[i].message_rate_mops), fixed(threads[i].latency_mean_ns, 1),
               fixed(threads[i].latency_p99_ns, 1)});
  }
  return section("Threads", table.text() + and_more(threads.size()));
}

std::string flows(const Result& result) {
  if (result.flows.size() == 1) return threads(result.flows.front().threads);
  if (result.flows.size() < 2) return {};
  Table table({{"flow", Align::kLeft},
               {"Gb/s", Align::kRight},
               {"mean ns", Align::kRight},
               {"p99 ns", Align::kRight}});
  for (std::size_t i = 0; i < std::min(result.flows.size(), kMaxRows); ++i) {
    const FlowResult& flow = result.flows[i];
    table.add({"host" + std::to_string(flow.source) + " to host" + std::to_string(flow.destination),
               readable(flow.throughput_gbps), fixed(flow.latency.mean_ns(), 1),
               fixed(to_ns(flow.latency.quantile(0.99)), 1)});
  }
  return section("Flows", table.text() + and_more(result.flows.size()));
}

/// "no_tag 12 %, wqe 3 %", the longest first.
std::string stalls(const UnitResult& unit) {
  std::vector<std::size_t> causes;
  for (std::size_t i = 0; i < unit.stalled.size(); ++i) {
    if (unit.stalled[i] >= 0.0005) causes.push_back(i);
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [&](std::size_t a, std::size_t b) { return unit.stalled[a] > unit.stalled[b]; });
  std::string text;
  for (const std::size_t i : causes) {
    text += (text.empty() ? "" : ", ") +
            std::string(stats::stall_cause_name(static_cast<stats::StallCause>(i))) + " " +
            percent(unit.stalled[i]);
  }
  return text;
}

struct UnitRow {
  double utilization;
  std::string name;
  std::string queue_mean;
  std::string queue_max;
  std::string stalls;
};

/// An application's cores are a unit as well; the time in which they only look is none of it.
std::vector<UnitRow> core_rows(const Result& result) {
  std::vector<UnitRow> rows;
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const HostResult& host = result.hosts[i];
    const double useful = std::clamp(host.cpu_busy - host.cpu_polling, 0.0, 1.0);
    const std::string polling =
        host.cpu_polling >= 0.0005 ? "polling " + percent(host.cpu_polling) : std::string();
    if (useful < 0.0005) continue;
    rows.push_back({useful, "host" + std::to_string(i) + ".cpu", "", "", polling});
  }
  return rows;
}

std::string units(const Result& result) {
  std::vector<UnitRow> active = core_rows(result);
  for (const UnitResult& unit : result.units) {
    const bool queues = unit.occupancy_max > 0;
    const std::string stalled = stalls(unit);
    if (unit.utilization < 0.0005 && !queues && stalled.empty()) continue;
    active.push_back({unit.utilization, unit.name, queues ? fixed(unit.occupancy_mean, 1) : "",
                      queues ? grouped(unit.occupancy_max) : "", stalled});
  }
  std::stable_sort(active.begin(), active.end(), [](const UnitRow& a, const UnitRow& b) {
    return a.utilization > b.utilization;
  });
  if (active.empty()) return {};
  Table table({{"unit", Align::kLeft},
               {"busy", Align::kRight},
               {"queue mean", Align::kRight},
               {"max", Align::kRight},
               {"stalled, by cause", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(active.size(), kMaxRows); ++i) {
    const UnitRow& unit = active[i];
    table.add({unit.name, percent(unit.utilization), unit.queue_mean, unit.queue_max, unit.stalls});
  }
  return section("Units, the busiest first", table.text() + and_more(active.size()));
}

std::string caches(const Result& result, const Selection& selection) {
  Table table({{"cache", Align::kLeft},
               {"hits", Align::kRight},
               {"joined", Align::kRight},
               {"misses", Align::kRight},
               {"hit rate", Align::kRight}});
  bool any_joined = false;
  for (const CacheResult& cache : result.caches) {
    if (cache.lookups() == 0 || !selection.shows(cache.name)) continue;
    any_joined = any_joined || cache.joined > 0;
    table.add({cache.name, grouped(cache.hits), grouped(cache.joined), grouped(cache.misses),
               fixed(100 * cache.hit_rate(), 1) + " %"});
  }
  if (table.empty()) return {};
  std::string text = table.text();
  if (any_joined) {
    text +=
        "  Joined: waited for a fetch of their line that was under way; hit rate: hits and "
        "joined.\n";
  }
  return section("Caches", text);
}

std::string pcie(const Result& result, const Selection& selection) {
  Table table({{"PCIe", Align::kLeft},
               {"purpose", Align::kLeft},
               {"TLPs", Align::kRight},
               {"payload B", Align::kRight},
               {"wire B", Align::kRight},
               {"Gb/s", Align::kRight},
               {"busy", Align::kRight}});
  const auto add = [&](const std::string& name, const PcieResult& link,
                       const PcieDirectionResult& direction) {
    if (direction.total.tlps == 0) return;
    const auto row = [&](const std::string& first, const std::string& purpose,
                         const TlpResult& tlps) {
      table.add({first, purpose, grouped(tlps.tlps), grouped(tlps.payload_bytes),
                 grouped(tlps.wire_bytes), readable(gbps(tlps.wire_bytes, result.window)),
                 link.rate_gbps > 0
                     ? percent(line_utilization(tlps.wire_bytes, link.rate_gbps, result.window))
                     : std::string()});
    };
    row(name, "all", direction.total);
    for (std::size_t i = 0; i < direction.by_purpose.size(); ++i) {
      if (direction.by_purpose[i].tlps == 0) continue;
      row("", tlm_ext::purpose_name(static_cast<tlm_ext::Purpose>(i)), direction.by_purpose[i]);
    }
  };
  for (const PcieResult& link : result.pcie) {
    if (!selection.shows(link.name)) continue;
    add(link.name + " to host", link, link.to_host);
    add(link.name + " to device", link, link.to_device);
  }
  return table.empty() ? std::string() : section("PCIe, by direction and purpose", table.text());
}

/// "out_of_sequence 3, cqes 67": those that are not zero.
std::string listed(const NamedCounts& counts) {
  std::string line;
  for (const auto& [name, value] : counts) {
    if (value > 0) line += (line.empty() ? "" : ", ") + name + " " + grouped(value);
  }
  return line;
}

/// "priority1 24.5 Gb/s (25 %), priority2 73.4 Gb/s (75 %)": of what the port's data frames took.
std::string lane_shares(const LinkResult& link, Time window) {
  std::uint64_t all = 0;
  for (const auto& lane : link.lanes) all += lane.second;
  std::string text;
  for (const auto& [name, bytes] : link.lanes) {
    if (bytes == 0) continue;
    text += (text.empty() ? "" : ", ") + name + " " + readable(gbps(bytes, window)) + " Gb/s (" +
            percent(static_cast<double>(bytes) / static_cast<double>(all)) + ")";
  }
  return text;
}

std::string links(const Result& result, const Selection& selection) {
  Table table({{"port", Align::kLeft},
               {"packets", Align::kRight},
               {"payload B", Align::kRight},
               {"wire B", Align::kRight},
               {"Gb/s", Align::kRight},
               {"busy", Align::kRight},
               {"dropped", Align::kRight},
               {"paused", Align::kRight}});
  std::string more;
  for (const LinkResult& link : result.links) {
    if (link.packets == 0 && link.wire_bytes == 0 && link.dropped == 0 && link.before.empty()) {
      continue;
    }
    if (!selection.shows(link.name) && link.dropped_because.empty()) continue;
    table.add({link.name, grouped(link.packets), grouped(link.payload_bytes),
               grouped(link.wire_bytes), readable(gbps(link.wire_bytes, result.window)),
               percent(line_utilization(link.wire_bytes, link.rate_gbps, result.window)),
               grouped(link.dropped), duration(to_ns(link.paused))});
    const std::string line = listed(link.more);
    if (!line.empty()) more += wrapped(link.name + ": " + line, 2, kWidth);
    if (const std::string shares =
            lane_shares(link, link.common_window == kTimeZero ? result.window : link.common_window);
        !shares.empty()) {
      more += wrapped(link.name + " by lane: " + shares, 2, kWidth);
    }
    if (!link.before.empty()) {
      more += wrapped(link.name + " before the measured window: " + listed(link.before), 2, kWidth);
    }
    if (!link.dropped_because.empty()) {
      more += wrapped(link.name + " drops frames: " + link.dropped_because, 2, kWidth);
    }
  }
  return table.empty() ? std::string() : section("Links, what each port sent", table.text() + more);
}

std::string counters(const Result& result, const Selection& selection) {
  std::string text;
  for (std::size_t i = 0; i < result.counters.size(); ++i) {
    if (!selection.shows_host(i)) continue;
    const std::string line = listed(result.counters[i]);
    if (!line.empty()) text += wrapped("host" + std::to_string(i) + ": " + line, 2, kWidth);
  }
  return section("Counters that are not zero", text);
}

std::string hosts(const Result& result, const Selection& selection) {
  std::string text;
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    if (!selection.shows_host(i)) continue;
    const HostResult& host = result.hosts[i];
    const std::string cores = host.cores > 1
                                  ? ": busiest of " + std::to_string(host.cores) + " cores busy "
                                  : std::string(": core busy ");
    std::string line = "host" + std::to_string(i) + cores + percent(host.cpu_busy);
    if (host.cpu_polling > 0) line += " (" + percent(host.cpu_polling) + " polling in vain)";
    if (host.interrupts > 0) line += ", " + counted(host.interrupts, "interrupt");
    if (host.syscalls > 0) line += ", " + counted(host.syscalls, "system call");
    if (host.copies_bytes > 0) line += ", " + size(host.copies_bytes) + " copied";
    text += wrapped(line, 2, kWidth);
  }
  const RegistrationResult& registration = result.registration;
  if (registration.calls > 0) {
    text += wrapped("Registration of memory: " + counted(registration.calls, "call") + ", " +
                        counted(registration.pages, "page") + " pinned, " +
                        duration(to_ns(registration.time)),
                    2, kWidth);
  }
  return section("Hosts", text);
}

std::string simulation(const Result& result) {
  const SimulationResult& sim = result.sim;
  std::string text = counted(sim.data_packets, "data packet") + " and " +
                     duration(to_ns(sim.simulated)) + " simulated in " + duration(sim.wall_s * 1e9);
  if (sim.wall_s > 0)
    text += ": " + grouped(static_cast<std::uint64_t>(sim.packets_per_s())) + " packets/s";
  if (sim.data_packets > 0) {
    text +=
        ", " +
        readable(static_cast<double>(sim.model_events) / static_cast<double>(sim.data_packets)) +
        " model events and " +
        readable(static_cast<double>(sim.kernel_events) / static_cast<double>(sim.data_packets)) +
        " kernel events a packet";
  }
  if (sim.replayed_messages > 0) {
    text += "; the stream repeats itself, and " + counted(sim.replayed_messages, "message") +
            " of it were accounted for instead of simulated again (sim.detail)";
  }
  if (sim.peak_rss_bytes > 0) text += ", " + size(sim.peak_rss_bytes) + " of memory at most";
  return section("Simulation", wrapped(text + ".", 2, kWidth));
}

}  // namespace

std::string text_report(const Result& result) {
  const Selection selection(result);
  const std::string note =
      selection.complete() ? std::string() : "\n" + wrapped(selection.note(), 0, kWidth);
  return title(result) + "\n" + headline(result) + latency(result) + probe(result) +
         breakdown(result) + bottleneck(result) + flows(result) + units(result) + note +
         caches(result, selection) + pcie(result, selection) + links(result, selection) +
         counters(result, selection) + hosts(result, selection) + simulation(result);
}

}  // namespace rnic::testbench
