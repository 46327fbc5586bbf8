// SPDX-License-Identifier: Apache-2.0
#include "report/limit_sentence.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "report/format.h"

namespace rnic::testbench {
namespace {

std::string capitalized(std::string sentence) {
  if (!sentence.empty()) {
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  }
  return sentence;
}

}  // namespace

std::string busiest_clause(const std::vector<Resource>& ranked) {
  if (ranked.empty()) return "no unit is saturated";
  return "no unit is saturated (the busiest, " + ranked.front().name + ", is busy " +
         percent(ranked.front().utilization) + " of the time)";
}

const Resource* next_resource(const std::vector<Resource>& ranked, const std::string& kind) {
  const auto found =
      std::find_if(ranked.begin(), ranked.end(), [&](const Resource& r) { return r.kind != kind; });
  return found == ranked.end() || found->utilization < 0.005 ? nullptr : &*found;
}

void add_next(Bottleneck& bottleneck, const Resource* next) {
  if (next != nullptr) {
    bottleneck.next_unit = next->name;
    bottleneck.next_utilization = next->utilization;
    bottleneck.why += "; the next limit would be " + next->name + ", busy " +
                      percent(next->utilization) + " of the time, at " +
                      fixed(1 / next->utilization, 2) + " times the throughput";
  }
  bottleneck.why = capitalized(std::move(bottleneck.why)) + ".";
}

}  // namespace rnic::testbench
