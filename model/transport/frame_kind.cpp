// SPDX-License-Identifier: Apache-2.0
#include "transport/frame_kind.h"

#include "protocol/aeth.h"
#include "protocol/ib_headers.h"
#include "protocol/opcode.h"

namespace rnic::transport {

using config::FrameKind;
using config::FrameKinds;
using protocol::AethKind;
using protocol::Frame;
using protocol::FrameClass;
using protocol::OpcodeKind;

namespace {

constexpr FrameKinds kAnyData = FrameKind::kAny | FrameKind::kData;

/// BTH (IBTA vol 1, 9.2) and, in acknowledgements, the AETH behind it.
FrameKinds kinds_of_bth(const std::uint8_t* bth) {
  switch (protocol::opcode_info(bth[0]).kind) {
    case OpcodeKind::kCnp:
      return FrameKind::kAny | FrameKind::kCnp;
    case OpcodeKind::kReadResponse:
    case OpcodeKind::kAtomicAck:
      return kAnyData | FrameKind::kResponse;
    case OpcodeKind::kAck:
      break;
    default:
      return kAnyData | FrameKind::kRequest;
  }
  switch (protocol::syndrome_kind(bth[protocol::Bth::kBytes])) {
    case AethKind::kNak:
      return FrameKind::kAny | FrameKind::kNak;
    case AethKind::kRnrNak:
      return FrameKind::kAny | FrameKind::kRnr;
    default:
      return FrameKind::kAny | FrameKind::kAck;
  }
}

/// The FPDU behind a TCP header: 2 bytes of length, DDP's control byte, RDMAP's (RFC 5040, 4.3).
FrameKinds kinds_of_segment(const std::uint8_t* tcp) {
  constexpr std::size_t kDataOffset = 12;
  constexpr std::size_t kRdmapControl = 3;
  constexpr std::uint8_t kReadResponse = 0x2;
  constexpr std::uint8_t kAtomicResponse = 0xB;
  const std::size_t header = static_cast<std::size_t>(tcp[kDataOffset] >> 4U) * 4;
  const std::uint8_t opcode = tcp[header + kRdmapControl] & 0x0FU;
  const bool answers = opcode == kReadResponse || opcode == kAtomicResponse;
  return kAnyData | (answers ? FrameKind::kResponse : FrameKind::kRequest);
}

}  // namespace

FrameKinds kinds_of(config::Protocol protocol, const Encapsulation& encapsulation,
                    const Frame& frame) {
  const std::uint8_t* inner = frame.header + encapsulation.outer_bytes(frame);
  switch (frame.frame_class) {
    case FrameClass::kLinkControl:
      return 0;
    case FrameClass::kConnection:
      return FrameKind::kAny | FrameKind::kConnection;
    case FrameClass::kAck:
      if (protocol == config::Protocol::kIwarp) return FrameKind::kAny | FrameKind::kAck;
      break;
    case FrameClass::kData:
      break;
  }
  return protocol == config::Protocol::kIwarp ? kinds_of_segment(inner) : kinds_of_bth(inner);
}

}  // namespace rnic::transport
