// SPDX-License-Identifier: Apache-2.0
#include "report/drops.h"

#include <algorithm>

#include "report/format.h"

namespace rnic::testbench {
namespace {

std::uint64_t repetitions(const Result& result) {
  std::uint64_t sum = 0;
  for (const NamedCounts& host : result.counters) {
    for (const auto& [counter, value] : host) {
      if (counter == "retransmitted_packets") sum += value;
    }
  }
  return sum;
}

}  // namespace

std::string drop_sentence(const Result& result) {
  const auto fewer = [](const LinkResult& a, const LinkResult& b) { return a.dropped < b.dropped; };
  const auto worst = std::max_element(result.links.begin(), result.links.end(), fewer);
  if (worst == result.links.end() || worst->dropped == 0) return {};
  std::uint64_t dropped = 0;
  for (const LinkResult& link : result.links) dropped += link.dropped;
  const std::uint64_t again = repetitions(result);
  constexpr std::uint64_t kHundred = 100;  // below 1 % nothing worth naming
  if (std::max(dropped, again) * kHundred < result.sim.data_packets) return {};
  std::string text = " " + grouped(dropped) + " frames were dropped";
  if (again > 0) {
    text += " and " + grouped(again) + " of " + grouped(result.sim.data_packets) +
            " packets are repetitions";
  }
  return text + ": at " + worst->name + ", " + worst->dropped_because + ".";
}

}  // namespace rnic::testbench
