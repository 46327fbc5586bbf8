// SPDX-License-Identifier: Apache-2.0
#include "support/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/temporary_file.h"

namespace rnic::testbench {

std::string program_path() { return RNICSIM_PROGRAM; }
std::string presets_path() { return RNICSIM_PRESETS; }
std::string data_path() { return RNICSIM_TEST_DATA; }

ProgramRun run_program(const Settings& settings) {
  const TemporaryFile temporary("run");
  std::filesystem::remove(temporary.path());
  std::string place = temporary.path();
  const TemporaryFile errors("run_stderr");
  std::string command = "timeout 60 " + program_path() + " run";
  for (const auto& [key, value] : settings) {
    if (key == "output.dir") {
      place = value;
      continue;
    }
    command.append(" --").append(key).append("='").append(value).append("'");
  }
  command += " --output.dir='" + place + "' >'" + errors.path() + ".out' 2>'" + errors.path() + "'";
  const TemporaryFile output("run_stderr.out");
  const int ended = std::system(command.c_str());
  ProgramRun run;
  if (WIFEXITED(ended)) run.status = WEXITSTATUS(ended);
  std::ostringstream text;
  text << std::ifstream(errors.path()).rdbuf();
  run.error = text.str();
  if (run.status != 0) return run;
  std::ostringstream json;
  json << std::ifstream(place + "/result.json").rdbuf();
  run.text = json.str();
  run.result = nlohmann::json::parse(run.text);
  return run;
}

std::string text_of(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text.append(key).append("=").append(value).append(" ");
  return text;
}

ProgramRun run_well(const Settings& settings) {
  ProgramRun run = run_program(settings);
  EXPECT_EQ(run.status, 0) << text_of(settings) << "\n" << run.error;
  return run;
}

}  // namespace rnic::testbench
