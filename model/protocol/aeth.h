// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

/// Contents of the AETH syndrome and the time tables behind its codes (IBTA vol 1, 9.7.5.2).
namespace rnic::protocol {

/// Bits 7:5 of a syndrome.
enum class AethKind : std::uint8_t {
  kAck = 0,
  kRnrNak = 1,
  kReserved = 2,  ///< 2 and 4-7: a requester ignores them
  kNak = 3,
};

/// Bits 4:0 of a NAK.
enum class NakCode : std::uint8_t {
  kPsnSequence = 0,
  kInvalidRequest = 1,
  kRemoteAccess = 2,
  kRemoteOperational = 3,
  kInvalidRdRequest = 4,
};

/// Credit code that says "no limit"; what RoCE devices send.
inline constexpr std::uint8_t kUnlimitedCreditCode = 0x1F;
inline constexpr std::uint8_t kAckUnlimitedCredit = kUnlimitedCreditCode;

constexpr AethKind syndrome_kind(std::uint8_t syndrome) {
  switch (syndrome >> 5) {
    case 0:
      return AethKind::kAck;
    case 1:
      return AethKind::kRnrNak;
    case 3:
      return AethKind::kNak;
    default:
      return AethKind::kReserved;
  }
}
constexpr std::uint8_t syndrome_value(std::uint8_t syndrome) { return syndrome & 0x1F; }

constexpr std::uint8_t ack_syndrome(std::uint8_t credit_code) { return credit_code & 0x1F; }
constexpr std::uint8_t rnr_syndrome(std::uint8_t timer_code) {
  return static_cast<std::uint8_t>(0x20 | (timer_code & 0x1F));
}
constexpr std::uint8_t nak_syndrome(NakCode code) {
  return static_cast<std::uint8_t>(0x60 | static_cast<unsigned>(code));
}

/// Receive work requests that a credit code stands for; code 0x1F (no limit) gives 2^32 - 1.
std::uint32_t credits_of_code(std::uint8_t code);
/// Largest code whose value does not exceed `posted` receive work requests.
std::uint8_t credit_code(std::uint32_t posted);

/// Least wait that an RNR NAK timer code (0-31) asks for; code 0 is the longest.
Time rnr_timer(std::uint8_t code);

/// Local ACK timeout, 4.096 us * 2^exponent (exponent 0-31); 0 means no timer: kTimeNever.
constexpr Time ack_timeout(std::uint32_t exponent) {
  return exponent == 0 ? kTimeNever : Time{4'096'000LL << (exponent & 31U)};
}

}  // namespace rnic::protocol
