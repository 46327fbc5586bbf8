// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/result.h"

namespace rnic::testbench::test {

/// Two messages of 64 B: latencies 1000 ns and 1400 ns, of which post 100 ns each, payload_fetch
/// 600 and 1000 ns, poll 300 ns each. Two hosts, everything measured for 10 us.
inline Result sample_result() {
  Result result;
  result.version = "1.2.3";
  result.config = {{"workload.op", "write"}, {"link.rate", 100.0}, {"nic.blueflame", true}};
  result.scenario.op = "write";
  result.scenario.protocol = "rocev2";
  result.scenario.type = "rc";
  result.scenario.latency_pattern = true;
  result.scenario.latency_meaning = "from posting to completion";
  result.scenario.msg_size = 64;
  result.scenario.hosts = 2;
  result.scenario.qps = 1;
  result.scenario.depth = 1;
  result.scenario.link_gbps = 100;
  result.window = microseconds(10);
  result.throughput_gbps = 0.1024;
  result.message_rate_mops = 0.2;
  for (const std::int64_t fetch : {600, 1000}) {
    stats::MessageTrace trace;
    trace.start(nanoseconds(50));
    trace.mark(stats::Stage::kPost, nanoseconds(150));
    trace.mark(stats::Stage::kPayloadFetch, nanoseconds(150 + fetch));
    trace.mark(stats::Stage::kPoll, nanoseconds(450 + fetch));
    result.latency.add(trace.total());
    result.breakdown.add(trace);
  }
  result.completions = {{"success", 2}, {"remote_access_error", 0}};
  FlowResult flow;
  flow.destination = 1;
  flow.throughput_gbps = 0.1024;
  flow.message_rate_mops = 0.2;
  flow.latency.merge(result.latency);
  result.flows.push_back(flow);

  UnitResult unit;
  unit.name = "host0.nic.dma";
  unit.utilization = 0.25;
  unit.stalled[static_cast<std::size_t>(stats::StallCause::kNoTag)] = 0.125;
  unit.occupancy_mean = 1.5;
  unit.occupancy_max = 4;
  result.units.push_back(unit);
  result.caches.push_back({"host0.nic.mtt_cache", 3, 1});

  PcieResult pcie;
  pcie.name = "host0.pcie";
  pcie.rate_gbps = 100;
  pcie.to_device.total = {4, 128, 208};
  pcie.to_device.by_purpose[static_cast<std::size_t>(tlm_ext::Purpose::kPayload)] = {2, 128, 168};
  pcie.to_device.by_purpose[static_cast<std::size_t>(tlm_ext::Purpose::kDoorbell)] = {2, 0, 40};
  result.pcie.push_back(pcie);

  LinkResult link;
  link.name = "host0.port";
  link.rate_gbps = 100;
  link.packets = 2;
  link.payload_bytes = 128;
  link.wire_bytes = 292;
  link.paused = nanoseconds(7);
  link.more = {{"control_frames", 5}};
  result.links.push_back(link);
  result.counters = {{{"out_of_sequence", 0}, {"rx_write_requests", 0}},
                     {{"out_of_sequence", 0}, {"rx_write_requests", 2}}};
  result.hosts.resize(2);
  result.hosts[0].cpu_busy = 1;
  result.hosts[0].cpu_polling = 0.75;
  result.registration = {1, 16, microseconds(3)};
  result.sim.simulated = microseconds(20);
  result.sim.kernel_events = 60;
  result.sim.model_events = 100;
  result.sim.data_packets = 2;
  result.sim.wall_s = 0.5;
  result.sim.peak_rss_bytes = std::uint64_t{64} << 20;
  return result;
}

}  // namespace rnic::testbench::test
