// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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
  /// A figure of ports summed over those that have it.
  double link_sum(const std::string& field) const {
    double sum = 0;
    for (const auto& link : result.at("link")) {
      if (link.contains(field)) sum += link.at(field).get<double>();
    }
    return sum;
  }
};

/// The program under test, and the source tree's folders of presets and of test data.
std::string program_path();
std::string presets_path();
std::string data_path();

/// `rnicsim run` with `settings`; the result is read back from a directory of its own, or from the
/// output.dir among the settings, which the caller removes.
ProgramRun run_program(const Settings& settings);

std::string text_of(const Settings& settings);

/// A run that must succeed; anything else fails the test and gives a run without a result.
ProgramRun run_well(const Settings& settings);

inline std::vector<std::string> all_protocols() { return {"ib", "rocev1", "rocev2", "iwarp"}; }

/// Without the atomics, whose size is given. RFC 7306 has immediate data behind a WRITE only.
inline std::vector<std::string> operations_of(const std::string& protocol) {
  if (protocol == "iwarp") return {"write", "write_imm", "read", "send"};
  return {"write", "write_imm", "read", "send", "send_imm"};
}

}  // namespace rnic::testbench
