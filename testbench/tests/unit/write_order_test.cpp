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

/// Arrives 100 ns after the call, at 0 ns, as do all others unless told.
WriteOrder::Request request(Time instant, std::uint64_t address = kHere, std::uint32_t bytes = 64) {
  return {at(0), at(100), instant, address, bytes};
}

WriteOrder::Request arriving(Time arrival, Time instant, std::uint64_t address = kHere) {
  return {at(0), arrival, instant, address, 64};
}

TEST(WriteOrder, AStrictWritePassesNoStrictWrite) {
  WriteOrder order;
  EXPECT_EQ(order.strict(request(at(300))), at(300));
  EXPECT_EQ(order.strict(request(at(100))), at(300));
  EXPECT_EQ(order.strict(request(at(301))), at(301));
}

TEST(WriteOrder, AStrictWritePassesNoRelaxedWrite) {
  WriteOrder order;
  order.relaxed(request(at(300)));
  EXPECT_EQ(order.strict(request(at(100))), at(300));
}

TEST(WriteOrder, WritesKeepTheOrderOfTheCallsWhateverArrivesFirst) {
  WriteOrder order;
  order.strict(arriving(at(200), at(260)));
  EXPECT_EQ(order.strict(arriving(at(100), at(160))), at(260));
  order.relaxed(arriving(at(300), at(360), kThere));
  EXPECT_EQ(order.strict(arriving(at(100), at(160))), at(360));
}

TEST(WriteOrder, ARelaxedWritePassesAll) {
  WriteOrder order;
  order.strict(request(at(500)));
  order.relaxed(request(at(400)));
  EXPECT_EQ(order.relaxed(request(at(100), kThere)), at(100));
}

TEST(WriteOrder, ARelaxedWriteStaysBehindOneToTheSameBytes) {
  WriteOrder order;
  order.relaxed(request(at(400)));
  EXPECT_EQ(order.relaxed(request(at(100), kHere + 63, 1)), at(400)) << "one byte is enough";
  EXPECT_EQ(order.relaxed(request(at(100), kHere + 64, 1)), at(100));
  EXPECT_EQ(order.relaxed(request(at(500))), at(500));
}

TEST(WriteOrder, AReadPushesStrictWritesToAnyPlace) {
  WriteOrder order;
  order.strict(request(at(300)));
  EXPECT_EQ(order.read(request(at(100), kThere, 8)), at(300));
}

/// A CQE is handed over when its payload is, and arrives behind it; a RECV's fetch that is handed
/// over next arrives first.
TEST(WriteOrder, AReadDoesNotWaitForAStrictWriteThatArrivesBehindIt) {
  WriteOrder order;
  order.strict(arriving(at(100), at(160)));
  order.strict(arriving(at(300), at(360)));
  order.strict(arriving(at(200), at(260)));  // visible at 360, too: in order
  EXPECT_EQ(order.read(arriving(at(99), at(110), kThere)), at(110));
  EXPECT_EQ(order.read(arriving(at(100), at(110), kThere)), at(160)) << "of equals, in order";
  EXPECT_EQ(order.read(arriving(at(199), at(209), kThere)), at(209)) << "visible by then";
  EXPECT_EQ(order.read(arriving(at(200), at(210), kThere)), at(360));
  EXPECT_EQ(order.read(arriving(at(99), at(110), kHere + 63)), at(360)) << "the same bytes";
}

TEST(WriteOrder, WhatHasArrivedStillHoldsUpReads) {
  WriteOrder order;
  order.strict({at(0), at(100), at(500), kHere, 64});
  order.strict({at(150), at(900), at(950), kHere, 64});  // by now the first has arrived
  EXPECT_EQ(order.read({at(150), at(200), at(300), kThere, 8}), at(500));
}

TEST(WriteOrder, AReadPassesRelaxedWritesToOtherPlaces) {
  WriteOrder order;
  order.relaxed(request(at(300)));
  EXPECT_EQ(order.read(request(at(100), kThere, 8)), at(100));
  EXPECT_EQ(order.read(request(at(100), kHere - 8, 8)), at(100)) << "ends where the write begins";
  EXPECT_EQ(order.read(request(at(100), kHere + 64, 8)), at(100)) << "begins where it ends";
}

TEST(WriteOrder, AReadFindsWhatWasWrittenBeforeIt) {
  WriteOrder order;
  order.relaxed(request(at(300)));
  order.relaxed(request(at(200), kHere + 64));
  EXPECT_EQ(order.read(request(at(100), kHere - 8, 9)), at(300)) << "one byte is enough";
  EXPECT_EQ(order.read(request(at(100), kHere + 63, 2)), at(300)) << "the later of two";
  EXPECT_EQ(order.read(request(at(100), kHere + 64, 1)), at(200));
}

TEST(WriteOrder, AReadIsNoWrite) {
  WriteOrder order;
  order.read(request(at(900), kHere, 8));
  EXPECT_EQ(order.strict(request(at(100))), at(100));
}

TEST(WriteOrder, SettledIsTheLastOfBothKinds) {
  WriteOrder order;
  EXPECT_EQ(order.settled(), at(0));
  order.strict(request(at(200)));
  order.relaxed(request(at(150)));
  EXPECT_EQ(order.settled(), at(200));
  order.relaxed(request(at(350)));
  EXPECT_EQ(order.settled(), at(350));
}

TEST(WriteOrder, WhatIsVisibleIsForgotten) {
  WriteOrder order;
  order.relaxed(request(at(300)));
  order.relaxed({at(300), at(310), at(400), kThere, 64});  // by now the first is visible
  EXPECT_EQ(order.read(request(at(100), kHere, 8)), at(100))
      << "a time that nobody can ask for any more";
  EXPECT_EQ(order.read(request(at(350), kThere, 8)), at(400));
}

}  // namespace
}  // namespace rnic::testbench
