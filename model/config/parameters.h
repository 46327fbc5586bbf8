// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.h"

namespace rnic::config {

/// How well a default is founded.
enum class Evidence {
  kSpec,       ///< a standard fixes it
  kDatasheet,  ///< a vendor states it
  kMeasured,   ///< published measurement
  kFitted,     ///< chosen so that the model meets named measurements
  kAssumed,    ///< engineering estimate, or a free choice of the user; the source says why
};

/// What a value is, hence how it is written.
enum class Kind {
  kCount,
  kReal,
  kBytes,
  kTime,
  kRate,
  kFrequency,
  kBool,
  kChoice,
  kText,
  kList,
  kFrames
};

/// A value as reported: numbers in the key's unit; lists as the text that reads back.
using Value = std::variant<bool, std::uint64_t, double, std::string>;

/// Where a parameter lives in Config. Enumerations are set by their value.
using Field =
    std::variant<std::uint32_t& (*)(Config&), std::uint64_t& (*)(Config&), double& (*)(Config&),
                 Time& (*)(Config&), BitRate& (*)(Config&), bool& (*)(Config&),
                 std::string& (*)(Config&), std::vector<std::uint64_t>& (*)(Config&),
                 std::vector<std::string>& (*)(Config&), std::vector<FaultTarget>& (*)(Config&),
                 void (*)(Config&, int)>;

/// A word that stands for a value: `unlimited`, or an enumeration's names.
struct Choice {
  std::string name;
  int value;
};

/// One key: everything that `rnicsim params` prints and the loader checks. Filled by the chained
/// setters, each of which returns the parameter.
struct Parameter {
  std::string key;
  Kind kind = Kind::kCount;
  Field field;
  std::string default_text;
  std::string unit;    ///< of a bare number; empty: none
  double minimum = 0;  ///< in the unit, inclusive
  double maximum = 0;
  std::vector<Choice> choices;         ///< kChoice: names; kList of words: its members
  std::vector<std::uint64_t> allowed;  ///< further restricts a number when not empty
  bool ordered = false;                ///< kList of numbers: their order and repetition matter
  bool automatic = false;              ///< `auto` is accepted and resolved from other keys
  /// Words accepted besides numbers, and the values they stand for.
  std::vector<std::pair<std::string, double>> words;
  Evidence evidence = Evidence::kAssumed;
  std::string source;
  std::string meaning;

  Parameter& range(double low, double high);
  Parameter& one_of(std::vector<std::uint64_t> values);
  Parameter& in(std::string bare_unit);
  Parameter& in_order();
  Parameter& or_auto();
  /// May be called for several words. `value` beyond 2^64 stands for the largest integer.
  Parameter& or_word(std::string name, double value);
  Parameter& spec(std::string where);
  Parameter& datasheet(std::string where);
  Parameter& measured(std::string where);
  Parameter& fitted(std::string where);
  Parameter& assumed(std::string why);
  Parameter& means(std::string text);
};

/// Every key, in the order of INI sections. Built once.
const std::vector<Parameter>& parameters();

/// The parameter named `key`, or null.
const Parameter* find_parameter(std::string_view key);

/// Reads `text` into the parameter's field and returns the value to report. Throws ConfigError
/// with the reason and what would be valid, not naming the key. `auto` is the caller's business.
Value assign(const Parameter& parameter, std::string_view text, Config& config);

/// The default as a reported value; `auto` stays a word.
Value default_value(const Parameter& parameter);

/// What may be written, for people: `1..64`, `true|false`, `128, 256 or 512 B`.
std::string valid_values(const Parameter& parameter);

std::string_view to_string(Evidence evidence);
std::string_view to_string(Kind kind);

/// The candidate with the smallest edit distance to `word`; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// The key nearest to an unknown one; also finds a key by its last part (`clock` -> nic.clock).
std::string nearest_key(std::string_view key);

}  // namespace rnic::config
