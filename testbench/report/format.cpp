// SPDX-License-Identifier: Apache-2.0
#include "report/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace rnic::testbench {
namespace {

/// Puts a comma before every third digit of the integer part.
std::string group_digits(std::string digits) {
  const std::size_t sign = !digits.empty() && digits[0] == '-' ? 1 : 0;
  std::size_t at = std::min(digits.find('.'), digits.size());
  while (at > sign + 3) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

/// Takes the last word off a line if it ends in a digit, so that it stays with its unit. A line of
/// one word keeps it.
std::string cut_trailing_number(std::string& line) {
  const std::size_t blank = line.rfind(' ');
  if (blank == std::string::npos || line.back() < '0' || line.back() > '9') return {};
  std::string number = line.substr(blank + 1);
  line.erase(blank);
  return number;
}

}  // namespace

std::string grouped(std::uint64_t number) { return group_digits(std::to_string(number)); }

std::string fixed(double number, int decimals) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, number);
  return group_digits(text.data());
}

std::string readable(double number) {
  const double size = std::fabs(number);
  if (size >= 99.95 || size == 0) return fixed(number, 0);
  if (size >= 9.995) return fixed(number, 1);
  if (size >= 0.9995) return fixed(number, 2);
  if (size >= 0.09995) return fixed(number, 3);
  return fixed(number, 4);
}

std::string percent(double share) {
  return fixed(share * 100, share == 0 || share >= 0.0995 ? 0 : 1) + " %";
}

std::string duration(double nanoseconds) {
  if (nanoseconds < 999.5) return readable(nanoseconds) + " ns";
  if (nanoseconds < 999.5e3) return readable(nanoseconds / 1e3) + " us";
  if (nanoseconds < 999.5e6) return readable(nanoseconds / 1e6) + " ms";
  return readable(nanoseconds / 1e9) + " s";
}

std::string size(std::uint64_t bytes) {
  static constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == std::floor(value);
  return (whole ? fixed(value, 0) : readable(value)) + " " + kUnits[unit];
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return grouped(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string result;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) result += std::string(indent, ' ') + line + "\n";
  };
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      const std::string carried = cut_trailing_number(line);
      end_line();
      line = carried;
    }
    if (!line.empty() && !word.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  end_line();
  return result;
}

Table::Table(const std::vector<std::pair<std::string, Align>>& columns) {
  std::vector<std::string> head;
  for (const auto& [title, align] : columns) {
    head.push_back(title);
    align_.push_back(align);
  }
  rows_.push_back(std::move(head));
}

void Table::add(std::vector<std::string> row) {
  row.resize(align_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> width(align_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string result;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(width[i] - row[i].size(), ' ');
      line += "  " + (align_[i] == Align::kLeft ? row[i] + gap : gap + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

}  // namespace rnic::testbench
