// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnic::testbench {

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);
/// Rounded to so many decimals, thousands grouped: (1234.56, 1) -> "1,234.6".
std::string fixed(double number, int decimals);
/// Three significant digits at least: 0.01234 -> "0.0123", 57.81 -> "57.8", 1234 -> "1,234".
std::string readable(double number);
/// A share of 1: 0.973 -> "97 %", 0.0123 -> "1.2 %".
std::string percent(double share);
/// A duration in the unit that reads best: 830 -> "830 ns", 12410 -> "12.4 us".
std::string duration(double nanoseconds);
/// A size: 64 -> "64 B", 4096 -> "4 KiB", 1500000 -> "1.43 MiB".
std::string size(std::uint64_t bytes);
/// "1 QP", "2 QPs".
std::string counted(std::uint64_t number, std::string_view noun);

/// Breaks at blanks, but not behind a number, into lines of at most `width` characters, each
/// indented by `indent` blanks and ended by a newline.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

/// Rows of cells, aligned: the first column to the left, numbers to the right.
class Table {
 public:
  enum class Align { kLeft, kRight };
  explicit Table(const std::vector<std::pair<std::string, Align>>& columns);
  /// As many cells as columns.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  /// Each line indented by two blanks and ended by a newline.
  std::string text() const;

 private:
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;  ///< the head first
};

}  // namespace rnic::testbench
