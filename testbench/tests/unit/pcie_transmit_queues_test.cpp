// SPDX-License-Identifier: Apache-2.0
// Which packet goes next when some have no credit: the ordering rules at work. Entries of the
// specification's table in parentheses.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "pcie/transmit_queues.h"

namespace rnic::pcie {
namespace {

using protocol::TlpClass;

class TransmitQueuesTest : public ::testing::Test {
 protected:
  static Tlp tlp(TlpClass kind, std::uint32_t bytes = 64) {
    Tlp made;
    made.attributes.kind = kind;
    made.payload_bytes = bytes;
    return made;
  }
  /// No credit of one class is left.
  void exhaust(FlowClass which) {
    CreditPool& pool = credits[static_cast<std::size_t>(which)];
    pool = CreditPool({1, 0});
    pool.consume({1, 0});
  }
  std::optional<FlowClass> pick() { return queues.pick(kTimeZero, credits); }

  TransmitQueues queues;
  CreditPools credits;
};

TEST_F(TransmitQueuesTest, TheOldestGoesFirst) {
  queues.push(tlp(TlpClass::kRead));
  queues.push(tlp(TlpClass::kPosted));
  queues.push(tlp(TlpClass::kCompletion));
  std::vector<FlowClass> order;
  while (const auto next = pick()) {
    order.push_back(*next);
    queues.pop(*next);
  }
  EXPECT_EQ(order, (std::vector<FlowClass>{FlowClass::kNonPosted, FlowClass::kPosted,
                                           FlowClass::kCompletion}));
  EXPECT_TRUE(queues.empty());
}

TEST_F(TransmitQueuesTest, PostedAndOlderCompletionsTakeTurns) {  // A5a
  for (int i = 0; i < 3; ++i) queues.push(tlp(TlpClass::kCompletion));
  for (int i = 0; i < 2; ++i) queues.push(tlp(TlpClass::kPosted));
  std::vector<FlowClass> order;
  while (const auto next = pick()) {
    order.push_back(*next);
    queues.pop(*next);
  }
  EXPECT_EQ(order,
            (std::vector<FlowClass>{FlowClass::kPosted, FlowClass::kCompletion, FlowClass::kPosted,
                                    FlowClass::kCompletion, FlowClass::kCompletion}));
}

TEST_F(TransmitQueuesTest, PostedPassesABlockedRead) {  // A3
  exhaust(FlowClass::kNonPosted);
  queues.push(tlp(TlpClass::kRead));
  queues.push(tlp(TlpClass::kPosted));
  EXPECT_EQ(pick(), FlowClass::kPosted);
  EXPECT_TRUE(queues.starved(kTimeZero, credits));
}

TEST_F(TransmitQueuesTest, PostedPassesABlockedAtomic) {  // A4
  exhaust(FlowClass::kNonPosted);
  queues.push(tlp(TlpClass::kNonPostedData));
  queues.push(tlp(TlpClass::kPosted));
  EXPECT_EQ(pick(), FlowClass::kPosted);
}

TEST_F(TransmitQueuesTest, AReadDoesNotPassABlockedWrite) {  // B2
  exhaust(FlowClass::kPosted);
  queues.push(tlp(TlpClass::kPosted));
  queues.push(tlp(TlpClass::kRead));
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(TransmitQueuesTest, NorDoesARelaxedOne) {  // B2: RO has no meaning there
  exhaust(FlowClass::kPosted);
  queues.push(tlp(TlpClass::kPosted));
  Tlp read = tlp(TlpClass::kRead);
  read.attributes.relaxed_ordering = true;
  queues.push(read);
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(TransmitQueuesTest, AReadOfAnotherFunctionPassesWithIdo) {  // B2
  exhaust(FlowClass::kPosted);
  queues.push(tlp(TlpClass::kPosted));
  Tlp read = tlp(TlpClass::kRead);
  read.attributes.id_based_ordering = true;
  read.attributes.requester = 1;
  queues.push(read);
  EXPECT_EQ(pick(), FlowClass::kNonPosted);
}

TEST_F(TransmitQueuesTest, IdoMustHoldAgainstEveryEarlierWrite) {  // B2
  exhaust(FlowClass::kPosted);
  queues.push(tlp(TlpClass::kPosted));
  Tlp own = tlp(TlpClass::kPosted);
  own.attributes.requester = 1;
  queues.push(own);
  Tlp read = tlp(TlpClass::kRead);
  read.attributes.id_based_ordering = true;
  read.attributes.requester = 1;
  queues.push(read);
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(TransmitQueuesTest, ACompletionDoesNotPassABlockedWrite) {  // D2
  exhaust(FlowClass::kPosted);
  queues.push(tlp(TlpClass::kPosted));
  queues.push(tlp(TlpClass::kCompletion));
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(TransmitQueuesTest, ARelaxedCompletionDoes) {  // D2
  exhaust(FlowClass::kPosted);
  queues.push(tlp(TlpClass::kPosted));
  Tlp completion = tlp(TlpClass::kCompletion);
  completion.attributes.relaxed_ordering = true;
  queues.push(completion);
  EXPECT_EQ(pick(), FlowClass::kCompletion);
}

TEST_F(TransmitQueuesTest, ACompletionPassesBlockedReads) {  // D3
  exhaust(FlowClass::kNonPosted);
  queues.push(tlp(TlpClass::kRead));
  queues.push(tlp(TlpClass::kCompletion));
  EXPECT_EQ(pick(), FlowClass::kCompletion);
}

TEST_F(TransmitQueuesTest, PostedMayPassBlockedCompletions) {  // A5
  exhaust(FlowClass::kCompletion);
  queues.push(tlp(TlpClass::kCompletion));
  queues.push(tlp(TlpClass::kPosted));
  EXPECT_EQ(pick(), FlowClass::kPosted);
}

TEST_F(TransmitQueuesTest, WritesOfOneDeviceStayInOrder) {  // A2
  credits[0] = CreditPool({0, 8});
  credits[0].consume({0, 4});
  queues.push(tlp(TlpClass::kPosted, 128));  // needs 8 units, 4 are there
  queues.push(tlp(TlpClass::kPosted, 64));   // would fit
  EXPECT_EQ(pick(), std::nullopt);
  credits[0].give_back(nanoseconds(3), {0, 4});
  EXPECT_EQ(queues.pick(nanoseconds(3), credits), FlowClass::kPosted);
  EXPECT_EQ(queues.front(FlowClass::kPosted).payload_bytes, 128U);
}

}  // namespace
}  // namespace rnic::pcie
