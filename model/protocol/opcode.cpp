// SPDX-License-Identifier: Apache-2.0
#include "protocol/opcode.h"

namespace rnic::protocol {
namespace {

constexpr const char* kOperationNames[] = {
    "SEND_FIRST",
    "SEND_MIDDLE",
    "SEND_LAST",
    "SEND_LAST_IMM",
    "SEND_ONLY",
    "SEND_ONLY_IMM",
    "WRITE_FIRST",
    "WRITE_MIDDLE",
    "WRITE_LAST",
    "WRITE_LAST_IMM",
    "WRITE_ONLY",
    "WRITE_ONLY_IMM",
    "READ_REQUEST",
    "READ_RESPONSE_FIRST",
    "READ_RESPONSE_MIDDLE",
    "READ_RESPONSE_LAST",
    "READ_RESPONSE_ONLY",
    "ACKNOWLEDGE",
    "ATOMIC_ACKNOWLEDGE",
    "COMPARE_SWAP",
    "FETCH_ADD",
    "",  // 0x15 is reserved
    "SEND_LAST_INV",
    "SEND_ONLY_INV",
};

const char* transport_name(BthTransport transport) {
  switch (transport) {
    case BthTransport::kRc:
      return "RC ";
    case BthTransport::kUc:
      return "UC ";
    case BthTransport::kUd:
      return "UD ";
    case BthTransport::kXrc:
      return "XRC ";
    default:
      return "";
  }
}

}  // namespace

std::string opcode_name(std::uint8_t opcode) {
  const OpcodeInfo& info = opcode_info(opcode);
  if (info.kind == OpcodeKind::kCnp) return "CNP";
  if (info.valid())
    return std::string(transport_name(info.transport)) + kOperationNames[opcode & 0x1F];
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("reserved 0x") + kDigits[opcode >> 4] + kDigits[opcode & 15];
}

}  // namespace rnic::protocol
