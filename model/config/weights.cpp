// SPDX-License-Identifier: Apache-2.0
#include "config/weights.h"

#include <sstream>

#include "base/error.h"

namespace rnic::config {
namespace {

constexpr std::uint32_t kMaxWeight = 255;
constexpr std::size_t kMaxEntries = 64;  // IBTA vol. 1, 7.6.9: of a table

struct Format {
  std::uint32_t lanes;
  const char* valid;
};

[[noreturn]] void refuse(const std::string& key, const std::string& text, const Format& format) {
  throw ConfigError(key + "=" + text + " is not a list of " + format.valid);
}

/// A number of at most three digits, up to `limit`.
bool read_number(const std::string& text, std::uint32_t limit, std::uint32_t& out) {
  if (text.empty() || text.size() > 3) return false;
  if (text.find_first_not_of("0123456789") != std::string::npos) return false;
  out = static_cast<std::uint32_t>(std::stoul(text));
  return out <= limit;
}

std::vector<LaneWeight> parse(const std::string& key, const std::string& text,
                              const Format& format) {
  std::vector<LaneWeight> entries;
  if (text.empty() || text == "none") return entries;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    LaneWeight entry;
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos ||
        !read_number(part.substr(0, colon), format.lanes - 1, entry.lane)) {
      refuse(key, text, format);
    }
    const std::string weight = part.substr(colon + 1);
    entry.strict = weight == "strict";
    if (!entry.strict && !read_number(weight, kMaxWeight, entry.weight)) refuse(key, text, format);
    entries.push_back(entry);
  }
  if (entries.size() > kMaxEntries) refuse(key, text, format);
  return entries;
}

}  // namespace

std::vector<LaneWeight> parse_vl_weights(const std::string& key, const std::string& text) {
  constexpr Format kFormat{15, "VL:WEIGHT (VL 0..14, weight 0..255 in units of 64 B, 64 entries)"};
  std::vector<LaneWeight> entries = parse(key, text, kFormat);
  for (const LaneWeight& entry : entries) {
    if (entry.strict) refuse(key, text, kFormat);
  }
  return entries;
}

std::vector<LaneWeight> parse_ets(const std::string& key, const std::string& text) {
  constexpr Format kFormat{8, "PRIORITY:WEIGHT or PRIORITY:strict (priority 0..7, weight 1..255)"};
  std::vector<LaneWeight> entries = parse(key, text, kFormat);
  std::uint32_t seen = 0;
  for (const LaneWeight& entry : entries) {
    const std::uint32_t bit = 1U << entry.lane;
    if ((seen & bit) != 0 || (!entry.strict && entry.weight == 0)) refuse(key, text, kFormat);
    seen |= bit;
  }
  return entries;
}

}  // namespace rnic::config
