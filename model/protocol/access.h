// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::protocol {

/// Access rights of a memory region, window or queue pair: or-ed bits with the values of
/// ibv_access_flags (rdma-core, verbs.h). Local reads are always allowed and have no bit.
using AccessFlags = std::uint32_t;

constexpr AccessFlags kAccessLocalRead = 0;
constexpr AccessFlags kAccessLocalWrite = 1U << 0;
constexpr AccessFlags kAccessRemoteWrite = 1U << 1;
constexpr AccessFlags kAccessRemoteRead = 1U << 2;
constexpr AccessFlags kAccessRemoteAtomic = 1U << 3;
constexpr AccessFlags kAccessMwBind = 1U << 4;
constexpr AccessFlags kAccessZeroBased = 1U << 5;
constexpr AccessFlags kAccessOnDemand = 1U << 6;
constexpr AccessFlags kAccessHugetlb = 1U << 7;
constexpr AccessFlags kAccessRelaxedOrdering = 1U << 20;

constexpr AccessFlags kAccessRemoteMask =
    kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;
/// Rights that let the device change the memory: its pages are pinned and mapped for writing.
constexpr AccessFlags kAccessWriteIntent =
    kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteAtomic | kAccessMwBind;
/// Bits 20 to 29 are optional: a device that lacks them ignores them.
constexpr AccessFlags kAccessOptionalMask = 0x3FF0'0000;

/// Whether a region may be registered with these flags: remote writes and atomics need
/// LOCAL_WRITE, unknown bits are refused. Memory windows cannot lie in on-demand regions (mlx5).
constexpr bool registration_flags_valid(AccessFlags flags) {
  constexpr AccessFlags kKnown = kAccessLocalWrite | kAccessRemoteMask | kAccessMwBind |
                                 kAccessZeroBased | kAccessHugetlb | kAccessOnDemand |
                                 kAccessOptionalMask;
  if ((flags & ~kKnown) != 0) return false;
  constexpr AccessFlags kNotTogether = kAccessOnDemand | kAccessMwBind;
  if ((flags & kNotTogether) == kNotTogether) return false;
  const bool needs_local_write = (flags & (kAccessRemoteWrite | kAccessRemoteAtomic)) != 0;
  return !needs_local_write || (flags & kAccessLocalWrite) != 0;
}

}  // namespace rnic::protocol
