// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace rnic {

/// The user's mistake: a bad option, file, value or combination. Ends the program with status 2.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The simulated system got stuck or broke an invariant. Ends the program with status 3.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Output could not be written. Ends the program with status 4.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug of ours: throws SimulationError naming the module and the broken rule.
[[noreturn]] void panic(const std::string& module, const std::string& rule);

}  // namespace rnic
