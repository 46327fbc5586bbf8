// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/rc_harness.h"

/// What tests of the reliable connection say about packets.
namespace rnic::testbench {

using Packets = std::vector<RcPacket>;

inline std::vector<protocol::BthOpcode> opcodes(const Packets& packets) {
  std::vector<protocol::BthOpcode> list;
  for (const RcPacket& packet : packets) list.push_back(packet.bth.opcode);
  return list;
}

inline std::vector<std::uint32_t> psns(const Packets& packets) {
  std::vector<std::uint32_t> list;
  for (const RcPacket& packet : packets) list.push_back(packet.bth.psn);
  return list;
}

/// Fills memory with bytes that differ at every place and for every `salt`.
inline void fill(RcSide& side, std::uint64_t address, std::uint32_t bytes, std::uint32_t salt) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const std::uint32_t mixed = (i + 1) * 2654435761U + salt * 40503U;
    side.memory[static_cast<std::size_t>(address) + i] = static_cast<std::uint8_t>(mixed >> 13);
  }
}

inline bool same_bytes(const RcSide& x, std::uint64_t at_x, const RcSide& y, std::uint64_t at_y,
                       std::uint32_t bytes) {
  return std::memcmp(x.memory.data() + at_x, y.memory.data() + at_y, bytes) == 0;
}

/// Plan of a request that a test makes up; `length` payload bytes of zeros.
inline transport::TxPlan crafted(protocol::BthOpcode opcode, std::uint32_t psn,
                                 std::uint32_t length, bool ack_request = true) {
  transport::TxPlan plan;
  plan.opcode = static_cast<std::uint8_t>(opcode);
  plan.psn = psn;
  plan.length = length;
  plan.message_length = length;
  plan.ack_request = ack_request;
  plan.rkey = RcSide::kKey;
  plan.address = 0x1000;
  return plan;
}

/// Plan of a response that a test makes up.
inline transport::TxPlan crafted_response(protocol::BthOpcode opcode, std::uint32_t psn,
                                          std::uint8_t syndrome, std::uint32_t length = 0) {
  transport::TxPlan plan = crafted(opcode, psn, length, false);
  plan.syndrome = syndrome;
  return plan;
}

}  // namespace rnic::testbench
