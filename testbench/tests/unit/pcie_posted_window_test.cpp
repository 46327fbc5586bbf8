// SPDX-License-Identifier: Apache-2.0
// Credits of bursts against the same rule packet by packet: packet j of a burst of n leaves at
// start + j x wire / n and needs the credits of the packet that came `limit` units before; those of
// packet i come back at returned - (n - 1 - i) x wire / n.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "pcie/posted_window.h"

namespace rnic::testbench {
namespace {

using pcie::CreditUnits;
using pcie::PostedWindow;

/// One kind of credit, unit by unit.
class Reference {
 public:
  explicit Reference(std::uint64_t limit) : limit_(limit) {}

  Time ready(std::uint64_t units, std::uint64_t packets, Time wire) const {
    Time earliest = kTimeZero;
    for (std::uint64_t u = 0; u < units && limit_ > 0; ++u) {
      const std::uint64_t number = returned_.size() + u;
      if (number < limit_) continue;
      earliest = std::max(earliest, returned_[number - limit_] - offset(u, units, packets, wire));
    }
    return earliest;
  }

  void add(Time last, std::uint64_t units, std::uint64_t packets, Time wire) {
    if (!returned_.empty()) last = std::max(last, returned_.back());
    const Time whole = offset(units - 1, units, packets, wire);
    for (std::uint64_t u = 0; u < units; ++u) {
      returned_.push_back(last - whole + offset(u, units, packets, wire));
    }
  }

 private:
  static Time offset(std::uint64_t unit, std::uint64_t units, std::uint64_t packets, Time wire) {
    const auto packet = static_cast<std::int64_t>(unit * packets / units);
    return wire * packet / static_cast<std::int64_t>(packets);
  }

  std::uint64_t limit_;
  std::vector<Time> returned_;  ///< of each unit
};

TEST(PostedWindow, IsTheRuleOfEachPacket) {
  for (const CreditUnits limit : {CreditUnits{40, 0}, CreditUnits{0, 700}, CreditUnits{48, 800},
                                  CreditUnits{17, 2000}, CreditUnits{500, 272}}) {
    PostedWindow window(limit);
    Reference headers(limit.headers);
    Reference data(limit.data);
    Rng rng(7, "posted");
    Time at{0};
    int waited = 0;
    for (int burst = 0; burst < 2000; ++burst) {
      const auto packets = static_cast<std::uint32_t>(1 + rng.below(17));
      const CreditUnits need{packets, packets * 16};
      const Time wire = nanoseconds(16) * packets;
      const Time expected = std::max(
          {at, headers.ready(packets, packets, wire), data.ready(need.data, packets, wire)});
      const Time start = window.ready(at, need, wire);
      ASSERT_EQ(start, expected) << burst << " with " << limit.headers << " and " << limit.data;
      waited += start > at ? 1 : 0;
      // Memory that is sometimes slower than the wire.
      const Time back = start + wire + nanoseconds(static_cast<std::int64_t>(rng.below(2500)));
      window.add(back, need, wire);
      headers.add(back, packets, packets, wire);
      data.add(back, need.data, packets, wire);
      at = start + wire;
    }
    EXPECT_GT(waited, 100);
  }
}

TEST(PostedWindow, InfiniteCreditsNeverWait) {
  PostedWindow window;
  EXPECT_FALSE(window.finite());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(window.ready(nanoseconds(i), {16, 256}, nanoseconds(280)), nanoseconds(i));
    window.add(microseconds(1000), {16, 256}, nanoseconds(280));
  }
}

TEST(PostedWindow, ABurstLargerThanTheBufferTakesAllOfIt) {
  PostedWindow window({4, 0});
  window.add(nanoseconds(500), {16, 256}, nanoseconds(160));
  // Its last packets' credits come back by 500; the first of the next burst needs the first of
  // four.
  EXPECT_GT(window.ready(kTimeZero, {1, 16}, nanoseconds(10)), nanoseconds(300));
  EXPECT_LE(window.ready(kTimeZero, {4, 64}, nanoseconds(10)), nanoseconds(500));
}

}  // namespace
}  // namespace rnic::testbench
