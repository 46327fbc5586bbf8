// SPDX-License-Identifier: Apache-2.0
#include "config/fault_list.h"

#include <algorithm>

#include "base/error.h"
#include "config/quantity.h"

namespace rnic::config {
namespace {

bool before(const FaultTarget& a, const FaultTarget& b) {
  return a.kind != b.kind ? a.kind < b.kind : a.number < b.number;
}

FrameKind kind_named(std::string_view name) {
  const std::vector<std::string>& names = frame_kind_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw ConfigError("names a kind of frame that does not exist: " + std::string(name));
  }
  return static_cast<FrameKind>(found - names.begin());
}

FaultTarget parse_target(const std::string& part) {
  const std::size_t colon = part.find(':');
  if (colon == std::string::npos) return {FrameKind::kData, parse_count(part)};
  const std::string_view text = part;
  return {kind_named(trimmed(text.substr(0, colon))), parse_count(text.substr(colon + 1))};
}

}  // namespace

const std::vector<std::string>& frame_kind_names() {
  static const std::vector<std::string> names{"any", "data", "request", "response",  "ack",
                                              "nak", "rnr",  "cnp",     "connection"};
  return names;
}

FrameKinds kinds_named(const std::vector<std::string>& names) {
  FrameKinds all = 0;
  const std::vector<std::string>& known = frame_kind_names();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (std::find(names.begin(), names.end(), known[i]) != names.end()) all |= 1U << i;
  }
  return all;
}

std::vector<FaultTarget> parse_fault_list(std::string_view text) {
  std::vector<FaultTarget> targets;
  for (const std::string& part : split_list(text)) targets.push_back(parse_target(part));
  std::sort(targets.begin(), targets.end(), before);
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

std::string fault_list_text(const std::vector<FaultTarget>& targets) {
  std::string text;
  for (const FaultTarget& target : targets) {
    if (!text.empty()) text += ',';
    if (target.kind != FrameKind::kData) {
      text += frame_kind_names()[static_cast<std::size_t>(target.kind)] + ':';
    }
    text += std::to_string(target.number);
  }
  return text.empty() ? "none" : text;
}

}  // namespace rnic::config
