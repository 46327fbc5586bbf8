// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace rnic::protocol {

/// Transport service in the top three bits of a BTH opcode.
enum class BthTransport : std::uint8_t {
  kRc = 0x00,
  kUc = 0x20,
  kRd = 0x40,
  kUd = 0x60,
  kCongestion = 0x80,
  kXrc = 0xA0,
};

/// BTH opcodes of the reliable connection (IBTA vol 1, table 38; Linux include/rdma/ib_pack.h).
/// Other services add their prefix: see with_transport(). A received byte may hold any value.
enum class BthOpcode : std::uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImm = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImm = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImm = 0x09,
  kWriteOnly = 0x0A,
  kWriteOnlyImm = 0x0B,
  kReadRequest = 0x0C,
  kReadRespFirst = 0x0D,
  kReadRespMiddle = 0x0E,
  kReadRespLast = 0x0F,
  kReadRespOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastInv = 0x16,
  kSendOnlyInv = 0x17,
  kCnp = 0x81,
};

/// Zero bytes behind the BTH of a CNP (IBTA annex A17, 17.9.3).
inline constexpr std::uint8_t kCnpReservedBytes = 16;

/// What a packet does.
enum class OpcodeKind : std::uint8_t {
  kInvalid,  ///< reserved, or not defined for its transport
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAck,
  kAtomic,
  kAtomicAck,
  kCnp,  ///< congestion notification of RoCEv2
};

/// Properties of a BTH opcode.
struct OpcodeInfo {
  OpcodeKind kind = OpcodeKind::kInvalid;
  BthTransport transport = BthTransport::kRc;
  bool first = false;  ///< of several packets; exactly one of these four is set for SEND, WRITE and
  bool middle = false;  ///< READ response
  bool last = false;
  bool only = false;
  bool has_reth = false;
  bool has_aeth = false;
  bool has_immdt = false;
  bool has_ieth = false;
  bool has_atomiceth = false;
  bool has_atomicacketh = false;
  bool has_deth = false;
  bool has_xrceth = false;
  std::uint8_t extension_bytes = 0;  ///< headers between BTH and payload

  constexpr bool valid() const { return kind != OpcodeKind::kInvalid; }
  constexpr bool starts_message() const { return first || only; }
  constexpr bool ends_message() const { return last || only; }
  constexpr bool is_request() const {
    return kind == OpcodeKind::kSend || kind == OpcodeKind::kWrite ||
           kind == OpcodeKind::kReadRequest || kind == OpcodeKind::kAtomic;
  }
  constexpr bool is_response() const {
    return kind == OpcodeKind::kReadResponse || kind == OpcodeKind::kAck ||
           kind == OpcodeKind::kAtomicAck;
  }
  constexpr bool is_read() const {
    return kind == OpcodeKind::kReadRequest || kind == OpcodeKind::kReadResponse;
  }
  constexpr bool may_carry_payload() const {
    return kind == OpcodeKind::kSend || kind == OpcodeKind::kWrite ||
           kind == OpcodeKind::kReadResponse;
  }
};

/// `opcode` of the reliable connection as another service sends it.
constexpr BthOpcode with_transport(BthTransport transport, BthOpcode opcode) {
  return static_cast<BthOpcode>(static_cast<unsigned>(transport) |
                                (static_cast<unsigned>(opcode) & 0x1FU));
}

namespace detail {

constexpr OpcodeKind kind_of(BthOpcode operation) {
  const auto op = static_cast<unsigned>(operation);
  if (op <= 0x05 || op == 0x16 || op == 0x17) return OpcodeKind::kSend;
  if (op <= 0x0B) return OpcodeKind::kWrite;
  if (op == 0x0C) return OpcodeKind::kReadRequest;
  if (op <= 0x10) return OpcodeKind::kReadResponse;
  if (op == 0x11) return OpcodeKind::kAck;
  if (op == 0x12) return OpcodeKind::kAtomicAck;
  if (op <= 0x14) return OpcodeKind::kAtomic;
  return OpcodeKind::kInvalid;
}

constexpr bool defined_for(BthTransport transport, BthOpcode operation) {
  const auto op = static_cast<unsigned>(operation);
  switch (transport) {
    case BthTransport::kRc:
    case BthTransport::kXrc:
      return kind_of(operation) != OpcodeKind::kInvalid;
    case BthTransport::kUc:
      return op <= 0x0B;
    case BthTransport::kUd:
      return operation == BthOpcode::kSendOnly || operation == BthOpcode::kSendOnlyImm;
    default:
      return false;
  }
}

constexpr void set_position(OpcodeInfo& info, BthOpcode operation) {
  switch (operation) {
    case BthOpcode::kSendFirst:
    case BthOpcode::kWriteFirst:
    case BthOpcode::kReadRespFirst:
      info.first = true;
      break;
    case BthOpcode::kSendMiddle:
    case BthOpcode::kWriteMiddle:
    case BthOpcode::kReadRespMiddle:
      info.middle = true;
      break;
    case BthOpcode::kSendLast:
    case BthOpcode::kSendLastImm:
    case BthOpcode::kSendLastInv:
    case BthOpcode::kWriteLast:
    case BthOpcode::kWriteLastImm:
    case BthOpcode::kReadRespLast:
      info.last = true;
      break;
    default:
      info.only = true;
      break;
  }
}

constexpr OpcodeInfo make_opcode_info(unsigned opcode) {
  OpcodeInfo info;
  info.transport = static_cast<BthTransport>(opcode & 0xE0U);
  if (opcode == static_cast<unsigned>(BthOpcode::kCnp)) {
    info.kind = OpcodeKind::kCnp;
    info.only = true;
    info.extension_bytes = kCnpReservedBytes;
    return info;
  }
  const auto op = static_cast<BthOpcode>(opcode & 0x1FU);
  if (!defined_for(info.transport, op)) return info;
  info.kind = kind_of(op);
  set_position(info, op);
  info.has_reth =
      op == BthOpcode::kReadRequest || (info.kind == OpcodeKind::kWrite && info.starts_message());
  info.has_aeth = info.is_response() && !info.middle;
  info.has_immdt = op == BthOpcode::kSendLastImm || op == BthOpcode::kSendOnlyImm ||
                   op == BthOpcode::kWriteLastImm || op == BthOpcode::kWriteOnlyImm;
  info.has_ieth = op == BthOpcode::kSendLastInv || op == BthOpcode::kSendOnlyInv;
  info.has_atomiceth = info.kind == OpcodeKind::kAtomic;
  info.has_atomicacketh = info.kind == OpcodeKind::kAtomicAck;
  info.has_deth = info.transport == BthTransport::kUd;
  info.has_xrceth = info.transport == BthTransport::kXrc && info.is_request();
  info.extension_bytes = static_cast<std::uint8_t>(
      (info.has_xrceth ? 4 : 0) + (info.has_deth ? 8 : 0) + (info.has_reth ? 16 : 0) +
      (info.has_atomiceth ? 28 : 0) + (info.has_aeth ? 4 : 0) + (info.has_atomicacketh ? 8 : 0) +
      (info.has_immdt ? 4 : 0) + (info.has_ieth ? 4 : 0));
  return info;
}

struct OpcodeTable {
  OpcodeInfo entries[256];
};

constexpr OpcodeTable make_opcode_table() {
  OpcodeTable table{};
  for (unsigned i = 0; i < 256; ++i) table.entries[i] = make_opcode_info(i);
  return table;
}

inline constexpr OpcodeTable kOpcodeTable = make_opcode_table();

}  // namespace detail

constexpr const OpcodeInfo& opcode_info(std::uint8_t opcode) {
  return detail::kOpcodeTable.entries[opcode];
}
constexpr const OpcodeInfo& opcode_info(BthOpcode opcode) {
  return opcode_info(static_cast<std::uint8_t>(opcode));
}

/// Name for people, such as "RC WRITE_ONLY"; "reserved 0x15" for what is not defined.
std::string opcode_name(std::uint8_t opcode);
inline std::string opcode_name(BthOpcode opcode) {
  return opcode_name(static_cast<std::uint8_t>(opcode));
}

}  // namespace rnic::protocol
