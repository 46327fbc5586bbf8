// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_order.h"

namespace rnic::protocol {

/// Offsets in the device's BAR. The send doorbell and BlueFlame share a register as in mlx5: an
/// 8-byte store is a doorbell, a store of 64 B multiples carries the WQE itself.
struct BarLayout {
  static constexpr std::uint64_t kCqArm = 0x20;
  static constexpr std::uint64_t kEqArm = 0x40;
  static constexpr std::uint64_t kRecvDoorbell = 0x60;
  static constexpr std::uint64_t kFaultResume = 0x80;
  static constexpr std::uint64_t kClock = 0xA0;  ///< read only: ns since start, 64 bits
  static constexpr std::uint64_t kSendDoorbell = 0x800;
  static constexpr std::uint64_t kCommand = 0x1000;
  /// Further registers for WQEs, one each of these bytes; the first is at kSendDoorbell.
  static constexpr std::uint64_t kRegisterStride = 0x10000;
  static constexpr std::uint64_t blueflame_register(std::uint64_t index) {
    return index * kRegisterStride + kSendDoorbell;
  }
};

/// Send doorbell: new producer index (in WQE blocks, modulo 2^16) of a queue.
struct SendDoorbell {
  static constexpr std::uint32_t kBytes = 8;
  std::uint32_t qpn = 0;
  std::uint16_t producer = 0;

  void encode(std::uint8_t* out) const {
    store_be32(out, producer);
    store_be32(out + 4, qpn << 8);
  }
  static SendDoorbell decode(const std::uint8_t* in) {
    return {load_be32(in + 4) >> 8, static_cast<std::uint16_t>(load_be32(in))};
  }
};

/// Arms a completion queue: one event for the next completion behind `consumer`, the first that the
/// application cannot have seen yet.
struct CqArmDoorbell {
  static constexpr std::uint32_t kBytes = 8;
  static constexpr std::uint32_t kSolicitedBit = 1U << 31;
  std::uint32_t cqn = 0;  ///< 24 bits
  bool solicited_only = false;
  std::uint32_t consumer = 0;

  void encode(std::uint8_t* out) const {
    store_be32(out, cqn | (solicited_only ? kSolicitedBit : 0));
    store_be32(out + 4, consumer);
  }
  static CqArmDoorbell decode(const std::uint8_t* in) {
    const std::uint32_t word = load_be32(in);
    return {word & ~kSolicitedBit, (word & kSolicitedBit) != 0, load_be32(in + 4)};
  }
};

/// Gives event queue entries up to `consumer` back and asks for an interrupt at the next one.
struct EqArmDoorbell {
  static constexpr std::uint32_t kBytes = 8;
  std::uint32_t eqn = 0;
  std::uint32_t consumer = 0;

  void encode(std::uint8_t* out) const {
    store_be32(out, eqn);
    store_be32(out + 4, consumer);
  }
  static EqArmDoorbell decode(const std::uint8_t* in) { return {load_be32(in), load_be32(in + 4)}; }
};

/// Receive doorbell of a queue pair in ERR, whose doorbell record the device does not look at any
/// more: RECVs posted since are flushed.
struct RecvDoorbell {
  static constexpr std::uint32_t kBytes = 8;
  std::uint32_t qpn = 0;

  void encode(std::uint8_t* out) const {
    store_be32(out, 0);
    store_be32(out + 4, qpn << 8);
  }
  static RecvDoorbell decode(const std::uint8_t* in) { return {load_be32(in + 4) >> 8}; }
};

/// Pages of an on-demand region are in memory: `count` translation entries from `first_mtt` are
/// new, or with `failed` some of them stand for addresses that the process does not have.
struct FaultResumeDoorbell {
  static constexpr std::uint32_t kBytes = 16;
  static constexpr std::uint32_t kFailedBit = 1U << 31;
  std::uint32_t key = 0;
  std::uint32_t count = 0;  ///< 31 bits
  std::uint64_t first_mtt = 0;
  bool failed = false;

  void encode(std::uint8_t* out) const {
    store_be32(out, key);
    store_be32(out + 4, count | (failed ? kFailedBit : 0));
    store_be64(out + 8, first_mtt);
  }
  static FaultResumeDoorbell decode(const std::uint8_t* in) {
    const std::uint32_t word = load_be32(in + 4);
    return {load_be32(in), word & ~kFailedBit, load_be64(in + 8), (word & kFailedBit) != 0};
  }
};

/// Doorbell record in host memory, one cache line a queue: word 0 the RQ's producer counter, word 1
/// the SQ's, 16 bits each (rdma-core providers/mlx5).
struct DoorbellRecord {
  static constexpr std::uint32_t kBytes = 8;
  static constexpr std::uint32_t kRecvOffset = 0;
  static constexpr std::uint32_t kSendOffset = 4;
};

}  // namespace rnic::protocol
