// SPDX-License-Identifier: Apache-2.0
#include "base/rate_server.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "nic/stage.h"

namespace rnic::testbench {
namespace {

TEST(Server, StartsWhenAskedOrWhenFree) {
  Server server;
  const Reservation first = server.reserve(nanoseconds(10), nanoseconds(5));
  const Reservation second = server.reserve(nanoseconds(12), nanoseconds(5));  // waits until 15
  const Reservation third = server.reserve(nanoseconds(30), nanoseconds(1));   // idle from 20
  EXPECT_EQ(first.start, nanoseconds(10));
  EXPECT_EQ(second.start, nanoseconds(15));
  EXPECT_EQ(second.end, nanoseconds(20));
  EXPECT_EQ(third.start, nanoseconds(30));
  EXPECT_EQ(server.free_at(), nanoseconds(31));
  EXPECT_EQ(server.busy(), nanoseconds(11));
  EXPECT_EQ(server.served(), 3U);
  server.reset_statistics();
  EXPECT_EQ(server.busy(), kTimeZero);
  EXPECT_EQ(server.free_at(), nanoseconds(31));  // the work itself is not forgotten
}

TEST(BitRate, TimesAreExactAndRoundUp) {
  EXPECT_EQ(BitRate::gbps(100).time_for(1), picoseconds(80));
  EXPECT_EQ(BitRate::gbps(100).time_for(4096), picoseconds(327'680));
  EXPECT_EQ(BitRate::gbps(8).time_for(1), picoseconds(1000));
  // 8 / 3 Gbit/s: 3000 ps a byte; 56 Gbit/s: 1000 / 7 = 142.857 ps a byte, 7 bytes are 1000 ps
  // up to the last bit of the fixed-point rate, 1 byte rounds up to 143.
  EXPECT_EQ(BitRate::gbps(56).time_for(1), picoseconds(143));
  EXPECT_EQ(BitRate::gbps(56).time_for(7), picoseconds(1000));
  EXPECT_EQ(BitRate::gbps(56).time_for(0), kTimeZero);
  // 1 GiB at 400 Gbit/s, 20 ps a byte: beyond 32 bits of picoseconds.
  EXPECT_EQ(BitRate::gbps(400).time_for(1ULL << 30), picoseconds(20LL << 30));
}

TEST(RateServer, BackToBackTransfers) {
  RateServer wire(BitRate::gbps(8));  // 1 ns a byte
  EXPECT_EQ(wire.reserve(nanoseconds(0), 100).end, nanoseconds(100));
  EXPECT_EQ(wire.reserve(nanoseconds(50), 100).end, nanoseconds(200));
  EXPECT_EQ(wire.server().busy(), nanoseconds(200));
}

TEST(PipelineServer, LaterRequestsDoNotKeepOutSoonerOnes) {
  PipelineServer server;
  const Time four = nanoseconds(4);
  EXPECT_EQ(server.reserve(nanoseconds(100), four).start, nanoseconds(100));
  // The gap before it takes what fits, in the order of the calls.
  EXPECT_EQ(server.reserve(nanoseconds(20), four).start, nanoseconds(20));
  EXPECT_EQ(server.reserve(nanoseconds(20), four).start, nanoseconds(24));
  // Three of the four nanoseconds before the reservation at 100, the last one behind it: 104 to
  // 105.
  EXPECT_EQ(server.start_of(nanoseconds(97), four), nanoseconds(101));
  EXPECT_EQ(server.start_of(nanoseconds(96), four), nanoseconds(96));
  EXPECT_EQ(server.reserve(nanoseconds(30), four).start, nanoseconds(30));
  EXPECT_EQ(server.reserve(nanoseconds(96), four).start, nanoseconds(96));
  EXPECT_EQ(server.reserve(nanoseconds(97), four).start, nanoseconds(104));
  // Back to back: no gap, the unit is as busy as a Server.
  EXPECT_EQ(server.reserve(nanoseconds(108), four).start, nanoseconds(108));
  EXPECT_EQ(server.reserve_last(four).start, nanoseconds(112));
}

TEST(PipelineServer, ShortRequestsDoNotPassLongOnesThatAskedForTheSameTime) {
  PipelineServer server;
  EXPECT_EQ(server.reserve(nanoseconds(100), nanoseconds(10)).start, nanoseconds(100));
  // 50 of 80 ns up to 100, the other 30 from 110 to 140.
  const Reservation split = server.reserve(nanoseconds(50), nanoseconds(80));
  EXPECT_EQ(split.start, nanoseconds(60));
  EXPECT_EQ(split.end, nanoseconds(140));
  EXPECT_EQ(server.start_of(nanoseconds(50), nanoseconds(10)), nanoseconds(140));
  EXPECT_EQ(server.reserve(nanoseconds(50), nanoseconds(10)).start, nanoseconds(140));
  EXPECT_EQ(server.reserve(nanoseconds(10), nanoseconds(10)).start, nanoseconds(10));
}

TEST(PipelineServer, NothingOfACapacityIsLostBetweenReservationsAhead) {
  // One stream reserves 4 ns of every 10 for 33 ns later, the other one asks for what is left, in
  // pieces of 4 ns that do not fit between: 6 ns of 10 are 150 pieces in 1,000 ns.
  PipelineServer server;
  const Time four = nanoseconds(4);
  int pieces = 0;
  for (int now = 0; now < 1000; now += 10) {
    server.reserve(nanoseconds(now + 33), four);
    while (server.start_of(nanoseconds(now), four) < nanoseconds(now + 10)) {
      server.reserve(nanoseconds(now), four);
      ++pieces;
    }
  }
  EXPECT_GE(pieces, 148);  // less two at the ends
  EXPECT_LE(pieces, 154);
}

TEST(PipelineServer, KeepsSeveralGaps) {
  // A stream that comes 200 ns ahead every 20 ns, and one without lead: both find room at once.
  PipelineServer server;
  const Time four = nanoseconds(4);
  for (int i = 0; i < 50; ++i) {
    const Time now = nanoseconds(20 * i);
    const Time ahead = server.reserve(now + nanoseconds(100), four).start;
    EXPECT_EQ(ahead, now + nanoseconds(100));
    const Time straight = server.reserve(now + nanoseconds(7), four).start;
    EXPECT_EQ(straight, now + nanoseconds(7)) << i;
  }
}

TEST(PipelineStage, LatencyAndInitiationInterval) {
  const nic::Clock clock(500e6);  // 2 ns
  nic::PipelineStage stage("stage", config::StageConfig{10, 3}, clock);
  EXPECT_EQ(stage.pass(nanoseconds(0)), nanoseconds(20));
  EXPECT_EQ(stage.pass(nanoseconds(0)), nanoseconds(26));  // starts 3 cycles later
  EXPECT_EQ(stage.pass(nanoseconds(11)), nanoseconds(32));
  EXPECT_EQ(stage.pass(nanoseconds(100)), nanoseconds(120));
  EXPECT_EQ(stage.stats().busy(), nanoseconds(24));
}

TEST(Clock, NextEdge) {
  const nic::Clock clock(1e9 / 3);  // 3 ns
  EXPECT_EQ(clock.period(), nanoseconds(3));
  EXPECT_EQ(clock.next_edge(nanoseconds(0)), nanoseconds(0));
  EXPECT_EQ(clock.next_edge(picoseconds(1)), nanoseconds(3));
  EXPECT_EQ(clock.next_edge(nanoseconds(3)), nanoseconds(3));
  EXPECT_EQ(clock.next_edge(picoseconds(3001)), nanoseconds(6));
}

}  // namespace
}  // namespace rnic::testbench
