// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_order.h"

namespace rnic::protocol {

/// Offsets in the device's BAR. The send doorbell and BlueFlame share a register as in mlx5: an
/// 8-byte store is a doorbell, a store of 64 B multiples carries the WQE itself.
struct BarLayout {
  static constexpr std::uint64_t kCqArm = 0x20;
  static constexpr std::uint64_t kSendDoorbell = 0x800;
  static constexpr std::uint64_t kCommand = 0x1000;
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

/// Doorbell record in host memory, one cache line a queue: word 0 the RQ's producer counter, word 1
/// the SQ's, 16 bits each (rdma-core providers/mlx5).
struct DoorbellRecord {
  static constexpr std::uint32_t kBytes = 8;
  static constexpr std::uint32_t kRecvOffset = 0;
  static constexpr std::uint32_t kSendOffset = 4;
};

}  // namespace rnic::protocol
