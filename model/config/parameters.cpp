// SPDX-License-Identifier: Apache-2.0
#include "config/parameters.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "config/parameter_table.h"
#include "config/quantity.h"

namespace rnic::config {
namespace {

constexpr double kTwoTo64 = 18446744073709551616.0;

template <typename T>
T& target(const Parameter& parameter, Config& config) {
  return std::get<T& (*)(Config&)>(parameter.field)(config);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::vector<std::string> choice_names(const Parameter& parameter) {
  std::vector<std::string> names;
  for (const Choice& choice : parameter.choices) names.push_back(choice.name);
  return names;
}

/// A whole number stays one in the report.
Value number_value(double value) {
  if (value >= 0 && value < 9e15 && value == static_cast<double>(static_cast<std::uint64_t>(value)))
    return static_cast<std::uint64_t>(value);
  return value;
}

[[noreturn]] void refuse(const Parameter& parameter, const std::string& reason) {
  throw ConfigError(reason + " (valid: " + valid_values(parameter) + ")");
}

void check_range(const Parameter& parameter, double value) {
  if (value < parameter.minimum || value > parameter.maximum) {
    refuse(parameter, "is out of range");
  }
  const auto& allowed = parameter.allowed;
  const auto same = [value](std::uint64_t one) { return static_cast<double>(one) == value; };
  if (!allowed.empty() && std::none_of(allowed.begin(), allowed.end(), same)) {
    refuse(parameter, "is not one of the valid values");
  }
}

void store_integer(const Parameter& parameter, std::uint64_t value, Config& config) {
  if (std::holds_alternative<std::uint32_t& (*)(Config&)>(parameter.field)) {
    target<std::uint32_t>(parameter, config) = static_cast<std::uint32_t>(value);
  } else {
    target<std::uint64_t>(parameter, config) = value;
  }
}

Value assign_integer(const Parameter& parameter, std::string_view text, Config& config) {
  const bool bytes = parameter.kind == Kind::kBytes;
  const std::uint64_t value = bytes ? parse_bytes(text) : parse_count(text);
  check_range(parameter, static_cast<double>(value));
  store_integer(parameter, value, config);
  return value;
}

Value assign_time(const Parameter& parameter, std::string_view text, Config& config) {
  const Time value = parse_time(text);
  check_range(parameter, to_ns(value));
  target<Time>(parameter, config) = value;
  return number_value(to_ns(value));
}

Value assign_rate(const Parameter& parameter, std::string_view text, Config& config) {
  const BitRate value = parse_rate(text);
  check_range(parameter, value.to_gbps());
  target<BitRate>(parameter, config) = value;
  return number_value(value.to_gbps());
}

Value assign_real(const Parameter& parameter, std::string_view text, Config& config) {
  const bool frequency = parameter.kind == Kind::kFrequency;
  const double value = frequency ? parse_frequency(text) : parse_real(text);
  const double in_unit = frequency ? value / 1e9 : value;
  check_range(parameter, in_unit);
  target<double>(parameter, config) = value;
  return number_value(in_unit);
}

Value assign_choice(const Parameter& parameter, std::string_view text, Config& config) {
  for (const Choice& choice : parameter.choices) {
    if (choice.name != text) continue;
    if (std::holds_alternative<void (*)(Config&, int)>(parameter.field)) {
      std::get<void (*)(Config&, int)>(parameter.field)(config, choice.value);
    } else {
      target<std::string>(parameter, config) = choice.name;
    }
    return choice.name;
  }
  refuse(parameter, text.empty() ? "is empty" : "is not one of the valid values");
}

Value assign_number_list(const Parameter& parameter, const std::vector<std::string>& parts,
                         Config& config) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& part : parts) {
    numbers.push_back(parse_count(part));
    check_range(parameter, static_cast<double>(numbers.back()));
  }
  if (!parameter.ordered) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
  std::vector<std::string> sorted;
  sorted.reserve(numbers.size());
  for (const std::uint64_t number : numbers) sorted.push_back(std::to_string(number));
  target<std::vector<std::uint64_t>>(parameter, config) = std::move(numbers);
  return sorted.empty() ? std::string("none") : join(sorted, ",");
}

Value assign_list(const Parameter& parameter, std::string_view text, Config& config) {
  const std::vector<std::string> parts = split_list(text);
  if (std::holds_alternative<std::vector<std::uint64_t>& (*)(Config&)>(parameter.field)) {
    return assign_number_list(parameter, parts, config);
  }
  const std::vector<std::string> names = choice_names(parameter);
  for (const std::string& part : parts) {
    if (std::find(names.begin(), names.end(), part) == names.end()) {
      refuse(parameter, "is not a list of valid values");
    }
  }
  target<std::vector<std::string>>(parameter, config) = parts;
  return parts.empty() ? std::string("none") : join(parts, ",");
}

Value assign_frames(const Parameter& parameter, std::string_view text, Config& config) {
  std::vector<FaultTarget> targets;
  try {
    targets = parse_fault_list(text);
  } catch (const ConfigError& error) {
    refuse(parameter, error.what());
  }
  for (const FaultTarget& one : targets) {
    check_range(parameter, static_cast<double>(one.number));
  }
  std::string readable = fault_list_text(targets);
  target<std::vector<FaultTarget>>(parameter, config) = std::move(targets);
  return readable;
}

/// `unlimited` and the like: stored as the number it stands for, reported as the word.
void assign_word(const Parameter& parameter, double value, Config& config) {
  if (parameter.kind == Kind::kReal) {
    target<double>(parameter, config) = value;
  } else if (parameter.kind == Kind::kRate) {
    target<BitRate>(parameter, config) = value > 0 ? BitRate::gbps(value) : BitRate();
  } else {
    store_integer(parameter,
                  value >= kTwoTo64 ? std::numeric_limits<std::uint64_t>::max()
                                    : static_cast<std::uint64_t>(value),
                  config);
  }
}

Value assign_parsed(const Parameter& parameter, std::string_view text, Config& config) {
  switch (parameter.kind) {
    case Kind::kCount:
    case Kind::kBytes:
      return assign_integer(parameter, text, config);
    case Kind::kTime:
      return assign_time(parameter, text, config);
    case Kind::kRate:
      return assign_rate(parameter, text, config);
    case Kind::kReal:
    case Kind::kFrequency:
      return assign_real(parameter, text, config);
    case Kind::kBool: {
      const bool value = parse_bool(text);
      target<bool>(parameter, config) = value;
      return value;
    }
    case Kind::kChoice:
      return assign_choice(parameter, text, config);
    case Kind::kList:
      return assign_list(parameter, text, config);
    case Kind::kFrames:
      return assign_frames(parameter, text, config);
    case Kind::kText:
      break;
  }
  target<std::string>(parameter, config) = std::string(text);
  return std::string(text);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// 0.01 stays 0.01, 2^53 is not spelt out to the last digit's doubt.
std::string range_text(const Parameter& parameter) {
  std::string text = format_number(parameter.minimum) + ".." + format_number(parameter.maximum);
  if (!parameter.unit.empty()) text += " " + parameter.unit;
  return text;
}

}  // namespace

std::vector<Choice> frame_kind_choices() {
  std::vector<Choice> choices;
  for (const std::string& name : frame_kind_names()) choices.push_back({name, 0});
  return choices;
}

Parameter& Parameter::range(double low, double high) {
  minimum = low;
  maximum = high;
  return *this;
}

Parameter& Parameter::one_of(std::vector<std::uint64_t> values) {
  allowed = std::move(values);
  const auto [low, high] = std::minmax_element(allowed.begin(), allowed.end());
  return range(static_cast<double>(*low), static_cast<double>(*high));
}

Parameter& Parameter::in(std::string bare_unit) {
  unit = std::move(bare_unit);
  return *this;
}

Parameter& Parameter::in_order() {
  ordered = true;
  return *this;
}

Parameter& Parameter::or_auto() {
  automatic = true;
  return *this;
}

Parameter& Parameter::or_word(std::string name, double value) {
  words.emplace_back(std::move(name), value);
  return *this;
}

Parameter& Parameter::spec(std::string where) {
  evidence = Evidence::kSpec;
  source = std::move(where);
  return *this;
}

Parameter& Parameter::datasheet(std::string where) {
  evidence = Evidence::kDatasheet;
  source = std::move(where);
  return *this;
}

Parameter& Parameter::measured(std::string where) {
  evidence = Evidence::kMeasured;
  source = std::move(where);
  return *this;
}

Parameter& Parameter::fitted(std::string where) {
  evidence = Evidence::kFitted;
  source = std::move(where);
  return *this;
}

Parameter& Parameter::assumed(std::string why) {
  evidence = Evidence::kAssumed;
  source = std::move(why);
  return *this;
}

Parameter& Parameter::means(std::string text) {
  meaning = std::move(text);
  return *this;
}

const std::vector<Parameter>& parameters() {
  static const std::vector<Parameter> all = [] {
    ParameterTable table;
    add_run_parameters(table);
    add_network_parameters(table);
    add_transport_parameters(table);
    add_host_parameters(table);
    add_pcie_parameters(table);
    add_nic_parameters(table);
    return table.take();
  }();
  return all;
}

const Parameter* find_parameter(std::string_view key) {
  const auto& all = parameters();
  const auto found =
      std::find_if(all.begin(), all.end(), [key](const Parameter& p) { return p.key == key; });
  return found == all.end() ? nullptr : &*found;
}

Value assign(const Parameter& parameter, std::string_view text, Config& config) {
  text = trimmed(text);
  for (const auto& [word, value] : parameter.words) {
    if (text != word) continue;
    assign_word(parameter, value, config);
    return word;
  }
  try {
    return assign_parsed(parameter, text, config);
  } catch (const ConfigError& error) {
    const std::string reason = error.what();
    if (reason.find("(valid: ") != std::string::npos) throw;
    refuse(parameter, reason);
  }
}

Value default_value(const Parameter& parameter) {
  if (parameter.automatic && parameter.default_text == "auto") return std::string("auto");
  Config scratch{};
  return assign(parameter, parameter.default_text, scratch);
}

std::string valid_values(const Parameter& parameter) {
  std::string text;
  switch (parameter.kind) {
    case Kind::kBool:
      text = "true|false";
      break;
    case Kind::kText:
      text = "any text";
      break;
    case Kind::kChoice:
      text = join(choice_names(parameter), "|");
      break;
    case Kind::kList:
      text = "none";
      if (!parameter.choices.empty()) {
        text += " or a list of " + join(choice_names(parameter), ",");
      } else if (parameter.maximum > 0) {
        text += " or a list of " + range_text(parameter);
      }
      break;
    case Kind::kFrames:
      text = "none or a list of N or KIND:N, N " + range_text(parameter) + ", KIND " +
             join(frame_kind_names(), "|");
      break;
    default:
      if (parameter.allowed.empty()) {
        text = range_text(parameter);
      } else {
        std::vector<std::string> values;
        for (const std::uint64_t value : parameter.allowed) values.push_back(std::to_string(value));
        text = join(values, "|") + (parameter.unit.empty() ? "" : " " + parameter.unit);
      }
  }
  if (parameter.automatic) text += ", auto";
  for (const auto& word : parameter.words) text += ", " + word.first;
  return text;
}

std::string_view to_string(Evidence evidence) {
  switch (evidence) {
    case Evidence::kSpec:
      return "spec";
    case Evidence::kDatasheet:
      return "datasheet";
    case Evidence::kMeasured:
      return "measured";
    case Evidence::kFitted:
      return "fitted";
    case Evidence::kAssumed:
      break;
  }
  return "assumed";
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kCount:
      return "count";
    case Kind::kReal:
      return "number";
    case Kind::kBytes:
      return "bytes";
    case Kind::kTime:
      return "time";
    case Kind::kRate:
      return "rate";
    case Kind::kFrequency:
      return "frequency";
    case Kind::kBool:
      return "boolean";
    case Kind::kChoice:
      return "choice";
    case Kind::kText:
      return "text";
    case Kind::kList:
    case Kind::kFrames:
      break;
  }
  return "list";
}

namespace {

/// The shortest of `candidates` that goes on where `word` ends between two words; or empty.
std::string continued(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() <= word.size() || candidate.compare(0, word.size(), word) != 0) continue;
    if (candidate[word.size()] != '_' && candidate[word.size()] != '.') continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  return best;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (std::string whole = continued(word, candidates); !whole.empty()) return whole;
  std::string best;
  // Beyond half of the word, a resemblance is chance.
  std::size_t best_distance = std::max<std::size_t>(3, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string nearest_key(std::string_view key) {
  std::vector<std::string> keys;
  for (const Parameter& parameter : parameters()) {
    const std::string& known = parameter.key;
    if (known.size() > key.size() && known[known.size() - key.size() - 1] == '.' &&
        std::string_view(known).substr(known.size() - key.size()) == key) {
      return known;
    }
    keys.push_back(known);
  }
  // An unknown key always gets a suggestion: the interface promises one.
  std::string near = nearest(key, keys);
  if (!near.empty()) return near;
  const auto closer = [key](const std::string& a, const std::string& b) {
    return edit_distance(key, a) < edit_distance(key, b);
  };
  return *std::min_element(keys.begin(), keys.end(), closer);
}

}  // namespace rnic::config
