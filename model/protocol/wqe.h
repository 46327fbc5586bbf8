// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "protocol/address_vector.h"
#include "protocol/frame.h"
#include "protocol/qp_state.h"
#include "protocol/work_request.h"

namespace rnic::protocol {

/// Send WQE layout: mlx5-style segments in 64 B basic blocks (rdma-core providers/mlx5): control
/// 16 B, datagram 48 B (UD), remote address 16 B (one-sided), atomic 16 B, then data segments of 16
/// B or inline data.
inline constexpr std::uint32_t kWqeBlockBytes = 64;
inline constexpr std::uint32_t kWqeSegmentBytes = 16;
inline constexpr std::uint32_t kMaxWqeBlocks = 16;
inline constexpr std::uint32_t kMaxSge = 30;

/// Where a datagram goes. Source addresses are not part of a WQE: they are the port's own.
struct Datagram {
  AddressVector av;
  std::uint32_t pd = 0;  ///< of the address handle, modulo 2^20
  std::uint32_t destination_qpn = 0;
  std::uint32_t qkey = 0;
};

/// One send work request, between its bytes in the ring and the transport.
struct SendWqe {
  WqeOpcode opcode = WqeOpcode::kNop;
  std::uint16_t index = 0;  ///< ring position in blocks, modulo 2^16
  std::uint8_t blocks = 0;  ///< size in 64 B blocks
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  bool inline_data = false;
  bool is_datagram = false;  ///< `datagram` counts
  std::uint32_t imm_or_rkey = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  // Operations on keys: `rkey` is the key afterwards, `imm_or_rkey` the key to invalidate or the
  // lkey of the region to bind to, `remote_address` the first byte, `compare` the number of bytes,
  // `swap_or_add` the bus address of a list of pages.
  std::uint32_t key_access = 0;
  std::uint8_t log2_page_size = 0;
  Datagram datagram;
  std::uint32_t length = 0;  ///< message bytes
  std::uint32_t sge_count = 0;
  std::array<Sge, kMaxSge> sge{};
  PayloadBuffer inline_bytes;  ///< `length` bytes when inline_data

  bool is_read() const { return opcode == WqeOpcode::kRead; }
  bool is_atomic() const {
    return opcode == WqeOpcode::kAtomicCas || opcode == WqeOpcode::kAtomicFadd;
  }
  bool is_write() const { return opcode == WqeOpcode::kWrite || opcode == WqeOpcode::kWriteImm; }
  bool is_send() const {
    return opcode == WqeOpcode::kSend || opcode == WqeOpcode::kSendImm ||
           opcode == WqeOpcode::kSendInval;
  }
  /// Changes what a key stands for, which takes the key's new state in the WQE.
  bool is_key_update() const {
    return opcode == WqeOpcode::kBindMw || opcode == WqeOpcode::kFastReg;
  }
  /// Is carried out in the device alone.
  bool is_key_operation() const { return is_key_update() || opcode == WqeOpcode::kLocalInval; }
  bool has_imm() const { return opcode == WqeOpcode::kWriteImm || opcode == WqeOpcode::kSendImm; }
};

/// Blocks that `wqe` takes in the ring (by opcode, SGE count and inline length).
std::uint32_t wqe_blocks(const SendWqe& wqe);

/// Writes `wqe` for queue `qpn` into `out` (blocks * 64 B, contiguous); unused bytes are zero.
/// `blocks` and `index` must be set. `inline_bytes` holds the data when inline_data.
void encode_wqe(const SendWqe& wqe, std::uint32_t qpn, std::uint8_t* out);

/// Reads the WQE at `in` of a queue pair of `type`, of which `available` bytes are valid. False
/// when malformed (unknown opcode, size 0 or beyond `available`): the NIC reports a local QP
/// operation error.
bool decode_wqe(const std::uint8_t* in, std::size_t available, SendWqe& out,
                QpType type = QpType::kRc);

/// Blocks of the WQE whose first block is at `in` (from the control segment's size field).
std::uint32_t peek_wqe_blocks(const std::uint8_t* in);

/// Receive WQE: `max_sge` data segments of 16 B; a shorter list ends with the invalid lkey.
inline constexpr std::uint32_t kInvalidLkey = 0x100;

struct RecvWqe {
  std::uint16_t index = 0;  ///< what its CQE reports: number of the RECV, shared: its ring slot
  std::uint32_t sge_count = 0;
  std::uint32_t length = 0;  ///< sum of the segments
  std::array<Sge, kMaxSge> sge{};
};

/// A shared receive queue's WQE starts with a segment that names the ring slot of the next one
/// (mlx5_wqe_srq_next_seg): its slots are freed in any order.
inline constexpr std::uint32_t kSrqNextBytes = 16;
void encode_srq_next(std::uint16_t next, std::uint8_t* out);
std::uint16_t decode_srq_next(const std::uint8_t* in);

void encode_recv_wqe(const Sge* sge, std::uint32_t count, std::uint32_t max_sge, std::uint8_t* out);
void decode_recv_wqe(const std::uint8_t* in, std::uint32_t max_sge, RecvWqe& out);

}  // namespace rnic::protocol
