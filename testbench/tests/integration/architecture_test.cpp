// SPDX-License-Identifier: Apache-2.0
// Who may include whom (model/README.md): arrows between realms point one way.
#include <gtest/gtest.h>

#include <algorithm>
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

fs::path source_tree() { return fs::path(testbench::presets_path()).parent_path(); }

struct Include {
  fs::path file;
  std::string target;
  bool quoted;
};

std::vector<Include> includes_below(const fs::path& folder) {
  static const std::regex pattern("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]");
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) {
        found.push_back({fs::relative(entry.path(), source_tree()), match[2], match[1] == "\""});
      }
    }
  }
  return found;
}

std::string realm_of(const std::string& path) { return path.substr(0, path.find('/')); }

/// What each realm may include besides itself.
const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::map<std::string, std::set<std::string>> rules = {
      {"base", {}},
      {"protocol", {"base"}},
      {"stats", {"base"}},
      {"config", {"base", "protocol"}},
      {"tlm", {"base", "protocol", "stats", "config"}},
      {"link", {"base", "protocol", "stats", "config", "tlm"}},
      {"host", {"base", "protocol", "stats", "config", "tlm"}},
      {"pcie", {"base", "protocol", "stats", "config", "tlm"}},
      {"transport", {"base", "protocol", "stats", "config", "tlm"}},
      {"network", {"base", "protocol", "stats", "config", "tlm", "link"}},
      {"nic", {"base", "protocol", "stats", "config", "tlm", "link", "pcie", "transport"}},
  };
  return rules;
}

TEST(ArchitectureTest, RealmsIncludeOnlyWhatLiesBelow) {
  const std::vector<Include> includes = includes_below(source_tree() / "model");
  ASSERT_GT(includes.size(), 300U);
  for (const Include& include : includes) {
    if (!include.quoted) continue;
    const std::string from = include.file.parent_path().begin() == include.file.begin()
                                 ? ""
                                 : std::next(include.file.begin())->string();
    const auto rule = allowed().find(from);
    ASSERT_NE(rule, allowed().end()) << include.file << " lies in a realm without a rule";
    const std::string to = realm_of(include.target);
    EXPECT_TRUE(to == from || rule->second.count(to) != 0)
        << include.file << " includes " << include.target;
    EXPECT_TRUE(fs::exists(source_tree() / "model" / include.target))
        << include.file << " includes " << include.target << ", which is not in the model";
  }
}

TEST(ArchitectureTest, TheNicKnowsHostAndNetworkOnlyThroughSockets) {
  for (const Include& include : includes_below(source_tree() / "model" / "nic")) {
    EXPECT_NE(realm_of(include.target), "host") << include.file;
    EXPECT_NE(realm_of(include.target), "network") << include.file;
  }
}

TEST(ArchitectureTest, TheModelDoesNotKnowItsTestbench) {
  const std::set<std::string> folders = {"testbench", "simulation", "workload", "report",
                                         "tests",     "support",    "gtest"};
  for (const Include& include : includes_below(source_tree() / "model")) {
    EXPECT_EQ(folders.count(realm_of(include.target)), 0U)
        << include.file << " includes " << include.target;
    EXPECT_EQ(include.target.find(".."), std::string::npos) << include.file;
  }
}

TEST(ArchitectureTest, KernelFreeRealmsAreKernelFree) {
  // Wire and memory formats, configuration, statistics and transports know no SystemC.
  for (const char* realm : {"protocol", "config", "stats", "transport"}) {
    for (const Include& include : includes_below(source_tree() / "model" / realm)) {
      EXPECT_NE(include.target.compare(0, 7, "systemc"), 0) << include.file;
      EXPECT_NE(include.target.compare(0, 3, "tlm"), 0) << include.file;
    }
  }
}

TEST(ArchitectureTest, NoHeadersIncludeEachOtherInACircle) {
  std::map<std::string, std::vector<std::string>> edges;
  for (const Include& include : includes_below(source_tree() / "model")) {
    if (!include.quoted || include.file.extension() != ".h") continue;
    edges[fs::relative(include.file, "model").generic_string()].push_back(include.target);
  }
  // Takes away what includes nothing that is left, until nothing more goes: a circle remains.
  bool progress = true;
  while (progress && !edges.empty()) {
    progress = false;
    for (auto it = edges.begin(); it != edges.end();) {
      const bool done = std::none_of(it->second.begin(), it->second.end(),
                                     [&edges](const auto& to) { return edges.count(to) != 0; });
      it = done ? edges.erase(it) : std::next(it);
      progress = progress || done;
    }
  }
  for (const auto& [header, targets] : edges) ADD_FAILURE() << header << " is in a circle";
}

}  // namespace
}  // namespace rnic::testbench
