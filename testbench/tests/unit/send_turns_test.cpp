// SPDX-License-Identifier: Apache-2.0
#include "nic/send_turns.h"

#include <gtest/gtest.h>

#include <string>

namespace rnic::testbench {
namespace {

using config::SqPolicy;
using nic::SendTurns;

/// Three queue pairs a, b, c of service levels 0, 1, 2.
class SendTurnsTest : public ::testing::Test {
 protected:
  SendTurnsTest() {
    for (std::uint8_t i = 0; i < 3; ++i) qps_[i].av.service_level = i;
  }
  char name(const nic::QpContext* qp) const { return static_cast<char>('a' + (qp - qps_)); }
  /// Who sends the next `packets` packets, when each has another one at once.
  std::string order(SendTurns& turns, int packets) {
    std::string sent;
    for (int i = 0; i < packets; ++i) {
      nic::QpContext& qp = *turns.front();
      turns.pop_front();
      sent += name(&qp);
      turns.push_back(&qp);
    }
    return sent;
  }
  void start(SendTurns& turns) {
    for (nic::QpContext& qp : qps_) turns.push_back(&qp);
  }

  nic::QpContext qps_[3];
};

TEST_F(SendTurnsTest, RoundRobinIsAPacketEach) {
  SendTurns turns(SqPolicy::kRoundRobin, {3, 1});
  start(turns);
  EXPECT_EQ(order(turns, 7), "abcabca");
}

TEST_F(SendTurnsTest, WeightedIsAsManyInARowAsTheWeightOfTheServiceLevel) {
  SendTurns turns(SqPolicy::kWeighted, {3, 1});  // c: as the last
  start(turns);
  EXPECT_EQ(order(turns, 11), "aaabcaaabca");
}

TEST_F(SendTurnsTest, WhoHasNothingLeftLosesTheRestOfItsTurn) {
  SendTurns turns(SqPolicy::kWeighted, {3, 1});
  start(turns);
  turns.pop_front();  // a sends one, and has no more for now
  EXPECT_EQ(order(turns, 2), "bc");
  turns.push_back(&qps_[0]);  // its turn is over: behind the others, and whole
  EXPECT_EQ(order(turns, 5), "bcaaa");
}

TEST_F(SendTurnsTest, StrictIsTheLargestFirstAndInTurnWithinOne) {
  SendTurns turns(SqPolicy::kStrict, {5, 9, 9});
  start(turns);
  EXPECT_EQ(order(turns, 4), "bcbc");
  turns.pop_front();
  turns.pop_front();  // b and c have nothing more
  EXPECT_EQ(order(turns, 2), "aa");
  turns.push_back(&qps_[2]);
  EXPECT_EQ(order(turns, 2), "cc");
}

TEST_F(SendTurnsTest, NobodyWaits) {
  SendTurns turns(SqPolicy::kWeighted, {2});
  EXPECT_TRUE(turns.empty());
  turns.push_back(&qps_[1]);
  EXPECT_FALSE(turns.empty());
  turns.pop_front();
  EXPECT_TRUE(turns.empty());
  turns.push_back(&qps_[1]);  // in its turn still
  EXPECT_FALSE(turns.empty());
  EXPECT_EQ(turns.front(), &qps_[1]);
}

}  // namespace
}  // namespace rnic::testbench
