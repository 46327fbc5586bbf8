// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/loader.h"

namespace rnic::testbench {

enum class Command { kRun, kParams, kHelp, kVersion };

/// What the command line asks for.
struct Arguments {
  Command command = Command::kHelp;
  std::vector<std::string> files;         ///< -c, in order, as given
  std::vector<config::Setting> settings;  ///< --KEY=VALUE, in order
  std::string prefix;                     ///< params: keys that start so; empty: all
  bool json = false;                      ///< params
};

/// `args` without the program's name. Throws ConfigError, one line.
Arguments parse_arguments(const std::vector<std::string>& args);

/// Files, then options, as one configuration. Throws ConfigError.
config::LoadedConfig load(const Arguments& arguments);

/// `rnicsim params`: every key that starts with `prefix` with default, unit, range, evidence,
/// source and meaning. Throws ConfigError when there is none.
std::string describe_parameters(const std::string& prefix);
/// The same as a JSON array of objects.
std::string parameters_json(const std::string& prefix);

std::string help_text();
std::string version_text();

/// The whole program: parses, loads, runs, writes to stdout; one line on stderr for any error.
/// Returns the exit status: 0 done, 2 ConfigError, 3 SimulationError (and anything unforeseen),
/// 4 OutputError.
int run_program(const std::vector<std::string>& args);

}  // namespace rnic::testbench
