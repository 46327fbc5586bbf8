// SPDX-License-Identifier: Apache-2.0
#include "report/result.h"

#include <algorithm>

namespace rnic::testbench {
namespace {

/// The text of a key, empty when it is missing.
std::string text_of(const nlohmann::ordered_json& resolved, const char* key) {
  const auto found = resolved.find(key);
  return found != resolved.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const char* latency_meaning(config::Op op, config::Pattern pattern) {
  if (op == config::Op::kDmaWrite) {
    return "from the device's request to its bytes being visible in host memory";
  }
  if (op == config::Op::kDmaReadWrite && pattern == config::Pattern::kLatency) {
    return "from the device's write, followed by a read of the same bytes, to their arrival";
  }
  if (config::is_dma(op)) return "from the device's request to its last byte (writes: visible)";
  if (pattern == config::Pattern::kLatency && !config::returns_data(op)) {
    return "half the ping-pong round trip: from the start of posting to the peer's program seeing "
           "the message";
  }
  return "from the start of posting to the program seeing the completion";
}

}  // namespace

Scenario scenario_of(const config::Config& config, const nlohmann::ordered_json& resolved) {
  Scenario scenario;
  const config::WorkloadConfig& workload = config.workload;
  const bool program = workload.program != config::Program::kNone;
  scenario.op = text_of(resolved, program ? "workload.program" : "workload.op");
  scenario.latency_pattern = workload.pattern == config::Pattern::kLatency;
  scenario.latency_meaning = program ? "of an operation, as its client waits for it"
                                     : latency_meaning(workload.op, workload.pattern);
  scenario.msg_size = workload.msg_size;
  scenario.depth = scenario.latency_pattern ? 1 : workload.depth;
  if (config::is_dma(workload.op)) return scenario;
  scenario.protocol = text_of(resolved, "transport.protocol");
  scenario.type = text_of(resolved, "transport.type");
  scenario.hosts = config.fabric.hosts;
  scenario.qps = workload.qps;
  scenario.threads = workload.threads;
  scenario.outstanding = scenario.latency_pattern ? 0 : workload.outstanding;
  if (config::returns_data(workload.op)) {
    scenario.read_window = std::min(config.transport.max_rd_atomic, config.nic.max_rd_atomic);
    const bool splits = workload.op == config::Op::kRead &&
                        config.transport.recovery == config::Recovery::kGoBackN &&
                        config.transport.protocol != config::Protocol::kIwarp &&
                        config.nic.read_segment < workload.msg_size;
    if (splits) scenario.read_segment = config.nic.read_segment;
    scenario.atomics_in_turn = config::is_atomic(workload.op) && config.nic.atomics_in_turn;
  }
  scenario.link_gbps = config.link.rate.to_gbps();
  const std::uint64_t packet = std::min<std::uint64_t>(workload.msg_size, config.transport.mtu);
  scenario.buffer_before_slots =
      config.nic.tx_buffer > 0 && config.nic.tx_buffer < packet * config.nic.tx_slots;
  return scenario;
}

UnitResult unit_result(const stats::UnitStats& unit, Time window_start, Time now) {
  UnitResult result;
  result.name = unit.name();
  const auto window = static_cast<double>((now - window_start).count());
  if (window > 0) {
    result.utilization = static_cast<double>(unit.busy_in_window(now).count()) / window;
    for (std::size_t i = 0; i < result.stalled.size(); ++i) {
      const Time stalled = unit.stalled(static_cast<stats::StallCause>(i));
      result.stalled[i] = static_cast<double>(stalled.count()) / window;
    }
  }
  result.occupancy_mean = unit.occupancy_mean(window_start, now);
  result.occupancy_max = unit.occupancy_max();
  return result;
}

std::uint64_t count_of(const NamedCounts& counts, std::string_view name) {
  for (const auto& [one, value] : counts) {
    if (one == name) return value;
  }
  return 0;
}

std::uint64_t sum_counter(const Result& result, std::string_view name) {
  std::uint64_t sum = 0;
  for (const NamedCounts& host : result.counters) sum += count_of(host, name);
  return sum;
}

void limit_shares(Result& result) {
  for (UnitResult& unit : result.units) {
    unit.utilization = std::min(1.0, unit.utilization);
    for (double& share : unit.stalled) share = std::min(1.0, share);
  }
  for (HostResult& host : result.hosts) {
    host.cpu_busy = std::min(1.0, host.cpu_busy);
    host.cpu_polling = std::min(host.cpu_busy, host.cpu_polling);
  }
}

double gbps(std::uint64_t bytes, Time window) {
  if (window <= kTimeZero) return 0;
  return static_cast<double>(bytes) * 8e3 / static_cast<double>(window.count());
}

double line_utilization(std::uint64_t wire_bytes, double rate_gbps, Time window) {
  if (!(rate_gbps > 0)) return 0;
  return std::min(1.0, gbps(wire_bytes, window) / rate_gbps);
}

}  // namespace rnic::testbench
