// SPDX-License-Identifier: Apache-2.0
#include "protocol/qp_state.h"

namespace rnic::protocol {
namespace {

using M = QpAttrMask;

struct Transition {
  QpState from;
  QpState to;
  std::uint32_t required;
  std::uint32_t optional;
};

constexpr std::uint32_t kRtsOptional = M::kCurState | M::kAccessFlags | M::kMinRnrTimer;

constexpr Transition kRcTransitions[] = {
    {QpState::kReset, QpState::kInit, M::kPkeyIndex | M::kPort | M::kAccessFlags, 0},
    {QpState::kInit, QpState::kInit, 0, M::kPkeyIndex | M::kPort | M::kAccessFlags},
    {QpState::kInit, QpState::kRtr,
     M::kAv | M::kPathMtu | M::kDestQpn | M::kRqPsn | M::kMaxDestRdAtomic | M::kMinRnrTimer,
     M::kAccessFlags | M::kPkeyIndex},
    {QpState::kRtr, QpState::kRts,
     M::kSqPsn | M::kTimeout | M::kRetryCnt | M::kRnrRetry | M::kMaxQpRdAtomic, kRtsOptional},
    {QpState::kRts, QpState::kRts, 0, kRtsOptional},
    {QpState::kRts, QpState::kSqd, 0, 0},
    {QpState::kSqd, QpState::kSqd, 0,
     M::kPort | M::kAv | M::kTimeout | M::kRetryCnt | M::kRnrRetry | M::kMaxQpRdAtomic |
         M::kMaxDestRdAtomic | M::kAccessFlags | M::kPkeyIndex | M::kMinRnrTimer},
    {QpState::kSqd, QpState::kRts, 0, kRtsOptional},
};

}  // namespace

bool rc_transition_allowed(QpState from, QpState to, std::uint32_t mask) {
  if (to == QpState::kReset) return (mask & ~M::kState) == 0;
  if (to == QpState::kError) return from != QpState::kReset && (mask & ~M::kState) == 0;
  for (const auto& t : kRcTransitions) {
    if (t.from != from || t.to != to) continue;
    return (mask & t.required) == t.required &&
           (mask & ~(t.required | t.optional | M::kState)) == 0;
  }
  return false;
}

const char* qp_state_name(QpState state) {
  static constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[static_cast<unsigned>(state)];
}

}  // namespace rnic::protocol
