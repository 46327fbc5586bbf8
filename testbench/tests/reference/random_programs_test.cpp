// SPDX-License-Identifier: Apache-2.0
// Random programs of verbs on many queue pairs, with random failures, against a reference that
// knows neither time nor packets: the same completions in the same order, the same bytes. Whatever
// the network loses, damages or delays must not change either.
//
// Environment, for longer searches and for a seed that failed:
//   RNICSIM_RANDOM_SEEDS=n   programs in each test (default 20; of thousands of requests: 2)
//   RNICSIM_RANDOM_FIRST=n   first seed (default: others in each test)
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "reference/random_runner.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using reference::Abilities;
using reference::Ending;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

const std::vector<Ending> kAllEndings = {
    Ending::kLocalKey,  Ending::kLocalBounds,  Ending::kLocalPd,    Ending::kSinkNotWritable,
    Ending::kRemoteKey, Ending::kRemoteBounds, Ending::kRemoteTop,  Ending::kRemoteRight,
    Ending::kRemotePd,  Ending::kQpRight,      Ending::kMisaligned, Ending::kRecvSmall,
    Ending::kRecvKey,   Ending::kRnr,          Ending::kPeerGone,   Ending::kDeadKey,
    Ending::kEndWrong,  Ending::kEndWrongHere, Ending::kTooLong,    Ending::kForeignHandle};

/// The same, and completion queues that run over, so often that every fourth program has one.
std::vector<Ending> and_full_queues(std::vector<Ending> endings) {
  constexpr std::size_t kShare = 8;
  endings.insert(endings.end(), kShare, Ending::kCqFull);
  return endings;
}

/// Those in which no answer of the peer can be lost that the outcome depends on: a queue pair in
/// ERR does not repeat its NAK.
const std::vector<Ending> kEndingsWithoutNak = {
    Ending::kLocalKey, Ending::kLocalBounds,  Ending::kLocalPd, Ending::kSinkNotWritable,
    Ending::kRnr,      Ending::kEndWrongHere, Ending::kTooLong};

class RandomProgramsTest : public ::testing::TestWithParam<std::string> {
 protected:
  bool iwarp() const { return GetParam() == "iwarp"; }

  Settings settings(const Settings& more) const {
    return with({{"transport.protocol", GetParam()},
                 {"transport.mtu", iwarp() ? "1500" : "1024"},
                 {"transport.ack_timeout", "8"},  // 1 ms
                 {"transport.min_rnr_timer", "1"},
                 // A reset may be lost: whether a peer learns of an error at once is left open.
                 {"tcp.tear_down", "false"},
                 {"tcp.syn_timeout", "1ms"},
                 {"memory.memlock_limit", "1GiB"}},
                more);
  }

  Abilities abilities() const {
    Abilities result;
    result.opcodes = {WrOpcode::kRdmaWrite,         WrOpcode::kSend,
                      WrOpcode::kRdmaRead,          WrOpcode::kAtomicCmpAndSwp,
                      WrOpcode::kAtomicFetchAndAdd, WrOpcode::kSendWithInv,
                      WrOpcode::kRdmaWriteWithImm};
    if (iwarp()) {
      result.rules = reference::Rules::kIwarp;
      result.mtu = 1426;
      result.max_read_sge = 1;
      result.late_recvs = false;
      result.early_placement = true;
    } else {
      result.opcodes.push_back(WrOpcode::kSendWithImm);
    }
    return result;
  }

  /// What a test asks for beyond reliable connections.
  RandomRunner::Options options(const std::vector<Ending>& endings) const {
    RandomRunner::Options made;
    made.migrates = !iwarp();
    made.abilities = abilities();
    made.endings = endings;
    // What stands in front of a datagram's transport header: a GRH, an IPv4 header, or neither. To
    // a group InfiniBand always has a GRH.
    made.header = GetParam() == "rocev1" ? 40 : GetParam() == "rocev2" ? 20 : 0;
    made.group_header = GetParam() == "ib" ? 40 : made.header;
    return made;
  }
  RandomRunner::Options with_services(const std::vector<Ending>& endings) const {
    RandomRunner::Options result = options(endings);
    result.unreliable = !iwarp();
    return result;
  }

  /// How often the things happened that RandomRunner::count() names.
  using Counts = std::map<std::string, std::uint64_t>;

  Counts programs(const Settings& more, const RandomRunner::Options& options,
                  std::uint64_t first_seed, std::uint64_t most_seeds = 20) const {
    Counts counts;
    VerbsRig rig(settings(more));
    rig.run(
        [&] {
          RandomRunner runner(rig, options);
          const std::uint64_t first = from_environment("RNICSIM_RANDOM_FIRST", first_seed);
          const std::uint64_t count = from_environment("RNICSIM_RANDOM_SEEDS", most_seeds);
          for (std::uint64_t seed = first; seed < first + count; ++seed) {
            if (!runner.run(seed)) {
              ADD_FAILURE() << "seed " << seed;
              return;
            }
          }
          for (const char* what :
               {"request", "resize", "pause", "migrate", "query", "group", "device", "cq_full"}) {
            counts[what] = runner.count(what);
          }
        },
        microseconds(1000000000));
    return counts;
  }

  /// Each kind of interference that there is, at least once a program in the mean.
  void expect_interference(Counts counts) const {
    if (HasFailure()) return;
    for (const char* kind : {"resize", "pause", "query", "migrate"}) {
      const bool possible = std::string(kind) != "migrate" || !iwarp();
      EXPECT_EQ(counts[kind] >= 20, possible) << kind << ": " << counts[kind];
    }
  }
};

TEST_P(RandomProgramsTest, NothingIsLost) { programs({}, with_services(kAllEndings), 1); }

/// Datagrams to groups, memory on the devices, completion queues that run over.
TEST_P(RandomProgramsTest, GroupsMemoryOnTheDeviceAndFullQueues) {
  RandomRunner::Options all = with_services(and_full_queues(kAllEndings));
  all.groups = all.device_memory = true;
  Counts counts = programs({{"nic.device_memory", "1MiB"}}, all, 5001);
  if (HasFailure()) return;
  EXPECT_GE(counts["device"], 20U);
  EXPECT_GE(counts["cq_full"], 5U);
  EXPECT_EQ(counts["group"] >= 20, !iwarp()) << counts["group"];
}

/// The same under loss, as far as connections repeat what is lost.
TEST_P(RandomProgramsTest, MemoryOnTheDeviceAndFullQueuesWithLosses) {
  RandomRunner::Options all = options(and_full_queues(kEndingsWithoutNak));
  all.device_memory = true;
  Counts counts = programs({{"nic.device_memory", "1MiB"}, {"link.loss_rate", "5e-3"}}, all, 6001);
  if (HasFailure()) return;
  EXPECT_GE(counts["device"], 20U);
  EXPECT_GE(counts["cq_full"], 5U);
}

/// Seeds that found something: work that is to be sent again before work that has failed.
TEST_P(RandomProgramsTest, WhatWasSentBeforeAFailureIsSentAgain) {
  programs({{"link.loss_rate", "5e-3"}}, options(kEndingsWithoutNak), 200060);
}

/// While queues change their size, send queues pause, paths migrate and pages come on demand.
TEST_P(RandomProgramsTest, TheApplicationInterferes) {
  RandomRunner::Options all = with_services(kAllEndings);
  all.interferes = true;
  expect_interference(programs({{"memory.odp_fault_cost", "5us"}}, all, 3001));
}

/// The same, and packets are lost.
TEST_P(RandomProgramsTest, TheApplicationInterferesAndPacketsAreLost) {
  RandomRunner::Options all = options(kEndingsWithoutNak);
  all.interferes = true;
  expect_interference(
      programs({{"memory.odp_fault_cost", "5us"}, {"link.loss_rate", "5e-3"}}, all, 4001));
}

/// Requests of the device wait for their time before they come to the link, and packets of one pass
/// those of another.
TEST_P(RandomProgramsTest, TlpByTlp) {
  RandomRunner::Options all = with_services(kAllEndings);
  all.interferes = true;
  expect_interference(
      programs({{"memory.odp_fault_cost", "5us"}, {"pcie.detail", "tlp"}}, all, 9001));
}

/// Requests wait for their time, as the host serves them one by one: an IOMMU, whose walks take
/// longer for some than for others.
TEST_P(RandomProgramsTest, AHostThatMindsTheOrderOfRequests) {
  RandomRunner::Options all = with_services(kAllEndings);
  all.interferes = true;
  expect_interference(programs(
      {{"memory.odp_fault_cost", "5us"}, {"iommu.enabled", "true"}, {"iommu.iotlb_entries", "16"}},
      all, 9101));
}

/// Data packets are lost here and there, ACKs are not.
TEST_P(RandomProgramsTest, DataPacketsAreLost) {
  std::string list;
  Rng rng(7, "drop_list");
  std::uint64_t at = 0;
  for (int i = 0; i < 2000; ++i) {
    at += 1 + rng.below(80);
    list.append(i == 0 ? "" : ",").append(std::to_string(at));
  }
  programs({{"link.drop_list", list}}, options(kAllEndings), 1001);
}

/// Anything is lost.
TEST_P(RandomProgramsTest, AnyPacketIsLost) {
  programs({{"link.loss_rate", "5e-3"}}, options(kEndingsWithoutNak), 2001);
}

/// Programs of thousands of requests on 36 queue pairs and more each: 18 connections, whose two
/// lanes have 150 to 250 requests each in a life.
RandomRunner::Options at_large(RandomRunner::Options options) {
  options.least_connections = options.most_connections = 18;
  options.least_requests = 150;
  options.requests = 250;
  return options;
}

TEST_P(RandomProgramsTest, ThousandsOfRequestsOnManyQueuePairs) {
  RandomRunner::Options all = at_large(with_services(and_full_queues(kAllEndings)));
  all.groups = true;
  Counts counts = programs({}, all, 7001, 2);
  if (!HasFailure()) {
    EXPECT_GE(counts["request"], 2 * 5000U);
  }
}

TEST_P(RandomProgramsTest, ThousandsOfRequestsWhilePacketsAreLostAndTheApplicationInterferes) {
  RandomRunner::Options all = at_large(options(kEndingsWithoutNak));
  all.interferes = true;
  Counts counts =
      programs({{"memory.odp_fault_cost", "5us"}, {"link.loss_rate", "5e-3"}}, all, 8001, 2);
  if (!HasFailure()) {
    EXPECT_GE(counts["request"], 2 * 5000U);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, RandomProgramsTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
