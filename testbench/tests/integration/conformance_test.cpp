// SPDX-License-Identifier: Apache-2.0
// The table of rules and tests (model/transport/CONFORMANCE.md) is complete in itself and names
// tests that exist.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/program.h"

namespace rnic::testbench {
namespace {

namespace fs = std::filesystem;

fs::path source_tree() { return fs::path(presets_path()).parent_path(); }

/// Tests of the sources, by suite.
std::map<std::string, std::set<std::string>> tests_of_the_sources() {
  static const std::regex pattern(R"(\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+))");
  std::map<std::string, std::set<std::string>> tests;
  for (const auto& entry : fs::recursive_directory_iterator(source_tree() / "testbench/tests")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      tests[(*it)[1]].insert((*it)[2]);
    }
  }
  return tests;
}

struct Row {
  std::string id;
  std::string rule;
  std::vector<std::string> tests;
};

std::vector<Row> rows_of_the_table() {
  static const std::regex line_pattern(R"(^\| (\d+\.\d+) \| (.+) \| ([^|]*) \|$)");
  static const std::regex name_pattern(R"(`([^`]+)`)");
  std::ifstream file(source_tree() / "model/transport/CONFORMANCE.md");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, line_pattern)) {
      EXPECT_FALSE(line.size() > 2 && line[0] == '|' && std::isdigit(line[2]) != 0) << line;
      continue;
    }
    Row row{match[1], match[2], {}};
    const std::string names = match[3];
    for (std::sregex_iterator it(names.begin(), names.end(), name_pattern), end; it != end; ++it) {
      row.tests.push_back((*it)[1]);
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(ConformanceTable, EveryRowHasTestsThatExist) {
  const auto tests = tests_of_the_sources();
  const std::vector<Row> rows = rows_of_the_table();
  ASSERT_GT(rows.size(), 80U);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.id + " " + row.rule);
    EXPECT_FALSE(row.tests.empty());
    for (const std::string& name : row.tests) {
      const std::size_t dot = name.find('.');
      ASSERT_NE(dot, std::string::npos) << name;
      const auto suite = tests.find(name.substr(0, dot));
      ASSERT_NE(suite, tests.end()) << name;
      const std::string test = name.substr(dot + 1);
      EXPECT_TRUE(test == "*" || suite->second.count(test) == 1) << name;
    }
  }
}

// Sections and rows are numbered without a gap, so that none was lost.
TEST(ConformanceTable, NoRowIsMissing) {
  int section = 0;
  int number = 0;
  for (const Row& row : rows_of_the_table()) {
    const std::size_t dot = row.id.find('.');
    const int in_section = std::stoi(row.id.substr(0, dot));
    number = in_section == section ? number + 1 : 1;
    EXPECT_TRUE(in_section == section || in_section == section + 1) << row.id;
    section = in_section;
    EXPECT_EQ(std::stoi(row.id.substr(dot + 1)), number) << row.id;
  }
  EXPECT_EQ(section, 22);
}

}  // namespace
}  // namespace rnic::testbench
