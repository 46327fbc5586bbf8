// SPDX-License-Identifier: Apache-2.0
#include "link/lane_arbiter.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace rnic::link {
namespace {

/// Frames that each lane gets out of `frames` when all lanes of `eligible` always have one.
std::map<std::uint32_t, int> shares(LaneArbiter& arbiter, std::uint32_t eligible,
                                    std::uint32_t bytes, int frames) {
  std::map<std::uint32_t, int> count;
  for (int i = 0; i < frames; ++i) {
    const std::uint32_t lane = arbiter.pick(eligible);
    arbiter.sent(lane, bytes);
    ++count[lane];
  }
  return count;
}

LinkPortConfig tables(std::vector<config::LaneWeight> high, std::vector<config::LaneWeight> low,
                      std::uint32_t limit) {
  LinkPortConfig config;
  config.arbitration_high = std::move(high);
  config.arbitration_low = std::move(low);
  config.arbitration_limit = limit;
  return config;
}

TEST(VlArbiter, SharesTheLineByWeight) {
  // 64 B packets are one unit of weight each: turns of 3 and 1.
  VlArbiter arbiter(tables({}, {{0, 3, false}, {1, 1, false}}, 255));
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 8; ++i) {
    order.push_back(arbiter.pick(3));
    arbiter.sent(order.back(), 64);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(VlArbiter, RoundsAWeightUpToAWholePacket) {
  // Weight 4 is 256 B: one packet of 300 B a turn, whatever lane 1 sends.
  VlArbiter arbiter(tables({}, {{0, 4, false}, {1, 4, false}}, 255));
  const auto count = shares(arbiter, 3, 300, 100);
  EXPECT_EQ(count.at(0), 50);
  EXPECT_EQ(count.at(1), 50);
}

TEST(VlArbiter, HighTableGoesFirstUpToItsLimit) {
  // 2 x 4,096 B of 1,024 B packets are 8, then one of the low table.
  VlArbiter arbiter(tables({{1, 255, false}}, {{0, 255, false}}, 2));
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 18; ++i) {
    order.push_back(arbiter.pick(3));
    arbiter.sent(order.back(), 1024);
  }
  for (int i = 0; i < 18; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i % 9 == 8 ? 0U : 1U);
}

TEST(VlArbiter, LimitZeroIsOnePacketAnd255NoLimit) {
  VlArbiter one(tables({{1, 255, false}}, {{0, 255, false}}, 0));
  const auto count = shares(one, 3, 64, 100);
  EXPECT_EQ(count.at(0), 50);
  VlArbiter unlimited(tables({{1, 255, false}}, {{0, 255, false}}, 255));
  EXPECT_EQ(shares(unlimited, 3, 4096, 1000).count(0), 0U);
  EXPECT_EQ(shares(unlimited, 1, 4096, 10).at(0), 10);  // alone it goes
}

TEST(VlArbiter, WeightZeroIsSkipped) {
  VlArbiter arbiter(tables({}, {{0, 0, false}, {1, 1, false}}, 255));
  EXPECT_EQ(shares(arbiter, 3, 64, 10).at(1), 10);
}

TEST(EtsArbiter, SharesTheLineByWeightWhateverTheFrames) {
  LinkPortConfig config;
  config.ets = {{0, 10, false}, {3, 30, false}};
  EtsArbiter arbiter(config);
  // Bytes, not frames: lane 0 sends long frames, lane 3 short ones.
  std::uint64_t bytes[4] = {};
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t lane = arbiter.pick(0b1001);
    const std::uint32_t size = lane == 0 ? 4200 : 300;
    arbiter.sent(lane, size);
    bytes[lane] += size;
  }
  EXPECT_NEAR(static_cast<double>(bytes[3]) / static_cast<double>(bytes[0]), 3.0, 0.03);
}

TEST(EtsArbiter, StrictBeforeWeightedBeforeUnlisted) {
  LinkPortConfig config;
  config.ets = {{1, 50, false}, {5, 0, true}, {6, 0, true}};
  EtsArbiter arbiter(config);
  const auto next = [&arbiter](std::uint32_t eligible) {
    const std::uint32_t lane = arbiter.pick(eligible);
    arbiter.sent(lane, 1500);
    return lane;
  };
  EXPECT_EQ(next(0xFF), 6U);
  EXPECT_EQ(next(0b0011'1111), 5U);
  EXPECT_EQ(next(0b0001'1111), 1U);
  EXPECT_EQ(next(0b0001'0001), 0U);  // in turn
  EXPECT_EQ(next(0b0001'0001), 4U);
  EXPECT_EQ(next(0b0001'0001), 0U);
}

TEST(EtsArbiter, AnIdlePriorityLeavesItsShareAndSavesNothingUp) {
  LinkPortConfig config;
  config.ets = {{0, 50, false}, {1, 50, false}};
  EtsArbiter arbiter(config);
  EXPECT_EQ(shares(arbiter, 1, 1500, 1000).at(0), 1000);
  const auto count = shares(arbiter, 3, 1500, 1000);
  EXPECT_NEAR(count.at(0), 500, 10);
}

TEST(MakeArbiter, FollowsTheConfiguration) {
  EXPECT_NE(dynamic_cast<RoundRobinArbiter*>(make_arbiter({}).get()), nullptr);
  EXPECT_NE(dynamic_cast<VlArbiter*>(make_arbiter(tables({}, {{0, 1, false}}, 1)).get()), nullptr);
  LinkPortConfig ets;
  ets.ets = {{0, 1, false}};
  EXPECT_NE(dynamic_cast<EtsArbiter*>(make_arbiter(ets).get()), nullptr);
}

}  // namespace
}  // namespace rnic::link
