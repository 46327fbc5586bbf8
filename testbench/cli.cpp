// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "config/resolved_json.h"
#include "simulation/run.h"

namespace rnic::testbench {
namespace {

namespace po = boost::program_options;

constexpr int kDone = 0;
constexpr int kBadConfiguration = 2;
constexpr int kSimulationFailed = 3;
constexpr int kOutputFailed = 4;

constexpr const char* kHelp =
    "Usage: rnicsim run [-c FILE]... [--KEY=VALUE]...   simulate; report on stdout\n"
    "       rnicsim params [PREFIX] [--json]            describe the keys\n"
    "       rnicsim --help | --version\n"
    "\n"
    "FILE is INI: [section], key = value, # comments. A bare name is a preset (-c write_bw).\n"
    "Later files override earlier ones; --KEY=VALUE overrides all files.\n"
    "Quantities carry units: 100Gbps, 4KiB, 250ns, 1GHz; a bare number is in the key's unit.\n"
    "With --output.dir=DIR the results are also written as files (result.json, latency.csv).\n"
    "\n"
    "Exit status: 0 done; 2 bad command line or configuration; 3 the simulated system got stuck\n"
    "or broke an invariant; 4 output could not be written.\n"
    "\n"
    "Example: rnicsim run -c write_lat --transport.protocol=rocev2 --workload.msg_size=4KiB\n";

/// Every value is read as text: Boost's own conversions accept -1 for unsigned numbers.
po::options_description run_options() {
  po::options_description options;
  options.add_options()("help,h", "")("config,c", po::value<std::string>(), "");
  for (const config::Parameter& parameter : config::parameters()) {
    options.add_options()(parameter.key.c_str(), po::value<std::string>(), "");
  }
  return options;
}

po::options_description params_options() {
  po::options_description options;
  options.add_options()("help,h", "")("json", "");
  return options;
}

[[noreturn]] void refuse_option(const std::string& name, const po::options_description& known) {
  const std::string option = name.substr(0, name.find('='));
  const std::string key = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::vector<std::string> names;
  for (const auto& one : known.options()) names.push_back(one->long_name());
  std::string near = config::nearest(key, names);
  const bool takes_keys = names.size() > config::parameters().size();
  if (near.empty() && takes_keys && key.size() > 1) near = config::nearest_key(key);
  throw ConfigError("unknown option '" + option + "'" +
                    (near.empty() ? " (see rnicsim --help)" : " (nearest: --" + near + ")"));
}

std::vector<po::option> parse_options(const std::vector<std::string>& args,
                                      const po::options_description& known) {
  namespace style = po::command_line_style;
  // No guessing: an abbreviation would change its meaning when a key is added.
  const int style_flags = style::unix_style & ~style::allow_guessing & ~style::allow_sticky;
  try {
    return po::command_line_parser(args).options(known).style(style_flags).run().options;
  } catch (const po::unknown_option& error) {
    refuse_option(error.get_option_name(), known);
  } catch (const po::error_with_option_name& error) {
    const std::string name = error.get_option_name();
    if (name == "--config") throw ConfigError("option '-c' needs a file, as in -c FILE");
    throw ConfigError("option '" + name + "' needs a value, as in " + name + "=VALUE");
  } catch (const po::error& error) {
    throw ConfigError(error.what());
  }
}

void add_run_option(const po::option& option, Arguments& arguments) {
  const std::string value = option.value.empty() ? "" : option.value.front();
  if (option.string_key.empty()) {
    throw ConfigError("unexpected argument '" + value + "' (write --KEY=VALUE or -c FILE)");
  }
  if (option.string_key == "help") {
    arguments.command = Command::kHelp;
  } else if (option.string_key == "config") {
    arguments.files.push_back(value);
  } else {
    arguments.settings.push_back({option.string_key, value, "--"});
  }
}

void add_params_option(const po::option& option, Arguments& arguments) {
  if (option.string_key == "help") {
    arguments.command = Command::kHelp;
  } else if (option.string_key == "json") {
    arguments.json = true;
  } else if (arguments.prefix.empty() && !option.value.empty()) {
    arguments.prefix = option.value.front();
  } else {
    throw ConfigError("params takes one prefix at most");
  }
}

/// Fails before the simulation rather than after it.
void check_output_directory(const std::string& directory) {
  if (directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error && !std::filesystem::is_directory(directory, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (!error && access(directory.c_str(), W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (error) throw OutputError("output.dir=" + directory + ": " + error.message());
}

void print(const std::string& text) {
  std::cout << text;
  if (!std::cout.flush()) {
    throw OutputError(std::string("standard output: ") + std::strerror(errno));
  }
}

int execute(const std::vector<std::string>& args) {
  const Arguments arguments = parse_arguments(args);
  switch (arguments.command) {
    case Command::kHelp:
      print(help_text());
      return kDone;
    case Command::kVersion:
      print(version_text());
      return kDone;
    case Command::kParams:
      print(arguments.json ? parameters_json(arguments.prefix)
                           : describe_parameters(arguments.prefix));
      return kDone;
    case Command::kRun:
      break;
  }
  const config::LoadedConfig loaded = load(arguments);
  check_output_directory(loaded.config.output.dir);
  const int status = run(loaded);
  print("");
  return status;
}

/// Errors are one line whatever the user put into a value.
int fail(int status, std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  std::cerr << "rnicsim: " + message + "\n";
  return status;
}

std::vector<const config::Parameter*> select(const std::string& prefix) {
  std::vector<const config::Parameter*> selected;
  for (const config::Parameter& parameter : config::parameters()) {
    if (parameter.key.compare(0, prefix.size(), prefix) == 0) selected.push_back(&parameter);
  }
  if (selected.empty()) {
    throw ConfigError("no key starts with '" + prefix +
                      "' (nearest: " + config::nearest_key(prefix) + ")");
  }
  return selected;
}

/// Appends `text` in lines of at most 100 columns, each indented.
void append_wrapped(std::string& out, const std::string& text) {
  constexpr std::size_t kColumns = 100;
  const std::string indent = "    ";
  std::istringstream words(text);
  std::string line = indent;
  for (std::string word; words >> word;) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
  }
  out += line + "\n";
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& args) {
  if (args.empty()) throw ConfigError("no command (run, params, --help or --version)");
  const std::string& command = args.front();
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  Arguments arguments;
  if (command == "--help" || command == "-h" || command == "help") return arguments;
  if (command == "--version") {
    arguments.command = Command::kVersion;
  } else if (command == "run") {
    arguments.command = Command::kRun;
    for (const auto& option : parse_options(rest, run_options())) {
      add_run_option(option, arguments);
    }
  } else if (command == "params") {
    arguments.command = Command::kParams;
    for (const auto& option : parse_options(rest, params_options())) {
      add_params_option(option, arguments);
    }
  } else {
    throw ConfigError("unknown command '" + command + "' (run, params, --help or --version)");
  }
  return arguments;
}

config::LoadedConfig load(const Arguments& arguments) {
  std::vector<config::Setting> settings;
  for (const std::string& name : arguments.files) {
    std::vector<config::Setting> file = config::read_file(config::find_file(name));
    std::move(file.begin(), file.end(), std::back_inserter(settings));
  }
  settings.insert(settings.end(), arguments.settings.begin(), arguments.settings.end());
  return config::load(settings);
}

std::string describe_parameters(const std::string& prefix) {
  std::string text;
  for (const config::Parameter* parameter : select(prefix)) {
    text += parameter->key + " = " + parameter->default_text;
    text += "   [" + config::valid_values(*parameter) + "]\n";
    append_wrapped(text, parameter->meaning);
    append_wrapped(text,
                   std::string(config::to_string(parameter->evidence)) + ": " + parameter->source);
  }
  return text;
}

std::string parameters_json(const std::string& prefix) {
  auto list = nlohmann::ordered_json::array();
  for (const config::Parameter* parameter : select(prefix)) {
    nlohmann::ordered_json entry;
    entry["key"] = parameter->key;
    entry["type"] = config::to_string(parameter->kind);
    entry["default"] = config::to_json(config::default_value(*parameter));
    entry["default_text"] = parameter->default_text;
    entry["unit"] = parameter->unit;
    if (parameter->maximum > parameter->minimum) {
      entry["minimum"] = parameter->minimum;
      entry["maximum"] = parameter->maximum;
    }
    entry["valid"] = config::valid_values(*parameter);
    entry["evidence"] = config::to_string(parameter->evidence);
    entry["source"] = parameter->source;
    entry["meaning"] = parameter->meaning;
    list.push_back(std::move(entry));
  }
  return list.dump(2) + "\n";
}

std::string help_text() { return kHelp; }

std::string version_text() { return std::string("rnicsim ") + RNICSIM_VERSION + "\n"; }

int run_program(const std::vector<std::string>& args) {
  try {
    return execute(args);
  } catch (const ConfigError& error) {
    return fail(kBadConfiguration, error.what());
  } catch (const OutputError& error) {
    return fail(kOutputFailed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kSimulationFailed, "out of memory");
  } catch (const std::exception& error) {
    return fail(kSimulationFailed, error.what());
  }
}

}  // namespace rnic::testbench
