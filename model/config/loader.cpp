// SPDX-License-Identifier: Apache-2.0
#include "config/loader.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "config/quantity.h"
#include "config/relevance.h"
#include "config/validation.h"

namespace rnic::config {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

std::optional<std::string> section_of(std::string_view line) {
  line = trimmed(line.substr(0, line.find('#')));
  if (line.size() < 2 || line.front() != '[' || line.back() != ']') return std::nullopt;
  return std::string(trimmed(line.substr(1, line.size() - 2)));
}

void check_section(const std::string& section, const std::string& where) {
  std::vector<std::string> sections;
  for (const Parameter& parameter : parameters()) {
    const std::string& key = parameter.key;
    if (section.empty() || key.compare(0, section.size() + 1, section + ".") == 0) return;
    sections.push_back(key.substr(0, key.find('.')));
  }
  std::string near = nearest(section, sections);
  if (near.empty()) near = "sim";
  throw ConfigError(where + "unknown section '" + section + "' (nearest: " + near + ")");
}

/// Boost has the INI grammar but tells no line numbers, so it is given one line at a time, below
/// the header of its section.
std::optional<Setting> parse_line(const std::string& section, const std::string& line,
                                  const std::string& where) {
  std::istringstream text((section.empty() ? "" : "[" + section + "]\n") + line + "\n");
  try {
    const auto parsed = po::parse_config_file(text, po::options_description{}, true);
    if (parsed.options.empty()) return std::nullopt;
    const po::option& option = parsed.options.front();
    return Setting{option.string_key, option.value.empty() ? "" : option.value.front(), where};
  } catch (const po::error&) {
    throw ConfigError(where + "expected 'key = value' or '[section]', not '" +
                      std::string(trimmed(line)) + "'");
  }
}

/// Preset files below the configuration directory, sorted by name.
std::multimap<std::string, std::string> presets() {
  std::multimap<std::string, std::string> found;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(config_directory(), error)) {
    if (!folder.is_directory(error)) continue;
    for (const auto& file : fs::directory_iterator(folder.path(), error)) {
      if (file.path().extension() != ".ini") continue;
      found.emplace(file.path().stem().string(), file.path().string());
    }
  }
  return found;
}

/// A preset by its bare name; empty when there is none.
std::string find_preset(const std::string& name,
                        const std::multimap<std::string, std::string>& all) {
  const auto [first, last] = all.equal_range(name);
  if (first == last) return {};
  if (std::next(first) != last) {
    throw ConfigError("-c " + name + ": ambiguous, both " + first->second + " and " +
                      std::next(first)->second + " exist");
  }
  return first->second;
}

/// The text of a setting in its field; `auto` is left for later and stays recorded as the word.
Value apply(const Parameter& parameter, const Setting& setting, Config& config) {
  const std::string_view text = trimmed(setting.text);
  if (parameter.automatic && text == "auto") return std::string("auto");
  try {
    return assign(parameter, text, config);
  } catch (const ConfigError& error) {
    throw ConfigError(setting.origin + setting.key + "=" + setting.text + " " + error.what());
  }
}

bool is_auto(const Parameter& parameter, const Value& value) {
  const auto* word = std::get_if<std::string>(&value);
  return parameter.automatic && word != nullptr && *word == "auto";
}

/// What a command line asks for and a program has of its own. (A file, as every preset, may say
/// more than one run uses.)
void check_program_is_alone(const std::vector<Setting>& settings, const Config& config) {
  if (config.workload.program == Program::kNone) return;
  for (const Setting& setting : settings) {
    if (setting.origin != "--" || setting.key != "workload.op") continue;
    throw ConfigError("--workload.op=" + setting.text +
                      " does not go with workload.program, which has operations of its own "
                      "(remedy: leave out one)");
  }
}

std::size_t index_of(const Parameter& parameter) {
  return static_cast<std::size_t>(&parameter - parameters().data());
}

}  // namespace

std::string unknown_key(const std::string& key) {
  return "unknown key '" + key + "' (nearest: " + nearest_key(key) + ")";
}

LoadedConfig load(const std::vector<Setting>& settings) {
  LoadedConfig loaded{};
  std::vector<Value> values;
  for (const Parameter& parameter : parameters()) {
    values.push_back(apply(parameter, {parameter.key, parameter.default_text, ""}, loaded.config));
  }
  for (const Setting& setting : settings) {
    const Parameter* parameter = find_parameter(setting.key);
    if (parameter == nullptr) throw ConfigError(setting.origin + unknown_key(setting.key));
    values[index_of(*parameter)] = apply(*parameter, setting, loaded.config);
  }
  for (const Parameter& parameter : parameters()) {
    Value& value = values[index_of(parameter)];
    if (is_auto(parameter, value)) {
      const std::string text = automatic_text(parameter.key, loaded.config);
      value = apply(parameter, {parameter.key, text, "automatic value: "}, loaded.config);
    }
  }
  validate(loaded.config);
  check_program_is_alone(settings, loaded.config);
  refuse_without_effect(settings, loaded.config);
  loaded.without_effect = without_effect(settings, loaded.config);
  for (const Parameter& parameter : parameters()) {
    loaded.resolved.emplace_back(parameter.key, std::move(values[index_of(parameter)]));
  }
  return loaded;
}

LoadedConfig load_from(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<Setting> plain;
  plain.reserve(settings.size());
  for (const auto& [key, text] : settings) plain.push_back({key, text, ""});
  return load(plain);
}

Config default_config() { return load({}).config; }

std::vector<Setting> read_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw ConfigError("-c " + path + ": no such file");
  if (!fs::is_regular_file(status) && !fs::is_fifo(status)) {
    throw ConfigError("-c " + path + ": not a file");
  }
  std::ifstream file(path);
  if (!file) throw ConfigError("-c " + path + ": cannot be read");
  std::vector<Setting> settings;
  std::map<std::string, std::size_t> seen;
  std::string section;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    const std::string where = path + ":" + std::to_string(number) + ": ";
    if (auto header = section_of(line)) {
      check_section(*header, where);
      section = std::move(*header);
      continue;
    }
    auto setting = parse_line(section, line, where);
    if (!setting) continue;
    if (find_parameter(setting->key) == nullptr) {
      throw ConfigError(where + unknown_key(setting->key));
    }
    const auto [first, added] = seen.emplace(setting->key, number);
    if (!added) {
      throw ConfigError(where + setting->key + " is set twice (first in line " +
                        std::to_string(first->second) + ")");
    }
    settings.push_back(std::move(*setting));
  }
  if (file.bad()) throw ConfigError("-c " + path + ": cannot be read");
  return settings;
}

std::string find_file(const std::string& name) {
  const bool bare = name.find('/') == std::string::npos;
  std::error_code error;
  if (!bare || name.empty()) return name;
  const fs::path path(name);
  const bool named_ini = path.extension() == ".ini";
  if (named_ini && fs::exists(path, error)) return name;
  const auto all = presets();
  std::string preset = find_preset(named_ini ? path.stem().string() : name, all);
  if (!preset.empty()) return preset;
  if (fs::exists(path, error) && !fs::is_directory(path, error)) return name;
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const auto& entry : all) names.push_back(entry.first);
  const std::string near = nearest(name, names);
  throw ConfigError("-c " + name + ": no such file or preset" +
                    (near.empty() ? "" : " (nearest: " + near + ")"));
}

std::string config_directory() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path() / ".." / "share" / "rnicsim" / "configs";
    if (fs::is_directory(installed, error)) return fs::canonical(installed, error).string();
  }
  return RNICSIM_CONFIG_DIR;
}

}  // namespace rnic::config
