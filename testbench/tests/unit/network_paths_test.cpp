// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "network/paths.h"

namespace rnic {
namespace {

using config::PathChoice;
using network::PathConfig;
using network::PathHint;
using network::Paths;

constexpr std::uint32_t kFrame = 1250;     // bytes
constexpr Time kAlone = nanoseconds(400);  // 10,000 bits at 25 Gb/s
constexpr Time kSkew = nanoseconds(50);
constexpr Time kThen = nanoseconds(1000);

PathConfig four(PathChoice choice) { return {4, BitRate::gbps(25), kSkew, choice}; }

TEST(Paths, AFlowKeepsItsPathAndItsOrder) {
  Paths paths(four(PathChoice::kPinned));
  // Flow 5 has path 5 mod 4 = 1: one skew, whatever its sender would not mind.
  EXPECT_EQ(paths.cross({5, true}, kFrame, kThen), kThen + kAlone + kSkew);
  EXPECT_EQ(paths.cross({5, true}, kFrame, kThen), kThen + 2 * kAlone + kSkew);
  // Another one does not wait for it; one of the same path does.
  EXPECT_EQ(paths.cross({6, false}, kFrame, kThen), kThen + kAlone + 2 * kSkew);
  EXPECT_EQ(paths.cross({9, false}, kFrame, kThen), kThen + 3 * kAlone + kSkew);
  // Once it is free a frame takes its own time only.
  EXPECT_EQ(paths.cross({5, false}, kFrame, kThen + 3 * kAlone), kThen + 4 * kAlone + kSkew);
}

// Four paths are equally likely: of 4,000 flows 1,000 +- 27 (one deviation) have each of them, and
// one that is free takes 400 ns and its skew. A flow keeps its path, another salt gives others.
TEST(Paths, HashedFlowsAreSpreadByChance) {
  int on[4] = {};
  int moved = 0;
  const auto path_of = [](std::uint32_t flow, std::uint64_t salt) {
    PathConfig config = four(PathChoice::kHashed);
    config.salt = salt;
    Paths paths(config);
    const Time out = paths.cross({flow, true}, kFrame, kThen);
    EXPECT_EQ(paths.cross({flow, false}, kFrame, kThen), out + kAlone);
    return (out - kThen - kAlone) / kSkew;
  };
  for (std::uint32_t flow = 0; flow < 4000; ++flow) {
    const auto path = path_of(flow, 1);
    ++on[path];
    if (path_of(flow, 2) != path) ++moved;
  }
  for (const int flows : on) EXPECT_NEAR(flows, 1000, 110);
  EXPECT_NEAR(moved, 3000, 110);
}

TEST(Paths, WhatMayTakeAnyTakesTheOneThatIsFreeFirst) {
  Paths paths(four(PathChoice::kAdaptive));
  // Path 2 is taken by a flow that keeps to it.
  EXPECT_EQ(paths.cross({2, false}, kFrame, kThen), kThen + kAlone + 2 * kSkew);
  // The others fill paths 0, 1 and 3; then all are busy until the same time, and 0 is the shortest.
  EXPECT_EQ(paths.cross({2, true}, kFrame, kThen), kThen + kAlone);
  EXPECT_EQ(paths.cross({2, true}, kFrame, kThen), kThen + kAlone + kSkew);
  EXPECT_EQ(paths.cross({2, true}, kFrame, kThen), kThen + kAlone + 3 * kSkew);
  EXPECT_EQ(paths.cross({2, true}, kFrame, kThen), kThen + 2 * kAlone);
  EXPECT_EQ(paths.cross({2, false}, kFrame, kThen), kThen + 2 * kAlone + 2 * kSkew);
}

TEST(Paths, WhereAllIsSprayedNobodyIsAsked) {
  Paths paths(four(PathChoice::kSpray));
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(paths.cross({7, false}, kFrame, kThen), kThen + (1 + i / 4) * kAlone + i % 4 * kSkew);
  }
}

TEST(Paths, OnePathIsAQueue) {
  Paths paths({1, BitRate::gbps(25), kSkew, PathChoice::kAdaptive});
  EXPECT_EQ(paths.cross({3, true}, kFrame, kThen), kThen + kAlone);
  EXPECT_EQ(paths.cross({4, true}, kFrame, kThen), kThen + 2 * kAlone);
}

}  // namespace
}  // namespace rnic
