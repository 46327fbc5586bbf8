// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pcie/credits.h"

namespace rnic::pcie {
namespace {

TEST(PcieCredits, UnitsArePacketsAnd16Bytes) {
  EXPECT_EQ(credit_units(1, 0).data, 0U);
  EXPECT_EQ(credit_units(1, 1).data, 1U);
  EXPECT_EQ(credit_units(1, 16).data, 1U);
  EXPECT_EQ(credit_units(3, 17).data, 2U);
  EXPECT_EQ(credit_units(3, 17).headers, 3U);
}

TEST(PcieCredits, WithoutALimitNothingIsCounted) {
  CreditPool pool;
  EXPECT_FALSE(pool.finite());
  EXPECT_TRUE(pool.available(kTimeZero, {1000, 100'000}));
  pool.give_back(nanoseconds(1), {5, 5});
  EXPECT_EQ(pool.next_update(), kTimeNever);
}

TEST(PcieCredits, HeadersRunOutAndComeBack) {
  CreditPool pool({2, 0});
  pool.consume({1, 16});
  pool.consume({1, 16});
  EXPECT_FALSE(pool.available(kTimeZero, {1, 16}));
  EXPECT_EQ(pool.ready(kTimeZero, {1, 16}), kTimeNever);  // nobody has freed anything yet
  pool.give_back(nanoseconds(70), {1, 16});
  EXPECT_FALSE(pool.available(nanoseconds(69), {1, 16}));
  EXPECT_TRUE(pool.available(nanoseconds(70), {1, 16}));
}

TEST(PcieCredits, DataRunOutAlone) {
  CreditPool pool({100, 32});
  pool.consume({1, 20});
  EXPECT_TRUE(pool.available(kTimeZero, {1, 12}));
  EXPECT_FALSE(pool.available(kTimeZero, {1, 13}));
}

TEST(PcieCredits, ReadyWaitsForAsManyUpdatesAsItTakes) {
  CreditPool pool({4, 0});
  pool.consume({4, 0});
  for (int i = 1; i <= 4; ++i) pool.give_back(nanoseconds(10 * i), {1, 0});
  EXPECT_EQ(pool.ready(nanoseconds(5), {3, 0}), nanoseconds(30));
  pool.consume({3, 0});
  EXPECT_EQ(pool.ready(nanoseconds(50), {1, 0}), nanoseconds(50));
}

TEST(PcieCredits, UpdatesStayInOrder) {
  CreditPool pool({2, 0});
  pool.consume({2, 0});
  pool.give_back(nanoseconds(100), {1, 0});
  pool.give_back(nanoseconds(40), {1, 0});  // freed earlier, reported behind the other
  EXPECT_EQ(pool.next_update(), nanoseconds(100));
  EXPECT_EQ(pool.ready(kTimeZero, {2, 0}), nanoseconds(100));
}

TEST(PcieCredits, APacketLargerThanTheBufferTakesAllOfIt) {
  CreditPool pool({0, 8});
  EXPECT_TRUE(pool.available(kTimeZero, {1, 16}));
  pool.consume({1, 16});
  EXPECT_FALSE(pool.available(kTimeZero, {1, 1}));
  pool.give_back(nanoseconds(1), {1, 16});
  EXPECT_TRUE(pool.available(nanoseconds(1), {1, 8}));
}

}  // namespace
}  // namespace rnic::pcie
