// SPDX-License-Identifier: Apache-2.0
#include "report/drops.h"

#include <algorithm>

#include "report/format.h"

namespace rnic::testbench {
namespace {

/// Below 1 % of all packets nothing is worth naming.
bool matters(std::uint64_t packets, const Result& result) {
  constexpr std::uint64_t kHundred = 100;
  return packets > 0 && packets * kHundred >= result.sim.data_packets;
}

std::uint64_t repetitions(const Result& result) {
  return sum_counter(result, "retransmitted_packets");
}

std::string share_of(std::uint64_t again, const Result& result) {
  return grouped(again) + " of " + grouped(result.sim.data_packets) + " packets are repetitions";
}

}  // namespace

std::string drop_sentence(const Result& result) {
  const auto fewer = [](const LinkResult& a, const LinkResult& b) { return a.dropped < b.dropped; };
  const auto worst = std::max_element(result.links.begin(), result.links.end(), fewer);
  if (worst == result.links.end() || worst->dropped == 0) return {};
  std::uint64_t dropped = 0;
  for (const LinkResult& link : result.links) dropped += link.dropped;
  const std::uint64_t again = repetitions(result);
  if (!matters(std::max(dropped, again), result)) return {};
  std::string text = " " + grouped(dropped) + " frames were dropped";
  if (again > 0) text += " and " + share_of(again, result);
  return text + ": at " + worst->name + ", " + worst->dropped_because + ".";
}

std::string repetition_sentence(const Result& result) {
  const std::uint64_t again = repetitions(result);
  return matters(again, result) ? " " + share_of(again, result) + " (transport.recovery)."
                                : std::string();
}

double burnt_share(const Result& result) {
  const std::uint64_t again = sum_counter(result, "retransmitted_packets") +
                              sum_counter(result, "tcp_retransmitted_segments");
  if (again == 0) return 0;
  double carried = 0;
  for (const LinkResult& link : result.links) {
    if (link.name.rfind("host", 0) != 0) continue;
    carried += link.common_window == kTimeZero
                   ? gbps(link.payload_bytes, result.window)
                   : gbps(link.common_payload_bytes, link.common_window);
  }
  return carried > 0 ? std::max(0.0, 1 - result.throughput_gbps / carried) : 0;
}

}  // namespace rnic::testbench
