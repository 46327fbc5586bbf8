// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "config/loader.h"
#include "config/resolved_json.h"
#include "support/program.h"

namespace rnic::config {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> presets_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(fs::path(testbench::presets_path()) / folder)) {
    if (file.path().extension() == ".ini") files.push_back(file.path());
  }
  return files;
}

TEST(PresetsTest, GenericIsTheDefault) {
  const auto settings = read_file(find_file("generic"));
  EXPECT_EQ(resolved_json(load(settings)), resolved_json(load({})));
  for (const Parameter& parameter : parameters()) {
    if (parameter.key.compare(0, 4, "nic.") != 0) continue;
    EXPECT_TRUE(std::any_of(settings.begin(), settings.end(),
                            [&parameter](const Setting& s) { return s.key == parameter.key; }))
        << parameter.key << " is missing in generic.ini";
  }
}

TEST(PresetsTest, EveryPresetLoads) {
  for (const char* folder : {"nic", "link", "host", "transport", "workload"}) {
    const auto files = presets_in(folder);
    EXPECT_FALSE(files.empty()) << folder;
    for (const auto& file : files) {
      SCOPED_TRACE(file);
      EXPECT_NO_THROW(load(read_file(file.string())));
    }
  }
}

TEST(PresetsTest, WorkloadsSuitEveryProtocol) {
  for (const auto& file : presets_in("workload")) {
    for (const char* protocol : {"ib", "rocev1", "rocev2", "iwarp"}) {
      SCOPED_TRACE(file);
      auto settings = read_file(file.string());
      settings.push_back({"transport.protocol", protocol, "--"});
      EXPECT_NO_THROW(load(settings));
    }
  }
}

}  // namespace
}  // namespace rnic::config
