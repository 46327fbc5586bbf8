// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/iwarp_headers.h"
#include "protocol/tcp_header.h"
#include "transport/iwarp_transport.h"

namespace rnic::transport {

/// Bytes of DDP header and RDMAP header of a segment; a terminate message's own come on top.
constexpr std::uint32_t rdmap_header_bytes(protocol::RdmapOpcode opcode) {
  using protocol::DdpUntagged;
  using protocol::RdmapOpcode;
  switch (opcode) {
    case RdmapOpcode::kWrite:
    case RdmapOpcode::kReadResponse:
      return protocol::DdpTagged::kBytes;
    case RdmapOpcode::kReadRequest:
      return DdpUntagged::kBytes + protocol::RdmapReadRequest::kBytes;
    case RdmapOpcode::kImmediate:
    case RdmapOpcode::kImmediateSolicited:
      return DdpUntagged::kBytes + protocol::RdmapImmediate::kBytes;
    case RdmapOpcode::kAtomicRequest:
      return DdpUntagged::kBytes + protocol::RdmapAtomicRequest::kBytes;
    case RdmapOpcode::kAtomicResponse:
      return DdpUntagged::kBytes + protocol::RdmapAtomicResponse::kBytes;
    default:
      return DdpUntagged::kBytes;
  }
}

constexpr bool is_tagged(protocol::RdmapOpcode opcode) {
  return opcode == protocol::RdmapOpcode::kWrite || opcode == protocol::RdmapOpcode::kReadResponse;
}

/// Untagged queue of a message (RFC 5040, 5.1; RFC 7306, 5).
constexpr std::uint32_t queue_of(protocol::RdmapOpcode opcode) {
  using protocol::RdmapOpcode;
  switch (opcode) {
    case RdmapOpcode::kReadRequest:
    case RdmapOpcode::kAtomicRequest:
      return protocol::kDdpQueueReadRequest;
    case RdmapOpcode::kTerminate:
      return protocol::kDdpQueueTerminate;
    case RdmapOpcode::kAtomicResponse:
      return protocol::kDdpQueueAtomicResponse;
    default:
      return protocol::kDdpQueueSend;
  }
}

struct IwarpTransport::Segment {
  protocol::TcpHeader tcp;
  bool has_timestamp = false;
  std::uint32_t timestamp = 0;
  protocol::TcpOptions options;
  std::uint32_t stream_bytes = 0;  ///< TCP payload: the FPDU, or 0

  protocol::DdpControl control;
  std::uint32_t stag = 0;     ///< tagged
  std::uint64_t address = 0;  ///< tagged: TO
  std::uint32_t invalidate_stag = 0;
  std::uint32_t queue = 0;
  std::uint32_t msn = 0;
  std::uint32_t offset = 0;             ///< untagged: MO
  const std::uint8_t* ddp = nullptr;    ///< DDP header
  const std::uint8_t* rdmap = nullptr;  ///< RDMAP header
  std::uint32_t rdmap_bytes = 0;        ///< header bytes behind the DDP header
  std::uint16_t ulpdu_bytes = 0;
  std::uint32_t payload_bytes = 0;
};

}  // namespace rnic::transport
