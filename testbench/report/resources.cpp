// SPDX-License-Identifier: Apache-2.0
#include "report/resources.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "report/cache_clause.h"
#include "report/format.h"

namespace rnic::testbench {

std::string without_digits(const std::string& name) {
  std::string kind;
  std::copy_if(name.begin(), name.end(), std::back_inserter(kind),
               [](char c) { return std::isdigit(static_cast<unsigned char>(c)) == 0; });
  return kind;
}

namespace {

std::string line_figures(std::uint64_t wire_bytes, std::uint64_t payload_bytes, double rate_gbps,
                         Time window) {
  if (!(rate_gbps > 0)) return {};
  return readable(gbps(wire_bytes, window)) + " of " + readable(rate_gbps) +
         " Gb/s with all headers, " + readable(gbps(payload_bytes, window)) + " Gb/s of it payload";
}

/// Headers and payload of messages are what a link is for; where other transfers take more than
/// this share of it, they are named.
constexpr double kWorthNaming = 0.1;

/// The cache whose misses make transfers of that purpose, without "_cache"; empty: none.
std::string cache_behind(tlm_ext::Purpose purpose) {
  switch (purpose) {
    case tlm_ext::Purpose::kQpc:
    case tlm_ext::Purpose::kCqc:
    case tlm_ext::Purpose::kMpt:
    case tlm_ext::Purpose::kMtt:
    case tlm_ext::Purpose::kWqe:
      return "." + std::string(tlm_ext::purpose_name(purpose)) + "_cache";
    default:
      return {};
  }
}

/// How full a direction is, and with what besides payload of messages, most first.
std::string pcie_figures(const Result& result, const PcieResult& pcie,
                         const PcieDirectionResult& direction) {
  if (!(pcie.rate_gbps > 0)) return {};
  const Time window = result.window;
  const std::string host = pcie.name.substr(0, pcie.name.find('.'));
  const auto& all = direction.by_purpose;
  std::vector<std::size_t> others;
  for (std::size_t purpose = 0; purpose < all.size(); ++purpose) {
    const double share =
        static_cast<double>(all[purpose].wire_bytes) /
        static_cast<double>(std::max<std::uint64_t>(1, direction.total.wire_bytes));
    if (purpose != static_cast<std::size_t>(tlm_ext::Purpose::kPayload) && share > kWorthNaming) {
      others.push_back(purpose);
    }
  }
  std::sort(others.begin(), others.end(),
            [&all](std::size_t a, std::size_t b) { return all[a].wire_bytes > all[b].wire_bytes; });
  const std::uint64_t payload =
      all[static_cast<std::size_t>(tlm_ext::Purpose::kPayload)].payload_bytes;
  std::string figures = readable(gbps(direction.total.wire_bytes, window)) + " of " +
                        readable(pcie.rate_gbps) + " Gb/s with all headers";
  if (payload > 0 || others.empty()) {
    figures += ", " + readable(gbps(payload, window)) + " Gb/s of it payload";
  }
  for (const std::size_t purpose : others) {
    const auto of = static_cast<tlm_ext::Purpose>(purpose);
    const std::string cache = cache_behind(of);
    figures += ", " + readable(gbps(all[purpose].wire_bytes, window)) + " Gb/s for " +
               tlm_ext::purpose_name(of) +
               (cache.empty() ? std::string() : worst_cache(result, host, cache));
  }
  return figures;
}

void add_pcie(const Result& result, std::vector<Resource>& resources) {
  for (const PcieResult& pcie : result.pcie) {
    const auto add = [&](const PcieDirectionResult& direction, const char* suffix,
                         const char* towards) {
      const TlpResult& sum = direction.total;
      resources.push_back(
          {pcie.name + suffix, without_digits(pcie.name + suffix),
           line_utilization(sum.wire_bytes, pcie.rate_gbps, result.window),
           "the PCIe link " + pcie.name + " towards the " + towards +
               (direction.replays == 0 ? std::string()
                                       : ", which sent " + grouped(direction.replays) +
                                             " packets again after bit errors "
                                             "(pcie.bit_error_rate),"),
           pcie_figures(result, pcie, direction)});
    };
    add(pcie.to_host, ".to_host", "host");
    add(pcie.to_device, ".to_device", "device");
  }
}

void add_links(const Result& result, std::vector<Resource>& resources) {
  for (const LinkResult& link : result.links) {
    // Beside flows that ended at other times, what counts is the time in which all ran.
    const bool whole = link.common_window == kTimeZero;
    const Time window = whole ? result.window : link.common_window;
    const std::uint64_t wire = whole ? link.wire_bytes : link.common_wire_bytes;
    const std::uint64_t payload = whole ? link.payload_bytes : link.common_payload_bytes;
    resources.push_back({link.name, "wire", line_utilization(wire, link.rate_gbps, window),
                         "the wire out of " + link.name,
                         line_figures(wire, payload, link.rate_gbps, window)});
  }
}

void add_cpus(const Result& result, std::vector<Resource>& resources) {
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const double useful = result.hosts[i].cpu_busy - result.hosts[i].cpu_polling;
    double rate = 0;
    for (const FlowResult& flow : result.flows) {
      if (flow.source == i) rate += flow.message_rate_mops;
    }
    const std::string name = "host" + std::to_string(i) + ".cpu";
    const double cores = std::max(1U, result.hosts[i].cores);
    const std::string core =
        cores > 1 ? "the busiest of the application's cores on " : "the application's core ";
    std::string figures =
        rate > 0 ? duration(useful * cores * 1e3 / rate) + " a message" : std::string();
    if (const double locks = result.hosts[i].cpu_locks; locks > kWorthNaming) {
      figures += (figures.empty() ? "" : ", ") + percent(std::min(1.0, locks / useful)) +
                 " of it at the locks of doorbell registers that cores share "
                 "(cpu.doorbell_registers)";
    }
    resources.push_back({name, "cpu", std::clamp(useful, 0.0, 1.0),
                         core + name + ", which posts and completes messages,", figures});
  }
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

/// The keys behind a unit whose name does not tell them.
std::string keys_of(const std::string& unit) {
  if (ends_with(unit, ".strict_order")) {
    return ", which puts posted writes without relaxed ordering into order (pcie.ordering_time, "
           "pcie.ordering_overlap),";
  }
  if (ends_with(unit, ".socket_link"))
    return ", the way to the other socket (memory.numa_bandwidth),";
  if (ends_with(unit, ".dram")) {
    return ", main memory (memory.dram_channels, memory.dram_channel_bandwidth),";
  }
  if (ends_with(unit, ".loopback")) return " (nic.loopback_rate)";
  if (ends_with(unit, ".relaxed_order")) {
    return ", which takes posted writes with relaxed ordering (pcie.relaxed_time),";
  }
  if (ends_with(unit, ".qp_engine")) {
    return ", what one queue pair can send (nic.qp_rate, nic.qp_message_time, "
           "nic.read_engine_rate, nic.read_engine_time),";
  }
  if (ends_with(unit, ".payload_gather")) {
    return ", which collects the pieces of messages (nic.sge_time),";
  }
  return {};
}

/// Units of which nothing better is known. A unit that stands for a line or a CPU lends it its own
/// count of busy time, which knows about gaps that bytes do not show.
void add_units(const Result& result, std::vector<Resource>& resources) {
  const std::size_t others = resources.size();
  for (const UnitResult& unit : result.units) {
    const auto end = resources.begin() + static_cast<std::ptrdiff_t>(others);
    const auto same = std::find_if(resources.begin(), end,
                                   [&](const Resource& r) { return r.name == unit.name; });
    if (same != end) {
      const bool is_cpu = same->kind == "cpu";
      if (!is_cpu && unit.utilization > same->utilization) {
        // What its bytes say is of another time.
        if (unit.utilization > same->utilization + kAsBusy) same->figures.clear();
        same->utilization = unit.utilization;
      }
      continue;
    }
    const std::string figures =
        result.message_rate_mops > 0
            ? "at " + readable(result.message_rate_mops) + " M messages/s in all"
            : std::string();
    resources.push_back({unit.name, without_digits(unit.name), unit.utilization,
                         "the unit " + unit.name + keys_of(unit.name), figures});
  }
}

}  // namespace

std::vector<Resource> ranked_resources(const Result& result) {
  std::vector<Resource> resources;
  add_pcie(result, resources);
  add_links(result, resources);
  add_cpus(result, resources);
  add_units(result, resources);
  const auto busier = [](const Resource& a, const Resource& b) {
    return a.utilization > b.utilization;
  };
  // Of alike resources that are as busy, the first host's: it sends in most workloads.
  const std::vector<Resource> as_reported = resources;
  std::stable_sort(resources.begin(), resources.end(), busier);
  const Resource first = resources.empty() ? Resource{} : resources.front();
  const auto alike = [&first](const Resource& r) {
    return r.kind == first.kind && r.utilization >= first.utilization - kAsBusy;
  };
  const auto named = std::find_if(as_reported.begin(), as_reported.end(), alike);
  if (named == as_reported.end()) return resources;
  const auto at = std::find_if(resources.begin(), resources.end(),
                               [&](const Resource& r) { return r.name == named->name; });
  std::rotate(resources.begin(), at, at + 1);
  return resources;
}

}  // namespace rnic::testbench
