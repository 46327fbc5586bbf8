// SPDX-License-Identifier: Apache-2.0
// Random programs of verbs on many queue pairs, with random failures, against a reference that
// knows neither time nor packets: the same completions in the same order, the same bytes. Whatever
// the network loses, damages or delays must not change either.
//
// Environment, for longer searches and for a seed that failed:
//   RNICSIM_RANDOM_SEEDS=n   programs in each test (default 20)
//   RNICSIM_RANDOM_FIRST=n   first seed (default: others in each test)
#include <gtest/gtest.h>

#include <cstdlib>

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

  void programs(const Settings& more, const std::vector<Ending>& endings, std::uint64_t first_seed,
                bool unreliable = false, bool interferes = false) const {
    VerbsRig rig(settings(more));
    RandomRunner::Options options;
    options.interferes = interferes;
    options.migrates = !iwarp();
    options.abilities = abilities();
    options.endings = endings;
    options.unreliable = unreliable;
    // What stands in front of a datagram's transport header: a GRH, an IPv4 header, or neither.
    options.header = GetParam() == "rocev1" ? 40 : GetParam() == "rocev2" ? 20 : 0;
    rig.run(
        [&] {
          RandomRunner runner(rig, options);
          const std::uint64_t first = from_environment("RNICSIM_RANDOM_FIRST", first_seed);
          const std::uint64_t count = from_environment("RNICSIM_RANDOM_SEEDS", 20);
          for (std::uint64_t seed = first; seed < first + count; ++seed) {
            if (!runner.run(seed)) {
              ADD_FAILURE() << "seed " << seed;
              return;
            }
          }
        },
        microseconds(1000000000));
  }
};

TEST_P(RandomProgramsTest, NothingIsLost) { programs({}, kAllEndings, 1, !iwarp()); }

/// Seeds that found something: work that is to be sent again before work that has failed.
TEST_P(RandomProgramsTest, WhatWasSentBeforeAFailureIsSentAgain) {
  programs({{"link.loss_rate", "5e-3"}}, kEndingsWithoutNak, 200060);
}

/// While queues change their size, send queues pause, paths migrate and pages come on demand.
TEST_P(RandomProgramsTest, TheApplicationInterferes) {
  programs({{"memory.odp_fault_cost", "5us"}}, kAllEndings, 3001, !iwarp(), true);
}

/// The same, and packets are lost.
TEST_P(RandomProgramsTest, TheApplicationInterferesAndPacketsAreLost) {
  programs({{"memory.odp_fault_cost", "5us"}, {"link.loss_rate", "5e-3"}}, kEndingsWithoutNak, 4001,
           false, true);
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
  programs({{"link.drop_list", list}}, kAllEndings, 1001);
}

/// Anything is lost.
TEST_P(RandomProgramsTest, AnyPacketIsLost) {
  programs({{"link.loss_rate", "5e-3"}}, kEndingsWithoutNak, 2001);
}

INSTANTIATE_TEST_SUITE_P(Transports, RandomProgramsTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench
