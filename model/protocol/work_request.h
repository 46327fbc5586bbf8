// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::protocol {

/// Operations of a send queue, as the WQE's opcode byte carries them (mlx5 numbering,
/// providers/mlx5 of rdma-core).
enum class WqeOpcode : std::uint8_t {
  kNop = 0x00,
  kSendInval = 0x01,
  kWrite = 0x08,
  kWriteImm = 0x09,
  kSend = 0x0A,
  kSendImm = 0x0B,
  kRead = 0x10,
  kAtomicCas = 0x11,
  kAtomicFadd = 0x12,
  kBindMw = 0x18,
  kLocalInval = 0x1B,
  kFastReg = 0x25,
};

/// Scatter/gather element: `length` bytes at virtual address `address` of the region of `lkey`.
struct Sge {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

/// Status of a work completion; numbers and names of ibv_wc_status.
enum class WcStatus : std::uint8_t {
  kSuccess = 0,
  kLocalLengthError = 1,
  kLocalQpOperationError = 2,
  kLocalProtectionError = 4,
  kWrFlushError = 5,
  kMwBindError = 6,
  kBadResponseError = 7,
  kLocalAccessError = 8,
  kRemoteInvalidRequestError = 9,
  kRemoteAccessError = 10,
  kRemoteOperationError = 11,
  kRetryExceededError = 12,
  kRnrRetryExceededError = 13,
  kRemoteAbortedError = 16,
  kFatalError = 19,
  kGeneralError = 21,
};

/// snake_case name as in result.json ("local_length_error").
const char* wc_status_name(WcStatus status);

/// What ibv_wc_status_str says.
const char* wc_status_str(WcStatus status);

/// Opcode of a work completion; numbers of ibv_wc_opcode.
enum class WcOpcode : std::uint8_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kCompSwap = 3,
  kFetchAdd = 4,
  kBindMw = 5,
  kLocalInv = 6,
  kRegMr = 9,
  kRecv = 128,
  kRecvRdmaWithImm = 129,
};

}  // namespace rnic::protocol
