// SPDX-License-Identifier: Apache-2.0
// Who may pass whom: rows and columns of PCIe's table of ordering rules, as far as posted writes
// and reads go. All times in ns.
#include "host/write_order.h"

#include <gtest/gtest.h>

namespace rnic::testbench {
namespace {

using host::WriteOrder;

constexpr std::uint64_t kHere = 0x1000;
constexpr std::uint64_t kThere = 0x2000;
constexpr Time at(std::int64_t ns) { return nanoseconds(ns); }

TEST(WriteOrder, AStrictWritePassesNoStrictWrite) {
  WriteOrder order;
  EXPECT_EQ(order.strict(at(300)), at(300));
  EXPECT_EQ(order.strict(at(100)), at(300));
  EXPECT_EQ(order.strict(at(301)), at(301));
}

TEST(WriteOrder, AStrictWritePassesNoRelaxedWrite) {
  WriteOrder order;
  order.relaxed(at(0), at(300), kHere, 64);
  EXPECT_EQ(order.strict(at(100)), at(300));
}

TEST(WriteOrder, ARelaxedWritePassesAll) {
  WriteOrder order;
  order.strict(at(500));
  order.relaxed(at(0), at(400), kHere, 64);
  EXPECT_EQ(order.relaxed(at(0), at(100), kThere, 64), at(100));
}

TEST(WriteOrder, ARelaxedWriteStaysBehindOneToTheSameBytes) {
  WriteOrder order;
  order.relaxed(at(0), at(400), kHere, 64);
  EXPECT_EQ(order.relaxed(at(0), at(100), kHere + 63, 1), at(400)) << "one byte is enough";
  EXPECT_EQ(order.relaxed(at(0), at(100), kHere + 64, 1), at(100));
  EXPECT_EQ(order.relaxed(at(0), at(500), kHere, 64), at(500));
}

TEST(WriteOrder, AReadPushesStrictWritesToAnyPlace) {
  WriteOrder order;
  order.strict(at(300));
  EXPECT_EQ(order.read(at(100), kThere, 8), at(300));
}

TEST(WriteOrder, AReadPassesRelaxedWritesToOtherPlaces) {
  WriteOrder order;
  order.relaxed(at(0), at(300), kHere, 64);
  EXPECT_EQ(order.read(at(100), kThere, 8), at(100));
  EXPECT_EQ(order.read(at(100), kHere - 8, 8), at(100)) << "ends where the write begins";
  EXPECT_EQ(order.read(at(100), kHere + 64, 8), at(100)) << "begins where it ends";
}

TEST(WriteOrder, AReadFindsWhatWasWrittenBeforeIt) {
  WriteOrder order;
  order.relaxed(at(0), at(300), kHere, 64);
  order.relaxed(at(0), at(200), kHere + 64, 64);
  EXPECT_EQ(order.read(at(100), kHere - 8, 9), at(300)) << "one byte is enough";
  EXPECT_EQ(order.read(at(100), kHere + 63, 2), at(300)) << "the later of two";
  EXPECT_EQ(order.read(at(100), kHere + 64, 1), at(200));
}

TEST(WriteOrder, AReadIsNoWrite) {
  WriteOrder order;
  order.read(at(900), kHere, 8);
  EXPECT_EQ(order.strict(at(100)), at(100));
}

TEST(WriteOrder, SettledIsTheLastOfBothKinds) {
  WriteOrder order;
  EXPECT_EQ(order.settled(), at(0));
  order.strict(at(200));
  order.relaxed(at(0), at(150), kHere, 64);
  EXPECT_EQ(order.settled(), at(200));
  order.relaxed(at(0), at(350), kHere, 64);
  EXPECT_EQ(order.settled(), at(350));
}

TEST(WriteOrder, WhatIsVisibleIsForgotten) {
  WriteOrder order;
  order.relaxed(at(0), at(300), kHere, 64);
  order.relaxed(at(300), at(400), kThere, 64);  // by now the first is visible
  EXPECT_EQ(order.read(at(100), kHere, 8), at(100)) << "a time that nobody can ask for any more";
  EXPECT_EQ(order.read(at(350), kThere, 8), at(400));
}

}  // namespace
}  // namespace rnic::testbench
