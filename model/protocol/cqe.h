// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/work_request.h"

namespace rnic::protocol {

inline constexpr std::uint32_t kCqeBytes = 64;

/// Completion queue entry, mlx5-style 64 B layout (rdma-core mlx5dv.h).
struct Cqe {
  enum class Kind : std::uint8_t {
    kRequester = 0,
    kRespWriteImm = 1,
    kRespSend = 2,
    kRespSendImm = 3,
    kRespSendInv = 4,
    kRequesterError = 13,
    kResponderError = 14,
    kInvalid = 15,
  };

  Kind kind = Kind::kInvalid;
  WcStatus status = WcStatus::kSuccess;
  std::uint8_t vendor_syndrome = 0;    ///< of an error: the device's own code, 0 where it has none
  WqeOpcode opcode = WqeOpcode::kNop;  ///< requester: operation of the WQE
  std::uint32_t qpn = 0;
  std::uint32_t src_qp = 0;
  std::uint16_t slid = 0;  ///< datagram on InfiniBand: LID that it came from
  std::uint8_t sl = 0;     ///< datagram: its service level; Ethernet: priority of its VLAN tag
  std::uint32_t imm = 0;
  std::uint32_t byte_count = 0;
  std::uint16_t wqe_counter = 0;
  bool solicited = false;
  bool grh = false;          ///< a datagram's buffer starts with its network header
  bool unsolicited = false;  ///< immediate data that took no RECV
  bool owner = false;        ///< flips every pass of the ring

  bool is_error() const { return kind == Kind::kRequesterError || kind == Kind::kResponderError; }
  bool is_responder() const {
    return kind == Kind::kRespWriteImm || kind == Kind::kRespSend || kind == Kind::kRespSendImm ||
           kind == Kind::kRespSendInv || kind == Kind::kResponderError;
  }
};

/// What ConnectX tells besides the status of an error, as logs of applications have it:
/// openucx/ucx#5732, #1151, linux-nvme/nvme-cli#3268, charmplusplus/charm#2532, and
/// unionxic/rdma-fault-characterization for the protection errors. 0: none is known. `fetched`: the
/// error is of a buffer for what a READ or atomic brought.
std::uint8_t vendor_syndrome(WcStatus status, bool fetched);

void encode_cqe(const Cqe& cqe, std::uint8_t* out);
Cqe decode_cqe(const std::uint8_t* in);

/// Offset of the byte that holds opcode and owner bit: the last to be written.
inline constexpr std::uint32_t kCqeOwnerOffset = 63;

}  // namespace rnic::protocol
