// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "protocol/mpa.h"
#include "transport/iwarp_segment.h"
#include "transport/iwarp_transport.h"

namespace rnic::transport {

using protocol::DdpControl;
using protocol::DdpTagged;
using protocol::DdpUntagged;
using protocol::RdmapOpcode;
using protocol::TcpHeader;
using protocol::TcpOptions;

namespace {

/// RDMAP header behind an untagged DDP header.
void write_rdmap(RdmapOpcode opcode, const TxPlan& plan, std::uint8_t* p) {
  switch (opcode) {
    case RdmapOpcode::kReadRequest:
      protocol::RdmapReadRequest{plan.sink_stag, plan.sink_address, plan.message_length, plan.rkey,
                                 plan.address}
          .encode(p);
      return;
    case RdmapOpcode::kImmediate:
    case RdmapOpcode::kImmediateSolicited:
      protocol::RdmapImmediate{plan.imm}.encode(p);
      return;
    case RdmapOpcode::kAtomicRequest: {
      protocol::RdmapAtomicRequest request;
      request.operation = plan.syndrome;
      request.request_id = static_cast<std::uint32_t>(plan.entry_number);
      request.stag = plan.rkey;
      request.offset = plan.address;
      request.swap_or_add = plan.swap_or_add;
      request.swap_or_add_mask = ~std::uint64_t{0};
      request.compare = plan.compare;
      request.compare_mask = ~std::uint64_t{0};
      request.encode(p);
      return;
    }
    case RdmapOpcode::kAtomicResponse:
      protocol::RdmapAtomicResponse{plan.sink_stag, plan.swap_or_add}.encode(p);
      return;
    default:
      return;
  }
}

/// DDP and RDMAP headers; returns their size.
std::uint32_t write_ulpdu(const IwarpConnection& c, const TxPlan& plan, std::uint8_t* p) {
  const auto opcode = static_cast<RdmapOpcode>(plan.opcode);
  const DdpControl control{is_tagged(opcode), plan.last, 1, 1, opcode};
  if (control.tagged) {
    const bool response = opcode == RdmapOpcode::kReadResponse;
    DdpTagged{control, response ? plan.sink_stag : plan.rkey,
              response ? plan.sink_address : plan.address}
        .encode(p);
    return DdpTagged::kBytes;
  }
  const bool invalidates =
      opcode == RdmapOpcode::kSendInvalidate || opcode == RdmapOpcode::kSendSolicitedInvalidate;
  DdpUntagged{control, invalidates ? plan.imm : 0, queue_of(opcode), plan.msn, plan.message_offset}
      .encode(p);
  if (opcode == RdmapOpcode::kTerminate) {
    std::memcpy(p + DdpUntagged::kBytes, c.terminate.data(), c.terminate_bytes);
    return DdpUntagged::kBytes + c.terminate_bytes;
  }
  write_rdmap(opcode, plan, p + DdpUntagged::kBytes);
  return rdmap_header_bytes(opcode);
}

}  // namespace

void IwarpTransport::build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const {
  if (plan.setup != SetupSegment::kNone) {
    build_setup(qp, plan, frame);
    return;
  }
  const IwarpConnection& c = *connection_of(qp);
  const bool has_fpdu = plan.frame_class != protocol::FrameClass::kAck;
  const std::uint32_t outer = encapsulation_.outer_bytes();
  std::uint8_t* tcp_at = frame.header + outer;
  TcpOptions options;
  if (config_.timestamps) {
    options.has_timestamps = true;
    options.timestamp = plan.timestamp;
    options.timestamp_echo = plan.timestamp_echo;
  }
  if (!has_fpdu && config_.sack) c.tcp.fill_sack(options);
  const std::uint32_t tcp_bytes = TcpHeader::kBytes + options.encode(tcp_at + TcpHeader::kBytes);
  std::uint8_t* p = tcp_at + tcp_bytes;
  std::uint32_t stream_bytes = 0;
  frame.pad_bytes = 0;
  frame.marker_count = 0;
  frame.trailer_bytes = static_cast<std::uint8_t>(encapsulation_.link_crc_bytes());
  if (has_fpdu) {
    const std::uint32_t headers = write_ulpdu(c, plan, p + protocol::kMpaLengthBytes);
    const std::uint32_t ulpdu = headers + plan.length;
    protocol::store_be16(p, static_cast<std::uint16_t>(ulpdu));
    p += protocol::kMpaLengthBytes + headers;
    stream_bytes = this->stream_bytes(plan.stream - c.first_sequence, ulpdu);
    if (config_.mpa_markers) {
      constexpr std::uint32_t kInterval = protocol::kMpaMarkerInterval;
      frame.marker_offset =
          static_cast<std::uint16_t>((plan.stream - c.first_sequence) % kInterval);
      frame.marker_count = static_cast<std::uint16_t>((stream_bytes - protocol::fpdu_bytes(ulpdu)) /
                                                      protocol::kMpaMarkerBytes);
    }
    frame.pad_bytes = static_cast<std::uint8_t>(protocol::mpa_pad(ulpdu));
    frame.trailer_bytes = static_cast<std::uint8_t>(encapsulation_.trailer_bytes());
  }
  TcpHeader tcp;
  tcp.source_port = c.local_port;
  tcp.destination_port = c.peer_port;
  tcp.sequence = static_cast<std::uint32_t>(plan.stream);
  tcp.acknowledgement = static_cast<std::uint32_t>(plan.stream_ack);
  tcp.header_words = static_cast<std::uint8_t>(tcp_bytes / 4);
  tcp.ack = true;
  tcp.psh = has_fpdu && plan.last;
  tcp.fin = plan.closes_stream;
  tcp.window = static_cast<std::uint16_t>(
      std::min(plan.stream_window >> window_scale_, TcpHeader::kMaxWindow));
  tcp.encode(tcp_at);
  encapsulation_.write_outer(qp.av, tcp_bytes + stream_bytes, frame.header);
  frame.header_bytes = static_cast<std::uint16_t>(p - frame.header);
  frame.payload_bytes = plan.length;
  frame.lane = encapsulation_.lane_of(qp.av);
  frame.wire_bytes = encapsulation_.wire_bytes(frame.frame_bytes());
}

std::uint32_t IwarpTransport::destination(const protocol::Frame& frame) {
  const ParsedOuter outer = encapsulation_.parse(frame);
  if (!outer.ok() || outer.inner_offset != encapsulation_.outer_bytes() ||
      !encapsulation_.addressed_to(outer, identity_)) {
    return 0;
  }
  const std::uint8_t* tcp = frame.header + outer.inner_offset;
  const ConnectionKey key{address_key(outer.source.ipv4, outer.source.gid),
                          protocol::load_be16(tcp), protocol::load_be16(tcp + 2)};
  const std::uint32_t qpn = connections_.find(key);
  if (qpn == 0) remember_request(key, frame, outer.inner_offset);
  return qpn;
}

bool IwarpTransport::decode(const protocol::Frame& frame, Segment& in) const {
  const std::uint8_t* p = frame.header + encapsulation_.outer_bytes();
  const std::uint8_t* end = frame.header + frame.header_bytes;
  in.tcp = TcpHeader::decode(p);
  if (in.tcp.header_words > TcpHeader::kBytes / 4) {
    if (!TcpOptions::decode(p + TcpHeader::kBytes, in.tcp.header_bytes() - TcpHeader::kBytes,
                            in.options)) {
      return false;
    }
    in.has_timestamp = in.options.has_timestamps;
    in.timestamp = in.options.timestamp;
  }
  if (!in.tcp.ack || in.tcp.syn || in.tcp.rst) return false;
  p += in.tcp.header_bytes();
  if (p == end) return frame.payload_bytes == 0;
  if (end - p < protocol::kMpaLengthBytes + DdpControl::kBytes) return false;
  in.payload_bytes = frame.payload_bytes;
  in.ulpdu_bytes = protocol::load_be16(p);
  p += protocol::kMpaLengthBytes;
  const auto header_bytes = static_cast<std::uint32_t>(end - p);
  if (in.ulpdu_bytes != header_bytes + frame.payload_bytes) return false;
  in.stream_bytes = protocol::fpdu_bytes(in.ulpdu_bytes) + frame.marker_bytes();
  in.control = DdpControl::decode(p);
  const std::uint32_t ddp_bytes = in.control.tagged ? DdpTagged::kBytes : DdpUntagged::kBytes;
  if (header_bytes < ddp_bytes) return false;
  in.ddp = p;
  in.rdmap = p + ddp_bytes;
  in.rdmap_bytes = header_bytes - ddp_bytes;
  if (in.control.tagged) {
    const auto ddp = DdpTagged::decode(p);
    in.stag = ddp.stag;
    in.address = ddp.offset;
    return in.rdmap_bytes == 0;
  }
  const auto ddp = DdpUntagged::decode(p);
  in.invalidate_stag = ddp.invalidate_stag;
  in.queue = ddp.queue;
  in.msn = ddp.msn;
  in.offset = ddp.offset;
  return in.control.opcode == RdmapOpcode::kTerminate
             ? in.rdmap_bytes >= protocol::RdmapTerminate::kBytes
             : header_bytes == rdmap_header_bytes(in.control.opcode);
}

}  // namespace rnic::transport
