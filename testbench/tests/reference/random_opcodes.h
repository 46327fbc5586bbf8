// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reference/random_program.h"

/// Kinds of opcodes that random programs tell apart, and limits of what they post.
namespace rnic::reference {

inline constexpr std::uint32_t kWord = 8;
inline constexpr std::uint32_t kMostUnsignaled = 12;  // a quarter of the send queue at most
inline constexpr std::uint32_t kMostInBatch = 6;
inline constexpr std::uint32_t kSmallCq = 8;      ///< completions, for Ending::kCqFull
inline constexpr std::uint32_t kHeaderArea = 40;  ///< in front of a datagram in its RECV

inline bool two_sided(WrOpcode opcode) {
  return opcode == WrOpcode::kSend || opcode == WrOpcode::kSendWithImm ||
         opcode == WrOpcode::kSendWithInv || opcode == WrOpcode::kRdmaWriteWithImm;
}

inline bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}

inline bool is_write(WrOpcode opcode) {
  return opcode == WrOpcode::kRdmaWrite || opcode == WrOpcode::kRdmaWriteWithImm;
}

/// The right that the responder's queue pair must grant.
inline AccessFlags right_of(WrOpcode opcode) {
  if (is_write(opcode)) return protocol::kAccessRemoteWrite;
  if (opcode == WrOpcode::kRdmaRead) return protocol::kAccessRemoteRead;
  return is_atomic(opcode) ? protocol::kAccessRemoteAtomic : 0;
}

inline std::uint64_t total(const std::vector<Sge>& sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

inline const std::vector<WrOpcode> kOneSided = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWriteWithImm,
                                                WrOpcode::kRdmaRead, WrOpcode::kAtomicCmpAndSwp,
                                                WrOpcode::kAtomicFetchAndAdd};
inline const std::vector<WrOpcode> kGathering = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWriteWithImm,
                                                 WrOpcode::kSend, WrOpcode::kSendWithImm};
inline const std::vector<WrOpcode> kFetching = {WrOpcode::kRdmaRead, WrOpcode::kAtomicCmpAndSwp,
                                                WrOpcode::kAtomicFetchAndAdd};
inline const std::vector<WrOpcode> kByKey = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWriteWithImm,
                                             WrOpcode::kRdmaRead};
inline const std::vector<WrOpcode> kAtomics = {WrOpcode::kAtomicCmpAndSwp,
                                               WrOpcode::kAtomicFetchAndAdd};
inline const std::vector<WrOpcode> kSends = {WrOpcode::kSend, WrOpcode::kSendWithImm};
inline const std::vector<WrOpcode> kTakingRecvs = {WrOpcode::kSend, WrOpcode::kSendWithImm,
                                                   WrOpcode::kRdmaWriteWithImm};

}  // namespace rnic::reference
