// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::protocol {

/// Queue pair states, numbered as ibv_qp_state (IBTA vol 1, 10.3.1).
enum class QpState : std::uint8_t {
  kReset = 0,
  kInit = 1,
  kRtr = 2,
  kRts = 3,
  kSqd = 4,
  kSqe = 5,
  kError = 6,
};

/// Transport services, numbered as ibv_qp_type.
enum class QpType : std::uint8_t { kRc = 2, kUc = 3, kUd = 4 };

/// States of path migration, numbered as ibv_mig_state (IBTA vol 1, 17.2.8).
enum class PathMigration : std::uint8_t {
  kMigrated = 0,  ///< on the path that it uses now; there is no other to go to
  kRearm = 1,     ///< a new alternate path is loaded; waits for the peer's consent
  kArmed = 2,     ///< goes over to the alternate path when the first one fails
};

/// Bits of ibv_modify_qp's attribute mask (rdma-core verbs.h).
struct QpAttrMask {
  static constexpr std::uint32_t kState = 1U << 0;
  static constexpr std::uint32_t kCurState = 1U << 1;
  static constexpr std::uint32_t kEnSqdAsyncNotify = 1U << 2;
  static constexpr std::uint32_t kAccessFlags = 1U << 3;
  static constexpr std::uint32_t kPkeyIndex = 1U << 4;
  static constexpr std::uint32_t kPort = 1U << 5;
  static constexpr std::uint32_t kQkey = 1U << 6;
  static constexpr std::uint32_t kAv = 1U << 7;
  static constexpr std::uint32_t kPathMtu = 1U << 8;
  static constexpr std::uint32_t kTimeout = 1U << 9;
  static constexpr std::uint32_t kRetryCnt = 1U << 10;
  static constexpr std::uint32_t kRnrRetry = 1U << 11;
  static constexpr std::uint32_t kRqPsn = 1U << 12;
  static constexpr std::uint32_t kMaxQpRdAtomic = 1U << 13;
  static constexpr std::uint32_t kAltPath = 1U << 14;
  static constexpr std::uint32_t kMinRnrTimer = 1U << 15;
  static constexpr std::uint32_t kSqPsn = 1U << 16;
  static constexpr std::uint32_t kMaxDestRdAtomic = 1U << 17;
  static constexpr std::uint32_t kPathMigState = 1U << 18;
  static constexpr std::uint32_t kDestQpn = 1U << 20;
};

/// Whether a queue pair of `type` may go from `from` to `to` with the attributes in `mask`: every
/// required bit present and none outside required and optional (IBTA vol 1, 10.3; Linux
/// ib_modify_qp_is_ok).
bool qp_transition_allowed(QpType type, QpState from, QpState to, std::uint32_t mask);

const char* qp_state_name(QpState state);

}  // namespace rnic::protocol
