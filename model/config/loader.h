// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/parameters.h"

namespace rnic::config {

/// One `key=text` and where it was written.
struct Setting {
  std::string key;
  std::string text;
  std::string origin;  ///< precedes the key in messages: `FILE:LINE: `, or `--` for an option
};

/// A configuration, and each key's value as resolved, in the order of parameters().
struct LoadedConfig {
  Config config;
  std::vector<std::pair<std::string, Value>> resolved;
  /// Options that change nothing in this run, each with what it would need.
  std::vector<std::string> without_effect;
};

/// Defaults, then `settings` in order (later ones win), then what `auto` stands for, then the
/// checks across keys. Throws ConfigError, one line, on the first mistake; every setting must be
/// valid, also one that is overridden.
LoadedConfig load(const std::vector<Setting>& settings);

/// For tests: load() of plain key/value pairs.
LoadedConfig load_from(const std::vector<std::pair<std::string, std::string>>& settings);

/// Every default, resolved.
Config default_config();

/// Settings of an INI file, in its order. Throws ConfigError (`FILE:LINE: ...`) when it cannot be
/// read, a line is not `key = value`, a key or section is unknown, or a key is set twice.
std::vector<Setting> read_file(const std::string& path);

/// The file that `-c name` means: a path as it is; a bare name is a preset, NAME.ini in one of the
/// folders of the configuration directory. Throws ConfigError with the nearest preset.
std::string find_file(const std::string& name);

/// Where presets are: next to an installed program, else in the source tree it was built from.
std::string config_directory();

/// Error text for a key that does not exist: `unknown key 'nic.clok' (nearest: nic.clock)`.
std::string unknown_key(const std::string& key);

}  // namespace rnic::config
