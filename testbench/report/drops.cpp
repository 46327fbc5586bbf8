// SPDX-License-Identifier: Apache-2.0
#include "report/drops.h"

#include <algorithm>
#include <string_view>

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

constexpr std::string_view kDropped = "dropped";

std::uint64_t dropped_in_all(const LinkResult& link) {
  return link.dropped + count_of(link.before, kDropped);
}

std::string share_of(std::uint64_t again, const Result& result) {
  return grouped(again) + " of " + grouped(result.sim.data_packets) + " packets are repetitions";
}

}  // namespace

std::string drop_sentence(const Result& result) {
  const auto fewer = [](const LinkResult& a, const LinkResult& b) {
    return dropped_in_all(a) < dropped_in_all(b);
  };
  const auto worst = std::max_element(result.links.begin(), result.links.end(), fewer);
  if (worst == result.links.end() || dropped_in_all(*worst) == 0) return {};
  std::uint64_t dropped = 0;
  std::uint64_t before = 0;
  for (const LinkResult& link : result.links) {
    dropped += dropped_in_all(link);
    before += count_of(link.before, kDropped);
  }
  const std::uint64_t again = repetitions(result);
  // Where nothing may be dropped, one frame shows that the settings are wrong.
  if (!worst->lossless && !matters(std::max(dropped, again), result)) return {};
  std::string text =
      " " + counted(dropped, "frame") + (dropped == 1 ? " was" : " were") + " dropped";
  if (before > 0) {
    text += " (" + (before == dropped ? "all" : grouped(before) + " of them") +
            " before the measured window)";
  }
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
