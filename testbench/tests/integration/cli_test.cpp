// SPDX-License-Identifier: Apache-2.0
// The built program from outside: exit statuses, and what it says on stdout and stderr.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"
#include "support/temporary_file.h"

namespace rnic::testbench {
namespace {

struct Outcome {
  int status;  ///< -1: ended by a signal
  std::string out;
  std::string err;
};

/// Runs the program through the shell; `arguments` may redirect stdout.
Outcome run_rnicsim(const std::string& arguments) {
  const TemporaryFile errors("stderr");
  const std::string command = program_path() + " " + arguments + " 2>'" + errors.path() + "'";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome{-1, "", ""};
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.out.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  std::ostringstream text;
  text << std::ifstream(errors.path()).rdbuf();
  outcome.err = text.str();
  return outcome;
}

void expect_error(const std::string& arguments, int status, const std::string& needle) {
  SCOPED_TRACE(arguments);
  const Outcome outcome = run_rnicsim(arguments);
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.compare(0, 9, "rnicsim: "), 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_NE(outcome.err.find(needle), std::string::npos) << outcome.err;
}

TEST(CliTest, HelpAndVersion) {
  for (const char* option : {"--help", "-h", "run --help", "params --help"}) {
    const Outcome help = run_rnicsim(option);
    EXPECT_EQ(help.status, 0) << option;
    EXPECT_EQ(help.out.compare(0, 6, "Usage:"), 0) << option << help.out;
    EXPECT_EQ(help.err, "") << option;
  }
  const Outcome version = run_rnicsim("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, std::string("rnicsim ") + RNICSIM_VERSION + "\n");
}

TEST(CliTest, CommandLineMistakes) {
  expect_error("", 2, "no command");
  expect_error("rum", 2, "unknown command 'rum'");
  expect_error("run surplus", 2, "unexpected argument 'surplus'");
  expect_error("run --nic.clok=1GHz", 2, "unknown option '--nic.clok' (nearest: --nic.clock)");
  expect_error("run --nic.cloc=1GHz", 2, "nearest: --nic.clock");  // no abbreviations
  expect_error("run --link.drop=5", 2, "(nearest: --link.drop_list)");
  expect_error("run -x", 2, "unknown option '-x'");
  expect_error("run --nic.clock", 2, "needs a value");
  expect_error("run --nic.clock=", 2, "needs a value");
  expect_error("run -c", 2, "-c FILE");
  expect_error("run --link.jitter=1us", 2, "unknown option");
  expect_error("params nothing", 2, "no key starts with 'nothing'");
  expect_error("params nic. link.", 2, "one prefix");
}

TEST(CliTest, BadValues) {
  expect_error("run --workload.qps=-1", 2, "--workload.qps=-1 is negative (valid: 1..65536 QPs)");
  expect_error("run --workload.qps -1", 2, "is negative");
  expect_error("run --workload.qps=4294967297", 2, "out of range");
  expect_error("run --link.rate=fast", 2, "is not a number");
  expect_error("run --link.rate=nan", 2, "is not a number");
  expect_error("run --link.delay=5kg", 2, "unknown unit 'kg'");
  expect_error("run --workload.op=bind", 2,
               "write|write_imm|read|send|send_imm|atomic_cas|atomic_fadd");
  expect_error("run --sim.seed=\"$(printf 'a\\nb')\"", 2, "a?b");
  expect_error("run --transport.mtu=1500", 2, "transport.protocol=ib");
  expect_error("run --link.ets=1:10", 2, "link.vl_arb_high");
  expect_error("run --workload.program=kv_store --workload.op=dma_read", 2, "workload.program");
  expect_error("run --workload.program=kv_store --workload.op=read", 2, "--workload.op=read");
  expect_error("run --workload.program=kv_store --workload.traffic=ring", 2, "workload.traffic");
  expect_error("run --workload.program=kv_store --transport.type=ud", 2, "workload.program");
  expect_error("run --workload.op=read --transport.protocol=iwarp --workload.sges=3", 2,
               "workload.sges=1");
  expect_error("run --workload.program=rendezvous --sim.payload=none", 2, "sim.payload=bytes");
  expect_error("run --workload.program=ring_buffer --sim.payload=none", 2, "sim.payload=bytes");
  expect_error("run --link.loss_rate=0.1 --link.fault_frames=none", 2, "link.fault_frames=none");
  expect_error("run --workload.pattern=bandwidth --workload.reg_rate=0.1", 2,
               "workload.reg_rate=0.1");
  for (const char* fault : {"link.duplicate_rate=0.1", "link.duplicate_list=3"}) {
    expect_error(std::string("run --workload.program=ping_pong --transport.type=ud --") + fault, 2,
                 "transport.type=rc");
  }
}

TEST(CliTest, BadFiles) {
  const TemporaryFile file("bad.ini", "[nic]\n\nclok = 1GHz\n");
  expect_error("run -c " + file.path(), 2,
               file.path() + ":3: unknown key 'nic.clok' (nearest: nic.clock)");
  expect_error("run -c /nonexistent/file.ini", 2, "no such file");
  expect_error("run -c write_lta", 2, "nearest: write_lat");
  expect_error("run -c /", 2, "not a file");
}

TEST(CliTest, OutputThatCannotBeWritten) {
  const TemporaryFile file("in_the_way");
  expect_error("run --output.dir=" + file.path() + "/below", 4, "output.dir=");
  expect_error("run --output.dir=" + file.path(), 4, "output.dir=");
  expect_error("params > /dev/full", 4, "standard output");
  expect_error("params >&-", 4, "standard output");
}

TEST(CliTest, ConfigurationIsCheckedBeforeOutput) {
  expect_error("run --workload.qps=0 --output.dir=/dev/null/x", 2, "workload.qps");
}

TEST(CliTest, ParamsDescribeEveryKey) {
  const Outcome text = run_rnicsim("params");
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("nic.clock = "), std::string::npos);
  const Outcome outcome = run_rnicsim("params --json");
  ASSERT_EQ(outcome.status, 0);
  const auto list = nlohmann::json::parse(outcome.out);
  ASSERT_GT(list.size(), 100U);
  for (const auto& entry : list) {
    for (const char* field : {"key", "default", "unit", "valid", "evidence", "source", "meaning"}) {
      EXPECT_TRUE(entry.contains(field)) << entry;
    }
  }
  const auto link = nlohmann::json::parse(run_rnicsim("params link. --json").out);
  for (const auto& entry : link)
    EXPECT_EQ(entry["key"].get<std::string>().compare(0, 5, "link."), 0);
}

TEST(CliTest, ARunReportsOnStdoutOnly) {
  const Outcome outcome = run_rnicsim("run -c write_lat --workload.iterations=20 --sim.warmup=2");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out, "");
  EXPECT_EQ(outcome.out.find("SystemC"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("Accellera"), std::string::npos) << outcome.out;
}

TEST(CliTest, ARunWritesItsConfiguration) {
  const TemporaryFile place("result_parent");
  std::filesystem::remove(place.path());
  const Outcome outcome = run_rnicsim(
      "run -c write_lat --workload.iterations=20 --sim.warmup=2 --link.rate=50Gbps --output.dir=" +
      place.path() + "/new/dir");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::ifstream file(place.path() + "/new/dir/result.json");
  const auto result = nlohmann::json::parse(file);
  EXPECT_EQ(result["config"]["link.rate"], 50);
  EXPECT_EQ(result["config"]["workload.op"], "write");
  EXPECT_EQ(result["config"]["workload.msg_size"], 2);
}

}  // namespace
}  // namespace rnic::testbench
