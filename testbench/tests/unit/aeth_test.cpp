// SPDX-License-Identifier: Apache-2.0
#include "protocol/aeth.h"

#include <gtest/gtest.h>

#include "protocol/psn.h"

namespace rnic::protocol {
namespace {

/// The series behind both code tables: 1, 2, 3, 4, 6, 8, 12 ...; even codes are powers of two,
/// odd ones half as much again. Code c: 2^(c/2), or 3 * 2^((c-3)/2); 0 and 1 are themselves.
std::uint32_t series(unsigned code) {
  if (code <= 1) return code;
  return code % 2 == 0 ? 1U << (code / 2) : 3U << ((code - 3) / 2);
}

TEST(Aeth, CreditCodesFollowTheSeries) {
  for (unsigned code = 0; code < 31; ++code) {
    EXPECT_EQ(credits_of_code(static_cast<std::uint8_t>(code)), series(code)) << code;
  }
  // Spot checks against the table printed in IBTA vol 1, 9.7.7.2.
  EXPECT_EQ(credits_of_code(0x05), 6U);
  EXPECT_EQ(credits_of_code(0x0A), 32U);
  EXPECT_EQ(credits_of_code(0x1B), 12288U);
  EXPECT_EQ(credits_of_code(0x1E), 32768U);
  EXPECT_EQ(credits_of_code(kUnlimitedCreditCode), 0xFFFF'FFFFU);
}

TEST(Aeth, CreditCodeRoundsDown) {
  EXPECT_EQ(credit_code(0), 0x00);
  EXPECT_EQ(credit_code(5), 0x04);  // 4 <= 5 < 6
  EXPECT_EQ(credit_code(6), 0x05);
  EXPECT_EQ(credit_code(127), 0x0D);  // 96 <= 127 < 128
  EXPECT_EQ(credit_code(128), 0x0E);
  EXPECT_EQ(credit_code(1'000'000), 0x1E);  // 0x1F would mean "no limit"
}

TEST(Aeth, RnrTimerIsTenMicrosecondsTimesTheSeries) {
  // The series runs to code 31, and code 0 stands for what would be code 32: 2^16 * 10 us.
  for (unsigned code = 1; code < 32; ++code) {
    EXPECT_EQ(rnr_timer(static_cast<std::uint8_t>(code)), microseconds(10) * series(code)) << code;
  }
  EXPECT_EQ(rnr_timer(0), microseconds(655'360));
  EXPECT_EQ(rnr_timer(1), microseconds(10));
  EXPECT_EQ(rnr_timer(12), microseconds(640));       // 0.64 ms, the usual min_rnr_timer
  EXPECT_EQ(rnr_timer(0x19), microseconds(61'440));  // 61.44 ms
  EXPECT_EQ(rnr_timer(0x1F), microseconds(491'520));
}

TEST(Aeth, AckTimeout) {
  EXPECT_EQ(ack_timeout(0), kTimeNever);
  EXPECT_EQ(ack_timeout(1), nanoseconds(8'192));
  // 4.096 us * 2^14 = 67.108864 ms.
  EXPECT_EQ(ack_timeout(14), nanoseconds(67'108'864));
  // 4.096 us * 2^31 = 8796.093022208 s must not overflow.
  EXPECT_EQ(ack_timeout(31), microseconds(8'796'093'022) + nanoseconds(208));
}

TEST(Aeth, Syndromes) {
  EXPECT_EQ(ack_syndrome(0x1F), 0x1F);
  EXPECT_EQ(rnr_syndrome(12), 0x2C);
  EXPECT_EQ(nak_syndrome(NakCode::kPsnSequence), 0x60);
  EXPECT_EQ(nak_syndrome(NakCode::kInvalidRequest), 0x61);
  EXPECT_EQ(nak_syndrome(NakCode::kRemoteAccess), 0x62);
  EXPECT_EQ(nak_syndrome(NakCode::kRemoteOperational), 0x63);
  EXPECT_EQ(nak_syndrome(NakCode::kInvalidRdRequest), 0x64);
  for (unsigned s = 0; s < 256; ++s) {
    const auto syndrome = static_cast<std::uint8_t>(s);
    const AethKind expected = s < 0x20                ? AethKind::kAck
                              : s < 0x40              ? AethKind::kRnrNak
                              : s >= 0x60 && s < 0x80 ? AethKind::kNak
                                                      : AethKind::kReserved;
    EXPECT_EQ(syndrome_kind(syndrome), expected) << s;
    EXPECT_EQ(syndrome_value(syndrome), s % 32);
  }
}

TEST(Psn, WrapsAt24Bits) {
  EXPECT_EQ(psn_add(0xFF'FFFF, 1), 0U);
  EXPECT_EQ(psn_add(0xFF'FFF0, 0x20), 0x10U);
  EXPECT_EQ(psn_add(5, kPsnMask), 4U);  // adding -1
  EXPECT_EQ(psn_sub(0, 1), 0xFF'FFFFU);
}

TEST(Psn, DistanceIsSigned) {
  EXPECT_EQ(psn_distance(7, 7), 0);
  EXPECT_EQ(psn_distance(8, 7), 1);
  EXPECT_EQ(psn_distance(7, 8), -1);
  EXPECT_EQ(psn_distance(0x00'0002, 0xFF'FFFE), 4);
  EXPECT_EQ(psn_distance(0xFF'FFFE, 0x00'0002), -4);
  EXPECT_EQ(psn_distance(0x7F'FFFF, 0), 0x7F'FFFF);  // newest that is still "newer"
  EXPECT_EQ(psn_distance(0x80'0000, 0), -0x80'0000);
  EXPECT_TRUE(psn_before(0xFF'FFFF, 0));
  EXPECT_FALSE(psn_before(0, 0xFF'FFFF));
}

}  // namespace
}  // namespace rnic::protocol
