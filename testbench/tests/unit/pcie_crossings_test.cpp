// SPDX-License-Identifier: Apache-2.0
// What crosses a wire within a window, though it was handed over before it or ends behind it.
#include <gtest/gtest.h>

#include "pcie/crossings.h"

namespace rnic::testbench {
namespace {

using tlm_ext::Purpose;

/// 4 KiB as 16 packets of 256 + 24 B, 35 ns each: 560 ns a burst.
constexpr protocol::TlpCount kBurst{16, 4096, 4480};

class Crossings : public ::testing::Test {
 protected:
  void add(std::int64_t start, std::int64_t end, const protocol::TlpCount& tlps,
           Purpose purpose = Purpose::kPayload) {
    crossings_.add({nanoseconds(start), nanoseconds(end)}, tlps, purpose);
  }
  pcie::TlpCounter by(std::int64_t now, Purpose purpose = Purpose::kPayload) const {
    return crossings_.by(nanoseconds(now))[static_cast<std::size_t>(purpose)];
  }
  pcie::Crossings crossings_;
};

TEST_F(Crossings, OfBurstsHandedOverTogetherThoseThatHaveBegun) {
  for (int i = 0; i < 100; ++i) add(i * 560, (i + 1) * 560, kBurst);
  EXPECT_EQ(by(0).tlps, 0U);
  EXPECT_EQ(by(5600).tlps, 160U);
  EXPECT_EQ(by(5600).payload_bytes, 40'960U);
  EXPECT_EQ(by(5600).wire_bytes, 44'800U);
  EXPECT_EQ(by(56'000).tlps, 1600U);
  EXPECT_EQ(pcie::sum(crossings_.handed_over()).tlps, 1600U) << "whatever the time";
}

// A packet belongs to the window in which it begins.
TEST_F(Crossings, ThePacketOnTheWireHasBegun) {
  add(0, 560, kBurst);
  EXPECT_EQ(by(35).tlps, 1U);
  EXPECT_EQ(by(36).tlps, 2U);
  EXPECT_EQ(by(70).tlps, 2U);
  EXPECT_EQ(by(559).tlps, 16U);
}

TEST_F(Crossings, AWindowHasWhatWasHandedOverForIt) {
  add(0, 560, kBurst);
  add(560, 1120, kBurst);
  // At 300 ns the ninth packet is on the wire (280 to 315): 7 and 16 are to come.
  crossings_.reset(nanoseconds(300));
  EXPECT_EQ(by(300).tlps, 0U);
  EXPECT_EQ(by(316).tlps, 1U);
  EXPECT_EQ(by(560).tlps, 7U);
  EXPECT_EQ(by(1120).tlps, 23U);
  EXPECT_EQ(by(1120).payload_bytes, 23U * 256);
  crossings_.reset(nanoseconds(1200));
  EXPECT_EQ(by(1200).tlps, 0U);
}

TEST_F(Crossings, PurposesAreApart) {
  add(0, 560, kBurst);
  add(560, 571, {1, 64, 88}, Purpose::kCqe);
  EXPECT_EQ(by(560, Purpose::kCqe).tlps, 0U);
  EXPECT_EQ(by(561, Purpose::kCqe).tlps, 1U);
  EXPECT_EQ(by(561).tlps, 16U);
  EXPECT_EQ(pcie::sum(crossings_.by(nanoseconds(561))).wire_bytes, 4480U + 88U);
}

// What asks for sooner fills a gap in front of what was reserved.
TEST_F(Crossings, SlotsMayComeInAnyOrder) {
  add(1000, 1560, kBurst);
  add(0, 560, kBurst);
  EXPECT_EQ(by(600).tlps, 16U);
  crossings_.reset(nanoseconds(600));
  EXPECT_EQ(by(1000).tlps, 0U);
  EXPECT_EQ(by(1560).tlps, 16U);
}

}  // namespace
}  // namespace rnic::testbench
