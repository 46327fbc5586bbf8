// SPDX-License-Identifier: Apache-2.0
#include "stats/unit_stats.h"

#include <gtest/gtest.h>

namespace rnic::testbench {
namespace {

using stats::UnitStats;

/// Ten requests of 10 ns that all come at zero keep the unit busy from 0 to 100 ns.
UnitStats piled_up() {
  UnitStats unit("unit");
  for (int i = 0; i < 10; ++i) unit.add_busy(nanoseconds(10 * i), nanoseconds(10 * (i + 1)));
  return unit;
}

TEST(UnitStats, WhatIsReservedBeyondTheWindowIsNotInIt) {
  const UnitStats unit = piled_up();
  EXPECT_EQ(unit.busy(), nanoseconds(100));
  EXPECT_EQ(unit.busy_in_window(nanoseconds(30)), nanoseconds(30));
  EXPECT_EQ(unit.busy_in_window(nanoseconds(200)), nanoseconds(100));
}

TEST(UnitStats, WhatWasReservedForTheWindowBeforeItBeganIs) {
  UnitStats unit = piled_up();
  unit.reset(nanoseconds(40));
  EXPECT_EQ(unit.busy(), kTimeZero);
  EXPECT_EQ(unit.busy_in_window(nanoseconds(90)), nanoseconds(50));
  EXPECT_EQ(unit.busy_in_window(nanoseconds(140)), nanoseconds(60));
  // After a gap, and in front of it: 20 more.
  unit.add_busy(nanoseconds(200), nanoseconds(210));
  unit.add_busy(nanoseconds(150), nanoseconds(160));
  EXPECT_EQ(unit.busy_in_window(nanoseconds(300)), nanoseconds(80));
}

TEST(UnitStats, AReservationAheadIsNoBusyTimeYet) {
  UnitStats unit("unit");
  unit.add_busy(nanoseconds(50), nanoseconds(60));
  EXPECT_EQ(unit.busy_in_window(nanoseconds(20)), kTimeZero);
  EXPECT_EQ(unit.busy_in_window(nanoseconds(55)), nanoseconds(5));
}

}  // namespace
}  // namespace rnic::testbench
