// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_file.h"

namespace rnic::testbench {

/// key=value pairs of a run.
using Settings = std::vector<std::pair<std::string, std::string>>;

inline Settings with(Settings base, const Settings& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

/// How a run of the built program ended. SystemC elaborates once a process, so a test that needs
/// many runs lets the program do them.
// NOLINTNEXTLINE(bugprone-exception-escape): moving JSON does not throw, whatever its checks say
struct ProgramRun {
  int status = -1;  ///< exit status; -1: ended by a signal, 124: took longer than a minute
  std::string error;
  std::string text;  ///< result.json, as written
  nlohmann::json result;

  double number(const char* path) const {
    return result.at(nlohmann::json::json_pointer(path)).get<double>();
  }
  /// Mean of a breakdown stage, ns; 0 when it has no row.
  double stage(const std::string& name) const {
    for (const auto& row : result["breakdown_ns"]) {
      if (row["stage"] == name) return row["mean"].get<double>();
    }
    return 0;
  }
  /// A counter summed over all hosts.
  std::uint64_t counter(const std::string& name) const {
    std::uint64_t sum = 0;
    for (const auto& host : result["counters"]) sum += host.at(name).get<std::uint64_t>();
    return sum;
  }
};

/// `rnicsim run` with `settings`; the result is read back from a directory of its own.
inline ProgramRun run_program(const Settings& settings) {
  const TemporaryFile place("run");
  std::filesystem::remove(place.path());
  const TemporaryFile errors("run_stderr");
  std::string command = std::string("timeout 60 ") + RNICSIM_PROGRAM + " run";
  for (const auto& [key, value] : settings) {
    command.append(" --").append(key).append("='").append(value).append("'");
  }
  command +=
      " --output.dir='" + place.path() + "' >'" + errors.path() + ".out' 2>'" + errors.path() + "'";
  const TemporaryFile output("run_stderr.out");
  const int ended = std::system(command.c_str());
  ProgramRun run;
  if (WIFEXITED(ended)) run.status = WEXITSTATUS(ended);
  std::ostringstream text;
  text << std::ifstream(errors.path()).rdbuf();
  run.error = text.str();
  if (run.status != 0) return run;
  std::ostringstream json;
  json << std::ifstream(place.path() + "/result.json").rdbuf();
  run.text = json.str();
  run.result = nlohmann::json::parse(run.text);
  return run;
}

inline std::string text_of(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text.append(key).append("=").append(value).append(" ");
  return text;
}

/// A run that must succeed; anything else fails the test and gives a run without a result.
inline ProgramRun run_well(const Settings& settings) {
  ProgramRun run = run_program(settings);
  EXPECT_EQ(run.status, 0) << text_of(settings) << "\n" << run.error;
  return run;
}

inline std::vector<std::string> all_protocols() { return {"ib", "rocev1", "rocev2", "iwarp"}; }

/// RFC 5040 has no immediate data, so iWARP has fewer operations.
inline std::vector<std::string> operations_of(const std::string& protocol) {
  if (protocol == "iwarp") return {"write", "read", "send"};
  return {"write", "write_imm", "read", "send", "send_imm"};
}

}  // namespace rnic::testbench
