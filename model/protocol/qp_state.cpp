// SPDX-License-Identifier: Apache-2.0
#include "protocol/qp_state.h"

#include <cstddef>

namespace rnic::protocol {
namespace {

using M = QpAttrMask;

/// Attributes of one service for a transition.
struct Attributes {
  std::uint32_t required;
  std::uint32_t optional;
};

struct Transition {
  QpState from;
  QpState to;
  Attributes rc;
  Attributes uc;
  Attributes ud;
};

constexpr std::uint32_t kInitRc = M::kPkeyIndex | M::kPort | M::kAccessFlags;
constexpr std::uint32_t kInitUd = M::kPkeyIndex | M::kPort | M::kQkey;
constexpr std::uint32_t kPath = M::kAv | M::kPathMtu | M::kDestQpn | M::kRqPsn;
constexpr std::uint32_t kMigration = M::kAltPath | M::kPathMigState;
constexpr std::uint32_t kRtsRc = M::kCurState | M::kAccessFlags | M::kMinRnrTimer | kMigration;
constexpr std::uint32_t kRtsUc = M::kCurState | M::kAccessFlags | kMigration;
constexpr std::uint32_t kRtsUd = M::kCurState | M::kQkey;

constexpr Transition kTransitions[] = {
    {QpState::kReset, QpState::kInit, {kInitRc, 0}, {kInitRc, 0}, {kInitUd, 0}},
    {QpState::kInit, QpState::kInit, {0, kInitRc}, {0, kInitRc}, {0, kInitUd}},
    {QpState::kInit,
     QpState::kRtr,
     {kPath | M::kMaxDestRdAtomic | M::kMinRnrTimer, M::kAccessFlags | M::kPkeyIndex | M::kAltPath},
     {kPath, M::kAccessFlags | M::kPkeyIndex | M::kAltPath},
     {0, M::kPkeyIndex | M::kQkey}},
    {QpState::kRtr,
     QpState::kRts,
     {M::kSqPsn | M::kTimeout | M::kRetryCnt | M::kRnrRetry | M::kMaxQpRdAtomic, kRtsRc},
     {M::kSqPsn, kRtsUc},
     {M::kSqPsn, kRtsUd}},
    {QpState::kRts, QpState::kRts, {0, kRtsRc}, {0, kRtsUc}, {0, kRtsUd}},
    {QpState::kRts,
     QpState::kSqd,
     {0, M::kEnSqdAsyncNotify},
     {0, M::kEnSqdAsyncNotify},
     {0, M::kEnSqdAsyncNotify}},
    {QpState::kSqd,
     QpState::kSqd,
     {0, M::kPort | M::kAv | M::kTimeout | M::kRetryCnt | M::kRnrRetry | M::kMaxQpRdAtomic |
             M::kMaxDestRdAtomic | M::kAccessFlags | M::kPkeyIndex | M::kMinRnrTimer | kMigration},
     {0, M::kAv | M::kAccessFlags | M::kPkeyIndex | kMigration},
     {0, M::kPkeyIndex | M::kQkey}},
    {QpState::kSqd, QpState::kRts, {0, kRtsRc}, {0, kRtsUc}, {0, kRtsUd}},
};

/// The send queue error state, which a reliable queue pair never enters.
constexpr Attributes kSqeToRtsUc{0, M::kCurState | M::kAccessFlags};
constexpr Attributes kSqeToRtsUd{0, kRtsUd};

bool fits(const Attributes& attributes, std::uint32_t mask) {
  return (mask & attributes.required) == attributes.required &&
         (mask & ~(attributes.required | attributes.optional | M::kState)) == 0;
}

}  // namespace

bool qp_transition_allowed(QpType type, QpState from, QpState to, std::uint32_t mask) {
  if (to == QpState::kReset) return (mask & ~M::kState) == 0;
  if (to == QpState::kError) return from != QpState::kReset && (mask & ~M::kState) == 0;
  if (from == QpState::kSqe && to == QpState::kRts) {
    if (type == QpType::kRc) return false;
    return fits(type == QpType::kUc ? kSqeToRtsUc : kSqeToRtsUd, mask);
  }
  for (const auto& t : kTransitions) {
    if (t.from != from || t.to != to) continue;
    return fits(type == QpType::kRc ? t.rc : type == QpType::kUc ? t.uc : t.ud, mask);
  }
  return false;
}

const char* qp_state_name(QpState state) {
  static constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace rnic::protocol
