// SPDX-License-Identifier: Apache-2.0
#include "report/json_writer.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "report/output_file.h"
#include "stats/stage.h"

namespace rnic::testbench {
namespace {

using Json = nlohmann::ordered_json;

/// Six decimals: what lies beyond is noise of the division and reads badly. JSON has no infinity.
double rounded(double value) { return std::isfinite(value) ? std::round(value * 1e6) / 1e6 : 0.0; }

Json latency_json(const stats::Histogram& latency) {
  return {{"min", to_ns(latency.min())},          {"mean", rounded(latency.mean_ns())},
          {"p50", to_ns(latency.quantile(0.5))},  {"p90", to_ns(latency.quantile(0.9))},
          {"p99", to_ns(latency.quantile(0.99))}, {"p99.9", to_ns(latency.quantile(0.999))},
          {"max", to_ns(latency.max())}};
}

Json breakdown_json(const stats::Breakdown& breakdown) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < stats::kStageCount; ++i) {
    const auto stage = static_cast<stats::Stage>(i);
    stages.push_back({{"stage", stats::stage_name(stage)},
                      {"mean", rounded(breakdown.mean_ns(stage))},
                      {"p50", to_ns(breakdown.quantile(stage, 0.5))},
                      {"p99", to_ns(breakdown.quantile(stage, 0.99))}});
  }
  return stages;
}

Json counts_json(const NamedCounts& counts) {
  Json object = Json::object();
  for (const auto& [name, value] : counts) object[name] = value;
  return object;
}

Json flows_json(const std::vector<FlowResult>& flows) {
  Json array = Json::array();
  for (const FlowResult& flow : flows) {
    array.push_back({{"src", flow.source},
                     {"dst", flow.destination},
                     {"throughput_gbps", rounded(flow.throughput_gbps)},
                     {"message_rate_mops", rounded(flow.message_rate_mops)},
                     {"latency_ns", latency_json(flow.latency)}});
    if (flow.threads.size() < 2) continue;
    for (const ThreadResult& thread : flow.threads) {
      array.back()["threads"].push_back({{"throughput_gbps", rounded(thread.throughput_gbps)},
                                         {"message_rate_mops", rounded(thread.message_rate_mops)},
                                         {"latency_mean_ns", rounded(thread.latency_mean_ns)},
                                         {"latency_p99_ns", rounded(thread.latency_p99_ns)}});
    }
  }
  return array;
}

Json units_json(const std::vector<UnitResult>& units) {
  Json array = Json::array();
  for (const UnitResult& unit : units) {
    Json stalled = Json::object();
    for (std::size_t i = 0; i < unit.stalled.size(); ++i) {
      if (unit.stalled[i] > 0) {
        stalled[stats::stall_cause_name(static_cast<stats::StallCause>(i))] =
            rounded(unit.stalled[i]);
      }
    }
    array.push_back(
        {{"name", unit.name},
         {"utilization", rounded(unit.utilization)},
         {"stalled", std::move(stalled)},
         {"occupancy", {{"mean", rounded(unit.occupancy_mean)}, {"max", unit.occupancy_max}}}});
  }
  return array;
}

Json bottleneck_json(const Bottleneck& bottleneck) {
  Json object = {{"unit", bottleneck.unit},
                 {"utilization", rounded(bottleneck.utilization)},
                 {"why", bottleneck.why}};
  if (!bottleneck.next_unit.empty()) {
    object["next"] = {{"unit", bottleneck.next_unit},
                      {"utilization", rounded(bottleneck.next_utilization)}};
  }
  return object;
}

Json caches_json(const std::vector<CacheResult>& caches) {
  Json array = Json::array();
  for (const CacheResult& cache : caches) {
    array.push_back({{"name", cache.name},
                     {"hits", cache.hits},
                     {"joined", cache.joined},
                     {"misses", cache.misses}});
  }
  return array;
}

Json tlp_json(const TlpResult& tlps) {
  return {
      {"tlps", tlps.tlps}, {"payload_bytes", tlps.payload_bytes}, {"wire_bytes", tlps.wire_bytes}};
}

Json direction_json(const PcieDirectionResult& direction) {
  Json object = tlp_json(direction.total);
  Json purposes = Json::object();
  for (std::size_t i = 0; i < direction.by_purpose.size(); ++i) {
    if (direction.by_purpose[i].tlps == 0) continue;
    purposes[tlm_ext::purpose_name(static_cast<tlm_ext::Purpose>(i))] =
        tlp_json(direction.by_purpose[i]);
  }
  object["by_purpose"] = std::move(purposes);
  object["replays"] = direction.replays;
  return object;
}

Json pcie_json(const std::vector<PcieResult>& links) {
  Json array = Json::array();
  for (const PcieResult& pcie : links) {
    array.push_back({{"name", pcie.name},
                     {"rate_gbps", rounded(pcie.rate_gbps)},
                     {"to_host", direction_json(pcie.to_host)},
                     {"to_device", direction_json(pcie.to_device)}});
  }
  return array;
}

Json links_json(const std::vector<LinkResult>& links) {
  Json array = Json::array();
  for (const LinkResult& link : links) {
    Json object = {{"name", link.name},
                   {"rate_gbps", rounded(link.rate_gbps)},
                   {"packets", link.packets},
                   {"payload_bytes", link.payload_bytes},
                   {"wire_bytes", link.wire_bytes},
                   {"dropped", link.dropped},
                   {"paused_ns", to_ns(link.paused)}};
    if (!link.dropped_because.empty()) object["dropped_because"] = link.dropped_because;
    for (const auto& [name, value] : link.more) object[name] = value;
    if (!link.before.empty()) object["before_window"] = counts_json(link.before);
    if (!link.lanes.empty()) object["lane_wire_bytes"] = counts_json(link.lanes);
    array.push_back(std::move(object));
  }
  return array;
}

Json counters_json(const std::vector<NamedCounts>& counters) {
  Json object = Json::object();
  for (std::size_t i = 0; i < counters.size(); ++i) {
    object["host" + std::to_string(i)] = counts_json(counters[i]);
  }
  return object;
}

Json probe_json(const ProbeResult& probe) {
  return {{"size", probe.size},     {"interval_ns", to_ns(probe.interval)},
          {"posted", probe.posted}, {"measured", probe.latency.count()},
          {"failed", probe.failed}, {"latency_ns", latency_json(probe.latency)}};
}

Json hosts_json(const std::vector<HostResult>& hosts) {
  Json array = Json::array();
  for (const HostResult& host : hosts) {
    array.push_back({{"cores", host.cores},
                     {"cpu_busy", rounded(host.cpu_busy)},
                     {"cpu_polling", rounded(host.cpu_polling)},
                     {"cpu_locks", rounded(host.cpu_locks)},
                     {"copies_bytes", host.copies_bytes},
                     {"syscalls", host.syscalls},
                     {"interrupts", host.interrupts}});
    for (std::size_t i = 1; i < host.held.size(); ++i) {
      if (!(host.held[i] > 0)) continue;
      array.back()["held"][transport::hold_name(static_cast<transport::Hold>(i))] =
          rounded(host.held[i]);
    }
  }
  return array;
}

Json sim_json(const SimulationResult& sim) {
  return {{"simulated_ns", to_ns(sim.simulated)},
          {"kernel_events", sim.kernel_events},
          {"model_events", sim.model_events},
          {"data_packets", sim.data_packets},
          {"replayed_messages", sim.replayed_messages},
          {"wall_s", rounded(sim.wall_s)},
          {"packets_per_s", std::round(sim.packets_per_s())},
          {"peak_rss_bytes", sim.peak_rss_bytes}};
}

std::string ns_text(Time time) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03lld",
                static_cast<long long>(time.count() / 1000),
                static_cast<long long>(time.count() % 1000));
  return text.data();
}

}  // namespace

nlohmann::ordered_json to_json(const Result& result) {
  Json json;
  json["schema"] = kResultSchema;
  json["version"] = result.version;
  json["config"] = result.config;
  if (!result.without_effect.empty()) json["without_effect"] = result.without_effect;
  json["window_ns"] = to_ns(result.window);
  json["throughput_gbps"] = rounded(result.throughput_gbps);
  json["message_rate_mops"] = rounded(result.message_rate_mops);
  json["latency_ns"] = latency_json(result.latency);
  json["breakdown_ns"] = breakdown_json(result.breakdown);
  json["completions"] = counts_json(result.completions);
  json["flows"] = flows_json(result.flows);
  if (result.messages) {
    json["messages"] = {{"sent", result.messages->sent},
                        {"delivered", result.messages->delivered},
                        {"lost", result.messages->lost()},
                        {"late", result.messages->late},
                        {"duplicates", result.messages->duplicates}};
  }
  if (!result.ended_early.empty()) json["ended_early"] = result.ended_early;
  if (result.probe) json["probe"] = probe_json(*result.probe);
  json["units"] = units_json(result.units);
  json["bottleneck"] = bottleneck_json(result.bottleneck);
  json["caches"] = caches_json(result.caches);
  json["pcie"] = pcie_json(result.pcie);
  json["link"] = links_json(result.links);
  json["counters"] = counters_json(result.counters);
  json["host"] = hosts_json(result.hosts);
  json["registration"] = {{"calls", result.registration.calls},
                          {"pages", result.registration.pages},
                          {"ns", to_ns(result.registration.time)}};
  json["sim"] = sim_json(result.sim);
  return json;
}

std::string latency_csv(const stats::Histogram& latency) {
  std::string csv = "low_ns,high_ns,count,cumulative\n";
  std::uint64_t cumulative = 0;
  latency.for_each_bucket([&](const stats::Histogram::Bucket& bucket) {
    cumulative += bucket.count;
    csv += ns_text(bucket.low) + "," + ns_text(bucket.high) + "," + std::to_string(bucket.count) +
           "," + std::to_string(cumulative) + "\n";
  });
  return csv;
}

void write_result_files(const Result& result, const std::filesystem::path& directory) {
  // Names in the configuration may hold any bytes; those that are no UTF-8 must not cost the run.
  const std::string text =
      to_json(result).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  write_file_atomically(directory / "latency.csv", latency_csv(result.latency));
  // The last file to appear tells that the directory is complete.
  write_file_atomically(directory / "result.json", text);
}

}  // namespace rnic::testbench
