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

/// Frames that faults of the cables took, in and before the measured window.
std::uint64_t lost_on_cables(const Result& result) {
  constexpr std::string_view kTaken[] = {"cable_lost", "cable_lost_while_down", "cable_corrupted"};
  std::uint64_t lost = 0;
  for (const LinkResult& link : result.links) {
    for (const std::string_view name : kTaken) {
      lost += count_of(link.more, name) + count_of(link.before, name);
    }
  }
  return lost;
}

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
  text += ": at " + worst->name + ", " + worst->dropped_because + ".";
  if (const std::uint64_t lost = lost_on_cables(result); lost > 0) {
    text += " Cables lost or damaged " + counted(lost, "frame") + " besides (faults of link.*).";
  }
  return text;
}

std::string repetition_sentence(const Result& result) {
  const std::uint64_t again = repetitions(result);
  return matters(again, result) ? " " + share_of(again, result) + " (transport.recovery)."
                                : std::string();
}

bool timer_is_too_short(const Result& result) {
  if (sum_counter(result, "local_ack_timeout_err") == 0) return false;
  if (sum_counter(result, "out_of_sequence") > 0 || sum_counter(result, "rnr_naks_sent") > 0) {
    return false;
  }
  return lost_on_cables(result) == 0 &&
         std::all_of(result.links.begin(), result.links.end(), [](const LinkResult& link) {
           return dropped_in_all(link) == 0 && count_of(link.more, "cable_reordered") == 0;
         });
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
