// SPDX-License-Identifier: Apache-2.0
#include "workload/turn_numbers.h"

#include <gtest/gtest.h>

namespace rnic::testbench {
namespace {

using Arrival = TurnNumbers::Arrival;

class TurnNumbersOf : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t bytes() const { return GetParam(); }
  TurnNumbers asker{bytes()};
  TurnNumbers server{bytes()};
};

// 1,000 turns: the numbers of one byte wrap three times.
TEST_P(TurnNumbersOf, EachTurnIsCurrentOnceAndAgainAfterwards) {
  for (std::uint64_t turn = 0; turn < 1000; ++turn) {
    const std::uint32_t number = asker.carried(turn);
    ASSERT_EQ(server.question(number), Arrival::kCurrent) << turn;
    ASSERT_EQ(server.latest(), turn);
    ASSERT_EQ(server.question(number), Arrival::kAgain) << turn;
    ASSERT_EQ(asker.answer(number, turn), Arrival::kCurrent) << turn;
    ASSERT_EQ(asker.answer(number, turn), Arrival::kAgain) << turn;
  }
}

// Of turns 0 to 49 only each seventh question arrives in time, the one before it one turn late.
TEST_P(TurnNumbersOf, WhatIsOvertakenIsLate) {
  for (std::uint64_t turn = 6; turn < 50; turn += 7) {
    ASSERT_EQ(server.question(asker.carried(turn)), Arrival::kCurrent) << turn;
    ASSERT_EQ(server.latest(), turn);
    ASSERT_EQ(server.question(asker.carried(turn - 1)), Arrival::kLate) << turn;
    ASSERT_EQ(server.question(asker.carried(turn - 1)), Arrival::kAgain) << turn;
    ASSERT_EQ(server.latest(), turn);
    ASSERT_EQ(asker.answer(asker.carried(turn - 1), turn), Arrival::kLate) << turn;
    ASSERT_EQ(asker.answer(asker.carried(turn), turn), Arrival::kCurrent) << turn;
  }
}

// Before the first turn there was none: such numbers belong to nothing.
TEST_P(TurnNumbersOf, NumbersOfNoTurnAreNotAnswers) {
  EXPECT_EQ(asker.answer(0, 3), Arrival::kAgain);
  EXPECT_EQ(asker.answer(asker.carried(9), 3), Arrival::kAgain);
  EXPECT_EQ(asker.answer(asker.carried(3), 3), Arrival::kCurrent);
}

INSTANTIATE_TEST_SUITE_P(Bytes, TurnNumbersOf, ::testing::Values(1, 2, 3, 4));

// 150 questions are lost in a row: one byte still tells that the next is new (191 ahead at most).
TEST(TurnNumbers, AGapInShortNumbers) {
  TurnNumbers server(1);
  EXPECT_EQ(server.question(server.carried(0)), Arrival::kCurrent);
  EXPECT_EQ(server.question(server.carried(151)), Arrival::kCurrent);
  EXPECT_EQ(server.latest(), 151U);
}

TEST(TurnNumbers, WithoutNumbersWhateverComesIsCurrent) {
  TurnNumbers numbers;
  EXPECT_EQ(numbers.question(0), Arrival::kCurrent);
  EXPECT_EQ(numbers.latest(), 0U);
  EXPECT_EQ(numbers.question(0), Arrival::kCurrent);
  EXPECT_EQ(numbers.latest(), 1U);
  EXPECT_EQ(numbers.answer(0, 0), Arrival::kCurrent);
  EXPECT_EQ(numbers.answer(0, 1), Arrival::kCurrent);
}

}  // namespace
}  // namespace rnic::testbench
