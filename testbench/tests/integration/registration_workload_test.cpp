// SPDX-License-Identifier: Apache-2.0
// What registration and on-demand paging cost a stream: workload.registration, reg_rate and odp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "support/program.h"

namespace rnic::testbench {
namespace {

Settings stream(const Settings& more) {
  return with({{"workload.op", "write"},
               {"workload.pattern", "bandwidth"},
               {"workload.msg_size", "64KiB"},
               {"workload.iterations", "200"},
               {"workload.depth", "4"},
               {"sim.warmup", "20"},
               {"sim.payload", "none"}},
              more);
}

TEST(RegistrationWorkload, EachMessageByItself) {
  const ProgramRun run = run_well(stream({{"workload.registration", "each"},
                                          {"nic.command_latency", "0ns"},
                                          {"memory.reg_call_cost", "30us"},
                                          {"memory.reg_page_cost", "1us"},
                                          {"memory.dereg_call_cost", "38us"},
                                          {"memory.dereg_page_cost", "100ns"}}));
  // 16 pages: 30 + 16 us to pin, 38 + 1.6 us to unpin, one after the other on one core.
  const double us = 30 + 16 + 38 + 1.6;
  EXPECT_NEAR(run.number("/message_rate_mops"), 1 / us, 0.05 / us);
  EXPECT_EQ(run.result["bottleneck"]["unit"], "host0.cpu");
  const ProgramRun ahead = run_well(stream({}));
  EXPECT_GT(ahead.number("/throughput_gbps"), 95);
}

TEST(RegistrationWorkload, EachMessageBringsItsBytes) {
  for (const char* op : {"write", "read", "send"}) {
    run_well(stream({{"workload.op", op},
                     {"workload.registration", "each"},
                     {"workload.iterations", "30"},
                     {"workload.sges", "3"},
                     {"sim.payload", "bytes"}}));
  }
}

TEST(RegistrationWorkload, BesideAStream) {
  const Settings pages{{"workload.msg_size", "4KiB"},    {"workload.mr_size", "1MiB"},
                       {"workload.iterations", "20000"}, {"workload.depth", "32"},
                       {"workload.reg_size", "4KiB"},    {"memory.reg_call_cost", "1us"},
                       {"memory.reg_page_cost", "0ns"},  {"memory.dereg_call_cost", "1us"},
                       {"nic.command_latency", "1us"}};
  const auto misses = [](const ProgramRun& run) {
    double sum = 0;
    for (const auto& cache : run.result["caches"]) {
      if (cache["name"] == "host1.nic.mtt_cache") sum += cache["misses"].get<double>();
    }
    return sum;
  };
  const ProgramRun quiet = run_well(with(stream(pages), {{"workload.reg_rate", "0"}}));
  const ProgramRun beside = run_well(with(stream(pages), {{"workload.reg_rate", "20000"}}));
  const ProgramRun flushed = run_well(
      with(stream(pages), {{"workload.reg_rate", "20000"}, {"nic.dereg_flushes_mtt", "true"}}));
  // 20,000 a second on each of two hosts, for the 6.6 ms that 20,020 messages of 3.02 M/s take; the
  // end of each is a command.
  const double ended = static_cast<double>(beside.counter("commands")) -
                       static_cast<double>(quiet.counter("commands"));
  EXPECT_NEAR(ended, 2 * 20e-3 * 20020 / 3.02, 6);
  EXPECT_NEAR(misses(beside), misses(quiet), 0.2 * misses(quiet) + 5);
  // Emptied each 50 us, in which 150 messages pass 150 pages, 19 lines of 8.
  EXPECT_GT(misses(flushed), misses(quiet) + 100 * 15);
  EXPECT_NEAR(beside.number("/throughput_gbps"), quiet.number("/throughput_gbps"), 0.5);
}

const Settings kPages{{"workload.mr_size", "8MiB"}, {"sim.warmup", "0"}};

TEST(OnDemandWorkload, PageFaultsAreInTheStreamUnlessPrefetched) {
  for (const char* kind : {"explicit", "implicit"}) {
    for (const char* op : {"write", "read", "send"}) {
      SCOPED_TRACE(std::string(kind) + " " + op);
      const Settings paged = with(stream(kPages), {{"workload.op", op}, {"workload.odp", kind}});
      const ProgramRun cold = run_well(paged);
      const ProgramRun warm = run_well(with(paged, {{"workload.odp_prefetch", "true"}}));
      EXPECT_GT(cold.counter("page_faults"), 100U);
      EXPECT_EQ(warm.counter("page_faults"), 0U);
      EXPECT_LT(cold.number("/throughput_gbps"), 0.1 * warm.number("/throughput_gbps"));
      EXPECT_GT(warm.number("/throughput_gbps"), 90);
    }
  }
}

TEST(OnDemandWorkload, TheLimitIsNamed) {
  // The responder answers RNR: its timer is what senders wait for. A requester's faults are waited
  // for by the device.
  const ProgramRun write = run_well(with(stream(kPages), {{"workload.odp", "explicit"}}));
  EXPECT_EQ(write.result["bottleneck"]["unit"], "transport.min_rnr_timer");
  const ProgramRun read =
      run_well(with(stream(kPages), {{"workload.odp", "explicit"}, {"workload.op", "read"}}));
  const auto unit = read.result["bottleneck"]["unit"].get<std::string>();
  EXPECT_NE(unit.find("page_faults"), std::string::npos) << unit;
}

TEST(OnDemandWorkload, PagesThatHaveComeStay) {
  // The second lap over the same pages meets no fault.
  const ProgramRun one = run_well(
      with(stream(kPages), {{"workload.odp", "explicit"}, {"workload.iterations", "128"}}));
  const ProgramRun three = run_well(
      with(stream(kPages), {{"workload.odp", "explicit"}, {"workload.iterations", "384"}}));
  EXPECT_EQ(three.counter("page_faults"), one.counter("page_faults"));
}

TEST(OnDemandWorkload, BytesArrive) {
  for (const char* kind : {"explicit", "implicit"}) {
    run_well(
        with(stream(kPages),
             {{"workload.odp", kind}, {"workload.iterations", "20"}, {"sim.payload", "bytes"}}));
  }
}

TEST(RegistrationWorkload, WhatDoesNotGoTogetherIsRefused) {
  const std::pair<Settings, const char*> mistakes[] = {
      {{{"workload.odp", "explicit"},
        {"transport.type", "ud"},
        {"workload.op", "send"},
        {"workload.msg_size", "1KiB"}},
       "workload.odp=explicit|implicit needs transport.type=rc"},
      {{{"workload.odp", "explicit"}, {"workload.remote_memory", "peer"}},
       "workload.odp=explicit|implicit needs transport.type=rc and buffers in host memory"},
      {{{"workload.registration", "each"}, {"workload.pattern", "latency"}},
       "workload.registration=each needs workload.pattern=bandwidth"},
      {{{"workload.registration", "each"}, {"workload.odp", "explicit"}}, "workload.odp=none"},
      // One in 10^10 s would be a time that nothing can hold.
      {{{"workload.reg_rate", "1e-10"}},
       "workload.reg_rate=0.000000 is out of range (valid: 0, or"},
      {{{"workload.reg_rate", "0.5"}}, "workload.reg_rate=0.500000 is out of range"}};
  for (const auto& [mistake, words] : mistakes) {
    const ProgramRun run = run_program(with(stream({}), mistake));
    EXPECT_EQ(run.status, 2);
    EXPECT_NE(run.error.find(words), std::string::npos) << run.error;
  }
}

/// Its own memory is the streams' business; what is registered beside them may be too much.
TEST(RegistrationWorkload, WhatCannotBeRegisteredBesideTheStreamIsToldOnce) {
  const ProgramRun run = run_program(stream({{"workload.reg_rate", "1000"},
                                             {"workload.reg_size", "64MiB"},
                                             {"memory.memlock_limit", "32MiB"}}));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("workload.reg_size=67108864 cannot be registered"), std::string::npos)
      << run.error;
  EXPECT_NE(run.error.find("memory.memlock_limit"), std::string::npos) << run.error;
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
}

}  // namespace
}  // namespace rnic::testbench
