// SPDX-License-Identifier: Apache-2.0
#include "report/selection.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "report/format.h"

namespace rnic::testbench {
namespace {

/// N of "hostN" and "hostN.…".
std::optional<std::size_t> host_of(const std::string& name) {
  constexpr std::size_t kPrefix = 4;
  if (name.compare(0, kPrefix, "host") != 0) return std::nullopt;
  std::size_t end = kPrefix;
  std::size_t host = 0;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) {
    host = host * 10 + static_cast<std::size_t>(name[end++] - '0');
  }
  if (end == kPrefix || (end < name.size() && name[end] != '.')) return std::nullopt;
  return host;
}

}  // namespace

Selection::Selection(const Result& result)
    : count_(result.hosts.size()), complete_(count_ <= kFew) {
  if (complete_) return;
  for (const std::string& unit : {result.bottleneck.unit, result.bottleneck.next_unit}) {
    limits_.insert(unit);
    if (const auto host = host_of(unit)) hosts_.insert(*host);
  }
  if (result.flows.empty()) {
    hosts_.insert(0);
    return;
  }
  const auto [slowest, fastest] = std::minmax_element(
      result.flows.begin(), result.flows.end(), [](const FlowResult& a, const FlowResult& b) {
        return a.throughput_gbps < b.throughput_gbps;
      });
  add_flow(*slowest);
  // Of equals one speaks for all.
  constexpr double kAlike = 0.99;
  if (slowest->throughput_gbps < kAlike * fastest->throughput_gbps) add_flow(*fastest);
}

void Selection::add_flow(const FlowResult& flow) {
  hosts_.insert(flow.source);
  hosts_.insert(flow.destination);
}

bool Selection::shows(const std::string& name) const {
  if (complete_ || limits_.count(name) > 0) return true;
  const auto host = host_of(name);
  return host && hosts_.count(*host) > 0;
}

std::string Selection::note() const {
  if (complete_) return {};
  std::string shown;
  for (const std::size_t host : hosts_) {
    shown += (shown.empty() ? "host" : ", host") + std::to_string(host);
  }
  return "Of " + counted(count_, "host") + " the tables below tell of " + shown +
         " (the limits, and the slowest and the fastest flow); all are in result.json.";
}

}  // namespace rnic::testbench
