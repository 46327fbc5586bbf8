// SPDX-License-Identifier: Apache-2.0
#include "config/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace rnic::config {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::uint64_t>::max();
constexpr int kMaxDigits = 19;  // of a 64-bit integer without risk of overflow

/// A decimal number taken apart: digits * 10^exponent, then what follows it.
struct Decimal {
  std::uint64_t digits = 0;
  int exponent = 0;
  double value = 0;
  std::string_view unit;
};

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array kByteUnits{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30},
    Unit{"TiB", 1ULL << 40},
    Unit{"kB", 1'000},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
};
constexpr std::array kTimeUnits{
    Unit{"", 1'000},           Unit{"ps", 1},
    Unit{"ns", 1'000},         Unit{"us", 1'000'000},
    Unit{"ms", 1'000'000'000}, Unit{"s", 1'000'000'000'000},
};
constexpr std::array kRateUnits{
    Unit{"", 1'000'000'000},
    Unit{"bps", 1},
    Unit{"kbps", 1'000},
    Unit{"Mbps", 1'000'000},
    Unit{"Gbps", 1'000'000'000},
    Unit{"Tbps", 1'000'000'000'000},
    Unit{"b/s", 1},
    Unit{"kb/s", 1'000},
    Unit{"Mb/s", 1'000'000},
    Unit{"Gb/s", 1'000'000'000},
    Unit{"Tb/s", 1'000'000'000'000},
};
constexpr std::array kFrequencyUnits{
    Unit{"", 1'000'000'000},    Unit{"Hz", 1}, Unit{"kHz", 1'000}, Unit{"MHz", 1'000'000},
    Unit{"GHz", 1'000'000'000},
};
constexpr std::array kNoUnit{Unit{"", 1}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Appends a digit of the mantissa; leading zeros cost nothing, digits beyond 19 are refused.
void take_digit(char c, bool fraction, int& significant, Decimal& number) {
  if (significant > 0 || c != '0') ++significant;
  if (significant > kMaxDigits) throw ConfigError("has too many digits");
  number.digits = number.digits * 10 + static_cast<std::uint64_t>(c - '0');
  if (fraction) --number.exponent;
}

std::size_t take_mantissa(std::string_view text, Decimal& number) {
  std::size_t at = 0;
  int significant = 0;
  bool any = false;
  bool point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
    } else if (is_digit(text[at])) {
      any = true;
      take_digit(text[at], point, significant, number);
    } else {
      break;
    }
  }
  if (!any) throw ConfigError("is not a number");
  return at;
}

/// An `e` is an exponent only when digits follow it.
std::size_t take_exponent(std::string_view text, std::size_t at, Decimal& number) {
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  std::size_t digit = at + 1;
  const bool negative = digit < text.size() && text[digit] == '-';
  if (digit < text.size() && (text[digit] == '-' || text[digit] == '+')) ++digit;
  if (digit >= text.size() || !is_digit(text[digit])) return at;
  int exponent = 0;
  for (; digit < text.size() && is_digit(text[digit]); ++digit) {
    if (exponent < 10'000) exponent = exponent * 10 + (text[digit] - '0');
  }
  number.exponent += negative ? -exponent : exponent;
  return digit;
}

Decimal parse_decimal(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) throw ConfigError("is empty");
  if (text.front() == '-') throw ConfigError("is negative");
  Decimal number;
  const std::size_t end = take_exponent(text, take_mantissa(text, number), number);
  const auto [rest, error] = std::from_chars(text.data(), text.data() + end, number.value);
  if (error != std::errc{} || !std::isfinite(number.value)) throw ConfigError("is out of range");
  static_cast<void>(rest);
  number.unit = trimmed(text.substr(end));
  return number;
}

template <std::size_t N>
std::uint64_t factor_of(const Decimal& number, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (unit.name == number.unit) return unit.factor;
  }
  if (N == 1) throw ConfigError("has '" + std::string(number.unit) + "' after the number");
  std::string known;
  for (const Unit& unit : units) {
    // The alternative spellings are accepted, not advertised.
    if (unit.name.empty() || unit.name.find('/') != std::string_view::npos) continue;
    known += known.empty() ? "" : ", ";
    known += unit.name;
  }
  throw ConfigError("has the unknown unit '" + std::string(number.unit) + "' (units: " + known +
                    ")");
}

/// digits * factor * 10^exponent in integers, so that 1.1us is exactly 1'100'000 ps everywhere.
struct Scaled {
  std::uint64_t quotient;
  bool whole;
  bool round_up;
};

Scaled scale(const Decimal& number, std::uint64_t factor) {
  Wide value = static_cast<Wide>(number.digits) * factor;
  int exponent = number.exponent;
  for (; exponent > 0 && value != 0; --exponent) {
    value *= 10;
    if (value > kMaxInteger) throw ConfigError("is too large");
  }
  bool whole = true;
  bool half = false;
  for (; exponent < 0 && (value != 0 || half); ++exponent) {
    const auto digit = static_cast<unsigned>(value % 10);
    whole = whole && digit == 0;
    half = digit >= 5;
    value /= 10;
  }
  if (value > kMaxInteger) throw ConfigError("is too large");
  return {static_cast<std::uint64_t>(value), whole, half};
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::uint64_t parse_count(std::string_view text) {
  const Decimal number = parse_decimal(text);
  const Scaled scaled = scale(number, factor_of(number, kNoUnit));
  if (!scaled.whole) throw ConfigError("is not a whole number");
  return scaled.quotient;
}

double parse_real(std::string_view text) {
  const Decimal number = parse_decimal(text);
  factor_of(number, kNoUnit);
  return number.value;
}

std::uint64_t parse_bytes(std::string_view text) {
  const Decimal number = parse_decimal(text);
  const Scaled scaled = scale(number, factor_of(number, kByteUnits));
  if (!scaled.whole) throw ConfigError("is not a whole number of bytes");
  return scaled.quotient;
}

Time parse_time(std::string_view text) {
  const Decimal number = parse_decimal(text);
  const Scaled scaled = scale(number, factor_of(number, kTimeUnits));
  constexpr auto kLongest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (scaled.quotient >= kLongest) throw ConfigError("is too large");
  return Time{static_cast<std::int64_t>(scaled.quotient + (scaled.round_up ? 1 : 0))};
}

BitRate parse_rate(std::string_view text) {
  const Decimal number = parse_decimal(text);
  const double rate = number.value * static_cast<double>(factor_of(number, kRateUnits));
  // Below 1 b/s the fixed-point time of a byte would not fit.
  if (rate < 1) throw ConfigError(number.value > 0 ? "is less than 1bps" : "must be positive");
  return BitRate(rate);
}

double parse_frequency(std::string_view text) {
  const Decimal number = parse_decimal(text);
  const double hertz = number.value * static_cast<double>(factor_of(number, kFrequencyUnits));
  if (hertz <= 0) throw ConfigError("must be positive");
  return hertz;
}

bool parse_bool(std::string_view text) {
  text = trimmed(text);
  for (const std::string_view yes : {"true", "on", "yes", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "off", "no", "0"}) {
    if (text == no) return false;
  }
  throw ConfigError(text.empty() ? "is empty" : "is not true or false");
}

std::vector<std::string> split_list(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) throw ConfigError("is empty (write none for an empty list)");
  std::vector<std::string> parts;
  if (text == "none") return parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string_view part = trimmed(text.substr(from, comma - from));
    if (part.empty()) throw ConfigError("has an empty element");
    parts.emplace_back(part);
    from = comma + 1;
  }
  return parts;
}

std::string format_number(double value) {
  std::array<char, 64> buffer{};
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e18);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  return {buffer.data(), result.ptr};
}

}  // namespace rnic::config
