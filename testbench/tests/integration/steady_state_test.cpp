// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

/// What may differ between a run with event-saving and one without: how it was run.
bool of_the_machine(const std::string& path) {
  static const std::set<std::string> kPaths = {"/sim/wall_s",         "/sim/packets_per_s",
                                               "/sim/peak_rss_bytes", "/sim/kernel_events",
                                               "/sim/model_events",   "/sim/replayed_messages"};
  return kPaths.count(path) > 0 || path.rfind("/config", 0) == 0;
}

void expect_same(const nlohmann::json& full, const nlohmann::json& saved, const std::string& path) {
  if (of_the_machine(path)) return;
  if (full.is_number()) {
    // One part in a thousand is the promise.
    const double a = full.get<double>();
    const double b = saved.get<double>();
    EXPECT_LE(std::abs(a - b), 1e-3 * std::abs(a)) << path << ": " << a << " and " << b;
    return;
  }
  ASSERT_EQ(full.type(), saved.type()) << path;
  if (!full.is_structured()) {
    EXPECT_EQ(full, saved) << path;
    return;
  }
  ASSERT_EQ(full.size(), saved.size()) << path;
  for (const auto& [key, value] : full.items()) {
    expect_same(value, full.is_array() ? saved[std::stoul(key)] : saved.at(key), path + "/" + key);
  }
}

Settings stream(const std::string& protocol) {
  return {{"transport.protocol", protocol},
          {"link.rate", "100Gbps"},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "65536"},
          {"workload.qps", "1"},
          {"workload.depth", "8"},
          {"workload.signal_every", "1"},
          {"workload.iterations", "1500"},
          {"sim.warmup", "16"}};
}

/// Runs with and without event-saving; the figures must agree. Returns the messages saved.
double saved_messages(const Settings& settings) {
  const ProgramRun full = run_well(settings);
  const ProgramRun saved = run_well(with(settings, {{"sim.detail", "auto"}}));
  if (full.result.empty() || saved.result.empty()) return -1;
  EXPECT_EQ(full.number("/sim/replayed_messages"), 0);
  expect_same(full.result, saved.result, "");
  return saved.number("/sim/replayed_messages");
}

class SteadyStateTest
    : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

TEST_P(SteadyStateTest, SavesEventsAndChangesNoFigure) {
  const auto& [protocol, op, qps] = GetParam();
  const double saved =
      saved_messages(with(stream(protocol), {{"workload.op", op}, {"workload.qps", qps}}));
  // With MTU 4096 a message takes a multiple of 80 ps of the wire (IB and RoCE; 8 b at 100 Gb/s for
  // each byte), the device's clock is 2 ns: after at most 25 messages both are in step again. The
  // period is seen twice before and twice while figures are compared, so that well over half of
  // 1500 messages need not be simulated.
  EXPECT_GT(saved, 750) << protocol << " " << op;
}

INSTANTIATE_TEST_SUITE_P(OneSided, SteadyStateTest,
                         testing::Combine(testing::Values("ib", "rocev1", "rocev2", "iwarp"),
                                          testing::Values("write", "read"), testing::Values("1")));
INSTANTIATE_TEST_SUITE_P(SeveralQueuePairs, SteadyStateTest,
                         testing::Values(std::make_tuple("rocev2", "write", "4")));

// A SEND takes RECVs, which are fetched and posted in batches, so that a period is longer; whether
// one is found or not, figures stay.
TEST(SteadyState, SendsKeepTheirFigures) {
  EXPECT_GE(saved_messages(with(stream("rocev2"), {{"workload.op", "send"}})), 0);
}

TEST(SteadyState, BothDirections) {
  EXPECT_GT(saved_messages(with(stream("rocev2"),
                                {{"workload.op", "write"}, {"workload.bidirectional", "true"}})),
            0);
}

// Packets that will be lost later make no show in what has been seen: everything is simulated.
TEST(SteadyState, ChanceIsNeverForeseen) {
  for (const Settings& fault :
       {Settings{{"link.loss_rate", "0.00001"}}, Settings{{"link.drop_list", "20000"}},
        Settings{{"workload.access", "random"}}}) {
    EXPECT_EQ(saved_messages(with(with(stream("rocev2"), {{"workload.op", "write"}}), fault)), 0)
        << fault[0].first;
  }
}

// What happens once, or without regard to the stream, must not be taken for its period: pages that
// are missing, regions that are used for the first time, registrations.
TEST(SteadyState, WhatComesOnceIsNotRepeated) {
  const Settings small =
      with(stream("rocev2"),
           {{"workload.msg_size", "4096"}, {"workload.iterations", "4000"}, {"sim.warmup", "0"}});
  ASSERT_GT(saved_messages(small), 0) << "what is taken for a period here";
  EXPECT_GE(
      saved_messages(with(small, {{"workload.odp", "explicit"}, {"workload.mr_size", "4MiB"}})), 0);
  EXPECT_GE(saved_messages(with(small, {{"workload.mrs", "512"},
                                        {"workload.mr_size", "16KiB"},
                                        {"nic.mpt_cache.entries", "1024"}})),
            0);
  EXPECT_GE(saved_messages(with(small, {{"workload.registration", "each"}})), 0);
  EXPECT_GE(saved_messages(with(small, {{"workload.reg_rate", "1000"}})), 0);
}

// Pairs that do the same at the same instants: which of them is first is the same, too.
TEST(SteadyState, PairsKeepTheirFigures) {
  EXPECT_GT(saved_messages(with(stream("rocev2"), {{"fabric.hosts", "8"},
                                                   {"fabric.topology", "single_switch"},
                                                   {"workload.traffic", "pair"}})),
            0);
}

}  // namespace
}  // namespace rnic::testbench
