// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/keep_alive.h"

#include <gtest/gtest.h>

namespace rnic::transport {
namespace {

constexpr Time kQuiet = microseconds(100);
constexpr Time kInterval = microseconds(10);

// Probes at 100, 110 and 120 us of silence; at 130 us the peer is given up.
TEST(KeepAlive, ProbesAtIntervalsAndGivesUp) {
  KeepAlive peer(kQuiet, kInterval, 3);
  const Time start = microseconds(7);
  peer.heard(start);
  for (int probe = 0; probe < 3; ++probe) {
    EXPECT_EQ(peer.deadline(), start + kQuiet + kInterval * probe);
    EXPECT_FALSE(peer.due());
    EXPECT_TRUE(peer.expire());
    EXPECT_TRUE(peer.due());
    peer.take();
  }
  EXPECT_EQ(peer.deadline(), start + kQuiet + kInterval * 3);
  EXPECT_FALSE(peer.expire());
}

TEST(KeepAlive, AnythingHeardBeginsAnew) {
  KeepAlive peer(kQuiet, kInterval, 1);
  peer.heard(kTimeZero);
  EXPECT_TRUE(peer.expire());
  peer.heard(microseconds(105));
  EXPECT_FALSE(peer.due());  // the probe need not leave any more
  EXPECT_EQ(peer.deadline(), microseconds(205));
  EXPECT_TRUE(peer.expire());
}

TEST(KeepAlive, ZeroNeverAsks) {
  KeepAlive peer(kTimeZero, kInterval, 3);
  peer.heard(microseconds(5));
  EXPECT_EQ(peer.deadline(), kTimeNever);
}

}  // namespace
}  // namespace rnic::transport
